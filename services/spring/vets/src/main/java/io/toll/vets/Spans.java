package io.toll.vets;

/**
 * How many spans a tracing agent makes of a request here: one for the request, the others for statements.
 *
 * @param count 1 to {@value #MOST}
 */
record Spans(int count) {
    private static final int MOST = 100;

    Spans {
        if (count < 1 || count > MOST) {
            throw new IllegalArgumentException("spans is 1 to " + MOST + ", not " + count);
        }
    }

    /** Whether there is a statement at all. */
    boolean askTheDatabase() {
        return count > 1;
    }

    /** How many vets to read: one statement lists them, and one more for each reads its specialties. */
    int vets() {
        return count - 2;
    }
}
