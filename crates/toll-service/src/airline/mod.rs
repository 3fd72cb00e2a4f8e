//! An airline: four parts that call each other and keep flights, customers and bookings in a database outside of the
//! mesh, over TLS. Turns a request into calls and at most one operation of the database, and into an answer.
//!
//! | asked of web | web calls | which calls | operations |
//! |---|---|---|---|
//! | `GET /flights?from=A1&to=A2` | flights | | flights: 1 |
//! | `POST /bookings` | bookings | customers, flights | customers: 1, flights: 1, bookings: 1 |
//! | `GET /bookings?customer=7` | bookings | | bookings: 1 |
//! | `GET /customers/7` | customers | | customers: 1 |
//!
//! No part retries anything: a failure is to be seen.

mod asked;
mod config;
mod documents;
mod inventory;
mod store;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Response, StatusCode};

use crate::arrivals::Arrivals;
use crate::calls::{CallError, Calls, Errand};
use crate::error::Error;
use crate::path_report::{PROBE_HEADER, PathReport, Seen};
use crate::request::WholeRequest;
use crate::service::{Answer, json, relayed, with_status};
use crate::work;
use asked::{OfBookings, OfFlights, Order, Part, Unasked};
use config::{Looked, Role};
use documents::{Passenger, Ticket, to_json};
use store::Store;

pub(crate) use config::{Config, Stand};
pub(crate) use store::{Look, StoreError};

/// A part of the airline.
#[derive(Debug)]
pub(crate) struct Airline {
    name: String,
    work: Duration,
    calls: Calls,
    role: Role<Store>,
    /// Without probes.
    arrivals: Arrivals,
}

/// Why a request has no answer of 2xx.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}; {1}")]
    NotBooked(#[source] StoreError, Seat),
    #[error(transparent)]
    Unasked(#[from] Unasked),
    #[error("flight {0} is full")]
    Full(u32),
    #[error("there is no customer {0}")]
    NoCustomer(u32),
}

/// What became of the seat of a booking that failed.
#[derive(Debug, thiserror::Error)]
enum Seat {
    #[error("its seat was given back")]
    GivenBack,
    #[error("its seat stays taken: {0}")]
    NotGivenBack(String),
    #[error("its seat stays taken, because it may be booked nonetheless")]
    PerhapsBooked,
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Self::Call(_) => StatusCode::BAD_GATEWAY,
            Self::Store(_) | Self::NotBooked(..) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unasked(Unasked::NoSuchPath) | Self::NoCustomer(_) => StatusCode::NOT_FOUND,
            Self::Unasked(_) => StatusCode::BAD_REQUEST,
            Self::Full(_) => StatusCode::CONFLICT,
        }
    }
}

impl Airline {
    /// The part as configured; called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::NoStore`]
    pub(crate) fn new(config: Config) -> Result<Self, Error> {
        Ok(Self {
            name: config.name,
            work: config.work,
            calls: Calls::new(config.calls, None),
            role: opened(config.role)?,
            arrivals: Arrivals::default(),
        })
    }

    /// Answers a request from `peer`. A call that fails makes it an answer of 502 with the reason, an operation one of
    /// 503.
    pub(crate) async fn answer(&self, request: &WholeRequest, peer: SocketAddr) -> Answer {
        let answer = if request.headers().contains_key(PROBE_HEADER) {
            self.report(request, peer).await
        } else {
            self.arrivals.count(request.headers());
            work::burn_aside(self.work).await;
            self.serve(request).await
        };
        answer.unwrap_or_else(|failure| with_status(failure.status(), failure.to_string().into()))
    }

    async fn serve(&self, request: &WholeRequest) -> Result<Answer, Failure> {
        match &self.role {
            Role::Web { flights, bookings, customers } => {
                let index = match asked::of_web(request)? {
                    Part::Flights => flights,
                    Part::Bookings => bookings,
                    Part::Customers => customers,
                };
                Ok(relayed(self.calls.ask(*index, request.into()).await?))
            }
            Role::Flights(store) => of_flights(store, asked::of_flights(request)?).await,
            Role::Bookings { customers, flights, database } => {
                let desk =
                    Desk { request, calls: &self.calls, customers: *customers, flights: *flights };
                desk.serve(database).await
            }
            Role::Customers(store) => {
                let number = asked::of_customers(request)?;
                let customer = store.customer(number).await?.ok_or(Failure::NoCustomer(number))?;
                Ok(json(StatusCode::OK, customer))
            }
        }
    }

    async fn report(&self, request: &WholeRequest, peer: SocketAddr) -> Result<Answer, Failure> {
        let calls = self.calls.trace(request).await?;
        let database_peer = match self.role.database() {
            Some(store) => store.own_address().await?,
            None => None,
        };
        let seen = Seen { request, peer, arrivals: &self.arrivals };
        let report = PathReport::new(&self.name, seen, calls, database_peer);
        Ok(json(StatusCode::OK, report.to_json()))
    }
}

fn opened(role: Role<config::Database>) -> Result<Role<Store>, Error> {
    Ok(match role {
        Role::Web { flights, bookings, customers } => Role::Web { flights, bookings, customers },
        Role::Flights(database) => Role::Flights(Store::new(database)?),
        Role::Bookings { customers, flights, database } => {
            Role::Bookings { customers, flights, database: Store::new(database)? }
        }
        Role::Customers(database) => Role::Customers(Store::new(database)?),
    })
}

async fn of_flights(store: &Store, asked: OfFlights) -> Result<Answer, Failure> {
    match asked {
        OfFlights::Find { from, to } => Ok(json(StatusCode::OK, store.flights(from, to).await?)),
        OfFlights::TakeSeat(flight) => {
            let taken = store.take_seat(flight).await?.ok_or(Failure::Full(flight))?;
            // Of an update MongoDB brings no document, and what a ticket tells never changes.
            let ticket = to_json(&inventory::ticket(taken)).expect("texts always make JSON");
            Ok(json(StatusCode::OK, ticket))
        }
        OfFlights::GiveSeatBack(flight) => {
            store.give_seat_back(flight).await?;
            Ok(json(StatusCode::OK, "{}"))
        }
    }
}

/// Where bookings are made, for one request.
struct Desk<'a> {
    request: &'a WholeRequest,
    calls: &'a Calls,
    customers: usize,
    flights: usize,
}

impl Desk<'_> {
    async fn serve(&self, store: &Store) -> Result<Answer, Failure> {
        match asked::of_bookings(self.request)? {
            OfBookings::List { customer } => {
                Ok(json(StatusCode::OK, store.bookings(customer).await?))
            }
            OfBookings::Book(order) => self.book(store, &order).await,
        }
    }

    /// The seat is taken before the booking is kept: a flight is never sold twice.
    async fn book(&self, store: &Store, order: &Order<'_>) -> Result<Answer, Failure> {
        let customer = format!("/customers/{}", order.customer);
        let customer = self.ask(self.customers, Method::GET, &customer).await?;
        if !customer.status().is_success() {
            return Ok(relayed(customer));
        }
        let passenger = self.calls.understand(self.customers, customer.body())?;
        let seat = self.ask(self.flights, Method::POST, &seats(order)).await?;
        if !seat.status().is_success() {
            return Ok(relayed(seat));
        }
        let ticket: Ticket<&str> = self.calls.understand(self.flights, seat.body())?;
        let passenger: Passenger<&str> = passenger;
        let booking = inventory::booking(&*order.key, passenger, ticket, |text| text);
        match store.book(&booking).await {
            Ok(()) => {
                let booked = to_json(&booking).expect("texts and numbers always make JSON");
                Ok(json(StatusCode::CREATED, booked))
            }
            Err(why) => {
                let seat = self.return_seat(order, &why).await;
                Err(Failure::NotBooked(why, seat))
            }
        }
    }

    /// Not when the booking may be there: a seat that nobody sits on is a loss, one that is sold twice a lie.
    async fn return_seat(&self, order: &Order<'_>, why: &StoreError) -> Seat {
        if why.may_be_done() {
            return Seat::PerhapsBooked;
        }
        match self.ask(self.flights, Method::DELETE, &seats(order)).await {
            Ok(answer) if answer.status().is_success() => Seat::GivenBack,
            Ok(answer) => Seat::NotGivenBack(answer.status().to_string()),
            Err(why) => Seat::NotGivenBack(why.to_string()),
        }
    }

    async fn ask(
        &self,
        index: usize,
        method: Method,
        path: &str,
    ) -> Result<Response<Bytes>, CallError> {
        let path = PathAndQuery::try_from(path).expect("a path of letters and numbers");
        let headers = self.request.headers();
        self.calls
            .ask(index, Errand { method, path: Some(path), headers, body: Bytes::new() })
            .await
    }
}

fn seats(order: &Order<'_>) -> String {
    format!("/flights/{}/seats", order.flight)
}

/// Makes the database's tables or collections anew, as the file at `config` says.
///
/// # Errors
/// When the file is wrong, or the database refuses or cannot be reached.
pub(crate) fn fill(config: &Path) -> Result<(), Error> {
    let Stand { database, inventory } = crate::config::read(config)?;
    at_once(async { Ok(Store::new(database)?.fill(inventory).await?) })
}

/// What is in the database that the file at `config` names.
///
/// # Errors
/// As [`fill`].
pub(crate) fn look(config: &Path) -> Result<Look, Error> {
    let Looked { database } = crate::config::read(config)?;
    at_once(async { Ok(Store::new(database)?.look().await?) })
}

/// Two threads: MongoDB's monitor goes on while the operation waits.
fn at_once<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(Error::Threads)?.block_on(work)
}
