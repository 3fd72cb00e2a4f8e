package io.toll.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MetricsEndpointTest {
    @ParameterizedTest
    @ValueSource(strings = {
        "process_cpu_seconds_total ",
        "jvm_memory_used_bytes{area=\"heap\"} ",
        "jvm_memory_pool_collection_used_bytes{pool=\"",
        "jvm_gc_collection_seconds_sum{gc=\"",
        "jvm_gc_collection_seconds_count{gc=\"",
        "jvm_compilation_time_seconds_total ",
        "jvm_threads_current ",
    })
    void everySeriesThatTheLabReadsIsThere(String series) throws Exception {
        try (MetricsEndpoint endpoint = new MetricsEndpoint(new InetSocketAddress("127.0.0.1", 0))) {
            assertThat(scraped(endpoint).lines()).anyMatch(line -> line.startsWith(series));
        }
    }

    private static String scraped(MetricsEndpoint endpoint) throws Exception {
        URI metrics = URI.create("http://127.0.0.1:" + endpoint.port() + "/metrics");
        return HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(metrics).build(), BodyHandlers.ofString())
                .body();
    }
}
