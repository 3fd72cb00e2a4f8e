package io.toll.database;

import java.nio.charset.CharacterCodingException;
import org.springframework.core.NestedExceptionUtils;

/** A query brought no result; the message says why. */
public class QueryFailed extends RuntimeException {
    QueryFailed(String database, Throwable cause) {
        super("cannot query " + database + ": " + reason(NestedExceptionUtils.getMostSpecificCause(cause)), cause);
    }

    private static String reason(Throwable root) {
        return root instanceof CharacterCodingException ? "the body is no text" : root.getMessage();
    }
}
