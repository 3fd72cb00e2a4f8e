//! The driver against the recorded handshake of a real mongod: no mongod can be had here, so a thread repeats over TLS
//! what mongod 7.0.9 answered.
//!
//! `hello` is what that server answered to `db.runCommand({hello: 1})` after its installation, as a public note shows it
//! (2024-05-29, mongosh 2.2.5); by the older name of the command it differs as MongoDB's manual documents
//! (<https://www.mongodb.com/docs/v7.0/reference/command/hello/>). Of `serverStatus` there are the documented fields that
//! are read, with numbers of this test's own.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fs, thread};

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{DateTime, Document, deserialize_from_slice, doc, serialize_to_vec};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::certificates::Authority;
use crate::running::{config_file, run};

/// The wire protocol's message that carries commands and answers.
const OP_MSG: i32 = 2013;

fn recorded_hello() -> Document {
    doc! {
        "isWritablePrimary": true,
        "topologyVersion": {
            "processId": ObjectId::parse_str("66573f5ac9f4dcfbff93864d").unwrap(),
            "counter": 0_i64,
        },
        "maxBsonObjectSize": 16_777_216,
        "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000,
        "localTime": DateTime::parse_rfc3339_str("2024-05-29T14:58:41.485Z").unwrap(),
        "logicalSessionTimeoutMinutes": 30,
        "connectionId": 21,
        "minWireVersion": 0,
        "maxWireVersion": 21,
        "readOnly": false,
        "ok": 1.0,
    }
}

/// By the command's older name, to a client that says `helloOk`.
fn as_is_master(hello: Document) -> Document {
    let own = doc! { "helloOk": true, "ismaster": true };
    own.into_iter().chain(hello.into_iter().filter(|(key, _)| key != "isWritablePrimary")).collect()
}

/// What it answers to a command.
fn answer(command: &Document, hello: &Document) -> Document {
    let name = command.keys().next().map_or("", String::as_str);
    match name {
        "hello" => hello.clone(),
        "isMaster" | "ismaster" => as_is_master(hello.clone()),
        "serverStatus" => doc! {
            "host": "db", "version": "7.0.9", "process": "mongod", "pid": 1_i64, "uptime": 60.0,
            "opcounters": {
                "insert": 7_i64, "query": 1_000_i64, "update": 20_i64, "delete": 0_i64,
                "getmore": 0_i64, "command": 300_i64,
            },
            "ok": 1.0,
        },
        "aggregate" => {
            doc! { "cursor": { "firstBatch": [], "id": 0_i64, "ns": "airline.x" }, "ok": 1.0 }
        }
        "endSessions" => doc! { "ok": 1.0 },
        other => doc! {
            "ok": 0.0, "errmsg": format!("no such command: '{other}'"), "code": 59,
            "codeName": "CommandNotFound",
        },
    }
}

/// Repeats what mongod said to whoever shows a certificate, until the test ends.
struct RepeatedMongod {
    told: Value,
    commands: Receiver<String>,
    _folder: TempDir,
}

impl RepeatedMongod {
    fn start(hello: Document) -> Self {
        let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
        let own = authority.issue("localhost").write(folder.path(), "server");
        let mut told = authority.issue("client").write(folder.path(), "client");
        let config = Arc::new(tls(&own));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at: SocketAddr = listener.local_addr().unwrap();
        let (say, commands) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let (config, say, hello) = (Arc::clone(&config), say.clone(), hello.clone());
                // The client may go when it likes.
                thread::spawn(move || serve(stream, config, &say, &hello).ok());
            }
        });
        for (key, value) in [("service", json!("airline-db")), ("kind", json!("mongo_db"))] {
            told[key] = value;
        }
        told["host"] = json!("localhost");
        told["address"] = json!(at);
        told["connections"] = json!(1);
        Self { told, commands, _folder: folder }
    }

    fn look(&self) -> Result<Value, String> {
        let file = config_file(&json!({ "database": self.told }));
        let looked = run(&["airline", "look", "--config", file.path().to_str().unwrap()]);
        match looked.status.success() {
            true => Ok(serde_json::from_slice(&looked.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&looked.stderr).into_owned()),
        }
    }
}

fn tls(files: &Value) -> ServerConfig {
    let text = |key: &str| fs::read(files[key].as_str().unwrap()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&text("authority")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(&text("certificate")).unwrap()],
            PrivateKeyDer::from_pem_slice(&text("key")).unwrap(),
        )
        .unwrap()
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    say: &Sender<String>,
    hello: &Document,
) -> io::Result<()> {
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    loop {
        let mut head = [0; 16];
        stream.read_exact(&mut head)?;
        let number = |at: usize| i32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let mut body = vec![0; usize::try_from(number(0)).unwrap() - head.len()];
        stream.read_exact(&mut body)?;
        assert_eq!(number(12), OP_MSG, "only OP_MSG is repeated");
        // Flags, then a section of one document.
        assert_eq!(body[4], 0, "only a section of one document is repeated");
        let length = usize::try_from(i32::from_le_bytes(body[5..9].try_into().unwrap())).unwrap();
        let command: Document = deserialize_from_slice(&body[5..5 + length]).unwrap();
        let _ = say.send(command.keys().next().cloned().unwrap_or_default());
        let answer = serialize_to_vec(&answer(&command, hello)).unwrap();
        let length = i32::try_from(16 + 5 + answer.len()).unwrap();
        let head = [length, 1, number(4), OP_MSG, 0].map(i32::to_le_bytes).concat();
        stream.write_all(&[&head[..], &[0], &answer].concat())?;
        stream.flush()?;
    }
}

#[test]
fn the_handshake_that_a_real_mongod_was_recorded_with_is_understood() {
    let mongod = RepeatedMongod::start(recorded_hello());
    let look = mongod.look().unwrap();
    assert_eq!(look["server"], "mongod 7.0.9");
    assert_eq!((&look["operations"], &look["own_operations"]), (&json!(1_027), &json!(0)));
    let commands: Vec<_> = mongod.commands.try_iter().collect();
    let greets = |name: &&String| ["hello", "isMaster", "ismaster"].contains(&name.as_str());
    assert!(commands.iter().filter(greets).count() >= 1, "{commands:?}");
    let asked: Vec<_> = commands.iter().filter(|name| *name == "serverStatus").collect();
    assert_eq!(asked.len(), 2, "{commands:?}");
}

#[test]
fn a_handshake_of_a_server_that_is_too_old_for_the_driver_is_not_taken() {
    let old = doc! { "maxWireVersion": 6 };
    let kept = recorded_hello().into_iter().filter(|(key, _)| key != "maxWireVersion");
    let refused = RepeatedMongod::start(kept.chain(old).collect()).look().unwrap_err();
    assert!(refused.contains("no server was found in time"), "{refused}");
}
