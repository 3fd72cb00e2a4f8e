package io.toll.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsFileTest {
    private record Example(@JsonProperty(required = true) String listen, boolean relay) implements Settings {
        private Example {
            Address.parse(listen);
        }
    }

    @TempDir
    private Path folder;

    @Test
    void aFileIsRead() throws IOException {
        Example example = SettingsFile.read(file("{\"listen\": \"10.77.0.3:80\", \"relay\": true}"), Example.class);
        assertThat(example.listensOn().getHostString()).isEqualTo("10.77.0.3");
        assertThat(example.listensOn().getPort()).isEqualTo(80);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '~', textBlock = """
            {"listen": "80"}                       | `80` is not ADDRESS:PORT
            {"listen": "a b:80"}                   | `a b:80` is not ADDRESS:PORT
            {"listen": "a:70000"}                  | port out of range:70000
            {"relay": true}                        | listen
            {"listen": "127.0.0.1:0", "liste": ""} | liste
            {"listen"                              | Unexpected end-of-input
            """)
    void whatIsWrongIsToldInOneLine(String json, String words) throws IOException {
        Path file = file(json);
        assertThatThrownBy(() -> SettingsFile.read(file, Example.class))
                .isInstanceOf(SettingsRefused.class)
                .hasMessageStartingWith("cannot understand " + file + ": ")
                .hasMessageContaining(words)
                .hasMessageNotContaining("\n");
    }

    @Test
    void aFileThatIsNotThereIsNamed() {
        assertThatThrownBy(() -> SettingsFile.read(Path.of("no-such-file.json"), Example.class))
                .isInstanceOf(SettingsRefused.class)
                .hasMessageContaining("cannot read no-such-file.json");
    }

    private Path file(String json) throws IOException {
        return Files.writeString(folder.resolve("example.json"), json);
    }
}
