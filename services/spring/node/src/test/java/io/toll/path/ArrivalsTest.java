package io.toll.path;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpHeaders;

class ArrivalsTest {
    private final Arrivals arrivals = new Arrivals();

    @ParameterizedTest
    @ValueSource(strings = {"X-Forwarded-Proto", "x-envoy-attempt-count", "via", "Forwarded"})
    void aRequestWithAHeaderThatOnlyProxiesAddIsMarked(String name) {
        count("host", name);
        assertThat(arrivals.marked()).isEqualTo(1);
        assertThat(arrivals.certified()).isZero();
    }

    @Test
    void aRequestIsMarkedOnceHoweverManyMarksItBears() {
        count("via", "forwarded", "x-envoy-internal");
        assertThat(arrivals.marked()).isEqualTo(1);
    }

    @Test
    void whatCallersSendOrPassOnIsNoMark() {
        count("host", "user-agent", "x-request-id", "traceparent", "x-b3-traceid", "viaduct");
        assertThat(arrivals.requests()).isEqualTo(1);
        assertThat(arrivals.marked()).isZero();
    }

    @Test
    void aProvenCallerIsCountedApart() {
        count("X-Forwarded-Client-Cert");
        count("host");
        assertThat(arrivals.certified()).isEqualTo(1);
        assertThat(arrivals.requests()).isEqualTo(2);
    }

    private void count(String... names) {
        HttpHeaders headers = new HttpHeaders();
        for (String name : names) {
            headers.add(name, "1");
        }
        arrivals.count(headers);
    }
}
