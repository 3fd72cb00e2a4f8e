package io.toll.mongo.indexes;

import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.Utils;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.bson.ObjectId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds the documents that have the values which a query demands of the index's first keys; the collection compares
 * them with the rest of the query, and sorts them.
 */
final class LookupIndex extends Index<Integer> {
    /** Positions by the document's own id, by the values of the first one, two, ... keys. */
    private final Map<List<Object>, Map<Object, Integer>> positions = new HashMap<>();

    /** Whether a document has a list under a key, which stands for each of its members: then others must search. */
    private boolean incomplete;

    LookupIndex(String name, List<IndexKey> keys, boolean sparse) {
        super(name, keys, sparse);
    }

    @Override
    public synchronized boolean canHandle(Document query) {
        return !incomplete && !demanded(query).isEmpty();
    }

    @Override
    public synchronized Iterable<Integer> getPositions(Document query) {
        return new ArrayList<>(positions.getOrDefault(demanded(query), Map.of()).values());
    }

    /** The values that the query demands of the first keys, as far as it demands equality. */
    private List<Object> demanded(Document query) {
        List<Object> values = new ArrayList<>();
        for (String key : keys()) {
            Object value = query.get(key);
            if (!isPlain(value)) {
                break;
            }
            values.add(comparable(value));
        }
        return values;
    }

    /** Equal for all that queries take for equal; that some others are equal, too, the collection sorts out. */
    private static Object comparable(Object value) {
        return value instanceof Number number ? number.doubleValue() + 0.0 : value;
    }

    private static boolean isPlain(Object value) {
        return value instanceof String || value instanceof Number || value instanceof ObjectId;
    }

    @Override
    public synchronized void add(Document document, Integer position, MongoCollection<Integer> collection) {
        Object id = document.get("_id");
        for (List<Object> values : beginnings(document)) {
            positions.computeIfAbsent(values, none -> new LinkedHashMap<>()).put(id, position);
        }
    }

    @Override
    public synchronized Integer remove(Document document) {
        Object id = document.get("_id");
        Integer position = null;
        for (List<Object> values : beginnings(document)) {
            Map<Object, Integer> found = positions.get(values);
            position = found.remove(id);
            if (found.isEmpty()) {
                positions.remove(values);
            }
        }
        return position;
    }

    /** The values of the first key, of the first two, and so on. */
    private List<List<Object>> beginnings(Document document) {
        List<List<Object>> beginnings = new ArrayList<>();
        List<Object> values = new ArrayList<>();
        for (String key : keys()) {
            Object value = Utils.getSubdocumentValueCollectionAware(document, key);
            incomplete |= value instanceof Collection;
            values.add(comparable(value));
            beginnings.add(new ArrayList<>(values));
        }
        return beginnings;
    }

    @Override
    public synchronized void updateInPlace(
            Document before, Document after, Integer position, MongoCollection<Integer> collection) {
        if (!nullAwareEqualsKeys(before, after)) {
            remove(before);
            add(after, position, collection);
        }
    }

    @Override
    public Integer getPosition(Document document) {
        return null;
    }

    @Override
    public void checkAdd(Document document, MongoCollection<Integer> collection) {
        // Any number of documents may have the same values.
    }

    @Override
    public void checkUpdate(Document before, Document after, MongoCollection<Integer> collection) {
        // Any number of documents may have the same values.
    }

    @Override
    public synchronized long getCount() {
        Map<Object, Object> documents = new HashMap<>();
        positions.values().forEach(documents::putAll);
        return documents.size();
    }

    @Override
    public long getDataSize() {
        return getCount();
    }

    @Override
    public void drop() {
        // Nothing is kept outside of the process.
    }
}
