package io.toll.node;

import io.toll.neighbours.Neighbours;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.reactive.function.server.RequestPredicates;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerResponse;
import tools.jackson.databind.json.JsonMapper;

/** Puts the node together: any method and any path are its own. */
@Configuration(proxyBeanMethods = false)
class NodeConfiguration {
    @Bean
    RouterFunction<ServerResponse> routes(Node node) {
        return RouterFunctions.route(RequestPredicates.all(), node::answer);
    }

    @Bean
    Neighbours neighbours(NodeSettings settings, JsonMapper mapper) {
        return new Neighbours(settings.calls(), mapper);
    }
}
