package io.toll.database;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.toll.launch.Address;
import org.jspecify.annotations.Nullable;

/**
 * A PostgreSQL database and what to ask it.
 *
 * @param service name of the database in the application graph
 * @param address where to connect to, as {@code ADDRESS:PORT}
 * @param connections the most connections to have at a time
 * @param read asked for each GET
 * @param write run in a transaction for each POST, with the body as its one parameter, a text
 */
public record DatabaseSettings(
        @JsonProperty(required = true) String service,
        @JsonProperty(required = true) String address,
        @JsonProperty(required = true) String user,
        @JsonProperty(required = true) String database,
        @JsonProperty(required = true) int connections,
        @JsonProperty(required = true) String read,
        @Nullable String write) {

    public DatabaseSettings {
        Address.parse(address);
        if (connections < 1) {
            throw new IllegalArgumentException("a pool has at least one connection, not " + connections);
        }
    }

    String host() {
        return Address.parse(address).getHostString();
    }

    int port() {
        return Address.parse(address).getPort();
    }
}
