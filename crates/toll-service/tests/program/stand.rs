//! The databases of the airline as the tests start them, and the airline before them.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::{env, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::certificates::{Authority, Identity};
use crate::postgres::Postgres;
use crate::running::{Reply, Running, config_file, run};

/// The databases that the airline can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Postgres,
    Mongo,
}

/// An external database that demands certificates, until this is dropped.
pub struct Stand {
    pub server: Server,
    kind: Kind,
    address: SocketAddr,
    /// Where the client's certificate is.
    client: Value,
    _folder: TempDir,
}

pub enum Server {
    Postgres(Postgres),
    Mongo(Mongo),
}

/// toll's stand-in for mongod.
pub struct Mongo(Child);

impl Mongo {
    pub fn die(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Mongo {
    fn drop(&mut self) {
        self.die();
    }
}

impl Stand {
    /// A database with a certificate for `localhost`; `None` after a `SKIP` line when the machine has none.
    pub fn start(kind: Kind) -> Option<Self> {
        Self::with(kind, |authority| authority.issue("localhost"))
    }

    /// A database with another certificate.
    pub fn with(kind: Kind, issue: impl Fn(&Authority) -> Identity) -> Option<Self> {
        let folder = TempDir::new().expect("a temporary folder");
        let authority = Authority::new();
        let client = authority.issue("client").write(folder.path(), "client");
        let own = issue(&authority);
        let (server, address) = match kind {
            Kind::Postgres => {
                let postgres = Postgres::start_external(&own)?;
                postgres.create("toll", "SELECT 1");
                let address = SocketAddr::from(([127, 0, 0, 1], postgres.port));
                (Server::Postgres(postgres), address)
            }
            Kind::Mongo => {
                let (mongo, address) = launch(&own.write(folder.path(), "server"))?;
                (Server::Mongo(mongo), address)
            }
        };
        Some(Self { server, kind, address, client, _folder: folder })
    }

    /// What a part is told of it.
    pub fn told(&self, connections: usize) -> Value {
        let kind = match self.kind {
            Kind::Postgres => "postgres",
            Kind::Mongo => "mongo_db",
        };
        let mut told = self.client.clone();
        told["service"] = json!("airline-db");
        told["kind"] = json!(kind);
        told["host"] = json!("localhost");
        told["address"] = json!(self.address);
        told["connections"] = json!(connections);
        told
    }

    pub fn fill(&self, flights: u32, seats: u32, customers: u32) {
        let told = json!({
            "database": self.told(1), "flights": flights, "seats": seats, "customers": customers,
        });
        let filled = self.run("fill", &told);
        assert!(filled.status.success(), "{filled:?}");
    }

    /// What `look` prints.
    pub fn look(&self) -> Value {
        let looked = self.run("look", &json!({ "database": self.told(1) }));
        assert!(looked.status.success(), "{looked:?}");
        serde_json::from_slice(&looked.stdout).expect("one line of JSON")
    }

    pub fn run(&self, command: &str, config: &Value) -> Output {
        let file = config_file(config);
        run(&["airline", command, "--config", file.path().to_str().expect("a plain path")])
    }

    /// It ends as in a crash.
    pub fn die(&mut self) {
        match &mut self.server {
            Server::Postgres(postgres) => postgres.die(),
            Server::Mongo(mongo) => mongo.die(),
        }
    }
}

fn launch(files: &Value) -> Option<(Mongo, SocketAddr)> {
    let given = env::var_os("TOLL_MONGO").map(PathBuf::from);
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../services/mongo/target/toll-mongo.jar");
    let jar = given.unwrap_or_else(|| built.into());
    if !jar.exists() {
        let test = thread::current().name().unwrap_or("?").to_owned();
        eprintln!(
            "SKIP {test}: no stand-in for MongoDB (services/mongo, or its jar in TOLL_MONGO)"
        );
        return None;
    }
    let mut java = Command::new("java");
    java.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar"]).arg(jar);
    java.args(["--listen", "127.0.0.1:0"]);
    for key in ["certificate", "key", "authority"] {
        java.arg(format!("--{key}")).arg(files[key].as_str().expect("a path"));
    }
    let mut process = java.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a Java");
    let mut line = String::new();
    let stderr = process.stderr.take().expect("stderr is a pipe");
    let mut stderr = BufReader::new(stderr);
    stderr.read_line(&mut line).expect("text");
    // What it says later goes nowhere, but must be taken, or it stops.
    thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let address = line.trim().strip_prefix("listening on ").and_then(|text| text.parse().ok());
    Some((Mongo(process), address.unwrap_or_else(|| panic!("not ready: {line}"))))
}

/// All four parts.
pub struct Company {
    pub web: Running,
    _others: [Running; 3],
}

impl Company {
    /// The airline with so many connections of each part to `stand`.
    pub fn of(stand: &Stand, connections: usize) -> Self {
        let told = stand.told(connections);
        let flights = part("flights", &[], Some(&told));
        let customers = part("customers", &[], Some(&told));
        let neighbours = [("customers", &customers), ("flights", &flights)];
        let bookings = part("bookings", &neighbours, Some(&told));
        let neighbours =
            [("flights", &flights), ("bookings", &bookings), ("customers", &customers)];
        let web = part("web", &neighbours, None);
        Self { web, _others: [flights, customers, bookings] }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.web.send("GET", path, "", "")
    }

    pub fn book(&self, key: &str, customer: u32, flight: u32) -> Reply {
        let order = json!({ "key": key, "customer": customer, "flight": flight });
        let json = "content-type: application/json\r\n";
        self.web.send("POST", "/bookings", json, &order.to_string())
    }
}

fn part(name: &str, calls: &[(&str, &Running)], database: Option<&Value>) -> Running {
    let call = |(part, running): &(&str, &Running)| json!({ "service": part, "part": part, "addresses": [running.address], "host": part });
    Running::start(&json!({
        "name": name, "listen": "127.0.0.1:0", "work_us": 0,
        "calls": calls.iter().map(call).collect::<Vec<_>>(),
        "airline": { "part": name, "database": database },
    }))
}
