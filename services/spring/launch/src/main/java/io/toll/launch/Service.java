package io.toll.launch;

import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.function.BiConsumer;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/**
 * Turns {@code --config FILE} into a running Spring application that takes connections.
 *
 * <p>Exit status: 0 when ended by SIGTERM, 1 when it cannot do what it was told, 2 for arguments that
 * it does not understand.
 *
 * @param jar name of the file that it is started from
 * @param application what Spring starts
 * @param settings what its configuration is read into
 * @param beans hands the settings to the application
 */
public record Service<S extends Settings>(
        String jar, Class<?> application, Class<S> settings, BiConsumer<S, GenericApplicationContext> beans) {

    /** Runs until it is told to end. */
    public void main(String[] arguments) {
        if (arguments.length != 2 || !arguments[0].equals("--config")) {
            end(2, "usage: java -jar " + jar + " --config FILE");
            return;
        }
        try {
            serve(SettingsFile.read(Path.of(arguments[1]), settings));
        } catch (SettingsRefused why) {
            end(1, why.getMessage());
        }
    }

    private void serve(S settings) {
        // The lab's pods have no IPv6; before the first socket, or it has no effect.
        System.setProperty("java.net.preferIPv4Stack", "true");
        ConfigurableApplicationContext running = start(settings);
        endAtOnceWhenTold();
        System.err.println("listening on " + settings.listensOn().getHostString() + ":" + port(running));
    }

    /** Starts the service; it takes connections when this returns. */
    public ConfigurableApplicationContext start(S settings) {
        SpringApplication spring = new SpringApplication(application);
        // The log holds what went wrong; who asks gets the rest in the answer.
        spring.setBannerMode(Banner.Mode.OFF);
        spring.setLogStartupInfo(false);
        // SIGTERM ends the process at once (see endAtOnceWhenTold), requests under way or not.
        spring.setRegisterShutdownHook(false);
        spring.addInitializers(context -> beans.accept(settings, (GenericApplicationContext) context));
        InetSocketAddress listen = settings.listensOn();
        // As arguments: no variable of the environment may move the service elsewhere.
        return spring.run(
                "--server.address=" + listen.getHostString(),
                "--server.port=" + listen.getPort(),
                "--server.shutdown=immediate");
    }

    /** The port that a started service listens on. */
    public static int port(ConfigurableApplicationContext running) {
        return ((WebServerApplicationContext) running).getWebServer().getPort();
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
