package io.toll.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.toll.launch.SettingsFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NodeSettingsTest {
    /** As the lab writes it, with every key that this runtime plays. */
    private static final String WHOLE = """
            {"name": "name", "listen": "0.0.0.0:8083",
             "calls": [{"service": "person", "addresses": ["10.77.0.4:8082", "10.77.0.5:8082"], "host": "person:8082"}],
             "work_us": 100, "reply_bytes": 5, "status": 200, "relay": true,
             "database": {"service": "postgres", "address": "10.77.0.6:5432", "user": "toll", "database": "toll",
                          "connections": 16, "read": "SELECT 1", "write": "SELECT $1"}}
            """;

    private static final String LEAST = """
            {"name": "name", "listen": "0.0.0.0:8083", "calls": [], "work_us": 0, "reply_bytes": 5, "status": 200}
            """;

    @Test
    void everyKeyIsTaken() {
        NodeSettings settings = parse(WHOLE);
        assertThat(settings.calls().get(0).addresses()).containsExactly("10.77.0.4:8082", "10.77.0.5:8082");
        assertThat(settings.workUs()).isEqualTo(100);
        assertThat(settings.relay()).isTrue();
        assertThat(settings.database().connections()).isEqualTo(16);
        assertThat(settings.listensOn().getPort()).isEqualTo(8083);
    }

    @Test
    void whatIsOptionalMayBeLeftOut() {
        NodeSettings settings = parse(LEAST);
        assertThat(settings.relay()).isFalse();
        assertThat(settings.database()).isNull();
        assertThat(parse(WHOLE.replace(", \"write\": \"SELECT $1\"", "")).database().write())
                .isNull();
    }

    @Test
    void aStallIsRefusedWithAdvice() {
        String stalling = LEAST.replace("200}", "200, \"stall\": {\"every_ms\": 1000, \"lasting_ms\": 100}}");
        assertThatThrownBy(() -> parse(stalling))
                .hasMessageContaining("the Spring service plays no stall: use the native runtime for it");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '~', textBlock = """
            "work_us"       | "work_ms": 1, "work_us"     | work_ms
            "connections"   | "sockets": 1, "connections" | sockets
            "status": 200,  |                             | status
            "host":         | "hosts":                    | host
            16              | 0                           | a pool has at least one connection, not 0
            200             | 100                         | status 100 cannot end an answer (200 to 999)
            0.0.0.0:8083    | 8083                        | `8083` is not ADDRESS:PORT
            10.77.0.4:8082  | not an address              | `not an address` is not ADDRESS:PORT
            10.77.0.6:5432  | 10.77.0.6                   | `10.77.0.6` is not ADDRESS:PORT
            """)
    void whatIsWrongIsNamed(String right, String wrong, String named) {
        String spoilt = WHOLE.replace(right, wrong == null ? "" : wrong);
        assertThatThrownBy(() -> parse(spoilt)).hasMessageContaining(named);
    }

    private static NodeSettings parse(String json) {
        return SettingsFile.parse(json, NodeSettings.class);
    }
}
