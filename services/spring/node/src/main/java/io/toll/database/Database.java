package io.toll.database;

import io.r2dbc.spi.ConnectionFactory;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
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

    /** Runs the write in a transaction of its own, with {@code body} as its text; completes when it is committed. */
    public Mono<Void> write(byte[] body) {
        return Mono.fromCallable(() -> text(body))
                .flatMap(text -> insert(text).as(transaction::transactional))
                .onErrorMap(this::failed)
                .then();
    }

    /** Where this node's connections come from as the database sees them. */
    public Mono<String> peer() {
        return prepared(PEER).mapValue(String.class).one().onErrorMap(this::failed);
    }

    private Mono<Long> insert(String text) {
        if (settings.write() == null) {
            throw new IllegalStateException("there is no `write` in the configuration");
        }
        return client.sql(settings.write()).bind(0, text).fetch().rowsUpdated();
    }

    /** What is no UTF-8 is refused, not mended. */
    private static String text(byte[] body) throws CharacterCodingException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
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
        return new QueryFailed(settings.service(), why);
    }
}
