package io.toll.neighbours;

import org.springframework.core.NestedExceptionUtils;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;

/** A call did not bring an answer that counts; the message says why. */
public class CallFailed extends RuntimeException {
    private CallFailed(String message, Throwable cause) {
        super(message, cause);
    }

    static CallFailed notAnswered(String service, Throwable cause) {
        return new CallFailed("cannot call " + service + ": " + innermost(cause), cause);
    }

    static CallFailed brokenOff(String service, Throwable cause) {
        return new CallFailed(service + " broke off its answer: " + innermost(cause), cause);
    }

    static CallFailed failed(String service, HttpStatusCode status) {
        HttpStatus known = HttpStatus.resolve(status.value());
        String text = known == null ? "" : " " + known.getReasonPhrase();
        return new CallFailed(service + " answered " + status.value() + text, null);
    }

    static CallFailed noReport(String service, Throwable cause) {
        return new CallFailed(service + " answered a probe without a report: " + cause.getMessage(), cause);
    }

    /** The outer reasons only say that there is one. */
    private static String innermost(Throwable cause) {
        Throwable root = NestedExceptionUtils.getMostSpecificCause(cause);
        return root.getMessage() == null ? root.getClass().getSimpleName() : root.getMessage();
    }
}
