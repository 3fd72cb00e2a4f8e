package io.toll.node;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.TimeUnit;

/**
 * Turns a CPU time into exactly that much computing.
 *
 * <p>The thread's own CPU clock decides when it is enough, not a count of rounds and not the wall clock:
 * a slower clock rate or a busy neighbour makes a request later, never cheaper.
 */
final class Work {
    /** More than a round takes once compiled (some 2 ns), so that the end is neared from below. */
    private static final long NANOSECONDS_PER_ROUND = 16;

    /** Some 1 us of computing: what {@code burn} may overshoot by. */
    private static final long FEWEST_ROUNDS = 500;

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Kept so that the compiler cannot leave the computing out. */
    private static volatile long last = 1;

    private final long nanoseconds;

    Work(long microseconds) {
        nanoseconds = TimeUnit.MICROSECONDS.toNanos(microseconds);
    }

    /** Computes until the calling thread has used that much more CPU time. */
    void burn() {
        if (nanoseconds == 0) {
            return;
        }
        long end = THREADS.getCurrentThreadCpuTime() + nanoseconds;
        long state = last;
        for (long rest = nanoseconds; rest > 0; rest = end - THREADS.getCurrentThreadCpuTime()) {
            state = compute(state, Math.max(rest / NANOSECONDS_PER_ROUND, FEWEST_ROUNDS));
        }
        last = state;
    }

    /** Rounds of a xorshift generator (Marsaglia, Journal of Statistical Software 8, 2003). */
    private static long compute(long state, long rounds) {
        for (long round = 0; round < rounds; round++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
        }
        return state;
    }
}
