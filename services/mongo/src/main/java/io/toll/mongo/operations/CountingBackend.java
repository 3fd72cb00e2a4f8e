package io.toll.mongo.operations;

import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import io.netty.channel.Channel;
import io.toll.mongo.clients.Clients;

/** mongo-java-server's backend in memory; it counts what it is asked, and tells it in {@code serverStatus}. */
public final class CountingBackend extends MemoryBackend {
    private final Operations operations;
    private final Clients clients;

    public CountingBackend(Operations operations, Clients clients) {
        this.operations = operations;
        this.clients = clients;
        version(new AcceptedVersion());
    }

    /** All that current drivers ask comes through here. */
    @Override
    public Document handleCommand(Channel channel, String database, String command, Document body) {
        operations.count(command, body);
        Document answer = super.handleCommand(channel, database, command, body);
        if (command.equalsIgnoreCase("buildInfo")) {
            answer.append("toll", new Document("server", AcceptedVersion.SERVER));
        }
        return answer;
    }

    @Override
    public Document getServerStatus() {
        Document seen = new Document();
        clients.sessions().forEach(seen::put);
        Document toll = new Document("server", AcceptedVersion.SERVER).append("clients", seen);
        return super.getServerStatus().append("opcounters", operations.opcounters()).append("toll", toll);
    }
}
