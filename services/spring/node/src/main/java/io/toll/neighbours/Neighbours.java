package io.toll.neighbours;

import io.toll.launch.CallSettings;
import io.toll.path.PathReport;
import java.util.List;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.netty.http.client.HttpClient;
import reactor.netty.resources.ConnectionProvider;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/** Turns a question into the calls of the neighbours that it needs, over connections that are kept. */
public class Neighbours {
    private final List<Neighbour> neighbours;
    private final JsonMapper mapper;

    public Neighbours(List<CallSettings> calls, JsonMapper mapper) {
        WebClient client = keepingClient();
        this.neighbours = calls.stream().map(call -> new Neighbour(client, call)).toList();
        this.mapper = mapper;
    }

    /** Asks every neighbour once, in order; after the first that fails no other is asked. */
    public Flux<Answer> ask(Question question) {
        return Flux.fromIterable(neighbours).concatMap(neighbour -> neighbour.ask(question));
    }

    /** As {@link #ask}, and brings the report of each neighbour. */
    public Flux<PathReport> trace(Question probe) {
        return Flux.fromIterable(neighbours)
                .concatMap(neighbour -> neighbour.ask(probe).flatMap(answer -> report(neighbour, answer)));
    }

    private Mono<PathReport> report(Neighbour neighbour, Answer answer) {
        try {
            return Mono.just(mapper.readValue(answer.body(), PathReport.class));
        } catch (JacksonException why) {
            return Mono.error(CallFailed.noReport(neighbour.service(), why));
        }
    }

    /** Any number of connections, kept for good. */
    private static WebClient keepingClient() {
        ConnectionProvider connections = ConnectionProvider.builder("neighbours")
                .maxConnections(Integer.MAX_VALUE)
                .build();
        HttpClient client = HttpClient.create(connections)
                // A second try would be a request, and perhaps a written row, that nobody counted.
                .disableRetry(true);
        return WebClient.builder()
                .clientConnector(new ReactorClientHttpConnector(client))
                .codecs(codecs -> codecs.defaultCodecs().maxInMemorySize(-1))
                .build();
    }
}
