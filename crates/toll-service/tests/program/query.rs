//! What the `query` program prints, and how it fails.

use serde_json::json;

use crate::postgres::Postgres;
use crate::running::run;

#[test]
fn the_rows_of_the_last_statement_are_texts() {
    let Some(postgres) = Postgres::shared() else { return };
    let rows = postgres.ask(
        "postgres",
        &[
            "CREATE TEMP TABLE own (a int, b text); INSERT INTO own VALUES (1, 'abc')",
            "SELECT 'not the last'; SELECT a, b, NULL FROM own UNION ALL SELECT 2, '', 't';",
        ],
    );
    assert_eq!(rows, json!([["1", "abc", null], ["2", "", "t"]]));
}

#[test]
fn a_last_statement_without_rows_brings_none() {
    let Some(postgres) = Postgres::shared() else { return };
    let rows = postgres.ask("postgres", &["SELECT 1; SET search_path = public"]);
    assert_eq!(rows, json!([]));
    assert_eq!(postgres.ask("postgres", &[""]), json!([]));
}

#[test]
fn sql_that_the_database_refuses_is_named_with_the_reason() {
    let Some(postgres) = Postgres::shared() else { return };
    let output = postgres.query("postgres", "postgres", &["SELECT 1", "SELEC 2", "SELECT 3"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(complaint, "SQL number 2 failed: ERROR: syntax error at or near \"SELEC\"\n");
}

#[test]
fn a_socket_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let output = run(&["query", "--socket", folder, "--user", "u", "--database", "d", "SELECT 1"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr);
    let expected = format!("cannot connect to {folder}/.s.PGSQL.5432: No such file or directory");
    assert!(complaint.starts_with(&expected), "{complaint}");
}

#[test]
fn without_sql_the_usage_is_shown() {
    let output = run(&["query", "--socket", "/", "--user", "u", "--database", "d"]);
    assert_eq!(output.status.code(), Some(2));
}
