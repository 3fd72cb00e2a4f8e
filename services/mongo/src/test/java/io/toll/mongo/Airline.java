package io.toll.mongo;

import com.mongodb.MongoClientSettings;
import com.mongodb.ServerAddress;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import io.netty.handler.ssl.JdkSslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.netty.pkitesting.CertificateBuilder;
import io.netty.pkitesting.X509Bundle;
import io.toll.mongo.listener.Listener;
import java.io.File;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;

/** A running server, its authority, and clients that know it by its name. */
final class Airline implements AutoCloseable {
    static final String HOST = "localhost";

    final Path folder;
    final X509Bundle authority;
    final Listener listener;

    Airline(Path folder) throws Exception {
        this.folder = folder;
        authority = authority("airline");
        X509Bundle server = issue(authority, HOST, Instant.now().plusSeconds(3600));
        File certificate = write("db.crt", server.getCertificatePathPEM());
        File key = write("db.key", server.getPrivateKeyPEM());
        File roots = write("ca.crt", authority.getCertificatePEM());
        listener = TollMongo.start(new Arguments(new InetSocketAddress("127.0.0.1", 0), certificate, key, roots));
    }

    static X509Bundle authority(String name) throws Exception {
        return new CertificateBuilder()
                .subject("CN=" + name)
                .setIsCertificateAuthority(true)
                .ecp256()
                .buildSelfSigned();
    }

    static X509Bundle issue(X509Bundle authority, String name, Instant end) throws Exception {
        return new CertificateBuilder()
                .subject("CN=" + name)
                .addSanDnsName(name)
                .notBefore(Instant.now().minusSeconds(7200))
                .notAfter(end)
                .ecp256()
                .buildIssuedBy(authority);
    }

    /** TLS of a client with a certificate, or without one. */
    SSLContext tls(X509Bundle client) throws Exception {
        SslContextBuilder builder =
                SslContextBuilder.forClient().sslProvider(SslProvider.JDK).trustManager(authority.getCertificate());
        if (client != null) {
            builder.keyManager(client.toKeyManagerFactory());
        }
        return ((JdkSslContext) builder.build()).context();
    }

    /** A current driver, as the airline has one. */
    MongoClient client(X509Bundle client) throws Exception {
        SSLContext tls = tls(client);
        return MongoClients.create(MongoClientSettings.builder()
                .applyToClusterSettings(cluster -> cluster
                        .hosts(List.of(new ServerAddress(HOST, listener.address().getPort())))
                        .serverSelectionTimeout(3, TimeUnit.SECONDS))
                .applyToSslSettings(ssl -> ssl.enabled(true).context(tls))
                .retryWrites(false)
                .build());
    }

    private File write(String name, String pem) throws Exception {
        return Files.writeString(folder.resolve(name), pem).toFile();
    }

    @Override
    public void close() {
        listener.close();
    }
}
