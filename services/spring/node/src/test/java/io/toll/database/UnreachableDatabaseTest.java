package io.toll.database;

import io.toll.RunningNode;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.hamcrest.Matchers;
import org.junit.jupiter.api.Test;

class UnreachableDatabaseTest {
    @Test
    void aDatabaseThatIsNotThereMakesTheServiceUnavailable() throws IOException {
        DatabaseSettings settings =
                new DatabaseSettings("postgres", "127.0.0.1:" + closedPort(), "toll", "toll", 1, "SELECT 1", null);
        try (RunningNode node = RunningNode.asking(settings)) {
            node.client().get().uri("/").exchange()
                    .expectStatus().isEqualTo(503)
                    .expectBody(String.class).value(Matchers.startsWith("cannot query postgres: "));
        }
    }

    private static int closedPort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
