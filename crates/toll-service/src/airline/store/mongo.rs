//! The airline's documents in MongoDB, by its own driver: a pool of connections over TLS, by the server's name.
//!
//! The driver's monitor keeps a connection of its own beside the pool, whose `hello` is no operation.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::cstr;
use mongodb::bson::{
    Bson, Document, RawDocument, RawDocumentBuf, deserialize_from_slice, doc,
    serialize_to_raw_document_buf,
};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::event::EventHandler;
use mongodb::event::sdam::SdamEvent;
use mongodb::options::{ClientOptions, ServerAddress, ServerMonitoringMode, Tls, TlsOptions};
use mongodb::{Client, Collection, Database, IndexModel};
use serde::{Deserialize, Serialize};

use super::{Cause, Look, Sizes};
use crate::airline::config::{self, Inventory};
use crate::airline::documents::{Booking, Customer, Flight, JsonArray, SEED, to_json};
use crate::airline::inventory;
use crate::error::root_cause;

/// How long a connection may take to be made, and a server to be found.
const PATIENCE: Duration = Duration::from_secs(5);

/// The monitor asks this seldom: a server that fails shows in the requests themselves.
const HEARTBEAT: Duration = Duration::from_secs(600);

/// Documents that are inserted at a time.
const BATCH: usize = 1000;

/// The server's own number of a document is nobody's business.
fn without_id() -> Document {
    doc! { "_id": 0 }
}

/// A MongoDB server's database `airline`.
#[derive(Debug)]
pub(super) struct Mongo {
    database: Database,
    flights: Collection<RawDocumentBuf>,
    bookings: Collection<RawDocumentBuf>,
    customers: Collection<RawDocumentBuf>,
    trouble: Trouble,
}

/// Why the monitor last did not reach the server: the driver tells it only within a page of text.
#[derive(Debug, Clone, Default)]
struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    fn watch(&self) -> EventHandler<SdamEvent> {
        let Self(last) = self.clone();
        EventHandler::callback(move |event| {
            if let SdamEvent::ServerHeartbeatFailed(failed) = event {
                let reason = reason(&failed.failure);
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            }
        })
    }

    fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Mongo {
    /// A client of the server; called within a tokio runtime.
    pub(super) fn new(config: config::Database) -> Result<Self, String> {
        // The driver does not tell which of its files it cannot read.
        for path in [&config.authority, &config.identity] {
            File::open(path).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        let trouble = Trouble::default();
        let client = Client::with_options(settings(config, &trouble)).map_err(|e| reason(&e))?;
        let database = client.database("airline");
        Ok(Self {
            flights: database.collection("flights"),
            bookings: database.collection("bookings"),
            customers: database.collection("customers"),
            database,
            trouble,
        })
    }

    pub(super) async fn flights(&self, from: &str, to: &str) -> Result<Vec<u8>, Cause> {
        let find = self.flights.find(doc! { "from": from, "to": to });
        let find = find.sort(doc! { "number": 1 }).limit(4).projection(without_id());
        let mut found = find.await.map_err(|error| self.cause(&error))?;
        let mut flights = JsonArray::new();
        while found.advance().await.map_err(|error| self.cause(&error))? {
            flights.push(&read::<Flight<&str>>(found.current())?)?;
        }
        Ok(flights.into_text())
    }

    pub(super) async fn customer(&self, number: i32) -> Result<Option<Vec<u8>>, Cause> {
        let find = self.customers.find_one(doc! { "number": number }).projection(without_id());
        let found = find.await.map_err(|error| self.cause(&error))?;
        found.map(|customer| Ok(to_json(&read::<Customer<&str>>(&customer)?)?)).transpose()
    }

    pub(super) async fn bookings(&self, customer: i32) -> Result<Vec<u8>, Cause> {
        let find = self.bookings.find(doc! { "customer": customer });
        let find = find.sort(doc! { "_id": -1 }).limit(4).projection(without_id());
        let mut found = find.await.map_err(|error| self.cause(&error))?;
        let mut bookings = JsonArray::new();
        while found.advance().await.map_err(|error| self.cause(&error))? {
            bookings.push(&read::<Booking<&str>>(found.current())?)?;
        }
        Ok(bookings.into_text())
    }

    /// One update: the server sees to it that no two take the same seat.
    pub(super) async fn take_seat(&self, flight: i32) -> Result<bool, Cause> {
        let while_free = doc! { "number": flight, "free": { "$gt": 0 } };
        let update = self.flights.update_one(while_free, doc! { "$inc": { "free": -1 } });
        Ok(update.await.map_err(|error| self.cause(&error))?.matched_count == 1)
    }

    pub(super) async fn give_seat_back(&self, flight: i32) -> Result<(), Cause> {
        let flight = doc! { "number": flight };
        let update = self.flights.update_one(flight, doc! { "$inc": { "free": 1 } });
        update.await.map(drop).map_err(|error| self.cause(&error))
    }

    pub(super) async fn book(&self, booking: &Booking<&str>) -> Result<(), Cause> {
        let insert = self.bookings.insert_one(raw(booking));
        insert.await.map(drop).map_err(|error| self.cause(&error))
    }

    /// A server of the protocol need not know the command.
    pub(super) async fn own_address(&self) -> Result<Option<String>, Cause> {
        match self.database.run_command(doc! { "whatsmyuri": 1 }).await {
            // With its port.
            Ok(answer) => Ok(answer
                .get_str("you")
                .ok()
                .map(|at| at.rsplit_once(':').map_or(at, |(address, _)| address).to_owned())),
            Err(error) if matches!(*error.kind, ErrorKind::Command(_)) => Ok(None),
            Err(error) => Err(self.cause(&error)),
        }
    }

    /// By the collections' own counts: no query.
    pub(super) async fn sizes(&self) -> Result<Sizes, Cause> {
        let count = async |collection: &Collection<RawDocumentBuf>| {
            let count = collection.estimated_document_count().await;
            count.map(u64::cast_signed).map_err(|error| self.cause(&error))
        };
        Ok(Sizes { flights: count(&self.flights).await?, customers: count(&self.customers).await? })
    }

    pub(super) async fn fill(&self, inventory: Inventory) -> Result<(), Cause> {
        let Inventory { flights, seats, customers } = inventory;
        self.database.drop().await.map_err(|error| self.cause(&error))?;
        for (collection, keys) in [
            (&self.flights, doc! { "number": 1 }),
            (&self.flights, doc! { "from": 1, "to": 1, "number": 1 }),
            (&self.customers, doc! { "number": 1 }),
            (&self.bookings, doc! { "customer": 1, "_id": -1 }),
        ] {
            let index = IndexModel::builder().keys(keys).build();
            collection.create_index(index).await.map_err(|error| self.cause(&error))?;
        }
        self.insert(&self.flights, (0..flights).map(|number| inventory::flight(number, seats)))
            .await?;
        self.insert(&self.customers, (0..customers).map(inventory::customer)).await?;
        let bookings = (0..customers).flat_map(|number| inventory::bookings(number, flights));
        let bookings = bookings.zip(0_u64..).map(|(booking, number)| {
            let mut seed = raw(&booking);
            seed.append(cstr!("_id"), seed_id(number));
            seed
        });
        self.insert(&self.bookings, bookings).await
    }

    async fn insert(
        &self,
        collection: &Collection<RawDocumentBuf>,
        values: impl Iterator<Item = impl Serialize>,
    ) -> Result<(), Cause> {
        let mut documents = values.map(|value| raw(&value)).peekable();
        while documents.peek().is_some() {
            let batch: Vec<_> = documents.by_ref().take(BATCH).collect();
            collection.insert_many(batch).await.map_err(|error| self.cause(&error))?;
        }
        Ok(())
    }

    /// Counts first: mongod counts what this asks for among the queries.
    pub(super) async fn look(&self) -> Result<Look, Cause> {
        let before = self.status().await?;
        let booked = doc! { "key": { "$not": { "$regex": format!("^{SEED}") } } };
        let by_key = doc! { "$group": { "_id": "$key", "bookings": { "$sum": 1 } } };
        let all = doc! { "$group": {
            "_id": null, "keys": { "$sum": 1 }, "bookings": { "$sum": "$bookings" },
        } };
        let bookings =
            self.one(&self.bookings, vec![doc! { "$match": booked }, by_key, all]).await?;
        let taken = doc! { "$subtract": ["$seats", "$free"] };
        let sum = doc! { "$group": { "_id": null, "seats_taken": { "$sum": taken } } };
        let flights = self.one(&self.flights, vec![sum]).await?;
        let after = self.status().await?;
        Ok(Look {
            server: server(&before),
            operations: Some(operations(&before)),
            own_operations: Some(operations(&after) - operations(&before)),
            bookings: whole(&bookings, "bookings"),
            keys: whole(&bookings, "keys"),
            seats_taken: whole(&flights, "seats_taken"),
            clients: clients(&before),
        })
    }

    async fn status(&self) -> Result<Document, Cause> {
        let status = self.database.run_command(doc! { "serverStatus": 1 });
        status.await.map_err(|error| self.cause(&error))
    }

    /// The one document that a pipeline ends with; an empty one when it has nothing to sum up.
    async fn one(
        &self,
        collection: &Collection<RawDocumentBuf>,
        pipeline: Vec<Document>,
    ) -> Result<Document, Cause> {
        let mut found = collection.aggregate(pipeline).await.map_err(|error| self.cause(&error))?;
        match found.advance().await.map_err(|error| self.cause(&error))? {
            true => read(found.current()),
            false => Ok(Document::new()),
        }
    }

    /// Only what was sent may be done: a server that refuses or cannot be found has done nothing. A pool that is
    /// cleared fails also what is under way.
    fn cause(&self, error: &Error) -> Cause {
        match &*error.kind {
            ErrorKind::ServerSelection { .. } => {
                Cause::not_done(self.trouble.last().unwrap_or_else(|| reason(error)))
            }
            ErrorKind::Command(_)
            | ErrorKind::Write(WriteFailure::WriteError(_))
            | ErrorKind::DnsResolve { .. }
            | ErrorKind::InvalidTlsConfig { .. } => Cause::not_done(reason(error)),
            _ => Cause::unknown(reason(error)),
        }
    }
}

fn settings(config: config::Database, trouble: &Trouble) -> ClientOptions {
    let tls = TlsOptions::builder()
        .ca_file_path(config.authority)
        .cert_key_file_path(config.identity)
        .build();
    ClientOptions::builder()
        .hosts(vec![ServerAddress::Tcp { host: config.host, port: Some(config.address.port()) }])
        .direct_connection(true)
        .tls(Tls::Enabled(tls))
        .max_pool_size(u32::try_from(config.connections.get()).unwrap_or(u32::MAX))
        .min_pool_size(0)
        .connect_timeout(PATIENCE)
        .server_selection_timeout(PATIENCE)
        // An operation that is sent twice would be counted twice, and its first failure not seen at all. A server
        // that stands alone refuses retries of writes anyway.
        .retry_reads(false)
        .retry_writes(false)
        .heartbeat_freq(HEARTBEAT)
        .server_monitoring_mode(ServerMonitoringMode::Poll)
        .sdam_event_handler(trouble.watch())
        .build()
}

/// What happened, without the driver's words around it.
fn reason(error: &Error) -> String {
    match &*error.kind {
        ErrorKind::Io(error) => root_cause(&**error),
        ErrorKind::Command(refusal) => refusal.message.clone(),
        ErrorKind::Write(WriteFailure::WriteError(refusal)) => refusal.message.clone(),
        ErrorKind::ServerSelection { .. } => "no server was found in time".into(),
        other => other.to_string(),
    }
}

/// Ids of 1970, in order: those that a driver makes tell seconds, and bookings of one second and another program would
/// come in any order.
fn seed_id(number: u64) -> ObjectId {
    let [a, b, c, d, e, counter @ ..] = number.to_be_bytes();
    ObjectId::from_parts(0, [a, b, c, d, e], counter)
}

fn raw(value: &impl Serialize) -> RawDocumentBuf {
    serialize_to_raw_document_buf(value).expect("texts and numbers always make BSON")
}

fn read<'a, T: Deserialize<'a>>(document: &'a RawDocument) -> Result<T, Cause> {
    deserialize_from_slice(document.as_bytes())
        .map_err(|error| Cause::unknown(format!("a document is not understood: {error}")))
}

/// `mongod 7.0.14`, or what the stand-in calls itself: the version that it gives to drivers is not its own.
fn server(status: &Document) -> String {
    if let Ok(own) = status.get_document("toll").and_then(|toll| toll.get_str("server")) {
        return own.into();
    }
    let text = |key| status.get_str(key).unwrap_or("?");
    format!("{} {}", text("process"), text("version"))
}

fn operations(status: &Document) -> i64 {
    let Ok(counters) = status.get_document("opcounters") else { return 0 };
    ["query", "insert", "update", "delete"].map(|kind| whole(counters, kind)).iter().sum()
}

/// Servers differ in the type of their whole numbers.
fn whole(document: &Document, key: &str) -> i64 {
    document.get(key).map_or(0, number)
}

fn number(value: &Bson) -> i64 {
    match value {
        Bson::Int32(number) => (*number).into(),
        Bson::Int64(number) => *number,
        Bson::Double(number) => *number as i64,
        _ => 0,
    }
}

fn clients(status: &Document) -> Option<BTreeMap<String, i64>> {
    let clients = status.get_document("toll").ok()?.get_document("clients").ok()?;
    Some(clients.iter().map(|(print, sessions)| (print.clone(), number(sessions))).collect())
}
