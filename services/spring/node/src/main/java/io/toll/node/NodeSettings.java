package io.toll.node;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.toll.database.DatabaseSettings;
import io.toll.launch.Address;
import io.toll.launch.CallSettings;
import io.toll.launch.Settings;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.PropertyNamingStrategies.SnakeCaseStrategy;
import tools.jackson.databind.annotation.JsonNaming;

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
        @JsonProperty(required = true) List<CallSettings> calls,
        @JsonProperty(required = true) long workUs,
        @JsonProperty(required = true) int replyBytes,
        @JsonProperty(required = true) int status,
        boolean relay,
        @Nullable DatabaseSettings database,
        @Nullable JsonNode stall)
        implements Settings {

    public NodeSettings {
        demand(name != null && listen != null && calls != null, "name, listen and calls cannot be null");
        Address.parse(listen);
        demand(workUs >= 0 && replyBytes >= 0, "work_us and reply_bytes are never below 0");
        demand(status >= 200 && status <= 999, "status " + status + " cannot end an answer (200 to 999)");
        demand(stall == null || stall.isNull(), "the Spring service plays no stall: use the native runtime for it");
    }

    private static void demand(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalArgumentException(otherwise);
        }
    }
}
