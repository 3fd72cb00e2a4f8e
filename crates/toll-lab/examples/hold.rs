//! Brings a client and a server up at the isolation level of the first argument, and a database when there is a
//! PostgreSQL; says so, and stays: the process that the tests of clean-up kill.
//!
//! `hold LEVEL SERVICE_PROGRAM FOLDER [POSTGRES]`

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use toll_lab::artifacts::Artifact;
use toll_lab::{
    BuiltIn, DataPlane, Deployment, Isolation, Lab, LocalOptions, Planted, Postgres, Program,
    Runtime, Service,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([level, service, folder], postgres) = match &arguments[..] {
        [level, service, folder] => ([level, service, folder], None),
        [level, service, folder, postgres] => ([level, service, folder], Some(postgres)),
        _ => return Err("hold LEVEL SERVICE_PROGRAM FOLDER [POSTGRES]".into()),
    };
    let folder = PathBuf::from(folder);
    let load = ["sleep", "600"].map(Into::into).to_vec();
    let mut options = LocalOptions::new(vec![service.into()], load, folder.join("lab"));
    options.isolation = Isolation::ALL.into_iter().find(|known| known.to_string() == *level);
    if let Some(postgres) = postgres {
        options.artifacts.put(Artifact::Postgres, postgres);
    }
    let lab = Lab::local(options)?;
    let mut environment = lab.up(&deployment(postgres.is_some()), &folder.join("logs"))?;
    let _engine = environment.start_engine()?;
    writeln!(std::io::stdout(), "up")?;
    std::thread::sleep(Duration::from_secs(600));
    Ok(environment.down()?)
}

fn deployment(with_database: bool) -> Deployment {
    let mut services = vec![service("client", 19_000, &["server"]), service("server", 19_999, &[])];
    services.extend(with_database.then(database));
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "held".into(),
        entry: "client".into(),
        services,
        data_plane: DataPlane::Bare,
    }
}

fn database() -> Service {
    let content = Postgres { seed: "CREATE TABLE held ()".into(), written: None };
    Service { program: Program::Postgres(content), ..service("postgres", 19_432, &[]) }
}

fn service(name: &str, port: u16, calls: &[&str]) -> Service {
    let behaviour = BuiltIn {
        runtime: Runtime::Native,
        work: Duration::ZERO,
        reply_bytes: 5,
        status: 200,
        relay: false,
        queries: None,
        stall: None,
        planted: Planted::default(),
    };
    Service {
        external: None,
        node: None,
        tls: false,
        name: name.into(),
        group: "default".into(),
        replicas: 1,
        port,
        program: Program::BuiltIn(behaviour),
        calls: calls.iter().map(|c| (*c).to_owned()).collect(),
        observed_calls: vec![],
        metrics: None,
    }
}
