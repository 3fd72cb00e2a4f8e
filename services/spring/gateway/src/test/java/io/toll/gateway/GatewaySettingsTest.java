package io.toll.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.toll.launch.SettingsFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GatewaySettingsTest {
    /** As the lab writes it. */
    private static final String WHOLE = """
            {"name": "gateway", "listen": "0.0.0.0:8080",
             "calls": [{"service": "vets", "addresses": ["10.77.0.3:8081"], "host": "vets:8081"}],
             "metrics": "0.0.0.0:9080"}
            """;

    @Test
    void everyKeyIsTaken() {
        GatewaySettings settings = parse(WHOLE);
        assertThat(settings.listensOn().getPort()).isEqualTo(8080);
        assertThat(settings.behind().host()).isEqualTo("vets:8081");
        assertThat(settings.metrics()).isEqualTo("0.0.0.0:9080");
    }

    @Test
    void metricsMayBeLeftOut() {
        assertThat(parse(WHOLE.replace(",\n \"metrics\": \"0.0.0.0:9080\"", "")).metrics()).isNull();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '~', textBlock = """
            "calls":                               | "call":                    | call
            "metrics": "0.0.0.0:9080"              | "work_us": 1               | work_us
            "0.0.0.0:9080"                         | "9080"                     | `9080` is not ADDRESS:PORT
            "0.0.0.0:8080"                         | null                       | `null` is not ADDRESS:PORT
            "10.77.0.3:8081"                       | "10.77.0.3"                | `10.77.0.3` is not ADDRESS:PORT
            "10.77.0.3:8081"                       | "10.77.0.3:1", "10.77.0.4:1" | one service at one address
            "host": "vets:8081"}                   | "host": "vets:8081"}, {"service": "owners", "addresses": ["10.77.0.4:1"], "host": "o"} | one service at one address
            """)
    void whatIsWrongIsNamed(String right, String wrong, String named) {
        assertThatThrownBy(() -> parse(WHOLE.replace(right, wrong))).hasMessageContaining(named);
    }

    private static GatewaySettings parse(String json) {
        return SettingsFile.parse(json, GatewaySettings.class);
    }
}
