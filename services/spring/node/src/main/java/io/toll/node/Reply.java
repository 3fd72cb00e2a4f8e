package io.toll.node;

import io.toll.neighbours.Answer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;

/**
 * An answer whose bytes are there already. They are sent as they are: an encoder would add a content type
 * of its own.
 */
record Reply(HttpStatusCode status, @Nullable MediaType contentType, byte[] body) {
    private static final byte[] PATTERN = {'h', 'e', 'l', 'l', 'o', ' '};

    /** Five bytes of it are {@code hello}. */
    static Reply filler(int status, int bytes) {
        byte[] body = new byte[bytes];
        for (int at = 0; at < bytes; at++) {
            body[at] = PATTERN[at % PATTERN.length];
        }
        return new Reply(HttpStatusCode.valueOf(status), null, body);
    }

    static Reply of(HttpStatusCode status, @Nullable MediaType contentType, String body) {
        return new Reply(status, contentType, body.getBytes(StandardCharsets.UTF_8));
    }

    /** What a neighbour answered. */
    static Reply of(Answer answer) {
        return new Reply(answer.status(), answer.contentType(), answer.body());
    }

    Mono<ServerResponse> send() {
        return ServerResponse.status(status).body((response, context) -> write(response));
    }

    private Mono<Void> write(ServerHttpResponse response) {
        if (contentType != null) {
            response.getHeaders().setContentType(contentType);
        }
        response.getHeaders().setContentLength(body.length);
        return response.writeWith(Mono.fromSupplier(() -> response.bufferFactory().wrap(body)));
    }
}
