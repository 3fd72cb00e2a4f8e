//! Services with a database: real queries of a real PostgreSQL.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::postgres::Postgres;
use crate::running::{Reply, Running, calling, plain, with};

/// A plain service with a database as `told`.
fn asking(told: Value) -> Running {
    Running::start(&with(plain("name"), "database", told))
}

/// What a service answers to a GET whose read is `read`.
fn answer_to(read: &str) -> Option<Reply> {
    let postgres = Postgres::shared()?;
    Some(asking(postgres.told("postgres", 1, read, "")).get(""))
}

#[test]
fn rows_are_objects_by_column_name_with_all_types_and_null() {
    let read =
        "SELECT 1::int2 AS a, -2 AS b, 9007199254740993 AS c, 0.5::float4 AS d, 0.1::float8 AS e,
                true AS f, 'x \"y\" é' AS g, 'v'::varchar(9) AS h, 'n'::name AS i, NULL::int AS j
                UNION ALL SELECT 0, 0, 0, 0, 0, false, '', NULL, NULL, 7 ORDER BY a DESC";
    let Some(reply) = answer_to(read) else { return };
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
    let first = r#"{"a":1,"b":-2,"c":9007199254740993,"d":0.5,"e":0.1,"f":true,"g":"x \"y\" é","h":"v","i":"n","j":null}"#;
    let second = r#"{"a":0,"b":0,"c":0,"d":0.0,"e":0.0,"f":false,"g":"","h":null,"i":null,"j":7}"#;
    assert_eq!(reply.body, format!("[{first},{second}]"));
}

#[test]
fn no_rows_are_an_empty_array() {
    let Some(reply) = answer_to("SELECT 1 AS one WHERE false") else { return };
    assert_eq!((reply.status, reply.body.as_str()), (200, "[]"));
}

#[test]
fn a_type_without_a_value_in_json_is_an_error_that_names_the_column() {
    let Some(reply) = answer_to("SELECT 1 AS id, now() AS since") else { return };
    assert_eq!(reply.status, 503);
    assert_eq!(
        reply.body,
        "cannot query postgres: column `since` has the type timestamptz, not one of bool, int2, int4, \
         int8, float4, float8, text, varchar, name"
    );
}

#[test]
fn a_read_that_the_database_refuses_is_answered_with_its_reason() {
    let Some(reply) = answer_to("SELECT * FROM nowhere") else { return };
    assert_eq!(reply.status, 503);
    assert_eq!(reply.body, "cannot query postgres: ERROR: relation \"nowhere\" does not exist");
}

#[test]
fn methods_that_neither_read_nor_write_ask_the_database_nothing() {
    let Some(postgres) = Postgres::shared() else { return };
    let service = asking(postgres.told("postgres", 1, "SELECT 1 AS one", "no SQL"));
    assert_eq!(service.send("PUT", "/", "", "{}").body, "hello");
    let head = service.send("HEAD", "/", "", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.head.contains("content-length: 11"), "{}", head.head);
}

#[test]
fn a_write_is_committed_once_in_a_transaction_of_its_own() {
    let Some(postgres) = Postgres::shared() else { return };
    postgres.create("writes", "CREATE TABLE written (document json)");
    let write = "INSERT INTO written VALUES ($1::text::json)";
    let service = asking(postgres.told("writes", 2, "SELECT 1", write));
    let reply = service.send("POST", "/api/customer", "", r#"{"name": "Zoë"}"#);
    assert_eq!((reply.status, reply.body.as_str()), (201, "{}"));
    assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
    let rows = postgres.ask("writes", &["SELECT * FROM written"]);
    assert_eq!(rows, json!([[r#"{"name": "Zoë"}"#]]));
    let begun = "statement: START TRANSACTION";
    let inserted = format!("execute s0: {write}");
    assert_eq!(postgres.statements("writes"), [begun, &inserted, "statement: COMMIT"]);
}

#[test]
fn a_write_that_fails_leaves_no_row_and_a_connection_that_works() {
    let Some(postgres) = Postgres::shared() else { return };
    let table = "CREATE TABLE written (document text UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    postgres.create("failures", table);
    let write = "INSERT INTO written SELECT value FROM json_array_elements_text($1::text::json)";
    let service = asking(postgres.told("failures", 1, "SELECT 1", write));
    let write = |body| service.send("POST", "/", "", body);
    let refused = write("no JSON");
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("ERROR: invalid input syntax for type json"), "{refused:?}");
    // This constraint is checked at the commit.
    let twice = write(r#"["a", "b", "a"]"#);
    assert_eq!(twice.status, 503);
    assert!(twice.body.contains("duplicate key"), "{twice:?}");
    assert_eq!(postgres.ask("failures", &["SELECT count(*) FROM written"]), json!([["0"]]));
    assert_eq!(write(r#"["a"]"#).status, 201);
}

#[test]
fn a_post_is_not_acknowledged_where_no_write_is_configured() {
    let Some(postgres) = Postgres::shared() else { return };
    let mut told = postgres.told("postgres", 1, "SELECT 1", "");
    told.as_object_mut().unwrap().remove("write");
    let reply = asking(told).send("POST", "/", "", "{}");
    assert_eq!(reply.status, 503);
    assert_eq!(reply.body, "cannot query postgres: there is no `write` in the configuration");
}

#[test]
fn a_statement_is_prepared_once_a_connection() {
    let Some(postgres) = Postgres::shared() else { return };
    postgres.create("prepared", "CREATE TABLE written (document text)");
    let read = "SELECT name || prepare_time AS own FROM pg_prepared_statements WHERE statement LIKE '%own%'";
    let write = "INSERT INTO written SELECT $1 || name || prepare_time FROM pg_prepared_statements
                 WHERE statement LIKE 'INSERT%'";
    let service = asking(postgres.told("prepared", 1, read, write));
    let reads: BTreeSet<_> = [(); 5]
        .map(|()| {
            service.send("POST", "/", "", "");
            service.get("").body
        })
        .into();
    assert_eq!(reads.len(), 1, "{reads:?}");
    let written = "SELECT count(*), count(DISTINCT document) FROM written";
    assert_eq!(postgres.ask("prepared", &[written]), json!([["5", "1"]]));
}

#[test]
fn the_pool_makes_no_more_connections_than_it_may_and_requests_wait_for_one() {
    let Some(postgres) = Postgres::shared() else { return };
    postgres.create("pooled", "SELECT 1");
    let read = "SELECT pg_backend_pid() AS pid FROM pg_sleep(0.2)";
    let service = asking(postgres.told("pooled", 2, read, ""));
    let connections =
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'toll' AND datname = 'pooled'";
    let count = || postgres.ask("pooled", &[connections]);
    assert_eq!(count(), json!([["0"]]), "made before it is needed");

    let begun = Instant::now();
    let replies = thread::scope(|scope| {
        let asked = [(); 6].map(|()| scope.spawn(|| service.get("")));
        asked.map(|asked| asked.join().unwrap())
    });
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    let distinct: BTreeSet<_> = replies.iter().map(|reply| &reply.body).collect();
    assert_eq!(distinct.len(), 2, "{distinct:?}");
    assert!(begun.elapsed() >= Duration::from_millis(600), "{:?}", begun.elapsed());
    assert_eq!(count(), json!([["2"]]), "not kept");
}

#[test]
fn a_database_that_dies_is_an_error_until_it_is_back() {
    let Some(mut postgres) = Postgres::start() else { return };
    let read = "SELECT 1 AS one FROM pg_sleep(0.3)";
    let service = asking(postgres.told("postgres", 2, read, ""));
    assert_eq!(service.get("").status, 200);

    let under_way = thread::scope(|scope| {
        let asked = scope.spawn(|| service.get(""));
        thread::sleep(Duration::from_millis(100));
        postgres.die();
        asked.join().unwrap()
    });
    assert_eq!(under_way.status, 503, "{under_way:?}");
    let begun = Instant::now();
    let dead = service.get("");
    assert_eq!(dead.status, 503);
    assert_eq!(dead.body, "cannot query postgres: Connection refused (os error 111)");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());

    postgres.come_back();
    let back = service.get("");
    assert_eq!((back.status, back.body.as_str()), (200, r#"[{"one":1}]"#));
}

#[test]
fn a_database_that_says_nothing_is_an_error_after_five_seconds() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let told = json!({
        "service": "postgres", "address": silent.local_addr().unwrap(), "user": "toll",
        "database": "toll", "connections": 1, "read": "SELECT 1",
    });
    let begun = Instant::now();
    let reply = asking(told).get("");
    assert_eq!(reply.status, 503);
    assert_eq!(reply.body, "cannot query postgres: Timeout occurred while creating a new object");
    assert!((5..8).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn a_post_passes_through_two_services_to_the_database_with_its_body_intact() {
    let Some(postgres) = Postgres::shared() else { return };
    postgres.create("chain", "CREATE TABLE written (document text)");
    let write = "INSERT INTO written VALUES ($1)";
    let name = asking(postgres.told("chain", 1, "SELECT 'read' AS what", write));
    let person = Running::start(&with(calling("person", name.address), "relay", json!(true)));
    let customer = Running::start(&with(calling("customer", person.address), "relay", json!(true)));

    let body = format!("{{\"text\": \"{}\"}}", "grüße ".repeat(30_000));
    let reply = customer.send("POST", "/api/customer", "content-type: application/json\r\n", &body);
    assert_eq!((reply.status, reply.body.as_str()), (201, "{}"));
    assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
    let written = postgres.ask("chain", &["SELECT document FROM written"]);
    assert!(written == json!([[body]]), "the body was changed on its way");

    let read = customer.get("");
    assert_eq!((read.status, read.body.as_str()), (200, r#"[{"what":"read"}]"#));
}

#[test]
fn a_query_that_fails_is_a_bad_gateway_to_the_caller() {
    let Some(postgres) = Postgres::shared() else { return };
    let name = asking(postgres.told("postgres", 1, "SELECT nothing", ""));
    let person = Running::start(&with(calling("person", name.address), "relay", json!(true)));
    let reply = person.get("");
    assert_eq!(reply.status, 502);
    assert_eq!(reply.body, "server answered 503 Service Unavailable");
}

#[test]
fn a_probe_asks_where_its_connection_comes_from_and_nothing_else() {
    let Some(postgres) = Postgres::shared() else { return };
    postgres.create("probed", "CREATE TABLE asked (at timestamptz DEFAULT now())");
    let read = "INSERT INTO asked DEFAULT VALUES RETURNING 1 AS one";
    let write = "INSERT INTO asked SELECT now() WHERE $1 = ''";
    let name = asking(postgres.told("probed", 1, read, write));
    let person = Running::start(&calling("person", name.address));
    let probe = "x-toll-probe: 1\r\n";
    let report = person.get(probe).json();
    person.send("POST", "/", probe, "");
    assert_eq!(report["calls"][0]["database_peer"], "127.0.0.1");
    assert!(report.get("database_peer").is_none(), "{report}");
    let asked = || postgres.ask("probed", &["SELECT count(*) FROM asked"]);
    assert_eq!(asked(), json!([["0"]]));
    person.get("");
    assert_eq!(asked(), json!([["1"]]));
}

#[test]
fn a_probe_of_a_service_without_its_database_fails() {
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
    let told = json!({
        "service": "postgres", "address": nobody, "user": "toll", "database": "toll",
        "connections": 1, "read": "SELECT 1",
    });
    assert_eq!(asking(told).get("x-toll-probe: 1\r\n").status, 503);
}
