//! Turns SQL into the rows of its last statement, over the Unix socket of a PostgreSQL server. Knows no types: the
//! simple query protocol answers texts.

use serde::Serialize;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::command_line::Query;
use crate::error::Error;

/// What the last statement brought.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    rows: Vec<Vec<Option<String>>>,
}

/// Runs each SQL of `query` in turn.
///
/// # Errors
/// [`Error::NoDatabase`], [`Error::Sql`] for the first that fails, [`Error::Threads`].
pub(crate) fn run(query: &Query) -> Result<Answer, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::Threads)?.block_on(answer(query))
}

async fn answer(query: &Query) -> Result<Answer, Error> {
    let connected = settings(query).connect(NoTls).await;
    let (client, connection) = connected.map_err(|source| Error::NoDatabase {
        socket: query.socket.join(format!(".s.PGSQL.{}", query.port)),
        source,
    })?;
    // Its error is the query's error too.
    drop(tokio::spawn(connection));
    let mut last = Vec::new();
    for (sql, number) in query.sql.iter().zip(1..) {
        let messages = client.simple_query(sql).await;
        last = messages.map_err(|source| Error::Sql { number, source })?;
    }
    Ok(Answer { rows: rows_of_the_last_statement(&last) })
}

fn settings(query: &Query) -> Config {
    let mut settings = Config::new();
    settings.host_path(&query.socket).port(query.port);
    settings.user(&query.user).dbname(&query.database);
    settings
}

/// Each statement ends with a message that says how many rows it had to do with.
fn rows_of_the_last_statement(messages: &[SimpleQueryMessage]) -> Vec<Vec<Option<String>>> {
    let ends =
        |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::CommandComplete(_));
    let last = messages.split_inclusive(ends).next_back().unwrap_or_default();
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some(texts(row)),
        _ => None,
    };
    last.iter().filter_map(row).collect()
}

fn texts(row: &SimpleQueryRow) -> Vec<Option<String>> {
    (0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()
}
