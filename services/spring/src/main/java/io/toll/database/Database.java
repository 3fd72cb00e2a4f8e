package io.toll.database;

import io.r2dbc.spi.ConnectionFactory;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Asks the database, with prepared statements over pooled connections. */
public class Database {
    private static final String PEER = "SELECT host(inet_client_addr())";

    private final DatabaseSettings settings;
    private final DatabaseClient client;
    private final TransactionalOperator transaction;

    Database(DatabaseSettings settings, ConnectionFactory connections) {
        this.settings = settings;
        // The study's SQL goes out as written: a colon in it is no named parameter.
        this.client = DatabaseClient.builder().connectionFactory(connections).namedParameters(false).build();
        this.transaction = TransactionalOperator.create(new R2dbcTransactionManager(connections));
    }

    /** The rows of the read, each as its values by column name. */
    public Flux<Map<String, @Nullable Object>> read() {
        return prepared(settings.read()).map(Rows::byName).all().onErrorMap(this::failed);
    }

    /** Runs the write in a transaction of its own; completes when it is committed. */
    public Mono<Void> write(String body) {
        if (settings.write() == null) {
            return Mono.error(new QueryFailed("no write is configured for " + settings.service()));
        }
        return client.sql(settings.write())
                .bind(0, body)
                .fetch()
                .rowsUpdated()
                .as(transaction::transactional)
                .onErrorMap(this::failed)
                .then();
    }

    /** Where this node's connections come from as the database sees them. */
    public Mono<String> peer() {
        return prepared(PEER).mapValue(String.class).one().onErrorMap(this::failed);
    }

    /**
     * A statement without parameters would be sent as text each time, to be parsed and planned anew. Asking
     * for rows in portions makes the driver prepare it, and in its compatibility mode (see {@link Connections})
     * it fetches all rows in one go nevertheless.
     */
    private DatabaseClient.GenericExecuteSpec prepared(String sql) {
        return client.sql(sql).filter(statement -> statement.fetchSize(1));
    }

    private Throwable failed(Throwable why) {
        return why instanceof QueryFailed ? why : new QueryFailed(settings.service(), why);
    }
}
