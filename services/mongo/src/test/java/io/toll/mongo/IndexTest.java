package io.toll.mongo;

import static com.mongodb.client.model.Filters.and;
import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gt;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.set;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.Sorts;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.bson.Document;
import org.bson.conversions.Bson;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class IndexTest {
    private Airline airline;
    private MongoClient client;
    private MongoCollection<Document> bookings;

    @BeforeEach
    void start(@TempDir Path folder) throws Exception {
        airline = new Airline(folder);
        client = airline.client(Airline.issue(airline.authority, "toll", Instant.now().plusSeconds(3600)));
        bookings = client.getDatabase("airline").getCollection("bookings");
        bookings.createIndex(Indexes.compoundIndex(Indexes.ascending("customer"), Indexes.descending("_id")));
    }

    @AfterEach
    void stop() {
        client.close();
        airline.close();
    }

    /** Bookings 0 to {@code count - 1}, of ten customers in turn. */
    private void book(int count) {
        bookings.insertMany(IntStream.range(0, count)
                .mapToObj(n -> new Document("_id", n).append("customer", n % 10).append("free", n % 2)).toList());
    }

    private List<Integer> found(Bson query) {
        return bookings.find(query).sort(Sorts.descending("_id")).map(b -> b.getInteger("_id")).into(new ArrayList<>());
    }

    @Test
    void theRestOfAQueryIsComparedToo() {
        book(30);
        assertEquals(List.of(23, 13, 3), found(eq("customer", 3)));
        assertEquals(List.of(13), found(and(eq("customer", 3), eq(13))));
        assertEquals(List.of(), found(and(eq("customer", 4), gt("free", 0))));
        assertEquals(6, found(gt("customer", 7)).size());
    }

    @Test
    void numbersAreEqualWhateverTheirType() {
        book(30);
        assertEquals(List.of(23, 13, 3), found(eq("customer", 3L)));
        assertEquals(List.of(23, 13, 3), found(eq("customer", 3.0)));
    }

    @Test
    void whatIsChangedIsFoundByItsNewValues() {
        book(30);
        bookings.updateOne(eq(13), set("customer", 4));
        bookings.updateOne(eq("customer", 3), inc("free", 1));
        bookings.deleteOne(and(eq("customer", 4), eq(24)));
        assertEquals(List.of(23, 3), found(eq("customer", 3)));
        assertEquals(List.of(14, 13, 4), found(eq("customer", 4)));
    }

    @Test
    void anIndexOnWhatIsThereAlreadyFindsIt() {
        book(30);
        bookings.createIndex(Indexes.ascending("free"));
        assertEquals(15, found(eq("free", 1)).size());
    }

    @Test
    void aListIsFoundByEachOfItsMembers() {
        bookings.insertOne(new Document("_id", 1).append("customer", List.of(7, 8)));
        bookings.insertOne(new Document("_id", 2).append("customer", 8));
        assertEquals(List.of(2, 1), found(eq("customer", 8)));
    }

    @Test
    void whatNobodyHasIsNotFoundAndWhatIsMissingIs() {
        bookings.insertOne(new Document("_id", 1));
        assertNull(bookings.find(eq("customer", 8)).first());
        assertEquals(List.of(1), found(eq("customer", null)));
    }

    @Test
    void aFindCostsNoMoreWhenOthersHaveBookedMuch() {
        book(100);
        bookings.insertMany(IntStream.range(100, 20_000)
                .mapToObj(n -> new Document("_id", n).append("customer", 10 + n)).toList());
        for (int warm = 0; warm < 50; warm++) {
            found(eq("customer", 3));
        }
        // In turn, and medians: whatever else runs on the machine meets both alike.
        List<Long> indexed = new ArrayList<>();
        List<Long> searched = new ArrayList<>();
        for (int i = 0; i < 31; i++) {
            indexed.add(nanoseconds(eq("customer", 3)));
            searched.add(nanoseconds(eq("key", 3)));
        }
        long byIndex = median(indexed);
        long without = median(searched);
        assertTrue(byIndex * 2 < without, byIndex + " ns by the index, " + without + " ns without");
    }

    private long nanoseconds(Bson query) {
        long began = System.nanoTime();
        found(query);
        return System.nanoTime() - began;
    }

    private static long median(List<Long> values) {
        return values.stream().sorted().toList().get(values.size() / 2);
    }
}
