package io.toll.mongo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;

class ArgumentsTest {
    @Test
    void theFourOptionsComeInAnyOrder() {
        Arguments arguments = Arguments.parse(
                "--key", "db.key", "--authority", "ca.crt", "--listen", "127.0.0.1:27017", "--certificate", "db.crt");
        assertEquals(new InetSocketAddress("127.0.0.1", 27017), arguments.listen());
        assertEquals("db.crt db.key ca.crt",
                arguments.certificate() + " " + arguments.key() + " " + arguments.authority());
    }

    @Test
    void aMissingOptionIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> Arguments.parse("--listen", "127.0.0.1:27017"));
    }

    @Test
    void anUnknownOptionIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> Arguments.parse(
                "--listen", "127.0.0.1:1", "--certificate", "a", "--key", "b", "--authorities", "c"));
    }

    @Test
    void aNameIsNoAddressToListenOn() {
        IllegalArgumentException why = assertThrows(IllegalArgumentException.class, () -> Arguments.parse(
                "--listen", "localhost:1", "--certificate", "a", "--key", "b", "--authority", "c"));
        assertEquals("`localhost:1` is not IP:PORT", why.getMessage());
    }
}
