package io.toll.gateway;

import io.toll.launch.CallSettings;
import org.springframework.cloud.gateway.config.HttpClientCustomizer;
import org.springframework.cloud.gateway.route.RouteLocator;
import org.springframework.cloud.gateway.route.builder.RouteLocatorBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Puts the gateway together: one route, to the service behind it. */
@Configuration(proxyBeanMethods = false)
class GatewayConfiguration {
    /** {@code /api/vet/vets?spans=9} here is {@code /vets?spans=9} there. */
    @Bean
    RouteLocator routes(RouteLocatorBuilder builder, GatewaySettings settings) {
        CallSettings vets = settings.behind();
        return builder.routes()
                .route(vets.service(), route -> route.path("/api/vet/**")
                        .filters(filters -> filters.stripPrefix(2).setHostHeader(vets.host()))
                        .uri("http://" + vets.addresses().get(0)))
                .build();
    }

    /** A second try would be a request, and spans, that nobody counted. */
    @Bean
    HttpClientCustomizer once() {
        return client -> client.disableRetry(true);
    }
}
