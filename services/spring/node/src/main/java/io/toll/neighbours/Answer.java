package io.toll.neighbours;

import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.MediaType;

/** What a neighbour answered, complete. */
public record Answer(HttpStatusCode status, @Nullable MediaType contentType, byte[] body) {}
