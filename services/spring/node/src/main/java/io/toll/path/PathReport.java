package io.toll.path;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.web.reactive.function.server.ServerRequest;
import tools.jackson.databind.PropertyNamingStrategies.SnakeCaseStrategy;
import tools.jackson.databind.annotation.JsonNaming;

/**
 * The path of a request as the applications saw it: who connected, with which headers, at every service;
 * and how many requests came before it.
 *
 * @param peer the other end of the connection as this service sees it
 * @param headers all of the request, by lower-case name; values of one name are joined by commas (RFC 9110, 5.3)
 * @param requests requests that this service got so far, probes apart
 * @param marked those of them that bore a header of a proxy
 * @param certified those of them that bore the identity that their caller proved
 * @param calls the reports of the called services, in order
 * @param databasePeer where this service's connections come from as its database sees them
 */
@JsonNaming(SnakeCaseStrategy.class)
@JsonInclude(JsonInclude.Include.NON_NULL)
public record PathReport(
        @JsonProperty(required = true) String service,
        @JsonProperty(required = true) String peer,
        @JsonProperty(required = true) Map<String, String> headers,
        @JsonProperty(required = true) long requests,
        @JsonProperty(required = true) long marked,
        @JsonProperty(required = true) long certified,
        @JsonProperty(required = true) List<PathReport> calls,
        @Nullable String databasePeer) {

    /** The header that asks for a report instead of an answer. */
    public static final String PROBE_HEADER = "x-toll-probe";

    /** What {@code service} saw of {@code request}. */
    public static PathReport of(String service, ServerRequest request, Arrivals arrivals) {
        return new PathReport(
                service,
                request.remoteAddress().map(PathReport::text).orElse("unknown"),
                texts(request.headers().asHttpHeaders()),
                arrivals.requests(),
                arrivals.marked(),
                arrivals.certified(),
                List.of(),
                null);
    }

    /** The same with what others saw. */
    public PathReport with(List<PathReport> calls, Optional<String> databasePeer) {
        return new PathReport(
                service, peer, headers, requests, marked, certified, calls, databasePeer.orElse(null));
    }

    private static String text(InetSocketAddress peer) {
        return peer.getAddress().getHostAddress() + ":" + peer.getPort();
    }

    private static Map<String, String> texts(HttpHeaders headers) {
        Map<String, String> texts = new TreeMap<>();
        headers.forEach((name, values) -> texts.merge(
                name.toLowerCase(Locale.ROOT), String.join(", ", values), (before, more) -> before + ", " + more));
        return texts;
    }
}
