//! What is compared: which server, which loads, which clients, which numbers. Pure data.

use std::time::Duration;

use clap::ValueEnum;

use crate::load::{Load, Pace, Protocol};
use crate::peers::Client;
use crate::responder::{Conduct, Stall};
use crate::table::{self, Column};

/// One table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Closed loop, HTTP/1.1, 50 connections, a server faster than any client.
    Closed,
    /// The same against nginx.
    Nginx,
    /// The same over TLS.
    Tls,
    /// HTTP/2 over TLS, 5 connections of 10 streams, nginx.
    Http2,
    /// Open loop, 5,000/s: how exact are the sends?
    Open,
    /// How late toll sends by its own clock.
    Lag,
    /// A server that stands still: are the percentiles what arithmetic says?
    Stall,
    /// Toll's rate and memory over a short and a long run.
    Steady,
}

/// How long and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effort {
    pub(crate) rounds: u32,
    pub(crate) seconds: u32,
    /// A multiple of the stall's period.
    pub(crate) stall_seconds: u32,
    /// The run without stalls that goes before each run of the stall test.
    pub(crate) unstalled_seconds: u32,
    /// The short and the long run of [`Scenario::Steady`].
    pub(crate) steady_seconds: [u32; 2],
}

impl Effort {
    pub(crate) fn new(rounds: u32, seconds: u32) -> Effort {
        Effort { rounds, seconds, stall_seconds: 10, unstalled_seconds: 2, steady_seconds: [5, 20] }
    }

    /// Enough to see that everything works.
    pub(crate) fn quick() -> Effort {
        let base = Effort::new(3, 2);
        Effort { stall_seconds: 5, unstalled_seconds: 1, steady_seconds: [2, 5], ..base }
    }
}

/// What requests go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Responder(Conduct),
    Nginx,
}

/// One client under one load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contender {
    pub(crate) client: Client,
    pub(crate) load: Load,
    /// What tells it from the client's other rows.
    pub(crate) note: &'static str,
}

pub(crate) const STALL: Stall =
    Stall { every: Duration::from_secs(5), lasting: Duration::from_millis(200) };

/// As toll and wrk call it: the next request when the last answer has come.
const CLOSED: Load = Load {
    protocol: Protocol::Http1,
    pace: Pace::FlatOut,
    connections: 50,
    most_connections: 50,
    seconds: 0,
};

impl Scenario {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scenario::Closed => "closed",
            Scenario::Nginx => "nginx",
            Scenario::Tls => "tls",
            Scenario::Http2 => "http2",
            Scenario::Open => "open",
            Scenario::Lag => "lag",
            Scenario::Stall => "stall",
            Scenario::Steady => "steady",
        }
    }

    pub(crate) fn title(self) -> String {
        let [p99, p999] = [0.99, 0.999].map(|q| STALL.expected_ms(q).round());
        match self {
            Scenario::Closed => {
                "Closed loop, HTTP/1.1, 50 connections, against a fast responder".into()
            }
            Scenario::Nginx => "Closed loop, HTTP/1.1, 50 connections, against nginx".into(),
            Scenario::Tls => "Closed loop, HTTP/1.1 over TLS, 50 connections, against nginx".into(),
            Scenario::Http2 => {
                "Closed loop, HTTP/2 over TLS, 5 connections of 10 streams, against nginx".into()
            }
            Scenario::Open => {
                "Open loop, 5,000/s, 50 connections: error of the send instant".into()
            }
            Scenario::Lag => "Send lag by toll's own clock".into(),
            Scenario::Stall => format!(
                "The server stalls 200 ms every 5 s; 1,000/s, 10 connections: true p99 {p99} ms, p99.9 {p999} ms"
            ),
            Scenario::Steady => "Rate and memory over time, 5,000/s, 50 connections".into(),
        }
    }

    pub(crate) fn server(self) -> Server {
        match self {
            Scenario::Closed | Scenario::Lag => Server::Responder(Conduct::Prompt),
            Scenario::Open | Scenario::Steady => Server::Responder(Conduct::Stamping),
            Scenario::Stall => Server::Responder(Conduct::Stalling(STALL)),
            Scenario::Nginx | Scenario::Tls | Scenario::Http2 => Server::Nginx,
        }
    }

    /// How long a contender runs against a prompt server first, to learn its p50 there.
    pub(crate) fn unstalled_seconds(self, effort: &Effort) -> Option<u32> {
        (self == Scenario::Stall).then_some(effort.unstalled_seconds)
    }

    /// Seconds under load of one contender in all its rounds; starts and ends of programs come on top.
    pub(crate) fn planned_seconds(self, contender: &Contender, effort: &Effort) -> u32 {
        let before = self.unstalled_seconds(effort).unwrap_or(0);
        effort.rounds * (before + contender.load.seconds)
    }

    pub(crate) fn contenders(self, effort: &Effort) -> Vec<Contender> {
        let closed = Load { seconds: effort.seconds, ..CLOSED };
        let open = |per_second| Load { pace: Pace::PerSecond(per_second), ..closed };
        match self {
            Scenario::Closed | Scenario::Nginx => each(&Client::ALL, closed),
            Scenario::Tls => each(&Client::ALL, Load { protocol: Protocol::Http1Tls, ..closed }),
            Scenario::Http2 => {
                let protocol = Protocol::Http2Tls { streams: 10 };
                each(&Client::ALL, Load { protocol, connections: 5, most_connections: 5, ..closed })
            }
            Scenario::Open => each(&Client::ALL, open(5_000)),
            Scenario::Lag => vec![toll(open(1_000), "1,000/s"), toll(open(10_000), "10,000/s")],
            Scenario::Stall => stall(effort),
            Scenario::Steady => {
                let [short, long] = effort.steady_seconds;
                vec![
                    toll(Load { seconds: short, ..open(5_000) }, "short run"),
                    toll(Load { seconds: long, ..open(5_000) }, "long run"),
                ]
            }
        }
    }

    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Scenario::Closed | Scenario::Nginx | Scenario::Tls | Scenario::Http2 => &[
                table::PER_CPU_SECOND,
                table::TOLL_RATIO,
                table::TOLL_SPIN_RATIO,
                table::RATE,
                table::RATE_TO_WRK,
                table::CORE_SHARE,
                table::PEAK_RSS,
            ],
            Scenario::Open => &[
                table::SEND_ERROR_P50,
                table::SEND_ERROR_P99,
                table::RATE_ERROR,
                table::CPU_PER_REQUEST,
                table::PEAK_RSS,
            ],
            Scenario::Lag => &[table::LAG_P50, table::LAG_P99, table::CPU_PER_REQUEST],
            Scenario::Stall => &[
                table::P50,
                table::P50_OVER_UNSTALLED,
                table::P99,
                table::P999,
                table::SERVED,
                table::OFFERED,
            ],
            Scenario::Steady => &[table::SECONDS, table::RATE_ERROR, table::PEAK_RSS],
        }
    }
}

fn toll(load: Load, note: &'static str) -> Contender {
    Contender { client: Client::Toll, load, note }
}

fn each(clients: &[Client], load: Load) -> Vec<Contender> {
    clients.iter().map(|client| Contender { client: *client, load, note: "" }).collect()
}

/// Every client with the ten connections it was given, and those that can grow once more, allowed to.
fn stall(effort: &Effort) -> Vec<Contender> {
    let load = Load {
        pace: Pace::PerSecond(1_000),
        connections: 10,
        most_connections: 10,
        seconds: effort.stall_seconds,
        ..CLOSED
    };
    let clients = Client::ALL.iter().filter(|client| **client != Client::TollSpin);
    clients
        .flat_map(|client| {
            let fixed = Contender { client: *client, load, note: "" };
            let grown = Load { most_connections: 400, ..load };
            let growing = Contender { load: grown, note: "up to 400", ..fixed };
            [Some(fixed), client.can_grow().then_some(growing)]
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_runs_are_whole_periods() {
        for effort in [Effort::new(5, 4), Effort::quick()] {
            assert_eq!(u64::from(effort.stall_seconds) % STALL.every.as_secs(), 0);
        }
    }

    #[test]
    fn runs_are_planned_with_what_goes_before_them_and_as_often_as_there_are_rounds() {
        let planned = |scenario: Scenario| -> u32 {
            let effort = Effort::new(5, 4);
            let contenders = scenario.contenders(&effort);
            contenders.iter().map(|by| scenario.planned_seconds(by, &effort)).sum()
        };
        assert_eq!(planned(Scenario::Lag), 2 * 4 * 5);
        assert_eq!(planned(Scenario::Steady), (5 + 20) * 5);
        assert_eq!(planned(Scenario::Stall), 11 * (2 + 10) * 5);
    }

    #[test]
    fn the_stall_tests_title_says_what_arithmetic_says() {
        assert!(Scenario::Stall.title().ends_with("true p99 150 ms, p99.9 195 ms"));
    }

    #[test]
    fn only_growing_clients_stand_twice_in_the_stall_test() {
        let contenders = Scenario::Stall.contenders(&Effort::quick());
        let twice: Vec<_> =
            contenders.iter().filter(|c| !c.note.is_empty()).map(|c| c.client).collect();
        assert_eq!(twice, [Client::Toll, Client::Vegeta, Client::K6]);
    }
}
