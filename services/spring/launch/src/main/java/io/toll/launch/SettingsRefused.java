package io.toll.launch;

/** A configuration that cannot be played; the message says why. */
public class SettingsRefused extends RuntimeException {
    SettingsRefused(String message, Throwable cause) {
        super(message, cause);
    }
}
