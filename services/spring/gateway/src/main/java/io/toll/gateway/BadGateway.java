package io.toll.gateway;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.springframework.core.annotation.Order;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.http.HttpStatus;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebExceptionHandler;
import reactor.core.publisher.Mono;

/**
 * Turns a call that failed into 502 and its reason. Spring Boot's own handler, which comes next, would make it
 * 500 and write a stack trace for each request.
 */
@Component
@Order(-2)
class BadGateway implements WebExceptionHandler {
    private final String behind;

    BadGateway(GatewaySettings settings) {
        this.behind = settings.behind().service();
    }

    @Override
    public Mono<Void> handle(ServerWebExchange exchange, Throwable why) {
        ServerHttpResponse response = exchange.getResponse();
        if (!(why instanceof IOException) || !response.setStatusCode(HttpStatus.BAD_GATEWAY)) {
            return Mono.error(why);
        }
        String reason = "cannot call " + behind + ": " + why.getMessage();
        DataBuffer body = response.bufferFactory().wrap(reason.getBytes(StandardCharsets.UTF_8));
        return response.writeWith(Mono.just(body));
    }
}
