package io.toll.mongo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.mongodb.MongoTimeoutException;
import com.mongodb.client.MongoClient;
import io.netty.pkitesting.X509Bundle;
import io.toll.mongo.clients.Fingerprint;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;
import org.bson.Document;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MutualTlsTest {
    private static final Instant LATER = Instant.now().plusSeconds(3600);

    private Airline airline;

    @BeforeEach
    void start(@TempDir Path folder) throws Exception {
        airline = new Airline(folder);
    }

    @AfterEach
    void stop() {
        airline.close();
    }

    @Test
    void theServerTellsWhoseCertificatesItSaw() throws Exception {
        X509Bundle flights = Airline.issue(airline.authority, "flights", LATER);
        X509Bundle customers = Airline.issue(airline.authority, "customers", LATER);
        try (MongoClient first = airline.client(flights); MongoClient second = airline.client(customers)) {
            first.getDatabase("airline").runCommand(new Document("ping", 1));
            Map<?, ?> seen = clients(second);
            assertEquals(
                    Set.of(Fingerprint.of(flights.getCertificate()), Fingerprint.of(customers.getCertificate())),
                    seen.keySet());
            assertTrue(((Number) seen.get(Fingerprint.of(flights.getCertificate()))).longValue() > 0);
        }
    }

    @Test
    void aClientWithoutACertificateIsRefused() {
        assertRefused(null);
    }

    @Test
    void aClientOfAnotherAuthorityIsRefused() throws Exception {
        assertRefused(Airline.issue(Airline.authority("other"), "flights", LATER));
    }

    @Test
    void aClientWhoseCertificateHasExpiredIsRefused() throws Exception {
        assertRefused(Airline.issue(airline.authority, "flights", Instant.now().minusSeconds(60)));
    }

    @Test
    void noSessionIsResumedSoThatEachShowsItsCertificate() throws Exception {
        SSLContext tls = airline.tls(Airline.issue(airline.authority, "flights", LATER));
        SSLSession first = session(tls);
        SSLSession second = session(tls);
        assertNotEquals(first.getCreationTime(), second.getCreationTime(), "a resumed session is as old as its first");
    }

    /** A session that the server has had time to send a ticket for. */
    private SSLSession session(SSLContext tls) throws IOException {
        int port = airline.listener.address().getPort();
        try (SSLSocket socket = (SSLSocket) tls.getSocketFactory().createSocket("localhost", port)) {
            socket.setSoTimeout(200);
            socket.startHandshake();
            assertThrows(SocketTimeoutException.class, () -> socket.getInputStream().read());
            return socket.getSession();
        }
    }

    private void assertRefused(X509Bundle client) {
        assertThrows(MongoTimeoutException.class, () -> {
            try (MongoClient refused = airline.client(client)) {
                refused.getDatabase("airline").runCommand(new Document("ping", 1));
            }
        });
    }

    private static Map<?, ?> clients(MongoClient client) {
        Document status = client.getDatabase("admin").runCommand(new Document("serverStatus", 1));
        return status.get("toll", Document.class).get("clients", Document.class);
    }
}
