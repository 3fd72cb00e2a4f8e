package io.toll.database;

import io.r2dbc.pool.ConnectionPool;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Gives a node its database, if it has one. */
@Configuration(proxyBeanMethods = false)
@ConditionalOnBean(DatabaseSettings.class)
class DatabaseConfiguration {
    @Bean
    ConnectionPool connections(DatabaseSettings settings) {
        return Connections.pool(settings);
    }

    @Bean
    Database database(DatabaseSettings settings, ConnectionPool connections) {
        return new Database(settings, connections);
    }
}
