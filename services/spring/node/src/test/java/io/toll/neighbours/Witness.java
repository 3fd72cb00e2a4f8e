package io.toll.neighbours;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;
import reactor.netty.DisposableServer;
import reactor.netty.http.server.HttpServer;
import reactor.netty.http.server.HttpServerRequest;
import reactor.netty.http.server.HttpServerResponse;

/** A neighbour in this process that keeps what it was asked and answers as told. */
public final class Witness implements AutoCloseable {
    /** One request as it came in; the port of its connection tells connections apart. */
    public record Asked(String line, String host, String type, String tie, String other, String body, int from) {}

    private final List<Asked> asked = new CopyOnWriteArrayList<>();
    private final int status;
    private final String body;
    private final DisposableServer server;

    public Witness(int status, String body) {
        this.status = status;
        this.body = body;
        this.server = HttpServer.create().host("127.0.0.1").port(0).handle(this::answer).bindNow();
    }

    private Publisher<Void> answer(HttpServerRequest request, HttpServerResponse response) {
        Mono<String> content = request.receive().aggregate().asString().defaultIfEmpty("");
        Mono<String> answer = content.map(text -> {
            asked.add(witnessed(request, text));
            return body;
        });
        return response.status(status).header("content-type", "text/toll").sendString(answer);
    }

    private static Asked witnessed(HttpServerRequest request, String content) {
        return new Asked(
                request.method() + " " + request.uri(),
                request.requestHeaders().get("host"),
                request.requestHeaders().get("content-type"),
                request.requestHeaders().get("x-b3-traceid"),
                request.requestHeaders().get("x-other"),
                content,
                request.remoteAddress().getPort());
    }

    public List<Asked> asked() {
        return asked;
    }

    public String address() {
        return "127.0.0.1:" + server.port();
    }

    @Override
    public void close() {
        server.disposeNow();
    }
}
