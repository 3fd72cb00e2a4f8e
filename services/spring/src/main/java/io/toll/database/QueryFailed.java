package io.toll.database;

import org.springframework.core.NestedExceptionUtils;

/** A query brought no result; the message says why. */
public class QueryFailed extends RuntimeException {
    QueryFailed(String message) {
        super(message);
    }

    QueryFailed(String database, Throwable cause) {
        super("cannot query " + database + ": " + NestedExceptionUtils.getMostSpecificCause(cause).getMessage(), cause);
    }
}
