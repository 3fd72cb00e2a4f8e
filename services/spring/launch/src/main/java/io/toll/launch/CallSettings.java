package io.toll.launch;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;

/**
 * A service to call.
 *
 * @param service name of the service in the application graph
 * @param addresses where to connect to, as {@code ADDRESS:PORT}; several are taken in turn
 * @param host what to ask for in the Host header
 */
public record CallSettings(
        @JsonProperty(required = true) String service,
        @JsonProperty(required = true) List<String> addresses,
        @JsonProperty(required = true) String host) {

    public CallSettings {
        if (addresses == null || addresses.isEmpty()) {
            throw new IllegalArgumentException(service + " has no addresses");
        }
        addresses.forEach(Address::parse);
    }
}
