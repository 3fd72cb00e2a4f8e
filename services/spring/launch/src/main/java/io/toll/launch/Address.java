package io.toll.launch;

import java.net.InetSocketAddress;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Turns {@code ADDRESS:PORT}, as a configuration has it, into where a socket is. */
public final class Address {
    private static final Pattern FORM = Pattern.compile("([^:/@\\s]+):(\\d{1,5})");

    private Address() {}

    /**
     * Names are left for later: nothing is looked up.
     *
     * @throws IllegalArgumentException for anything else
     */
    public static InetSocketAddress parse(String text) {
        Matcher parts = FORM.matcher(String.valueOf(text));
        if (!parts.matches()) {
            throw new IllegalArgumentException("`" + text + "` is not ADDRESS:PORT");
        }
        return InetSocketAddress.createUnresolved(parts.group(1), Integer.parseInt(parts.group(2)));
    }
}
