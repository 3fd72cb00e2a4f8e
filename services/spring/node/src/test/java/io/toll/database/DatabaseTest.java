package io.toll.database;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.r2dbc.spi.ConnectionFactory;
import io.toll.RunningNode;
import org.hamcrest.Matchers;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.test.web.reactive.server.WebTestClient.ResponseSpec;

/** Against a real server: {@code TOLL_TEST_POSTGRES=ADDRESS:PORT/DATABASE/USER}, of which it needs nothing else. */
class DatabaseTest {
    private static final String ONE_WRITE = "INSERT INTO toll_spring_test(doc) VALUES ($1::text::json)";

    private DatabaseClient direct;
    private RunningNode node;

    @BeforeEach
    void emptyTable() {
        ConnectionFactory connections = Connections.pool(settings("SELECT 1"));
        direct = DatabaseClient.create(connections);
        run("DROP TABLE IF EXISTS toll_spring_test");
        run("CREATE TABLE toll_spring_test(id serial PRIMARY KEY, doc json)");
    }

    @AfterEach
    void stop() {
        if (node != null) {
            node.close();
        }
    }

    @Test
    void rowsAreAnsweredAsObjectsByColumnName() {
        String read = "SELECT 1::int2 a, 2::int4 b, 3::int8 c, 0.1::float4 d, 0.1::float8 e, true f, 'g'::text g,"
                + " 'h'::varchar h, 'i'::name i, NULL::text j, 'NaN'::float8 k, ARRAY['l:m'] = ARRAY['l:m'] l";
        start(read);
        get()
                .expectStatus().isOk()
                .expectHeader().valueEquals("content-type", "application/json")
                .expectBody(String.class).isEqualTo("[{\"a\":1,\"b\":2,\"c\":3,\"d\":0.1,\"e\":0.1,\"f\":true,"
                        + "\"g\":\"g\",\"h\":\"h\",\"i\":\"i\",\"j\":null,\"k\":null,\"l\":true}]");
    }

    @Test
    void noRowsAreAnEmptyArray() {
        start("SELECT 1 WHERE false");
        get().expectBody(String.class).isEqualTo("[]");
    }

    @ParameterizedTest
    @CsvSource({"numeric", "json", "timestamptz"})
    void aTypeThatIsNotKnownIsAnErrorThatNamesTheColumn(String type) {
        start("SELECT NULL::" + type + " AS odd");
        get()
                .expectStatus().isEqualTo(503)
                .expectBody(String.class)
                .value(Matchers.startsWith("cannot query postgres: column `odd` has the type " + type));
    }

    @Test
    void aReadIsPreparedOnceThoughItHasNoParameters() {
        String read = "SELECT count(*) AS prepared FROM pg_prepared_statements";
        start(read);
        for (int time = 0; time < 3; time++) {
            get().expectBody().jsonPath("$[0].prepared").isEqualTo(1);
        }
    }

    @Test
    void aPostWritesItsBodyOnce() {
        start("SELECT doc->>'a' AS a FROM toll_spring_test");
        post("{\"a\": \"é\"}")
                .expectStatus().isCreated()
                .expectHeader().valueEquals("content-type", "application/json")
                .expectBody(String.class).isEqualTo("{}");
        get().expectBody(String.class).isEqualTo("[{\"a\":\"é\"}]");
    }

    @Test
    void aWriteThatFailsLeavesNoRowAndNoOpenTransaction() {
        start("SELECT count(*) AS rows FROM toll_spring_test");
        post("{\"a\": ")
                .expectStatus().isEqualTo(503)
                .expectBody(String.class).isEqualTo("cannot query postgres: invalid input syntax for type json");
        get().expectBody().jsonPath("$[0].rows").isEqualTo(0);
        post("{}").expectStatus().isCreated();
    }

    @Test
    void otherMethodsDoNotAskTheDatabase() {
        start("SELECT 1 / 0");
        node.client().delete().uri("/").exchange().expectStatus().isEqualTo(203);
        get().expectStatus().isEqualTo(503);
        node.client().head().uri("/").exchange().expectStatus().isEqualTo(503);
    }

    @Test
    void aProbeAsksWhereTheConnectionsComeFromInsteadOfTheRead() {
        start("SELECT 1 / 0");
        node.client().get().uri("/").header("x-toll-probe", "1").exchange()
                .expectStatus().isOk()
                .expectBody().jsonPath("$.database_peer").isEqualTo("127.0.0.1");
    }

    private void start(String read) {
        node = RunningNode.asking(settings(read));
    }

    private ResponseSpec get() {
        return node.client().get().uri("/api/customer").exchange();
    }

    private ResponseSpec post(String body) {
        return node.client().post().uri("/api/customer").bodyValue(body).exchange();
    }

    private void run(String sql) {
        direct.sql(sql).then().block();
    }

    private static DatabaseSettings settings(String read) {
        String given = System.getenv("TOLL_TEST_POSTGRES");
        assumeTrue(given != null, "needs a PostgreSQL: TOLL_TEST_POSTGRES=ADDRESS:PORT/DATABASE/USER");
        String[] parts = given.split("/");
        return new DatabaseSettings("postgres", parts[0], parts[2], parts[1], 1, read, ONE_WRITE);
    }
}
