package io.toll.vets;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.toll.launch.Address;
import io.toll.launch.CallSettings;
import io.toll.launch.Settings;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the service is to do, as the lab writes it.
 *
 * @param name name of the service in the application graph
 * @param listen where to listen, as {@code ADDRESS:PORT}; port 0 takes any free one
 * @param calls none
 * @param metrics where to show the JVM's readings, as {@code ADDRESS:PORT}
 */
public record VetsSettings(
        @JsonProperty(required = true) String name,
        @JsonProperty(required = true) String listen,
        @Nullable List<CallSettings> calls,
        @Nullable String metrics)
        implements Settings {

    public VetsSettings {
        Address.parse(listen);
        if (calls != null && !calls.isEmpty()) {
            throw new IllegalArgumentException("vets calls no service");
        }
        if (metrics != null) {
            Address.parse(metrics);
        }
    }
}
