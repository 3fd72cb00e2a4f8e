package io.toll.mongo.clients;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.cert.Certificate;
import java.security.cert.CertificateEncodingException;
import java.util.HexFormat;

/** Turns a certificate into the SHA-256 of its DER form, in lower-case hexadecimal digits. */
public final class Fingerprint {
    private Fingerprint() {}

    public static String of(Certificate certificate) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(certificate.getEncoded());
            return HexFormat.of().formatHex(digest);
        } catch (NoSuchAlgorithmException | CertificateEncodingException why) {
            throw new AssertionError("every JVM has SHA-256, and what was decoded can be encoded", why);
        }
    }
}
