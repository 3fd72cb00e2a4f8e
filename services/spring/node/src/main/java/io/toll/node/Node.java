package io.toll.node;

import io.toll.database.Database;
import io.toll.database.QueryFailed;
import io.toll.neighbours.Answer;
import io.toll.neighbours.CallFailed;
import io.toll.neighbours.Neighbours;
import io.toll.neighbours.Question;
import io.toll.path.Arrivals;
import io.toll.path.PathReport;
import java.util.List;
import java.util.Optional;
import org.springframework.core.io.buffer.DataBufferLimitException;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.stereotype.Component;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;

/**
 * Turns a request into its answer: burn CPU time, call the neighbours, ask the database, answer; or report
 * the path. Blocks nowhere.
 */
@Component
class Node {
    private static final byte[] NO_BODY = {};
    private static final Reply CREATED = Reply.of(HttpStatus.CREATED, MediaType.APPLICATION_JSON, "{}");

    private final NodeSettings settings;
    private final Work work;
    private final Reply filler;
    private final Neighbours neighbours;
    private final Optional<Database> database;
    private final Arrivals arrivals = new Arrivals();

    Node(NodeSettings settings, Neighbours neighbours, Optional<Database> database) {
        this.settings = settings;
        this.work = new Work(settings.workUs());
        this.filler = Reply.filler(settings.status(), settings.replyBytes());
        this.neighbours = neighbours;
        this.database = database;
    }

    /** Answers a request; 502 when a call fails and 503 when a query does, with the reason. */
    Mono<ServerResponse> answer(ServerRequest request) {
        HttpHeaders headers = request.headers().asHttpHeaders();
        boolean probe = headers.containsHeader(PathReport.PROBE_HEADER);
        if (!probe) {
            arrivals.count(headers);
        }
        return question(request, headers)
                .flatMap(question -> probe ? report(request, question) : serve(question))
                .onErrorResume(CallFailed.class, why -> failed(HttpStatus.BAD_GATEWAY, why))
                .onErrorResume(QueryFailed.class, why -> failed(HttpStatus.SERVICE_UNAVAILABLE, why))
                .onErrorResume(DataBufferLimitException.class, why -> failed(HttpStatus.CONTENT_TOO_LARGE, why));
    }

    private Mono<ServerResponse> serve(Question question) {
        work.burn();
        return neighbours.ask(question).collectList().flatMap(answers -> reply(question, answers));
    }

    private Mono<ServerResponse> reply(Question question, List<Answer> answers) {
        if (database.isPresent() && question.reads()) {
            return database.get().read().collectList().flatMap(Node::json);
        }
        if (database.isPresent() && question.method() == HttpMethod.POST) {
            return database.get().write(question.body()).then(CREATED.send());
        }
        if (settings.relay() && !answers.isEmpty()) {
            return Reply.of(answers.get(answers.size() - 1)).send();
        }
        return filler.send();
    }

    private Mono<ServerResponse> report(ServerRequest request, Question question) {
        PathReport own = PathReport.of(settings.name(), request, arrivals);
        return neighbours
                .trace(question)
                .collectList()
                .zipWith(databasePeer(), own::with)
                .flatMap(Node::json);
    }

    private Mono<Optional<String>> databasePeer() {
        return Mono.justOrEmpty(database).flatMap(Database::peer).map(Optional::of).defaultIfEmpty(Optional.empty());
    }

    private static Mono<Question> question(ServerRequest request, HttpHeaders headers) {
        return request.bodyToMono(byte[].class)
                .defaultIfEmpty(NO_BODY)
                .map(body -> new Question(request.method(), pathAndQuery(request), headers, body));
    }

    private static String pathAndQuery(ServerRequest request) {
        String query = request.uri().getRawQuery();
        return query == null ? request.uri().getRawPath() : request.uri().getRawPath() + "?" + query;
    }

    private static Mono<ServerResponse> json(Object value) {
        return ServerResponse.ok().contentType(MediaType.APPLICATION_JSON).bodyValue(value);
    }

    private static Mono<ServerResponse> failed(HttpStatus status, Throwable why) {
        return Reply.of(status, null, why.getMessage()).send();
    }
}
