package io.toll.gateway;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;
import reactor.netty.DisposableServer;
import reactor.netty.http.server.HttpServer;
import reactor.netty.http.server.HttpServerRequest;
import reactor.netty.http.server.HttpServerResponse;

/** A service behind the gateway, in this process, that keeps what it was asked. */
final class Backend implements AutoCloseable {
    /** One request as it came in. */
    record Asked(String line, String host) {}

    private final List<Asked> asked = new CopyOnWriteArrayList<>();
    private final DisposableServer server =
            HttpServer.create().host("127.0.0.1").port(0).handle(this::answer).bindNow();

    private Publisher<Void> answer(HttpServerRequest request, HttpServerResponse response) {
        asked.add(new Asked(request.method() + " " + request.uri(), request.requestHeaders().get("host")));
        return response.status(203).sendString(Mono.just("vets"));
    }

    List<Asked> asked() {
        return asked;
    }

    String address() {
        return "127.0.0.1:" + server.port();
    }

    @Override
    public void close() {
        server.disposeNow();
    }
}
