package io.toll.node;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.toll.database.DatabaseSettings;
import io.toll.neighbours.NeighbourSettings;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.PropertyNamingStrategies.SnakeCaseStrategy;
import tools.jackson.databind.annotation.JsonNaming;
import tools.jackson.databind.json.JsonMapper;

/**
 * What the node is to play, as the lab writes it for every runtime.
 *
 * @param name name of the service in the application graph
 * @param listen where to listen, as {@code ADDRESS:PORT}; port 0 takes any free one
 * @param calls the services to call once for each request, in order
 * @param workUs CPU time to burn for each request, microseconds
 * @param replyBytes size of the answer's body
 * @param status status of the answer
 * @param relay whether the answer is the last called service's instead
 * @param database what to ask a database
 * @param stall refused: only the built-in service plays this fault
 */
@JsonNaming(SnakeCaseStrategy.class)
public record NodeSettings(
        @JsonProperty(required = true) String name,
        @JsonProperty(required = true) String listen,
        @JsonProperty(required = true) List<NeighbourSettings> calls,
        @JsonProperty(required = true) long workUs,
        @JsonProperty(required = true) int replyBytes,
        @JsonProperty(required = true) int status,
        boolean relay,
        @Nullable DatabaseSettings database,
        @Nullable JsonNode stall) {

    private static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            // Only `relay` may be left out among the primitives; the others are required.
            .disable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .build();

    public NodeSettings {
        demand(name != null && listen != null && calls != null, "name, listen and calls cannot be null");
        demand(listen.matches("[^:]+:\\d{1,5}"), "listen is ADDRESS:PORT, not `" + listen + "`");
        demand(workUs >= 0 && replyBytes >= 0, "work_us and reply_bytes are never below 0");
        demand(status >= 200 && status <= 999, "status " + status + " cannot end an answer (200 to 999)");
        demand(stall == null || stall.isNull(), "the Spring service plays no stall: use the native runtime for it");
    }

    /** Reads the file at {@code path}. */
    public static NodeSettings read(Path path) {
        try {
            return parse(Files.readString(path));
        } catch (IOException why) {
            throw new SettingsRefused("cannot read " + path + ": " + why, why);
        } catch (JacksonException why) {
            throw new SettingsRefused("cannot understand " + path + ": " + why.getOriginalMessage(), why);
        }
    }

    /** Reads JSON. */
    static NodeSettings parse(String json) {
        return MAPPER.readValue(json, NodeSettings.class);
    }

    /** Where to listen. */
    public InetSocketAddress listensOn() {
        int colon = listen.lastIndexOf(':');
        return InetSocketAddress.createUnresolved(
                listen.substring(0, colon), Integer.parseInt(listen.substring(colon + 1)));
    }

    private static void demand(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalArgumentException(otherwise);
        }
    }
}
