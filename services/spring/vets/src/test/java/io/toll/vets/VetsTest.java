package io.toll.vets;

import static org.assertj.core.api.Assertions.assertThat;

import io.toll.launch.Service;
import io.toll.metrics.MetricsEndpoint;
import jakarta.persistence.EntityManagerFactory;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.stream.IntStream;
import org.hibernate.SessionFactory;
import org.hibernate.stat.Statistics;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

class VetsTest {
    private static ConfigurableApplicationContext vets;

    @BeforeAll
    static void start() {
        vets = TollVets.SERVICE.start(new VetsSettings("vets", "127.0.0.1:0", List.of(), "127.0.0.1:0"));
    }

    @AfterAll
    static void stop() {
        vets.close();
    }

    @ParameterizedTest
    @CsvSource({"1, 0", "2, 1", "3, 2", "9, 8", "27, 26", "100, 99"})
    void oneSpanIsTheRequestsAndEachFurtherOneAStatement(int spans, int statements) throws Exception {
        Statistics counted = counted();
        counted.clear();
        assertThat(ask("/vets?spans=" + spans).statusCode()).isEqualTo(200);
        assertThat(counted.getPrepareStatementCount()).isEqualTo(statements);
    }

    @Test
    void statementsAreMadeAgainForEachRequest() throws Exception {
        ask("/vets");
        oneSpanIsTheRequestsAndEachFurtherOneAStatement(9, 8);
    }

    @Test
    void withoutAWordThereAreNineSpans() throws Exception {
        assertThat(ask("/vets").body()).isEqualTo(ask("/vets?spans=9").body());
    }

    @Test
    void vetsAreListedWithTheirSpecialties() throws Exception {
        HttpResponse<String> answer = ask("/vets?spans=4");
        assertThat(answer.headers().firstValue("content-type")).contains("application/json");
        assertThat(answer.body()).isEqualTo("[" + vet(1, 2, "surgery") + "," + vet(2, 3, "dentistry") + "]");
    }

    @Test
    void thereAreEnoughVetsForTheMostSpans() throws Exception {
        String body = ask("/vets?spans=100").body();
        assertThat(IntStream.rangeClosed(1, 98)).allMatch(id -> body.contains("\"First" + id + "\""));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "101", "-1"})
    void otherNumbersOfSpansAreRefused(String spans) throws Exception {
        HttpResponse<String> answer = ask("/vets?spans=" + spans);
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body()).contains("spans is 1 to 100, not " + spans);
    }

    @Test
    void whatIsNoNumberIsRefused() throws Exception {
        assertThat(ask("/vets?spans=many").statusCode()).isEqualTo(400);
    }

    @Test
    void readingsAreShownOnAPortOfTheirOwn() throws Exception {
        int port = vets.getBean(MetricsEndpoint.class).port();
        assertThat(ask(port, "/metrics").body()).contains("process_cpu_seconds_total ");
    }

    private static String vet(int id, int specialty, String name) {
        return "{\"id\":%d,\"firstName\":\"First%d\",\"lastName\":\"Last%d\",\"specialties\":[{\"id\":%d,\"name\":\"%s\"}]}"
                .formatted(id, id, id, specialty, name);
    }

    private static Statistics counted() {
        Statistics statistics = vets.getBean(EntityManagerFactory.class).unwrap(SessionFactory.class).getStatistics();
        statistics.setStatisticsEnabled(true);
        return statistics;
    }

    private static HttpResponse<String> ask(String path) throws IOException, InterruptedException {
        return ask(Service.port(vets), path);
    }

    private static HttpResponse<String> ask(int port, String path) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    }
}
