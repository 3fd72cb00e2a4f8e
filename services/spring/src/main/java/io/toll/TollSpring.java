package io.toll;

import io.toll.database.DatabaseSettings;
import io.toll.node.NodeSettings;
import io.toll.node.SettingsRefused;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/**
 * Turns a configuration file into a running node of an application graph: the twin of the built-in
 * service in Rust, from the same file, with the same behaviour.
 *
 * <p>Exit status: 0 when ended by SIGTERM, 1 when it cannot do what it was told, 2 for arguments that
 * it does not understand.
 */
@SpringBootApplication
public class TollSpring {
    private static final String USAGE = "usage: java -jar toll-spring.jar --config FILE";

    public static void main(String[] arguments) {
        if (arguments.length != 2 || !arguments[0].equals("--config")) {
            end(2, USAGE);
            return;
        }
        try {
            serve(NodeSettings.read(Path.of(arguments[1])));
        } catch (SettingsRefused why) {
            end(1, why.getMessage());
        }
    }

    private static void serve(NodeSettings settings) {
        // The lab's pods have no IPv6; before the first socket, or it has no effect.
        System.setProperty("java.net.preferIPv4Stack", "true");
        ConfigurableApplicationContext node = start(settings);
        endAtOnceWhenTold();
        System.err.println("listening on " + settings.listensOn().getHostString() + ":" + port(node));
    }

    /** Starts the node; it takes connections when this returns. */
    public static ConfigurableApplicationContext start(NodeSettings settings) {
        SpringApplication application = new SpringApplication(TollSpring.class);
        application.addInitializers(context -> register(settings, (GenericApplicationContext) context));
        InetSocketAddress listen = settings.listensOn();
        // As arguments: no variable of the environment may move the node elsewhere.
        return application.run("--server.address=" + listen.getHostString(), "--server.port=" + listen.getPort());
    }

    /** The port that a started node listens on. */
    public static int port(ConfigurableApplicationContext node) {
        return ((WebServerApplicationContext) node).getWebServer().getPort();
    }

    private static void register(NodeSettings settings, GenericApplicationContext context) {
        context.registerBean(NodeSettings.class, () -> settings);
        if (settings.database() != null) {
            context.registerBean(DatabaseSettings.class, settings::database);
        }
    }

    /** Nothing is kept that would have to be saved: what a graceful end waits for would only delay it. */
    private static void endAtOnceWhenTold() {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
    }

    private static void end(int status, String why) {
        System.err.println(why);
        System.exit(status);
    }
}
