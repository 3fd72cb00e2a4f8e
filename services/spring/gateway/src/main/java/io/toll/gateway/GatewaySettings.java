package io.toll.gateway;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.toll.launch.Address;
import io.toll.launch.CallSettings;
import io.toll.launch.Settings;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the gateway is to do, as the lab writes it.
 *
 * @param name name of the service in the application graph
 * @param listen where to listen, as {@code ADDRESS:PORT}; port 0 takes any free one
 * @param calls the one service behind the gateway, at one address
 * @param metrics where to show the JVM's readings, as {@code ADDRESS:PORT}
 */
public record GatewaySettings(
        @JsonProperty(required = true) String name,
        @JsonProperty(required = true) String listen,
        @JsonProperty(required = true) List<CallSettings> calls,
        @Nullable String metrics)
        implements Settings {

    public GatewaySettings {
        Address.parse(listen);
        if (calls == null || calls.size() != 1 || calls.get(0).addresses().size() != 1) {
            throw new IllegalArgumentException("a gateway calls one service at one address");
        }
        if (metrics != null) {
            Address.parse(metrics);
        }
    }

    /** The service behind the gateway. */
    CallSettings behind() {
        return calls.get(0);
    }
}
