package io.toll.mongo;

import static com.mongodb.client.model.Accumulators.sum;
import static com.mongodb.client.model.Aggregates.count;
import static com.mongodb.client.model.Aggregates.group;
import static com.mongodb.client.model.Filters.and;
import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.lt;
import static com.mongodb.client.model.Updates.inc;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.mongodb.MongoWriteException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.Sorts;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.bson.Document;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the airline asks, by a current driver. */
class OperationsTest {
    private Airline airline;
    private MongoClient client;
    private MongoDatabase database;

    @BeforeEach
    void start(@TempDir Path folder) throws Exception {
        airline = new Airline(folder);
        client = airline.client(Airline.issue(airline.authority, "toll", Instant.now().plusSeconds(3600)));
        database = client.getDatabase("airline");
    }

    @AfterEach
    void stop() {
        client.close();
        airline.close();
    }

    @Test
    void whatIsAskedIsCountedByItsKind() {
        MongoCollection<Document> flights = database.getCollection("flights");
        Document before = opcounters();
        flights.insertMany(IntStream.range(0, 5).mapToObj(n -> new Document("_id", n)).toList());
        flights.updateOne(eq(1), inc("taken", 1));
        flights.updateOne(eq(77), inc("taken", 1));
        flights.find().sort(Sorts.descending("_id")).limit(4).into(new ArrayList<>());
        flights.deleteOne(eq(1));
        Document after = opcounters();
        assertEquals(5, rise("insert", before, after));
        assertEquals(2, rise("update", before, after));
        assertEquals(1, rise("query", before, after));
        assertEquals(1, rise("delete", before, after));
        assertEquals(0, rise("getmore", before, after));
    }

    @Test
    void theRestOfALongAnswerIsCountedAsOneMore() {
        MongoCollection<Document> flights = database.getCollection("flights");
        flights.insertMany(IntStream.range(0, 5).mapToObj(n -> new Document("_id", n)).toList());
        Document before = opcounters();
        assertEquals(5, flights.find().batchSize(3).into(new ArrayList<>()).size());
        assertEquals(1, rise("getmore", before, opcounters()));
    }

    @Test
    void aggregationsAreNoQueries() {
        MongoCollection<Document> bookings = database.getCollection("bookings");
        bookings.insertMany(IntStream.range(0, 6).mapToObj(n -> new Document("key", n / 2).append("seats", 2)).toList());
        Document before = opcounters();
        List<Document> keys = bookings.aggregate(List.of(group("$key"), count("keys"))).into(new ArrayList<>());
        List<Document> seats = bookings.aggregate(List.of(group(null, sum("taken", "$seats")))).into(new ArrayList<>());
        assertEquals(3, keys.get(0).getInteger("keys"));
        assertEquals(12, seats.get(0).getInteger("taken"));
        assertEquals(6, bookings.countDocuments());
        assertEquals(0, rise("query", before, opcounters()));
    }

    @Test
    void flightsAreFoundInTheirOrderAndNoMoreThanAsked() {
        MongoCollection<Document> flights = database.getCollection("flights");
        flights.createIndex(Indexes.ascending("from", "to"));
        flights.insertMany(IntStream.range(0, 9)
                .mapToObj(n -> new Document("_id", n).append("from", "A0").append("to", "A" + n % 2).append("price", -n))
                .toList());
        List<Integer> found = flights.find(and(eq("from", "A0"), eq("to", "A0")))
                .sort(Sorts.ascending("price")).limit(4).map(flight -> flight.getInteger("_id")).into(new ArrayList<>());
        assertEquals(List.of(8, 6, 4, 2), found);
    }

    @Test
    void noSeatIsSoldTwiceByManyAtOnce() throws Exception {
        MongoCollection<Document> flights = database.getCollection("flights");
        flights.insertOne(new Document("_id", 7).append("taken", 0));
        ExecutorService travellers = Executors.newFixedThreadPool(8);
        List<Future<Long>> sold = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            sold.add(travellers.submit(
                    () -> flights.updateOne(and(eq(7), lt("taken", 50)), inc("taken", 1)).getModifiedCount()));
        }
        long seats = 0;
        for (Future<Long> one : sold) {
            seats += one.get();
        }
        travellers.shutdown();
        assertEquals(50, seats);
        assertEquals(50, flights.find(eq(7)).first().getInteger("taken"));
    }

    @Test
    void aKeyIsUniqueWhereAnIndexSaysSo() {
        MongoCollection<Document> bookings = database.getCollection("bookings");
        bookings.createIndex(Indexes.ascending("key"), new IndexOptions().unique(true));
        bookings.insertOne(new Document("key", "a"));
        assertThrows(MongoWriteException.class, () -> bookings.insertOne(new Document("key", "a")));
    }

    @Test
    void itSaysWhatItIs() {
        String server = "mongo-java-server 1.47.0";
        Document status = client.getDatabase("admin").runCommand(new Document("serverStatus", 1));
        Document build = client.getDatabase("admin").runCommand(new Document("buildInfo", 1));
        assertEquals(server, status.get("toll", Document.class).getString("server"));
        assertEquals(server, build.get("toll", Document.class).getString("server"));
    }

    private Document opcounters() {
        Document status = client.getDatabase("admin").runCommand(new Document("serverStatus", 1));
        return status.get("opcounters", Document.class);
    }

    private static long rise(String kind, Document before, Document after) {
        return after.getLong(kind) - before.getLong(kind);
    }
}
