//! Turns the tables of one run into the bars that `toll load` is held to: goal, measured, met or not. A bar whose
//! clients or tables were not part of the run is not measured, never met.
//!
//! Each bar is of one configuration of toll and names it. Numbers are medians over rounds; where a bar says so,
//! the worst round.

use std::fmt::Write as _;

use crate::figures::{self, each, middle, of, per_cpu_second, rate, ratios, trials};
use crate::load::Pace;
use crate::peers::Client;
use crate::runner::{Results, Row, Trial};
use crate::scenario::{STALL, Scenario};
use crate::table::decimal;

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
struct Bar {
    what: String,
    goal: Goal,
    unit: Unit,
    measured: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// So many percent around.
    Within(f64, f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Times,
    Microseconds,
    Milliseconds,
    Percent,
    Megabytes,
}

type Number = fn(&Trial) -> Option<f64>;

/// Fewer rounds give medians that no bar accepts.
const ROUNDS: usize = 5;

/// The section `bars`.
pub(crate) fn markdown(run: &[Results]) -> String {
    let mut text =
        "### Bars\n\n| bar | goal | measured | verdict |\n| --- | ---: | ---: | --- |\n".to_owned();
    for bar in bars(run) {
        let Bar { what, goal, unit, measured } = &bar;
        let number = measured.map_or("-".into(), |value| unit.form(value));
        let _ = writeln!(text, "| {what} | {} | {number} | {} |", goal.form(*unit), bar.verdict());
    }
    text + &footnote(run)
}

/// Failed rounds do not count, and the row with the fewest good ones does.
fn footnote(run: &[Results]) -> String {
    let rows = run.iter().flat_map(|results| &results.rows);
    let counts = rows.map(|row| trials(row).flatten().count()).filter(|count| *count > 0);
    let rounds = counts.min().unwrap_or(0);
    let enough = match rounds {
        ROUNDS.. => String::new(),
        _ => format!("; the bars ask for {ROUNDS}"),
    };
    format!(
        "\nFrom the tables of one run, medians of {rounds} interleaved rounds or more{enough}.\n"
    )
}

fn bars(run: &[Results]) -> Vec<Bar> {
    let rows = |scenario| {
        let results = run.iter().find(|results| results.scenario == scenario);
        results.map_or(&[][..], |results| results.rows.as_slice())
    };
    [
        closed(rows(Scenario::Closed)),
        nginx(rows(Scenario::Nginx)),
        encrypted(rows(Scenario::Tls), rows(Scenario::Http2)),
        send_instant(rows(Scenario::Open)),
        lag(rows(Scenario::Lag)),
        stall(rows(Scenario::Stall)),
        steady(rows(Scenario::Steady)),
    ]
    .concat()
}

fn closed(rows: &[Row]) -> Vec<Bar> {
    let goals =
        [(Client::Wrk, 1.35), (Client::H2load, 1.5), (Client::Fortio, 1.45), (Client::Oha, 2.1)];
    goals.map(|(peer, goal)| cpu_bar("fast responder", rows, peer, goal)).into()
}

/// Throughput is claimed for the other configuration than CPU time, and both rows say so.
fn nginx(rows: &[Row]) -> Vec<Bar> {
    let goals = [
        (Client::Wrk, 1.15),
        (Client::Fortio, 1.2),
        (Client::Oha, 1.5),
        (Client::Hey, 4.0),
        (Client::K6, 10.0),
    ];
    let mut bars: Vec<Bar> = goals.map(|(peer, goal)| cpu_bar("nginx", rows, peer, goal)).into();
    let cpu = between(rows, Client::Toll, Client::Wrk, per_cpu_second);
    let throughput = between(rows, Client::TollSpin, Client::Wrk, rate);
    let what = "nginx: requests per client CPU second, toll idle=block / wrk, worst round";
    bars.insert(1, bar(what, Goal::AtLeast(1.0), Unit::Times, lowest(&cpu)));
    let what = "nginx: requests/s, toll idle=spin / wrk";
    bars.push(bar(what, Goal::AtLeast(0.98), Unit::Times, middle(&throughput)));
    bars
}

fn encrypted(tls: &[Row], http2: &[Row]) -> Vec<Bar> {
    vec![
        cpu_bar("nginx, HTTP/1.1 over TLS", tls, Client::H2load, 1.0),
        cpu_bar("nginx, HTTP/2 over TLS", http2, Client::H2load, 1.0),
    ]
}

fn send_instant(rows: &[Row]) -> Vec<Bar> {
    let toll = |number: Number| of(rows, Client::Toll).and_then(|row| middle(&each(row, number)));
    let [p50, p99] = [figures::send_error_p50_us, figures::send_error_p99_us].map(toll);
    let what = |of: &str| format!("send instant at 5,000/s, toll idle=block: {of}");
    vec![
        bar(what("p50"), Goal::AtMost(5.0), Unit::Microseconds, p50),
        bar(what("p99"), Goal::AtMost(50.0), Unit::Microseconds, p99),
        bar(
            what("p99 of the best peer / p99"),
            Goal::AtLeast(10.0),
            Unit::Times,
            middle(&best_peer_over_toll(rows)),
        ),
    ]
}

/// By round, the smallest p99 of any peer over toll's. The best peer may be another one in each round.
fn best_peer_over_toll(rows: &[Row]) -> Vec<f64> {
    let Some(toll) = of(rows, Client::Toll) else { return Vec::new() };
    let p99_us = |row, round| figures::send_error_p99_us(trials(row).nth(round)??);
    let is_peer = |row: &&Row| !matches!(row.contender.client, Client::Toll | Client::TollSpin);
    let ratio = |round| {
        let peers = rows.iter().filter(is_peer).filter_map(|row| p99_us(row, round));
        Some(lowest(&peers.collect::<Vec<_>>())? / p99_us(toll, round)?)
    };
    (0..trials(toll).count()).filter_map(ratio).collect()
}

fn lag(rows: &[Row]) -> Vec<Bar> {
    let goals = [(1_000, "1,000/s", 25.0), (10_000, "10,000/s", 50.0)];
    let bars = goals.map(|(rate, name, p99)| {
        let row = rows.iter().find(|row| row.contender.load.pace == Pace::PerSecond(rate));
        let measured = |number: Number| row.and_then(|row| middle(&each(row, number)));
        let what = |of| format!("own send lag at {name}, toll idle=block: {of}");
        let us = Unit::Microseconds;
        [
            bar(what("p50"), Goal::AtMost(1.0), us, measured(figures::lag_p50_us)),
            bar(what("p99"), Goal::AtMost(p99), us, measured(figures::lag_p99_us)),
        ]
    });
    bars.concat()
}

/// Of the row with ten connections, which comes first; more connections are an easier task.
fn stall(rows: &[Row]) -> Vec<Bar> {
    let toll = of(rows, Client::Toll);
    let numbers = |number: Number| toll.map(|row| each(row, number)).unwrap_or_default();
    let served = toll.and_then(|row| {
        let scheduled = figures::scheduled(row)?;
        lowest(&each(row, |trial| Some(100.0 * trial.served? / scheduled)))
    });
    let [p99, p999] = [0.99, 0.999].map(|q| STALL.expected_ms(q));
    let of_p99 = middle(&numbers(|trial| trial.reading.latency.p99_ms));
    let of_p999 = middle(&numbers(|trial| trial.reading.latency.p999_ms));
    let over = middle(&numbers(figures::p50_over_unstalled_us));
    let what = |of: &str| format!("stall test, 10 connections, toll idle=block: {of}");
    vec![
        bar(what("p99"), Goal::Within(p99, 2.0), Unit::Milliseconds, of_p99),
        bar(what("p99.9"), Goal::Within(p999, 1.0), Unit::Milliseconds, of_p999),
        bar(what("p50 - unstalled p50"), Goal::AtMost(20.0), Unit::Microseconds, over),
        bar(what("sent of the schedule, worst round"), Goal::AtLeast(100.0), Unit::Percent, served),
    ]
}

fn steady(rows: &[Row]) -> Vec<Bar> {
    let (short, long) = (rows.first(), rows.last());
    let memory = |trial: &Trial| Some(trial.peak_rss_mb);
    let error = long.and_then(|row| {
        let sizes: Vec<f64> = figures::rate_error_percent(row).into_iter().map(f64::abs).collect();
        middle(&sizes)
    });
    let peak = long.and_then(|row| middle(&each(row, memory)));
    let growth = short.zip(long).and_then(|(short, long)| middle(&ratios(long, short, memory)));
    let what = |of: &str| format!("5,000/s, 50 connections, toll idle=block, long run: {of}");
    vec![
        bar(what("rate error, size"), Goal::AtMost(0.01), Unit::Percent, error),
        bar(what("peak resident memory"), Goal::AtMost(12.0), Unit::Megabytes, peak),
        bar(what("the same / that of the short run"), Goal::AtMost(1.05), Unit::Times, growth),
    ]
}

fn cpu_bar(server: &str, rows: &[Row], peer: Client, goal: f64) -> Bar {
    let what = format!("{server}: requests per client CPU second, toll idle=block / {peer}");
    let measured = middle(&between(rows, Client::Toll, peer, per_cpu_second));
    bar(what, Goal::AtLeast(goal), Unit::Times, measured)
}

fn bar(what: impl Into<String>, goal: Goal, unit: Unit, measured: Option<f64>) -> Bar {
    Bar { what: what.into(), goal, unit, measured }
}

/// By round, one client's number over another's.
fn between(rows: &[Row], above: Client, below: Client, number: Number) -> Vec<f64> {
    let both = of(rows, above).zip(of(rows, below));
    both.map(|(above, below)| ratios(above, below, number)).unwrap_or_default()
}

fn lowest(numbers: &[f64]) -> Option<f64> {
    numbers.iter().copied().reduce(f64::min)
}

impl Bar {
    fn verdict(&self) -> &'static str {
        match self.measured {
            None => "not measured",
            Some(value) if self.goal.is_met_by(value) => "met",
            Some(_) => "**not met**",
        }
    }
}

impl Goal {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Goal::AtLeast(least) => value >= least,
            Goal::AtMost(most) => value <= most,
            Goal::Within(truth, percent) => (value - truth).abs() <= truth * percent / 100.0,
        }
    }

    fn form(self, unit: Unit) -> String {
        match self {
            Goal::AtLeast(least) => format!(">= {least}{}", unit.name()),
            Goal::AtMost(most) => format!("<= {most}{}", unit.name()),
            Goal::Within(truth, percent) => {
                format!("{}{} +- {percent} %", decimal(truth), unit.name())
            }
        }
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Times => "x",
            Unit::Microseconds => " us",
            Unit::Milliseconds => " ms",
            Unit::Percent => " %",
            Unit::Megabytes => " MB",
        }
    }

    /// With as many digits as tell the value from its goal.
    fn form(self, value: f64) -> String {
        let number = match self {
            Unit::Times => format!("{value:.3}"),
            Unit::Percent => format!("{value:.5}"),
            Unit::Microseconds | Unit::Milliseconds | Unit::Megabytes => decimal(value),
        };
        number + self.name()
    }
}

#[cfg(test)]
mod tests;
