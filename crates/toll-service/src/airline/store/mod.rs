//! Turns what the airline asks of its database into one operation each, over MongoDB or PostgreSQL, and what comes
//! back into the JSON of the answer. No retries: a failed operation is the request's failure.

#[cfg(feature = "mongodb")]
mod mongo;
mod postgres;

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::sync::OnceCell;

use super::config::{Database, Inventory, Kind};
use super::documents::Booking;
use crate::error::Error;
#[cfg(feature = "mongodb")]
use mongo::Mongo;
use postgres::Postgres;

/// Why the database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("cannot query {database}: {cause}")]
pub(crate) struct StoreError {
    database: String,
    cause: Cause,
}

/// The innermost reason, and whether the database may have done it nonetheless.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
struct Cause {
    reason: String,
    /// It was sent and no answer came.
    unknown: bool,
}

impl Cause {
    /// The database has not done it.
    fn not_done(reason: impl ToString) -> Self {
        Self { reason: reason.to_string(), unknown: false }
    }

    /// The database may have done it.
    fn unknown(reason: impl ToString) -> Self {
        Self { reason: reason.to_string(), unknown: true }
    }
}

impl From<serde_json::Error> for Cause {
    fn from(error: serde_json::Error) -> Self {
        Self::unknown(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

impl StoreError {
    /// Whether it may have been done nonetheless: it was sent, and the connection broke before the answer.
    pub(super) fn may_be_done(&self) -> bool {
        self.cause.unknown
    }
}

/// What the database has and did.
#[derive(Debug, Serialize)]
pub(crate) struct Look {
    /// Name and version.
    server: String,
    /// Queries, inserts, updates and deletes since the server began; nothing where it does not count them.
    operations: Option<i64>,
    /// Those of them that this look has added since.
    own_operations: Option<i64>,
    /// Without those that were there at first.
    bookings: i64,
    /// Different keys among them.
    keys: i64,
    /// Of all flights.
    seats_taken: i64,
    /// Sessions by the SHA-256 of the certificate that the client showed, where the server tells.
    clients: Option<BTreeMap<String, i64>>,
}

/// A database of the airline. Nothing is connected before it is first asked.
#[derive(Debug)]
pub(super) struct Store {
    name: String,
    server: Server,
    /// Asked once: flights and customers are neither added nor removed.
    sizes: OnceCell<Sizes>,
}

#[derive(Debug)]
enum Server {
    #[cfg(feature = "mongodb")]
    Mongo(Mongo),
    Postgres(Postgres),
}

/// How many there are.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    flights: i64,
    customers: i64,
}

/// Does with whichever server it is what both can do.
macro_rules! ask {
    ($store:expr, $method:ident($($argument:expr),*)) => {
        match &$store.server {
            #[cfg(feature = "mongodb")]
            Server::Mongo(mongo) => mongo.$method($($argument),*).await,
            Server::Postgres(postgres) => postgres.$method($($argument),*).await,
        }
        .map_err(|cause| $store.failed(cause))
    };
}

impl Store {
    /// The database as configured; called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::NoStore`] when a PEM file cannot be read.
    pub(super) fn new(config: Database) -> Result<Self, Error> {
        let name = config.service.clone();
        let server = match config.kind {
            #[cfg(feature = "mongodb")]
            Kind::MongoDb => Mongo::new(config).map(Server::Mongo),
            #[cfg(not(feature = "mongodb"))]
            Kind::MongoDb => Err("this binary was built without the feature `mongodb`".into()),
            Kind::Postgres => Postgres::new(&config).map(Server::Postgres),
        };
        match server {
            Ok(server) => Ok(Self { name, server, sizes: OnceCell::new() }),
            Err(reason) => Err(Error::NoStore { service: name, reason }),
        }
    }

    /// The flights between two airports, as a JSON array of at most four.
    pub(super) async fn flights(&self, from: &str, to: &str) -> Result<Vec<u8>, StoreError> {
        ask!(self, flights(from, to))
    }

    /// A customer as JSON; a number beyond the last begins again with the first.
    pub(super) async fn customer(&self, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let number = self.within(number, |sizes| sizes.customers).await?;
        ask!(self, customer(number))
    }

    /// The latest four bookings of a customer, as a JSON array; numbers as for [`Store::customer`].
    pub(super) async fn bookings(&self, customer: u32) -> Result<Vec<u8>, StoreError> {
        let customer = self.within(customer, |sizes| sizes.customers).await?;
        ask!(self, bookings(customer))
    }

    /// Takes a seat of a flight, if one is free, and tells which flight it is: a number beyond the last begins again
    /// with the first.
    pub(super) async fn take_seat(&self, flight: u32) -> Result<Option<i32>, StoreError> {
        let flight = self.within(flight, |sizes| sizes.flights).await?;
        let taken = ask!(self, take_seat(flight))?;
        Ok(taken.then_some(flight))
    }

    /// Gives a seat back that was taken of a flight.
    pub(super) async fn give_seat_back(&self, flight: u32) -> Result<(), StoreError> {
        let flight = self.within(flight, |sizes| sizes.flights).await?;
        ask!(self, give_seat_back(flight))
    }

    /// Keeps a booking; without an error it is there.
    pub(super) async fn book(&self, booking: &Booking<&str>) -> Result<(), StoreError> {
        ask!(self, book(booking))
    }

    /// Where a connection comes from, as the server sees it, if it tells.
    pub(super) async fn own_address(&self) -> Result<Option<String>, StoreError> {
        ask!(self, own_address())
    }

    /// Makes everything anew.
    pub(super) async fn fill(&self, inventory: Inventory) -> Result<(), StoreError> {
        ask!(self, fill(inventory))
    }

    /// What is in it, and what the server did.
    pub(super) async fn look(&self) -> Result<Look, StoreError> {
        ask!(self, look())
    }

    /// The numbers of flights and customers begin with 0.
    async fn within(&self, number: u32, of: fn(Sizes) -> i64) -> Result<i32, StoreError> {
        let sizes = self.sizes.get_or_try_init(async || ask!(self, sizes())).await?;
        let remainder = i64::from(number).checked_rem(of(*sizes)).ok_or_else(|| {
            self.failed(Cause::not_done("there is nothing in it; `airline fill` fills it"))
        })?;
        Ok(i32::try_from(remainder).expect("fewer flights and customers than 2^31"))
    }

    fn failed(&self, cause: Cause) -> StoreError {
        StoreError { database: self.name.clone(), cause }
    }
}
