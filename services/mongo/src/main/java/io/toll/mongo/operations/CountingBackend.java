package io.toll.mongo.operations;

import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.backend.memory.MemoryDatabase;
import de.bwaldvogel.mongo.bson.Document;
import io.netty.channel.Channel;
import io.toll.mongo.clients.Clients;
import io.toll.mongo.indexes.IndexedDatabase;

/** mongo-java-server's backend in memory; it counts what it is asked, and tells it in {@code serverStatus}. */
public final class CountingBackend extends MemoryBackend {
    private final Operations operations;
    private final Clients clients;
    private final AcceptedVersion version = new AcceptedVersion();

    public CountingBackend(Operations operations, Clients clients) {
        this.operations = operations;
        this.clients = clients;
        version(version);
    }

    @Override
    public MemoryDatabase openOrCreateDatabase(String name) {
        return new IndexedDatabase(name, getCursorRegistry());
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

    /** What toll reads of it. The library's own looks the host's name up besides, which a pod may not know. */
    @Override
    public Document getServerStatus() {
        return new Document("version", version.toVersionString())
                .append("process", "toll-mongo")
                .append("pid", ProcessHandle.current().pid())
                .append("opcounters", operations.opcounters())
                .append("toll", new Document("server", AcceptedVersion.SERVER).append("clients", seen()))
                .append("ok", 1.0);
    }

    private Document seen() {
        Document seen = new Document();
        clients.sessions().forEach(seen::put);
        return seen;
    }
}
