package io.toll.mongo;

import io.toll.mongo.clients.Clients;
import io.toll.mongo.listener.Listener;
import io.toll.mongo.operations.CountingBackend;
import io.toll.mongo.operations.Operations;
import java.net.InetSocketAddress;
import javax.net.ssl.SSLException;

/**
 * Turns addresses and certificates into a running server of MongoDB's wire protocol whose data is in memory.
 *
 * <p>It takes the place of {@code mongod} where there is none. Its answers are mongo-java-server's; what is
 * toll's own: clients must show a certificate, current drivers accept its version, and it tells which operations it
 * ran and which certificates it saw.
 *
 * <p>Exit status: 0 when ended by SIGTERM, 1 when it cannot do what it was told, 2 for arguments that it does not
 * understand.
 */
public final class TollMongo {
    private TollMongo() {}

    public static void main(String[] arguments) {
        Arguments understood;
        try {
            understood = Arguments.parse(arguments);
        } catch (IllegalArgumentException why) {
            end(2, why.getMessage() + "\n" + Arguments.USAGE);
            return;
        }
        try {
            serve(understood);
        } catch (SSLException | RuntimeException why) {
            end(1, why.getMessage());
        }
    }

    private static void serve(Arguments arguments) throws SSLException {
        // The lab's pods have no IPv6; before the first socket, or it has no effect.
        System.setProperty("java.net.preferIPv4Stack", "true");
        InetSocketAddress address = start(arguments).address();
        // Nothing is kept that would have to be saved: what a graceful end waits for would only delay it.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
        System.err.println("listening on " + address.getHostString() + ":" + address.getPort());
    }

    /** Starts the server; it takes connections when this returns. */
    static Listener start(Arguments arguments) throws SSLException {
        Clients clients = new Clients();
        CountingBackend backend = new CountingBackend(new Operations(), clients);
        return Listener.start(
                arguments.listen(),
                Listener.mutualTls(arguments.certificate(), arguments.key(), arguments.authority()),
                backend,
                clients);
    }

    private static void end(int status, String why) {
        System.err.println(why);
        System.exit(status);
    }
}
