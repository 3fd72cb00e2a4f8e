package io.toll.neighbours;

import io.toll.launch.CallSettings;
import java.net.URI;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.http.HttpHeaders;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClient.RequestBodySpec;
import org.springframework.web.reactive.function.client.WebClient.RequestHeadersSpec;
import reactor.core.publisher.Mono;

/** A service to call, at one or more addresses that are taken in turn. */
final class Neighbour {
    private static final byte[] NO_BODY = {};

    private final WebClient client;
    private final String service;
    private final String host;
    private final List<String> roots;
    private final AtomicInteger turn = new AtomicInteger();

    Neighbour(WebClient client, CallSettings settings) {
        this.client = client;
        this.service = settings.service();
        this.host = settings.host();
        this.roots = settings.addresses().stream().map(address -> "http://" + address).toList();
    }

    String service() {
        return service;
    }

    /** Asks once; an answer of 400 or above is a failure. */
    Mono<Answer> ask(Question question) {
        return request(question)
                .exchangeToMono(this::read)
                .onErrorMap(why -> !(why instanceof CallFailed), why -> CallFailed.notAnswered(service, why));
    }

    private RequestHeadersSpec<?> request(Question question) {
        RequestBodySpec request = client.method(question.method())
                .uri(URI.create(nextRoot() + question.target()))
                .headers(headers -> PassedOn.copy(question.headers(), headers))
                .header(HttpHeaders.HOST, host);
        return question.body().length == 0 ? request : request.bodyValue(question.body());
    }

    /** The body must be read to its end, or its connection cannot be used again. */
    private Mono<Answer> read(ClientResponse response) {
        return response.bodyToMono(byte[].class)
                .onErrorMap(why -> CallFailed.brokenOff(service, why))
                .defaultIfEmpty(NO_BODY)
                .flatMap(body -> response.statusCode().isError()
                        ? Mono.error(CallFailed.failed(service, response.statusCode()))
                        : Mono.just(answer(response, body)));
    }

    private static Answer answer(ClientResponse response, byte[] body) {
        return new Answer(response.statusCode(), response.headers().contentType().orElse(null), body);
    }

    private String nextRoot() {
        return roots.get(Math.floorMod(turn.getAndIncrement(), roots.size()));
    }
}
