package io.toll.node;

import io.toll.RunningNode;
import io.toll.neighbours.Witness;
import org.hamcrest.Matchers;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpMethod;
import org.springframework.test.web.reactive.server.WebTestClient.BodyContentSpec;

class NodeTest {
    private RunningNode leaf;
    private RunningNode relay;

    @BeforeEach
    void start() {
        leaf = RunningNode.answering();
        relay = RunningNode.relaying(leaf.address());
    }

    @AfterEach
    void stop() {
        relay.close();
        leaf.close();
    }

    @Test
    void anyMethodAndPathIsAnsweredAsConfigured() {
        for (HttpMethod method : new HttpMethod[] {HttpMethod.GET, HttpMethod.POST, HttpMethod.DELETE}) {
            leaf.client().method(method).uri("/any/{part}?a=b", "x y").exchange()
                    .expectStatus().isEqualTo(203)
                    .expectHeader().doesNotExist("content-type")
                    .expectBody(String.class).isEqualTo("hello h");
        }
    }

    @Test
    void aRelayAnswersWhatTheCalledServiceAnswered() {
        try (Witness next = new Witness(202, "told"); RunningNode relay = RunningNode.relaying(next.address())) {
            relay.client().get().uri("/").exchange()
                    .expectStatus().isEqualTo(202)
                    .expectHeader().valueEquals("content-type", "text/toll")
                    .expectBody(String.class).isEqualTo("told");
        }
    }

    @Test
    void aCallThatFailsMakesTheAnswerABadGateway() {
        try (Witness next = new Witness(404, "gone"); RunningNode relay = RunningNode.relaying(next.address())) {
            relay.client().get().uri("/").exchange()
                    .expectStatus().isEqualTo(502)
                    .expectBody(String.class).isEqualTo("next answered 404 Not Found");
        }
    }

    @Test
    void aBodyOfMoreThanAMegabyteIsNotTaken() {
        leaf.client().post().uri("/").bodyValue(new byte[(1 << 20) + 1]).exchange().expectStatus().isEqualTo(413);
        leaf.client().post().uri("/").bodyValue(new byte[1 << 20]).exchange().expectStatus().isEqualTo(203);
    }

    @Test
    void aProbeBringsTheReportsOfAllServicesOnThePath() {
        probe(relay)
                .jsonPath("$.service").isEqualTo("relay")
                .jsonPath("$.peer").value(Matchers.startsWith("127.0.0.1:"))
                .jsonPath("$.headers.x-toll-probe").isEqualTo("1, 2")
                .jsonPath("$.calls[0].service").isEqualTo("leaf")
                .jsonPath("$.calls[0].headers.host").isEqualTo("next:80")
                .jsonPath("$.calls[0].calls").isEmpty()
                .jsonPath("$.database_peer").doesNotExist();
    }

    @Test
    void requestsAreCountedAndProbesAreNot() {
        relay.client().get().uri("/").exchange().expectStatus().isEqualTo(203);
        relay.client().get().uri("/").header("x-forwarded-client-cert", "URI=x").exchange();
        probe(relay);
        probe(relay)
                .jsonPath("$.requests").isEqualTo(2)
                .jsonPath("$.marked").isEqualTo(1)
                .jsonPath("$.certified").isEqualTo(1)
                .jsonPath("$.calls[0].requests").isEqualTo(2)
                .jsonPath("$.calls[0].marked").isEqualTo(0);
    }

    private static BodyContentSpec probe(RunningNode node) {
        return node.client().get().uri("/").header("x-toll-probe", "1", "2").exchange()
                .expectStatus().isOk()
                .expectBody();
    }
}
