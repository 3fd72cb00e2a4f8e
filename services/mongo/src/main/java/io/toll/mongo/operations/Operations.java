package io.toll.mongo.operations;

import de.bwaldvogel.mongo.bson.Document;
import java.util.Collection;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts operations as {@code mongod} does in {@code serverStatus.opcounters}: an insert by its documents, an update
 * and a delete by their statements, all else as one.
 */
public final class Operations {
    /** The kinds of operations that {@code mongod} tells apart. */
    enum Kind {
        INSERT("insert", "documents"),
        QUERY("query", null),
        UPDATE("update", "updates"),
        DELETE("delete", "deletes"),
        GETMORE("getmore", null),
        COMMAND("command", null);

        final String name;
        /** The field of the command that lists what it is counted by. */
        final String list;

        Kind(String name, String list) {
            this.name = name;
            this.list = list;
        }

        static Kind of(String command) {
            return switch (command) {
                case "insert" -> INSERT;
                case "find" -> QUERY;
                case "update" -> UPDATE;
                case "delete" -> DELETE;
                case "getMore" -> GETMORE;
                default -> COMMAND;
            };
        }
    }

    private final Map<Kind, LongAdder> counts = new EnumMap<>(Kind.class);

    public Operations() {
        for (Kind kind : Kind.values()) {
            counts.put(kind, new LongAdder());
        }
    }

    void count(String command, Document body) {
        Kind kind = Kind.of(command);
        Object list = kind.list == null ? null : body.get(kind.list);
        counts.get(kind).add(list instanceof Collection<?> statements ? statements.size() : 1);
    }

    /** What was asked so far, whether or not it succeeded; none of it decreases. */
    Document opcounters() {
        Document opcounters = new Document();
        counts.forEach((kind, count) -> opcounters.put(kind.name, count.sum()));
        return opcounters;
    }
}
