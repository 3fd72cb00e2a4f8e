package io.toll.vets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.toll.launch.SettingsFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class VetsSettingsTest {
    /** As the lab writes it. */
    private static final String WHOLE = """
            {"name": "vets", "listen": "0.0.0.0:8081", "calls": [], "metrics": "0.0.0.0:9081"}
            """;

    @Test
    void everyKeyIsTaken() {
        VetsSettings settings = parse(WHOLE);
        assertThat(settings.listensOn().getPort()).isEqualTo(8081);
        assertThat(settings.metrics()).isEqualTo("0.0.0.0:9081");
    }

    @Test
    void callsAndMetricsMayBeLeftOut() {
        assertThat(parse("{\"name\": \"vets\", \"listen\": \"0.0.0.0:8081\"}").metrics()).isNull();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '~', textBlock = """
            "name":        | "names":                                                         | name
            "0.0.0.0:8081" | "8081"                                                           | `8081` is not ADDRESS:PORT
            "0.0.0.0:9081" | "9081"                                                           | `9081` is not ADDRESS:PORT
            []             | [{"service": "a", "addresses": ["10.77.0.3:1"], "host": "a"}]    | vets calls no service
            """)
    void whatIsWrongIsNamed(String right, String wrong, String named) {
        assertThatThrownBy(() -> parse(WHOLE.replace(right, wrong))).hasMessageContaining(named);
    }

    private static VetsSettings parse(String json) {
        return SettingsFile.parse(json, VetsSettings.class);
    }
}
