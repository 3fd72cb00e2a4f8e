package io.toll.launch;

import java.net.InetSocketAddress;

/** What every service's configuration says. */
public interface Settings {
    /** Where to listen, as {@code ADDRESS:PORT}; port 0 takes any free one. */
    String listen();

    /** Where to listen. */
    default InetSocketAddress listensOn() {
        return Address.parse(listen());
    }
}
