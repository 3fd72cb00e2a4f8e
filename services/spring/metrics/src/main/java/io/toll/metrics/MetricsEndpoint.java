package io.toll.metrics;

import io.prometheus.metrics.exporter.httpserver.HTTPServer;
import io.prometheus.metrics.instrumentation.jvm.JvmMetrics;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;

/** Shows at {@code /metrics} what the JVM counts of itself; it costs something only when it is asked. */
public final class MetricsEndpoint implements AutoCloseable {
    private final HTTPServer server;

    /** Listens when this returns; port 0 takes any free one. */
    public MetricsEndpoint(InetSocketAddress listen) {
        PrometheusRegistry registry = new PrometheusRegistry();
        JvmMetrics.builder().register(registry);
        try {
            server = HTTPServer.builder()
                    .hostname(listen.getHostString())
                    .port(listen.getPort())
                    .registry(registry)
                    .buildAndStart();
        } catch (IOException why) {
            throw new UncheckedIOException("cannot show metrics on " + listen, why);
        }
    }

    public int port() {
        return server.getPort();
    }

    @Override
    public void close() {
        server.close();
    }
}
