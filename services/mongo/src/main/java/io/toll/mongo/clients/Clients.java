package io.toll.mongo.clients;

import io.netty.channel.ChannelHandler;
import java.security.cert.Certificate;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** Counts the TLS sessions that clients made, by the SHA-256 of the certificate that they showed. */
public final class Clients {
    private final Map<String, LongAdder> sessions = new ConcurrentHashMap<>();

    /** What counts one connection's session, for its pipeline. */
    public ChannelHandler witness() {
        return new SessionWitness(this);
    }

    void count(Certificate leaf) {
        sessions.computeIfAbsent(Fingerprint.of(leaf), unknown -> new LongAdder()).increment();
    }

    /** Sessions so far; they never decrease. */
    public Map<String, Long> sessions() {
        Map<String, Long> sums = new TreeMap<>();
        sessions.forEach((fingerprint, count) -> sums.put(fingerprint, count.sum()));
        return sums;
    }
}
