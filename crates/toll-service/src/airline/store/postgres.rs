//! The airline's tables in PostgreSQL, over a pool of connections that speak TLS from the first byte on, so that a
//! proxy can read the server's name in it. Each connection prepares each statement once; an operation is one statement.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Cause, Look, Sizes};
use crate::airline::config::{Database, Inventory};
use crate::airline::documents::{Booking, Customer, Flight, JsonArray, to_json};
use crate::airline::inventory;
use crate::error::root_cause;

/// How long a connection may take to be made, and sent data to be taken, before it has failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The name of both the role and the database.
const OWNER: &str = "toll";

/// What PostgreSQL calls its protocol: it takes no TLS from the first byte on without (its manual, 53.2.11).
const PROTOCOL: &[u8] = b"postgresql";

/// Rows that are inserted at a time.
const BATCH: usize = 1000;

const FLIGHTS: &str = r#"SELECT number, code, carrier, "from", "to", departs, arrives, aircraft, terminal, gate, fare,
    baggage, price, currency, seats, free FROM flights WHERE "from" = $1 AND "to" = $2 ORDER BY number LIMIT 4"#;

const CUSTOMER: &str = "SELECT number, name, email, phone, street, postcode, city, country, born, nationality, passport,
    passport_until, programme, tier, miles, seat, meal, language, since FROM customers WHERE number = $1";

const BOOKINGS: &str = r#"SELECT key, customer, passenger, flight, carrier, "from", "to", departs, terminal, cabin,
    baggage, price, currency, status FROM bookings WHERE customer = $1 ORDER BY id DESC LIMIT 4"#;

const TAKE_SEAT: &str =
    "UPDATE flights SET free = free - 1 WHERE number = $1 AND free > 0 RETURNING number";

const GIVE_SEAT_BACK: &str = "UPDATE flights SET free = free + 1 WHERE number = $1";

const BOOK: &str = r#"INSERT INTO bookings (key, customer, passenger, flight, carrier, "from", "to", departs, terminal,
    cabin, baggage, price, currency, status) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"#;

/// The lab knows it by `inet_client_addr` and leaves it out of its counts, and by `pg_catalog` those below.
const OWN_ADDRESS: &str = "SELECT pg_catalog.host(pg_catalog.inet_client_addr())";

const SIZES: &str =
    "SELECT (SELECT pg_catalog.count(*) FROM flights), (SELECT pg_catalog.count(*) FROM customers)";

const LOOK: &str = "SELECT pg_catalog.current_setting('server_version'),
    (SELECT pg_catalog.count(*) FROM bookings WHERE key NOT LIKE 'seed-%'),
    (SELECT pg_catalog.count(DISTINCT key) FROM bookings WHERE key NOT LIKE 'seed-%'),
    (SELECT coalesce(pg_catalog.sum(seats - free), 0)::int8 FROM flights)";

/// Columns are named as the documents' fields.
const TABLES: &str = r#"
    DROP TABLE IF EXISTS flights, customers, bookings;
    CREATE TABLE flights (number int PRIMARY KEY, code text, carrier text, "from" text, "to" text, departs text,
        arrives text, aircraft text, terminal text, gate text, fare text, baggage text, price int, currency text,
        seats int, free int CHECK (free >= 0));
    CREATE INDEX ON flights ("from", "to", number);
    CREATE TABLE customers (number int PRIMARY KEY, name text, email text, phone text, street text, postcode text,
        city text, country text, born text, nationality text, passport text, passport_until text, programme text,
        tier text, miles int, seat text, meal text, language text, since text);
    CREATE TABLE bookings (key text, customer int, passenger text, flight int, carrier text, "from" text, "to" text,
        departs text, terminal text, cabin text, baggage text, price int, currency text, status text,
        id bigint GENERATED ALWAYS AS IDENTITY);
    CREATE INDEX ON bookings (customer, id)"#;

/// A PostgreSQL server's database `toll`.
#[derive(Debug)]
pub(super) struct Postgres {
    pool: Pool,
}

impl Postgres {
    /// A pool without connections as yet.
    pub(super) fn new(config: &Database) -> Result<Self, String> {
        let tls = MakeRustlsConnect::new(tls(config)?);
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(settings(config), tls, recycling))
            .max_size(config.connections.get())
            .create_timeout(Some(PATIENCE))
            .runtime(Runtime::Tokio1)
            .build()
            .expect("a time limit needs a runtime, and it has one");
        Ok(Self { pool })
    }

    pub(super) async fn flights(&self, from: &str, to: &str) -> Result<Vec<u8>, Cause> {
        let mut flights = JsonArray::new();
        for row in self.rows(FLIGHTS, &[&from, &to]).await? {
            flights.push(&flight(&row)?)?;
        }
        Ok(flights.into_text())
    }

    pub(super) async fn customer(&self, number: i32) -> Result<Option<Vec<u8>>, Cause> {
        let rows = self.rows(CUSTOMER, &[&number]).await?;
        rows.first().map(|row| Ok(to_json(&customer(row)?)?)).transpose()
    }

    pub(super) async fn bookings(&self, customer: i32) -> Result<Vec<u8>, Cause> {
        let mut bookings = JsonArray::new();
        for row in self.rows(BOOKINGS, &[&customer]).await? {
            bookings.push(&booking(&row)?)?;
        }
        Ok(bookings.into_text())
    }

    /// One statement: the row's lock sees to it that no two take the same seat.
    pub(super) async fn take_seat(&self, flight: i32) -> Result<bool, Cause> {
        Ok(!self.rows(TAKE_SEAT, &[&flight]).await?.is_empty())
    }

    pub(super) async fn give_seat_back(&self, flight: i32) -> Result<(), Cause> {
        self.rows(GIVE_SEAT_BACK, &[&flight]).await.map(drop)
    }

    pub(super) async fn book(&self, booking: &Booking<&str>) -> Result<(), Cause> {
        let values: [&(dyn ToSql + Sync); 14] = [
            &booking.key,
            &booking.customer,
            &booking.passenger,
            &booking.flight,
            &booking.carrier,
            &booking.from,
            &booking.to,
            &booking.departs,
            &booking.terminal,
            &booking.cabin,
            &booking.baggage,
            &booking.price,
            &booking.currency,
            &booking.status,
        ];
        self.rows(BOOK, &values).await.map(drop)
    }

    pub(super) async fn own_address(&self) -> Result<Option<String>, Cause> {
        Ok(self.row(OWN_ADDRESS).await?.try_get(0)?)
    }

    pub(super) async fn sizes(&self) -> Result<Sizes, Cause> {
        let row = self.row(SIZES).await?;
        Ok(Sizes { flights: row.try_get(0)?, customers: row.try_get(1)? })
    }

    pub(super) async fn fill(&self, inventory: Inventory) -> Result<(), Cause> {
        let Inventory { flights, seats, customers } = inventory;
        self.connection().await?.batch_execute(TABLES).await?;
        self.insert("flights", (0..flights).map(|number| inventory::flight(number, seats))).await?;
        self.insert("customers", (0..customers).map(inventory::customer)).await?;
        let bookings = (0..customers).flat_map(|number| inventory::bookings(number, flights));
        self.insert("bookings", bookings).await
    }

    /// As JSON, of which PostgreSQL takes the fields by their names.
    async fn insert(
        &self,
        table: &str,
        values: impl Iterator<Item = impl Serialize>,
    ) -> Result<(), Cause> {
        // The number that a booking gets by itself is the last column, which the JSON has not.
        let sql = format!(
            "INSERT INTO {table} OVERRIDING USER VALUE \
             SELECT * FROM json_populate_recordset(NULL::{table}, $1::text::json)"
        );
        let mut values = values.peekable();
        while values.peek().is_some() {
            let mut batch = JsonArray::new();
            values.by_ref().take(BATCH).try_for_each(|value| batch.push(&value))?;
            let batch = String::from_utf8(batch.into_text()).expect("JSON is UTF-8");
            self.rows(&sql, &[&batch]).await?;
        }
        Ok(())
    }

    pub(super) async fn look(&self) -> Result<Look, Cause> {
        let row = self.row(LOOK).await?;
        let version: &str = row.try_get(0)?;
        Ok(Look {
            server: format!("PostgreSQL {}", version.split(' ').next().unwrap_or(version)),
            operations: None,
            own_operations: None,
            bookings: row.try_get(1)?,
            keys: row.try_get(2)?,
            seats_taken: row.try_get(3)?,
            clients: None,
        })
    }

    /// The connection is given back before anything is made of its rows.
    async fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Cause> {
        let connection = self.connection().await?;
        let statement = connection.prepare_cached(sql).await.map_err(|error| not_done(&error))?;
        Ok(connection.query(&statement, values).await?)
    }

    async fn row(&self, sql: &str) -> Result<Row, Cause> {
        let rows = self.rows(sql, &[]).await?;
        Ok(rows.into_iter().next().expect("a SELECT without FROM has one row"))
    }

    async fn connection(&self) -> Result<Object, Cause> {
        self.pool.get().await.map_err(|error| match &error {
            PoolError::Backend(error) => not_done(error),
            PoolError::Timeout(_) => {
                Cause::not_done(format_args!("no connection within {} s", PATIENCE.as_secs()))
            }
            other => Cause::not_done(root_cause(other)),
        })
    }
}

impl From<Error> for Cause {
    /// What the server refuses it has not done.
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(_) => not_done(&error),
            None => Self::unknown(root_cause(&error)),
        }
    }
}

fn not_done(error: &Error) -> Cause {
    Cause::not_done(root_cause(error))
}

fn settings(config: &Database) -> tokio_postgres::Config {
    let mut settings = tokio_postgres::Config::new();
    settings.host(&config.host).hostaddr(config.address.ip()).port(config.address.port());
    settings.user(OWNER).dbname(OWNER);
    settings.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    settings.tcp_user_timeout(PATIENCE);
    settings
}

/// Trusts the one authority and shows the certificate.
fn tls(config: &Database) -> Result<ClientConfig, String> {
    let mut authorities = RootCertStore::empty();
    for authority in certificates(&config.authority)? {
        authorities.add(authority).map_err(|why| within(&config.authority, why))?;
    }
    let chain = certificates(&config.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&config.key).map_err(|why| within(&config.key, why))?;
    // Named, because the program links more than one thing that could install a default.
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.expect("the provider has what TLS 1.2 and 1.3 need");
    let builder = builder.with_root_certificates(authorities);
    let tls = builder.with_client_auth_cert(chain, key);
    let mut tls = tls.map_err(|why| within(&config.certificate, why))?;
    tls.alpn_protocols = vec![PROTOCOL.into()];
    Ok(tls)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = fs::read(path).map_err(|why| within(path, why))?;
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|why| within(path, why))?;
    if certificates.is_empty() {
        return Err(within(path, "there is no certificate in it"));
    }
    Ok(certificates)
}

fn within(path: &Path, why: impl std::fmt::Display) -> String {
    format!("{}: {why}", path.display())
}

/// Columns by place: names are looked up one by one.
fn flight(row: &Row) -> Result<Flight<&str>, Error> {
    Ok(Flight {
        number: row.try_get(0)?,
        code: row.try_get(1)?,
        carrier: row.try_get(2)?,
        from: row.try_get(3)?,
        to: row.try_get(4)?,
        departs: row.try_get(5)?,
        arrives: row.try_get(6)?,
        aircraft: row.try_get(7)?,
        terminal: row.try_get(8)?,
        gate: row.try_get(9)?,
        fare: row.try_get(10)?,
        baggage: row.try_get(11)?,
        price: row.try_get(12)?,
        currency: row.try_get(13)?,
        seats: row.try_get(14)?,
        free: row.try_get(15)?,
    })
}

fn customer(row: &Row) -> Result<Customer<&str>, Error> {
    Ok(Customer {
        number: row.try_get(0)?,
        name: row.try_get(1)?,
        email: row.try_get(2)?,
        phone: row.try_get(3)?,
        street: row.try_get(4)?,
        postcode: row.try_get(5)?,
        city: row.try_get(6)?,
        country: row.try_get(7)?,
        born: row.try_get(8)?,
        nationality: row.try_get(9)?,
        passport: row.try_get(10)?,
        passport_until: row.try_get(11)?,
        programme: row.try_get(12)?,
        tier: row.try_get(13)?,
        miles: row.try_get(14)?,
        seat: row.try_get(15)?,
        meal: row.try_get(16)?,
        language: row.try_get(17)?,
        since: row.try_get(18)?,
    })
}

fn booking(row: &Row) -> Result<Booking<&str>, Error> {
    Ok(Booking {
        key: row.try_get(0)?,
        customer: row.try_get(1)?,
        passenger: row.try_get(2)?,
        flight: row.try_get(3)?,
        carrier: row.try_get(4)?,
        from: row.try_get(5)?,
        to: row.try_get(6)?,
        departs: row.try_get(7)?,
        terminal: row.try_get(8)?,
        cabin: row.try_get(9)?,
        baggage: row.try_get(10)?,
        price: row.try_get(11)?,
        currency: row.try_get(12)?,
        status: row.try_get(13)?,
    })
}
