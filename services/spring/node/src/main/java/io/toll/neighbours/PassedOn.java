package io.toll.neighbours;

import io.toll.path.PathReport;
import java.util.Locale;
import java.util.Set;
import org.springframework.http.HttpHeaders;

/** Picks the headers that tell what the body is or tie the calls of one request together. */
final class PassedOn {
    private static final Set<String> NAMES = Set.of(
            PathReport.PROBE_HEADER, "content-type", "x-request-id", "traceparent", "tracestate", "b3");

    /** The Zipkin family: {@code x-b3-traceid}, {@code x-b3-sampled} and so on. */
    private static final String FAMILY = "x-b3-";

    private PassedOn() {}

    static void copy(HttpHeaders from, HttpHeaders to) {
        from.forEach((name, values) -> {
            if (ties(name.toLowerCase(Locale.ROOT))) {
                to.addAll(name, values);
            }
        });
    }

    private static boolean ties(String name) {
        return NAMES.contains(name) || name.startsWith(FAMILY);
    }
}
