//! The clients that are compared: what each is called, and how each is asked for a load.
//!
//! None stands for a load that a client cannot make. All run on one thread, as they are pinned to one core;
//! the Go tools take that from the core set (GOMAXPROCS).

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crate::load::{Load, Pace, Protocol};

/// A load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// `toll load`, asleep when nothing is ready.
    Toll,
    /// `toll load`, which never sleeps.
    TollSpin,
    Wrk,
    H2load,
    Fortio,
    Oha,
    Hey,
    Vegeta,
    K6,
}

impl Client {
    pub(crate) const ALL: [Client; 9] = [
        Client::Toll,
        Client::TollSpin,
        Client::Wrk,
        Client::H2load,
        Client::Fortio,
        Client::Oha,
        Client::Hey,
        Client::Vegeta,
        Client::K6,
    ];

    /// The name on command lines and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Client::Toll => "toll",
            Client::TollSpin => "toll-spin",
            Client::Wrk => "wrk",
            Client::H2load => "h2load",
            Client::Fortio => "fortio",
            Client::Oha => "oha",
            Client::Hey => "hey",
            Client::Vegeta => "vegeta",
            Client::K6 => "k6",
        }
    }

    /// Whether it opens connections beyond those it begins with, when all are busy.
    pub(crate) fn can_grow(self) -> bool {
        matches!(self, Client::Toll | Client::TollSpin | Client::Vegeta | Client::K6)
    }

    /// The words behind the program's name; None when it cannot make such a load.
    pub(crate) fn arguments(self, load: &Load, url: &str) -> Option<Vec<String>> {
        let line = match self {
            Client::Toll => toll(load, "block"),
            Client::TollSpin => toll(load, "spin"),
            Client::Wrk => wrk(load)?,
            Client::H2load => h2load(load)?,
            Client::Fortio => fortio(load)?,
            Client::Oha => oha(load),
            Client::Hey => hey(load)?,
            Client::Vegeta => vegeta(load)?,
            Client::K6 => k6(load)?,
        };
        Some(words(&line.replace("URL", url)))
    }

    /// The words that have the program tell of a run that is over, when it does not tell by itself.
    pub(crate) fn report_arguments(self) -> Option<Vec<String>> {
        (self == Client::Vegeta).then(|| words(&format!("report -type=json {VEGETA_RESULTS}")))
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No word holds a space, URLs of 127.0.0.1 included.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Where h2load writes its latencies: its summary has no percentiles.
pub(crate) const H2LOAD_LOG: &str = "h2load.log";
const K6_SCRIPT: &str = "k6.js";
const VEGETA_TARGETS: &str = "vegeta.targets";
const VEGETA_RESULTS: &str = "vegeta.bin";

/// Puts the files that command lines name into the directory in which clients run.
pub(crate) fn lay_out(scratch: &Path) -> io::Result<()> {
    fs::write(scratch.join(K6_SCRIPT), include_str!("k6.js"))
}

/// The same for what only the files of one run say.
pub(crate) fn lay_out_run(scratch: &Path, url: &str) -> io::Result<()> {
    let _ = fs::remove_file(scratch.join(H2LOAD_LOG));
    fs::write(scratch.join(VEGETA_TARGETS), format!("GET {url}\n"))
}

fn toll(load: &Load, idle: &str) -> String {
    let Load { connections, most_connections, seconds, .. } = load;
    let pace = match load.pace {
        Pace::FlatOut => format!("-c {connections}"),
        Pace::PerSecond(rate) => format!("--rate {rate} --max-connections {most_connections}"),
    };
    let protocol = match load.protocol {
        Protocol::Http1 => String::new(),
        Protocol::Http1Tls => "--insecure".into(),
        Protocol::Http2Tls { streams } => format!("--insecure --http2 --streams {streams}"),
    };
    let fixed = "load --output json --threads 1";
    format!("{fixed} --idle {idle} -z {seconds}s {pace} {protocol} URL")
}

/// wrk knows neither a rate nor HTTP/2. It never verifies certificates.
fn wrk(load: &Load) -> Option<String> {
    if load.pace != Pace::FlatOut || matches!(load.protocol, Protocol::Http2Tls { .. }) {
        return None;
    }
    let Load { connections, seconds, .. } = load;
    Some(format!("-t1 -c{connections} -d{seconds}s --latency URL"))
}

/// h2load takes a rate per connection. It never verifies certificates.
fn h2load(load: &Load) -> Option<String> {
    let Load { connections, seconds, .. } = load;
    let pace = match load.pace {
        Pace::FlatOut => String::new(),
        Pace::PerSecond(rate) => {
            format!("--rps={} --log-file={H2LOAD_LOG}", share(rate, *connections)?)
        }
    };
    let protocol = match load.protocol {
        Protocol::Http1 | Protocol::Http1Tls => "--h1".into(),
        Protocol::Http2Tls { streams } => format!("-m{streams}"),
    };
    Some(format!("-t1 -c{connections} -D{seconds} {pace} {protocol} URL"))
}

/// fortio's fast client speaks HTTP/1.1; the other one has no streams to choose.
fn fortio(load: &Load) -> Option<String> {
    if matches!(load.protocol, Protocol::Http2Tls { .. }) {
        return None;
    }
    let Load { connections, seconds, .. } = load;
    let rate = rate_or_zero(load);
    let fixed = "load -quiet -loglevel error -k -p 50,99,99.9 -json -";
    Some(format!("{fixed} -c {connections} -qps {rate} -t {seconds}s URL"))
}

fn oha(load: &Load) -> String {
    let Load { connections, seconds, .. } = load;
    let pace = match load.pace {
        Pace::FlatOut => String::new(),
        Pace::PerSecond(rate) => format!("-q {rate}"),
    };
    let protocol = match load.protocol {
        Protocol::Http1 => String::new(),
        Protocol::Http1Tls => "--insecure".into(),
        Protocol::Http2Tls { streams } => format!("--insecure --http2 -p {streams}"),
    };
    format!("--no-tui --output-format json -c {connections} -z {seconds}s {pace} {protocol} URL")
}

/// hey takes a rate per worker. Over TLS it is left out: it is far behind in the clear already.
fn hey(load: &Load) -> Option<String> {
    if load.protocol != Protocol::Http1 {
        return None;
    }
    let Load { connections, seconds, .. } = load;
    let pace = match load.pace {
        Pace::FlatOut => String::new(),
        Pace::PerSecond(rate) => format!("-q {}", share(rate, *connections)?),
    };
    Some(format!("-c {connections} -z {seconds}s {pace} URL"))
}

/// vegeta's closed loop is a rate of 0. It writes each result to a file, which costs it CPU time as it costs its users;
/// it keeps no bodies. Left out over TLS, as hey is.
fn vegeta(load: &Load) -> Option<String> {
    if load.protocol != Protocol::Http1 {
        return None;
    }
    let Load { connections, most_connections, seconds, .. } = load;
    let rate = rate_or_zero(load);
    let fixed = format!("attack -targets={VEGETA_TARGETS} -output={VEGETA_RESULTS} -max-body=0");
    let workers = format!("-workers={connections} -max-workers={most_connections}");
    Some(format!("{fixed} -rate={rate} {workers} -duration={seconds}s"))
}

/// Left out over TLS, as hey is.
fn k6(load: &Load) -> Option<String> {
    if load.protocol != Protocol::Http1 {
        return None;
    }
    let Load { connections, most_connections, seconds, .. } = load;
    let rate = rate_or_zero(load);
    let numbers = format!(
        "-e CONNECTIONS={connections} -e MOST_CONNECTIONS={most_connections} -e SECONDS={seconds} -e RATE={rate}"
    );
    Some(format!(
        "run --quiet --no-usage-report --log-output none -e TARGET=URL {numbers} {K6_SCRIPT}"
    ))
}

/// Zero means flat out where a client has no other word for it.
fn rate_or_zero(load: &Load) -> u32 {
    match load.pace {
        Pace::FlatOut => 0,
        Pace::PerSecond(rate) => rate,
    }
}

/// A whole share of the rate for each connection, where there is one.
fn share(rate: u32, connections: u32) -> Option<u32> {
    rate.is_multiple_of(connections).then(|| rate / connections)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: Load = Load {
        protocol: Protocol::Http1,
        pace: Pace::FlatOut,
        connections: 50,
        most_connections: 50,
        seconds: 4,
    };

    fn line(client: Client, load: Load) -> Option<String> {
        client.arguments(&load, "URL").map(|arguments| arguments.join(" "))
    }

    #[test]
    fn each_client_is_asked_for_the_same_closed_loop_in_its_own_words() {
        let asked = [
            (Client::Toll, "load --output json --threads 1 --idle block -z 4s -c 50 URL"),
            (Client::TollSpin, "load --output json --threads 1 --idle spin -z 4s -c 50 URL"),
            (Client::Wrk, "-t1 -c50 -d4s --latency URL"),
            (Client::H2load, "-t1 -c50 -D4 --h1 URL"),
            (
                Client::Fortio,
                "load -quiet -loglevel error -k -p 50,99,99.9 -json - -c 50 -qps 0 -t 4s URL",
            ),
            (Client::Oha, "--no-tui --output-format json -c 50 -z 4s URL"),
            (Client::Hey, "-c 50 -z 4s URL"),
            (
                Client::Vegeta,
                "attack -targets=vegeta.targets -output=vegeta.bin -max-body=0 -rate=0 -workers=50 -max-workers=50 \
                 -duration=4s",
            ),
            (
                Client::K6,
                "run --quiet --no-usage-report --log-output none -e TARGET=URL -e CONNECTIONS=50 \
                 -e MOST_CONNECTIONS=50 -e SECONDS=4 -e RATE=0 k6.js",
            ),
        ];
        for (client, expected) in asked {
            assert_eq!(line(client, CLOSED).as_deref(), Some(expected));
        }
    }

    #[test]
    fn rates_are_split_where_a_client_counts_them_per_connection() {
        let load = Load { pace: Pace::PerSecond(5_000), ..CLOSED };
        assert!(line(Client::Hey, load).unwrap().contains("-q 100 "));
        assert!(line(Client::H2load, load).unwrap().contains("--rps=100 "));
        assert!(line(Client::Oha, load).unwrap().contains("-q 5000 "));
        assert!(
            line(Client::Toll, load).unwrap().ends_with("--rate 5000 --max-connections 50 URL")
        );
        assert_eq!(line(Client::Hey, Load { connections: 3, ..load }), None);
    }

    #[test]
    fn streams_are_asked_for_where_they_exist() {
        let load = Load { protocol: Protocol::Http2Tls { streams: 10 }, connections: 5, ..CLOSED };
        assert!(line(Client::H2load, load).unwrap().contains("-c5 -D4 -m10"));
        assert!(line(Client::Oha, load).unwrap().contains("--insecure --http2 -p 10"));
        assert!(line(Client::Toll, load).unwrap().contains("-c 5 --insecure --http2 --streams 10"));
        assert_eq!(line(Client::Wrk, load), None);
        assert_eq!(line(Client::Fortio, load), None);
    }

    #[test]
    fn wrk_cannot_keep_a_rate() {
        assert_eq!(line(Client::Wrk, Load { pace: Pace::PerSecond(10), ..CLOSED }), None);
    }
}
