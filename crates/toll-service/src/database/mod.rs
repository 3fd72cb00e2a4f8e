//! Turns requests into queries of a PostgreSQL database, over a pool of connections that are made when they are
//! first needed and then kept. Each connection prepares each statement once.
//!
//! No TLS and no password: what stands between the service and its database is the study's to choose.

mod rows;

use std::num::NonZeroUsize;
use std::str::Utf8Error;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use tokio_postgres::types::Type;
use tokio_postgres::{NoTls, Row};

use crate::config;
use crate::error::root_cause;

/// How long a connection may take to be made, and sent data to be taken, before it has failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a probe asks instead of the read. The lab knows it by `inet_client_addr` and leaves it out of its counts.
const OWN_ADDRESS: &str = "SELECT host(inet_client_addr())";

/// Why the database brought no answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot query {database}: {source}")]
pub(crate) struct QueryError {
    database: String,
    source: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{}", root_cause(.0))]
    NotConnected(#[from] PoolError),
    #[error("{}", root_cause(.0))]
    Refused(#[from] tokio_postgres::Error),
    #[error("column `{column}` has the type {found}, not one of {}", rows::TYPES.each_ref().map(Type::name).join(", "))]
    UnknownType { column: String, found: Type },
    #[error("a row makes no JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("the body is no text: {0}")]
    NotText(#[from] Utf8Error),
    #[error("there is no `write` in the configuration")]
    NoWrite,
}

/// A database and what to ask it.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
    pool: Pool,
    read: String,
    write: Option<String>,
}

impl Database {
    /// The database as configured; nothing is connected yet.
    pub(crate) fn new(config: config::Database) -> Self {
        Self {
            pool: pool(settings(&config), config.connections),
            name: config.service,
            read: config.read,
            write: config.write,
        }
    }

    /// What the read brings now, as a JSON array of objects.
    ///
    /// # Errors
    /// [`QueryError`]
    pub(crate) async fn read(&self) -> Result<Vec<u8>, QueryError> {
        let rows = self.rows().await.map_err(|cause| self.failed(cause))?;
        rows::to_json(&rows).map_err(|error| self.failed(error.into()))
    }

    /// Writes `body` in a transaction of its own; without an error it is committed.
    ///
    /// # Errors
    /// [`QueryError`]. It may then be committed nonetheless, if the connection broke just after.
    pub(crate) async fn write(&self, body: &[u8]) -> Result<(), QueryError> {
        self.commit(body).await.map_err(|cause| self.failed(cause))
    }

    /// Where a connection of the pool comes from, as the database sees it.
    ///
    /// # Errors
    /// [`QueryError`]
    pub(crate) async fn own_address(&self) -> Result<Option<String>, QueryError> {
        self.ask_own_address().await.map_err(|cause| self.failed(cause))
    }

    /// Gives the connection back before anything is made of its rows.
    async fn rows(&self) -> Result<Vec<Row>, Cause> {
        let connection = self.pool.get().await?;
        let read = connection.prepare_cached(&self.read).await?;
        rows::check(read.columns())?;
        Ok(connection.query(&read, &[]).await?)
    }

    async fn commit(&self, body: &[u8]) -> Result<(), Cause> {
        let write = self.write.as_ref().ok_or(Cause::NoWrite)?;
        let body = str::from_utf8(body)?;
        let mut connection = self.pool.get().await?;
        // Dropped before its commit, it rolls back.
        let transaction = connection.transaction().await?;
        let write = transaction.prepare_cached(write).await?;
        transaction.execute(&write, &[&body]).await?;
        Ok(transaction.commit().await?)
    }

    async fn ask_own_address(&self) -> Result<Option<String>, Cause> {
        let connection = self.pool.get().await?;
        let question = connection.prepare_cached(OWN_ADDRESS).await?;
        Ok(connection.query_one(&question, &[]).await?.try_get(0)?)
    }

    fn failed(&self, source: Cause) -> QueryError {
        QueryError { database: self.name.clone(), source }
    }
}

fn settings(config: &config::Database) -> tokio_postgres::Config {
    let mut settings = tokio_postgres::Config::new();
    settings.hostaddr(config.address.ip()).port(config.address.port());
    settings.user(&config.user).dbname(&config.database);
    settings.tcp_user_timeout(PATIENCE);
    settings
}

/// A request waits for a connection as long as it takes: each that is in use ends by itself.
fn pool(settings: tokio_postgres::Config, connections: NonZeroUsize) -> Pool {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    Pool::builder(Manager::from_config(settings, NoTls, recycling))
        .max_size(connections.get())
        .create_timeout(Some(PATIENCE))
        .runtime(Runtime::Tokio1)
        .build()
        .expect("a time limit needs a runtime, and it has one")
}
