package io.toll.vets;

import io.toll.launch.Address;
import io.toll.launch.Service;
import io.toll.metrics.MetricsEndpoint;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.support.GenericApplicationContext;

/** Turns a configuration file into a running service that lists the vets of a clinic. */
@SpringBootApplication
public class TollVets {
    public static final Service<VetsSettings> SERVICE =
            new Service<>("toll-vets.jar", TollVets.class, VetsSettings.class, TollVets::register);

    public static void main(String[] arguments) {
        SERVICE.main(arguments);
    }

    private static void register(VetsSettings settings, GenericApplicationContext context) {
        context.registerBean(VetsSettings.class, () -> settings);
        if (settings.metrics() != null) {
            context.registerBean(MetricsEndpoint.class, () -> new MetricsEndpoint(Address.parse(settings.metrics())));
        }
    }
}
