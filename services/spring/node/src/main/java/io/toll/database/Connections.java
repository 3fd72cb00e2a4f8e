package io.toll.database;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.client.SSLMode;
import java.time.Duration;

/** Turns settings into a pool that grows as needed and keeps its connections for good. */
final class Connections {
    /** How long a connection may take to be made before it has failed. */
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private static final Duration NEVER = Duration.ofMillis(-1);

    private Connections() {}

    static ConnectionPool pool(DatabaseSettings settings) {
        ConnectionPoolConfiguration configuration = ConnectionPoolConfiguration.builder(factory(settings))
                .initialSize(0)
                .maxSize(settings.connections())
                .maxIdleTime(NEVER)
                .build();
        return new ConnectionPool(configuration);
    }

    private static PostgresqlConnectionFactory factory(DatabaseSettings settings) {
        return new PostgresqlConnectionFactory(PostgresqlConnectionConfiguration.builder()
                .host(settings.host())
                .port(settings.port())
                .username(settings.user())
                .database(settings.database())
                .applicationName("toll-spring")
                .connectTimeout(PATIENCE)
                .sslMode(SSLMode.DISABLE)
                // Or each new connection would ask the catalogue for types that nobody reads.
                .autodetectExtensions(false)
                // A prepared statement brings all its rows in one round trip (see Database).
                .compatibilityMode(true)
                .build());
    }
}
