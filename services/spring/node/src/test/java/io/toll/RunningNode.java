package io.toll;

import io.toll.database.DatabaseSettings;
import io.toll.launch.CallSettings;
import io.toll.launch.Service;
import io.toll.node.NodeSettings;
import java.util.List;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.test.web.reactive.server.WebTestClient;

/** A whole node in this process, on a free port. */
public final class RunningNode implements AutoCloseable {
    private final ConfigurableApplicationContext context;

    private RunningNode(NodeSettings settings) {
        context = TollSpring.SERVICE.start(settings);
    }

    /** Answers 203 and seven bytes. */
    public static RunningNode answering() {
        return new RunningNode(new NodeSettings("leaf", "127.0.0.1:0", List.of(), 0, 7, 203, false, null, null));
    }

    /** Answers what the service at {@code address} answers. */
    public static RunningNode relaying(String address) {
        List<CallSettings> calls = List.of(new CallSettings("next", List.of(address), "next:80"));
        return new RunningNode(new NodeSettings("relay", "127.0.0.1:0", calls, 0, 7, 203, true, null, null));
    }

    public static RunningNode asking(DatabaseSettings database) {
        return new RunningNode(new NodeSettings("asker", "127.0.0.1:0", List.of(), 0, 7, 203, false, database, null));
    }

    public String address() {
        return "127.0.0.1:" + Service.port(context);
    }

    public WebTestClient client() {
        return WebTestClient.bindToServer().baseUrl("http://" + address()).build();
    }

    @Override
    public void close() {
        context.close();
    }
}
