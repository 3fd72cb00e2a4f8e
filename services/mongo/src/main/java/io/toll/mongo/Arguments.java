package io.toll.mongo;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What the command line says.
 *
 * @param listen where to listen; port 0 takes any free one
 * @param certificate the server's, with its chain, as PEM
 * @param key of the certificate, PKCS8 as PEM
 * @param authority whose certificates clients must show, as PEM
 */
record Arguments(InetSocketAddress listen, File certificate, File key, File authority) {
    static final String USAGE =
            "usage: java -jar toll-mongo.jar --listen IP:PORT --certificate FILE --key FILE --authority FILE";

    private static final List<String> NAMES = List.of("--listen", "--certificate", "--key", "--authority");
    private static final Pattern ADDRESS = Pattern.compile("(\\d+(?:\\.\\d+){3}):(\\d{1,5})");

    /**
     * Takes each of the four once, in any order.
     *
     * @throws IllegalArgumentException for anything else
     */
    static Arguments parse(String... arguments) {
        Map<String, String> values = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            values.put(arguments[i], arguments[i + 1]);
        }
        if (arguments.length != 2 * NAMES.size() || !values.keySet().containsAll(NAMES)) {
            throw new IllegalArgumentException("it takes " + String.join(", ", NAMES) + ", each with a value");
        }
        return new Arguments(
                address(values.get("--listen")),
                new File(values.get("--certificate")),
                new File(values.get("--key")),
                new File(values.get("--authority")));
    }

    private static InetSocketAddress address(String text) {
        Matcher parts = ADDRESS.matcher(text);
        if (!parts.matches()) {
            throw new IllegalArgumentException("`" + text + "` is not IP:PORT");
        }
        return new InetSocketAddress(parts.group(1), Integer.parseInt(parts.group(2)));
    }
}
