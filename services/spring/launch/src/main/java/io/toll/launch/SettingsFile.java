package io.toll.launch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** Turns a configuration's file into settings, or into the words why not. */
public final class SettingsFile {
    private static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            // What may be left out is false or 0 then; what may not is marked as required.
            .disable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .build();

    private SettingsFile() {}

    /**
     * Reads the file at {@code path}.
     *
     * @throws SettingsRefused in one line
     */
    public static <S> S read(Path path, Class<S> settings) {
        try {
            return parse(Files.readString(path), settings);
        } catch (IOException why) {
            throw new SettingsRefused("cannot read " + path + ": " + why, why);
        } catch (JacksonException why) {
            throw new SettingsRefused("cannot understand " + path + ": " + firstLine(why), why);
        }
    }

    /** Reads JSON. */
    public static <S> S parse(String json, Class<S> settings) {
        return MAPPER.readValue(json, settings);
    }

    /** The lines after it say where, in the mapper's own terms. */
    private static String firstLine(JacksonException why) {
        return why.getOriginalMessage().lines().findFirst().orElse("it is no JSON");
    }
}
