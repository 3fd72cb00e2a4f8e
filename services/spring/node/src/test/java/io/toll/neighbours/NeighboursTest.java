package io.toll.neighbours;

import static org.assertj.core.api.Assertions.assertThat;

import io.toll.launch.CallSettings;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import reactor.test.StepVerifier;
import tools.jackson.databind.json.JsonMapper;

class NeighboursTest {
    private final Witness person = new Witness(200, "from person");
    private final Witness name = new Witness(202, "from name");
    private final Witness broken = new Witness(500, "no");

    @AfterEach
    void close() {
        Stream.of(person, name, broken).forEach(Witness::close);
    }

    @Test
    void aNeighbourIsAskedWhatTheNodeWasAsked() {
        HttpHeaders headers = new HttpHeaders();
        headers.add("Content-Type", "application/json");
        headers.add("X-B3-TraceId", "t1");
        headers.add("x-other", "mine");
        headers.add("host", "customer:8081");
        Question question = new Question(HttpMethod.PUT, "/a%20b?c=d%2Fe", headers, bytes("{\"a\": 1}"));

        StepVerifier.create(neighbours(call("person", person.address())).ask(question))
                .assertNext(answer -> assertThat(answer.body()).isEqualTo(bytes("from person")))
                .verifyComplete();
        Witness.Asked asked = person.asked().get(0);
        assertThat(asked.line()).isEqualTo("PUT /a%20b?c=d%2Fe");
        assertThat(asked.host()).isEqualTo("person:80");
        assertThat(asked.type()).isEqualTo("application/json");
        assertThat(asked.tie()).isEqualTo("t1");
        assertThat(asked.other()).isNull();
        assertThat(asked.body()).isEqualTo("{\"a\": 1}");
    }

    @Test
    void neighboursAreAskedInOrder() {
        Neighbours both = neighbours(call("person", person.address()), call("name", name.address()));
        StepVerifier.create(both.ask(get()).map(answer -> answer.status().value()))
                .expectNext(200, 202)
                .verifyComplete();
    }

    @Test
    void afterACallThatFailedNoOtherIsMade() {
        Neighbours both = neighbours(call("broken", broken.address()), call("name", name.address()));
        StepVerifier.create(both.ask(get()))
                .expectErrorMessage("broken answered 500 Internal Server Error")
                .verify();
        assertThat(name.asked()).isEmpty();
    }

    @Test
    void aNeighbourThatIsNotThereIsNamed() {
        String nowhere = person.address();
        person.close();
        StepVerifier.create(neighbours(call("person", nowhere)).ask(get()))
                .expectErrorSatisfies(why -> assertThat(why)
                        .isInstanceOf(CallFailed.class)
                        .hasMessageStartingWith("cannot call person: ")
                        .hasMessageContaining("refused"))
                .verify();
    }

    @Test
    void addressesAreTakenInTurn() {
        Neighbours replicas = neighbours(call("person", person.address(), name.address()));
        for (int time = 0; time < 4; time++) {
            replicas.ask(get()).blockLast();
        }
        assertThat(person.asked()).hasSize(2);
        assertThat(name.asked()).hasSize(2);
    }

    @Test
    void connectionsAreUsedAgain() {
        Neighbours one = neighbours(call("person", person.address()));
        for (int time = 0; time < 4; time++) {
            one.ask(get()).blockLast();
        }
        // Not one: an answer is there just before its connection is free.
        assertThat(person.asked().stream().map(Witness.Asked::from).distinct()).hasSizeLessThan(4);
    }

    @Test
    void anAnswerThatIsNoReportIsToldOfAProbe() {
        StepVerifier.create(neighbours(call("person", person.address())).trace(get()))
                .expectErrorSatisfies(why -> assertThat(why)
                        .isInstanceOf(CallFailed.class)
                        .hasMessageStartingWith("person answered a probe without a report: "))
                .verify();
    }

    private static Neighbours neighbours(CallSettings... calls) {
        return new Neighbours(List.of(calls), new JsonMapper());
    }

    private static CallSettings call(String service, String... addresses) {
        return new CallSettings(service, List.of(addresses), service + ":80");
    }

    private static Question get() {
        return new Question(HttpMethod.GET, "/", new HttpHeaders(), new byte[0]);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
