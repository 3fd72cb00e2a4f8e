package io.toll.neighbours;

import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;

/**
 * What the node was asked and asks its neighbours in turn.
 *
 * @param target path and query, as they came
 * @param headers all that came; not all of them are passed on
 */
public record Question(HttpMethod method, String target, HttpHeaders headers, byte[] body) {
    /** Whether it asks for something rather than changing it. */
    public boolean reads() {
        return method == HttpMethod.GET || method == HttpMethod.HEAD;
    }
}
