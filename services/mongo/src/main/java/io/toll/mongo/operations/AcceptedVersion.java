package io.toll.mongo.operations;

import de.bwaldvogel.mongo.MongoVersion;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Properties;

/**
 * The version of MongoDB that the server gives itself.
 *
 * <p>Current drivers refuse wire versions below 9; the highest of mongo-java-server's own is 8, although what the
 * drivers send since then is what it understands.
 */
final class AcceptedVersion implements MongoVersion {
    /** What really answers. */
    static final String SERVER = server();

    /** That of MongoDB 5.0 (MongoDB's specification of the handshake, "wire versions"). */
    private static final int WIRE_VERSION = 13;

    @Override
    public List<Integer> getVersionArray() {
        return List.of(5, 0, 0);
    }

    @Override
    public int getWireVersion() {
        return WIRE_VERSION;
    }

    private static String server() {
        try (InputStream written = AcceptedVersion.class.getResourceAsStream("/toll-mongo.properties")) {
            Properties properties = new Properties();
            properties.load(written);
            return properties.getProperty("server");
        } catch (IOException why) {
            throw new UncheckedIOException("the jar holds this file", why);
        }
    }
}
