package io.toll.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class WorkTest {
    @Test
    void workTakesTheCpuTimeThatWasAskedFor() {
        assertThat(cpuTimeOf(new Work(20_000))).isBetween(Duration.ofMillis(20), Duration.ofMillis(25));
    }

    @Test
    void noWorkTakesNone() {
        assertThat(cpuTimeOf(new Work(0))).isLessThan(Duration.ofMillis(1));
    }

    private static Duration cpuTimeOf(Work work) {
        long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        work.burn();
        return Duration.ofNanos(ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - before);
    }
}
