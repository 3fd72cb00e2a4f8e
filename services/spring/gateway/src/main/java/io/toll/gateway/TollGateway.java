package io.toll.gateway;

import io.toll.launch.Address;
import io.toll.launch.Service;
import io.toll.metrics.MetricsEndpoint;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.support.GenericApplicationContext;

/** Turns a configuration file into a running gateway: what stands before the services of an application. */
@SpringBootApplication
public class TollGateway {
    public static final Service<GatewaySettings> SERVICE =
            new Service<>("toll-gateway.jar", TollGateway.class, GatewaySettings.class, TollGateway::register);

    static {
        // Or Spring Cloud asks a name server what this machine's address is called, and waits for the answer. As a
        // property of the JVM: it asks before it reads the application's.
        System.setProperty("spring.cloud.inetutils.ignored-interfaces", ".*");
    }

    public static void main(String[] arguments) {
        SERVICE.main(arguments);
    }

    private static void register(GatewaySettings settings, GenericApplicationContext context) {
        context.registerBean(GatewaySettings.class, () -> settings);
        if (settings.metrics() != null) {
            context.registerBean(MetricsEndpoint.class, () -> new MetricsEndpoint(Address.parse(settings.metrics())));
        }
    }
}
