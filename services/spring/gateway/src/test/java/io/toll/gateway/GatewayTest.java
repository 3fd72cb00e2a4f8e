package io.toll.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import io.toll.gateway.Backend.Asked;
import io.toll.launch.CallSettings;
import io.toll.launch.Service;
import io.toll.metrics.MetricsEndpoint;
import java.net.URI;
import java.util.List;
import org.hamcrest.Matchers;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.test.web.reactive.server.WebTestClient.ResponseSpec;

class GatewayTest {
    private Backend vets;
    private ConfigurableApplicationContext gateway;

    @BeforeEach
    void start() {
        vets = new Backend();
        CallSettings call = new CallSettings("vets", List.of(vets.address()), "vets:8081");
        gateway = TollGateway.SERVICE.start(
                new GatewaySettings("gateway", "127.0.0.1:0", List.of(call), "127.0.0.1:0"));
    }

    @AfterEach
    void stop() {
        gateway.close();
        vets.close();
    }

    @Test
    void thePrefixIsStrippedAndTheQueryKept() {
        ask("/api/vet/vets?spans=3&a=b%20c").expectStatus().isEqualTo(203).expectBody(String.class).isEqualTo("vets");
        assertThat(vets.asked()).containsExactly(new Asked("GET /vets?spans=3&a=b%20c", "vets:8081"));
    }

    @Test
    void anotherPathIsNotPassedOn() {
        ask("/vets").expectStatus().isNotFound();
        assertThat(vets.asked()).isEmpty();
    }

    @Test
    void aServiceThatIsNotThereMakesTheAnswerABadGateway() {
        vets.close();
        ask("/api/vet/vets").expectStatus().isEqualTo(502)
                .expectBody(String.class).value(Matchers.startsWith("cannot call vets: "));
    }

    @Test
    void readingsAreShownOnAPortOfTheirOwn() {
        int port = gateway.getBean(MetricsEndpoint.class).port();
        client(port).get().uri("/metrics").exchange()
                .expectStatus().isOk()
                .expectBody(String.class).value(Matchers.containsString("process_cpu_seconds_total "));
        ask("/metrics").expectStatus().isNotFound();
    }

    private ResponseSpec ask(String pathAndQuery) {
        // As a whole URI: nothing in it is encoded anew.
        URI uri = URI.create("http://127.0.0.1:" + Service.port(gateway) + pathAndQuery);
        return client(uri.getPort()).get().uri(uri).exchange();
    }

    private static WebTestClient client(int port) {
        return WebTestClient.bindToServer().baseUrl("http://127.0.0.1:" + port).build();
    }
}
