package io.toll;

import io.toll.database.DatabaseSettings;
import io.toll.launch.Service;
import io.toll.node.NodeSettings;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.support.GenericApplicationContext;

/**
 * Turns a configuration file into a running node of an application graph: the twin of the built-in
 * service in Rust, from the same file, with the same behaviour.
 */
@SpringBootApplication
public class TollSpring {
    public static final Service<NodeSettings> SERVICE =
            new Service<>("toll-spring.jar", TollSpring.class, NodeSettings.class, TollSpring::register);

    public static void main(String[] arguments) {
        SERVICE.main(arguments);
    }

    private static void register(NodeSettings settings, GenericApplicationContext context) {
        context.registerBean(NodeSettings.class, () -> settings);
        if (settings.database() != null) {
            context.registerBean(DatabaseSettings.class, settings::database);
        }
    }
}
