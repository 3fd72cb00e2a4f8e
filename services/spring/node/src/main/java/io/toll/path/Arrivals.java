package io.toll.path;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import org.springframework.http.HttpHeaders;

/**
 * Counts the requests that the node got and, of those, the ones that a proxy marked or certified. None of
 * the counts decreases.
 */
public final class Arrivals {
    /** The header in which a proxy tells the identity that its caller proved. */
    private static final String CERTIFICATE = "x-forwarded-client-cert";

    /**
     * Headers by which a proxy shows itself. Not {@code x-request-id}: services pass it on, so that it tells
     * nothing of the hop it came over.
     */
    private static final List<String> MARKS = List.of("forwarded", "via");

    private static final List<String> MARKING_FAMILIES = List.of("x-envoy-", "x-forwarded-");

    private final LongAdder requests = new LongAdder();
    private final LongAdder marked = new LongAdder();
    private final LongAdder certified = new LongAdder();

    /** Counts a request with {@code headers}. */
    public void count(HttpHeaders headers) {
        requests.increment();
        if (headers.headerNames().stream().anyMatch(Arrivals::isMark)) {
            marked.increment();
        }
        if (headers.containsHeader(CERTIFICATE)) {
            certified.increment();
        }
    }

    public long requests() {
        return requests.sum();
    }

    public long marked() {
        return marked.sum();
    }

    public long certified() {
        return certified.sum();
    }

    private static boolean isMark(String name) {
        String lower = name.toLowerCase(Locale.ROOT);
        return MARKS.contains(lower) || MARKING_FAMILIES.stream().anyMatch(lower::startsWith);
    }
}
