//! The airline before real databases: what it answers, what it asks them, and that no seat is lost or sold twice.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::running::run;
use crate::stand::{Company, Kind, Server, Stand};

/// Each test that both databases must pass.
macro_rules! over_both {
    ($($name:ident),+ $(,)?) => {
        mod over_postgres {
            $(#[test] fn $name() { super::$name(crate::stand::Kind::Postgres); })+
        }
        mod over_mongodb {
            $(#[test] fn $name() { super::$name(crate::stand::Kind::Mongo); })+
        }
    };
}

over_both! {
    answers_and_operations_are_as_the_table_says,
    seats_are_neither_lost_nor_sold_twice_when_many_book_at_once,
    the_latest_four_bookings_of_a_customer_are_listed,
    numbers_beyond_the_inventory_begin_again,
    a_probe_walks_the_whole_graph_and_asks_nothing_that_counts,
    an_expired_certificate_is_the_reason_of_the_failure,
    a_certificate_of_another_name_is_the_reason_of_the_failure,
    a_database_that_died_is_a_failure_with_a_reason_and_no_hang,
    a_database_that_was_not_filled_is_told,
}

/// What the databases ran since `before`, each look's own left out.
fn operations(stand: &Stand, before: &Value) -> i64 {
    match &stand.server {
        Server::Postgres(postgres) => {
            let all = postgres.statements("toll");
            let counts = |sql: &&String| sql.starts_with("execute") && !sql.contains("pg_catalog");
            all.iter().filter(counts).count() as i64 - before.as_i64().unwrap_or(0)
        }
        Server::Mongo(_) => {
            let own = before["own_operations"].as_i64().unwrap_or(0);
            let number = |look: &Value| look["operations"].as_i64().unwrap_or(0);
            number(&stand.look()) - number(before) - own
        }
    }
}

/// The texts under `key` of the objects in a list.
fn each(list: &Value, key: &str) -> Vec<String> {
    let objects = list.as_array().expect("a list").iter();
    objects.map(|object| object[key].as_str().expect("a text").to_owned()).collect()
}

/// From where [`operations`] counts.
fn mark(stand: &Stand) -> Value {
    match &stand.server {
        Server::Postgres(_) => json!(operations(stand, &Value::Null)),
        Server::Mongo(_) => stand.look(),
    }
}

fn answers_and_operations_are_as_the_table_says(kind: Kind) {
    let Some(stand) = Stand::start(kind) else { return };
    stand.fill(200, 10, 20);
    let airline = Company::of(&stand, 2);
    let asked = |ask: &dyn Fn() -> crate::running::Reply| {
        let before = mark(&stand);
        let reply = ask();
        (reply.status, operations(&stand, &before), reply)
    };

    let (status, ran, flights) = asked(&|| airline.get("/flights?from=A0&to=A1"));
    assert_eq!((status, ran), (200, 1), "{flights:?}");
    let flights = flights.json();
    assert_eq!(each(&flights, "code"), ["TL0000", "TL0090", "TL0180"]);
    assert_eq!((&flights[1]["from"], &flights[1]["to"]), (&json!("A0"), &json!("A1")));
    assert_eq!(flights[1].get("_id"), None);

    let (status, ran, customer) = asked(&|| airline.get("/customers/7"));
    assert_eq!((status, ran), (200, 1), "{customer:?}");
    assert_eq!(customer.json()["name"], "Radia Lovelace");
    assert!(customer.head.contains("content-type: application/json"), "{customer:?}");

    let (status, ran, list) = asked(&|| airline.get("/bookings?customer=7"));
    assert_eq!((status, ran), (200, 1), "{list:?}");
    assert_eq!(each(&list.json(), "key").len(), 4);

    let (status, ran, booked) = asked(&|| airline.book("k-1", 7, 90));
    assert_eq!((status, ran), (201, 3), "{booked:?}");
    let booked = booked.json();
    assert_eq!((&booked["key"], &booked["passenger"]), (&json!("k-1"), &json!("Radia Lovelace")));

    let (status, ran, nothing) = asked(&|| airline.get("/elsewhere"));
    assert_eq!((status, ran), (404, 0), "{nothing:?}");

    let free = airline.get("/flights?from=A0&to=A1").json()[1]["free"].clone();
    let latest = airline.get("/bookings?customer=7").json()[0].clone();
    assert_eq!((free, latest), (json!(9), booked));
    let look = stand.look();
    assert_eq!([&look["bookings"], &look["keys"], &look["seats_taken"]], [1, 1, 1], "{look}");
    let name = match kind {
        Kind::Postgres => "PostgreSQL ",
        Kind::Mongo => "mongo-java-server ",
    };
    let version = look["server"].as_str().and_then(|server| server.strip_prefix(name));
    assert!(version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit())));
}

fn seats_are_neither_lost_nor_sold_twice_when_many_book_at_once(kind: Kind) {
    const SEATS: u32 = 20;
    let Some(stand) = Stand::start(kind) else { return };
    stand.fill(2, SEATS, 10);
    let airline = Company::of(&stand, 4);
    let clerk = |clerk: u32| {
        let airline = &airline;
        move || {
            let ask =
                |order: u32| airline.book(&format!("{clerk}-{order}"), clerk, order % 2).status;
            (0..12).map(ask).collect::<Vec<_>>()
        }
    };
    let statuses: Vec<u16> = thread::scope(|scope| {
        let clerks: Vec<_> = (0..8).map(|number| scope.spawn(clerk(number))).collect();
        clerks.into_iter().flat_map(|clerk| clerk.join().expect("no panic")).collect()
    });
    let count = |status| statuses.iter().filter(|other| **other == status).count();
    assert_eq!((count(201), count(409)), (40, 8 * 12 - 40), "{statuses:?}");
    let look = stand.look();
    assert_eq!([&look["bookings"], &look["keys"], &look["seats_taken"]], [40, 40, 40], "{look}");
    for query in ["from=A0&to=A1", "from=A0&to=A2"] {
        assert_eq!(airline.get(&format!("/flights?{query}")).json()[0]["free"], 0, "{query}");
    }
}

fn the_latest_four_bookings_of_a_customer_are_listed(kind: Kind) {
    let Some(stand) = Stand::start(kind) else { return };
    stand.fill(2, 10, 2);
    let airline = Company::of(&stand, 1);
    let keys = || each(&airline.get("/bookings?customer=1").json(), "key");
    assert_eq!(keys(), ["seed-1-3", "seed-1-2", "seed-1-1", "seed-1-0"]);
    for (key, customer) in [("a", 1), ("b", 0), ("c", 1)] {
        assert_eq!(airline.book(key, customer, 0).status, 201);
    }
    assert_eq!(keys(), ["c", "a", "seed-1-3", "seed-1-2"]);
}

fn numbers_beyond_the_inventory_begin_again(kind: Kind) {
    let Some(stand) = Stand::start(kind) else { return };
    stand.fill(3, 10, 5);
    let airline = Company::of(&stand, 1);
    assert_eq!(airline.get("/customers/12").json()["number"], 2);
    let booked = airline.book("k", 4_294_967_295, 7).json();
    assert_eq!((&booked["customer"], &booked["flight"]), (&json!(0), &json!(1)));
    assert_eq!(airline.get("/bookings?customer=5").json()[0]["key"], "k");
}

fn a_probe_walks_the_whole_graph_and_asks_nothing_that_counts(kind: Kind) {
    let Some(stand) = Stand::start(kind) else { return };
    stand.fill(2, 10, 2);
    let airline = Company::of(&stand, 1);
    assert_eq!(airline.book("k", 1, 1).status, 201);
    let before = mark(&stand);
    let report = airline.web.get("X-Toll-Probe: 1\r\nX-Request-Id: r1\r\n").json();
    assert_eq!(operations(&stand, &before), 0, "{report}");

    assert_eq!(report["service"], "web");
    assert_eq!(each(&report["calls"], "service"), ["flights", "bookings", "customers"]);
    let bookings = &report["calls"][1];
    assert_eq!(each(&bookings["calls"], "service"), ["customers", "flights"]);
    assert_eq!(bookings["calls"][1]["headers"]["x-request-id"], "r1");
    let requests = [&report, &report["calls"][0], bookings].map(|report| &report["requests"]);
    assert_eq!(requests, [1, 1, 1]);
    assert_eq!(report.get("database_peer"), None);
    let peer = bookings["database_peer"].as_str().unwrap_or("none");
    assert!(peer.starts_with("127.0.0.1"), "{peer}");
}

fn an_expired_certificate_is_the_reason_of_the_failure(kind: Kind) {
    let issue = |authority: &crate::certificates::Authority| authority.issue_expired("localhost");
    let Some(stand) = Stand::with(kind, issue) else { return };
    refused_because(&stand, "certificate expired");
}

fn a_certificate_of_another_name_is_the_reason_of_the_failure(kind: Kind) {
    let issue = |authority: &crate::certificates::Authority| authority.issue("elsewhere.example");
    let Some(stand) = Stand::with(kind, issue) else { return };
    refused_because(&stand, "certificate not valid for name \"localhost\"");
}

/// Checks that neither a request nor a command gets further than to `reason`.
fn refused_because(stand: &Stand, reason: &str) {
    let reply = Company::of(stand, 1).get("/customers/1");
    assert_eq!(reply.status, 502, "{reply:?}");
    let told = "customers answered 503 Service Unavailable: cannot query airline-db: ";
    assert!(reply.body.starts_with(told) && reply.body.contains(reason), "{}", reply.body);
    assert!(reply.body.len() < 400, "{}", reply.body);

    let looked = stand.run("look", &json!({ "database": stand.told(1) }));
    assert_eq!(looked.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&looked.stderr);
    assert!(complaint.contains(reason), "{complaint}");
}

fn a_database_that_died_is_a_failure_with_a_reason_and_no_hang(kind: Kind) {
    let Some(mut stand) = Stand::start(kind) else { return };
    stand.fill(2, 10, 2);
    let airline = Company::of(&stand, 1);
    assert_eq!(airline.get("/customers/1").status, 200);
    stand.die();
    let began = Instant::now();
    let replies = [(); 2].map(|()| airline.get("/customers/1"));
    assert!(began.elapsed() < Duration::from_secs(30));
    for reply in replies {
        assert_eq!(reply.status, 502);
        assert!(reply.body.contains("cannot query airline-db: "), "{}", reply.body);
        assert!(reply.body.len() < 300, "{}", reply.body);
    }
}

fn a_database_that_was_not_filled_is_told(kind: Kind) {
    let Some(stand) = Stand::start(kind) else { return };
    let reply = Company::of(&stand, 1).get("/customers/1");
    assert_eq!(reply.status, 502);
    let reason = match kind {
        Kind::Postgres => "relation \"flights\" does not exist",
        Kind::Mongo => "there is nothing in it; `airline fill` fills it",
    };
    assert!(reply.body.contains(reason), "{}", reply.body);
}

#[test]
fn a_seat_whose_booking_is_refused_is_given_back() {
    let Some(stand) = Stand::start(Kind::Postgres) else { return };
    let Server::Postgres(postgres) = &stand.server else { panic!("no PostgreSQL") };
    stand.fill(1, 10, 1);
    let airline = Company::of(&stand, 1);
    assert_eq!(airline.book("first", 0, 0).status, 201);
    let refuse = "ALTER TABLE bookings ADD CHECK (key <> 'refused')";
    postgres.ask("toll", &[refuse]);
    let reply = airline.book("refused", 0, 0);
    assert_eq!(reply.status, 502);
    assert!(reply.body.contains("violates check constraint"), "{}", reply.body);
    assert!(reply.body.ends_with("; its seat was given back"), "{}", reply.body);
    let look = stand.look();
    assert_eq!([&look["bookings"], &look["seats_taken"]], [1, 1], "{look}");
}

#[test]
fn a_postgresql_client_without_a_certificate_stays_outside() {
    let Some(stand) = Stand::start(Kind::Postgres) else { return };
    let mut told = stand.told(1);
    // Of an authority that the database does not know.
    let folder = tempfile::tempdir().unwrap();
    let stranger = crate::certificates::Authority::new().issue("client");
    let files = stranger.write(folder.path(), "stranger");
    told["certificate"] = files["certificate"].clone();
    told["key"] = files["key"].clone();
    let looked = stand.run("look", &json!({ "database": told }));
    assert_eq!(looked.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&looked.stderr);
    assert!(complaint.starts_with("cannot query airline-db: "), "{complaint}");
}

#[test]
fn a_certificate_file_that_is_not_there_is_named_before_anything_listens() {
    for (kind, key) in [("postgres", "certificate"), ("mongo_db", "identity")] {
        let folder = tempfile::tempdir().unwrap();
        let own = crate::certificates::Authority::new().issue("client");
        let mut told = own.write(folder.path(), "client");
        told[key] = json!("/nowhere/client.pem");
        for (name, value) in
            [("service", json!("airline-db")), ("kind", json!(kind)), ("host", json!("localhost"))]
        {
            told[name] = value;
        }
        told["address"] = json!("127.0.0.1:1");
        told["connections"] = json!(1);
        let config = json!({
            "name": "flights", "listen": "127.0.0.1:0", "work_us": 0, "calls": [],
            "airline": { "part": "flights", "database": told },
        });
        let file = crate::running::config_file(&config);
        let output = run(&["--config", file.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{kind}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.starts_with("cannot use airline-db: "), "{complaint}");
        assert!(complaint.contains("/nowhere/client.pem"), "{complaint}");
    }
}
