package io.toll.mongo.indexes;

import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.memory.MemoryDatabase;
import java.util.List;

/**
 * mongo-java-server's database in memory, with indexes that are not unique.
 *
 * <p>Its own take part in nothing: each find would read the whole collection, and cost more with each booking.
 */
public final class IndexedDatabase extends MemoryDatabase {
    public IndexedDatabase(String name, CursorRegistry cursors) {
        super(name, cursors);
    }

    @Override
    protected Index<Integer> openOrCreateSecondaryIndex(
            String collection, String name, List<IndexKey> keys, boolean sparse) {
        return new LookupIndex(name, keys, sparse);
    }
}
