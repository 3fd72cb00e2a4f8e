//! Outputs as captured from the real tools: one second each at nginx, ten connections, or fifty where no rate
//! is kept.

use toll_load::{Histogram, LoadReport};

use super::*;

fn assert_reads(client: Client, stdout: &str, log: &str, expected: Reading) {
    assert_eq!(read(client, stdout, log), Some(expected));
}

fn latency(p50_ms: f64, p99_ms: f64) -> Latency {
    Latency { p50_ms: Some(p50_ms), p99_ms: Some(p99_ms), p999_ms: None }
}

#[test]
fn wrk_is_read() {
    let expected = Reading {
        requests: 16_997.0,
        per_second: 16_341.53,
        latency: latency(0.518, 21.17),
        send_lag: None,
    };
    assert_reads(Client::Wrk, include_str!("fixtures/wrk.txt"), "", expected);
}

#[test]
fn answers_that_wrk_calls_neither_2xx_nor_3xx_do_not_count() {
    let stdout = include_str!("fixtures/wrk.txt").to_owned() + "  Non-2xx or 3xx responses: 997\n";
    assert_eq!(read(Client::Wrk, &stdout, "").unwrap().requests, 16_000.0);
}

#[test]
fn hey_is_read() {
    let expected = Reading {
        requests: 935.0,
        per_second: 922.3973,
        latency: latency(9.2, 46.0),
        send_lag: None,
    };
    assert_reads(Client::Hey, include_str!("fixtures/hey.txt"), "", expected);
}

#[test]
fn h2load_is_read_without_percentiles_where_it_wrote_no_log() {
    let expected = Reading { requests: 12_531.0, per_second: 12_531.0, ..Reading::default() };
    assert_reads(Client::H2load, include_str!("fixtures/h2load.txt"), "", expected);
}

#[test]
fn h2loads_percentiles_come_from_its_log() {
    let (stdout, log) = (include_str!("fixtures/h2load.txt"), include_str!("fixtures/h2load.log"));
    let latency = read(Client::H2load, stdout, log).unwrap().latency;
    // `sort -nk3`: 2040 and 2042 are the 100th and 101st of 200 lines, 18175 is the last.
    assert_eq!(latency.p50_ms, Some(2.041));
    assert!(latency.p999_ms.unwrap() < 18.175 && latency.p999_ms > latency.p99_ms);
}

#[test]
fn fortio_is_read() {
    let expected = Reading {
        requests: 1_000.0,
        per_second: 993.6758928691628,
        latency: Latency {
            p50_ms: Some(0.008672645739910315 / SECONDS),
            p99_ms: Some(0.015636363636363636 / SECONDS),
            p999_ms: Some(0.0160155755 / SECONDS),
        },
        send_lag: None,
    };
    assert_reads(Client::Fortio, include_str!("fixtures/fortio.json"), "", expected);
}

#[test]
fn oha_is_read() {
    let expected = Reading {
        requests: 1_000.0,
        per_second: 999.4483544308493,
        latency: Latency {
            p50_ms: Some(0.000164256 / SECONDS),
            p99_ms: Some(0.005760587 / SECONDS),
            p999_ms: Some(0.011245028 / SECONDS),
        },
        send_lag: None,
    };
    assert_reads(Client::Oha, include_str!("fixtures/oha.json"), "", expected);
}

#[test]
fn k6_is_read() {
    let expected = Reading {
        requests: 793.0,
        per_second: 791.8542889930304,
        latency: Latency {
            p50_ms: Some(0.204421),
            p99_ms: Some(59.619803000000076),
            p999_ms: Some(66.31864059200001),
        },
        send_lag: None,
    };
    assert_reads(Client::K6, include_str!("fixtures/k6.json"), "", expected);
}

#[test]
fn times_of_wrk_come_in_milliseconds_whatever_their_unit() {
    let read = ["518.00us", "3.61ms", "1.04s", "1.50m"].map(milliseconds);
    assert_eq!(read, [Some(0.518), Some(3.61), Some(1_040.0), Some(90_000.0)]);
    assert_eq!(milliseconds("3.61parsec"), None);
}

#[test]
fn toll_is_read_from_the_measured_phase_of_its_report() {
    let mut report = LoadReport::default();
    let measure = &mut report.measure;
    (measure.begin_ns, measure.end_ns) = (1_000_000_000, 3_000_000_000);
    (measure.done, measure.completed) = (1_030, 1_000);
    measure.statuses = [(101, 1), (200, 1_000), (299, 10), (300, 4), (503, 15)].into();
    measure.latency = histogram(&[2_000_000; 1_000]);
    measure.send_lag = histogram(&[500; 1_000]);
    report.warm_up.done = 77;
    let stdout =
        serde_json::json!({ "toll": "0.1.0", "plan": {}, "report": report, "summary": {} });
    let reading = read(Client::Toll, &stdout.to_string(), "").unwrap();
    assert_eq!((reading.requests, reading.per_second), (1_010.0, 500.0));
    assert!((reading.latency.p999_ms.unwrap() - 2.0).abs() < 0.01);
    assert!((reading.send_lag.unwrap().p99_us - 0.5).abs() < 0.01);
}

fn histogram(values_ns: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values_ns.iter().for_each(|value| histogram.record_ns(*value));
    histogram
}

#[test]
fn vegeta_is_read() {
    let expected = Reading {
        requests: 13_875.0,
        per_second: 13855.793431684042,
        latency: latency(0.283525, 5.448961),
        send_lag: None,
    };
    assert_reads(Client::Vegeta, include_str!("fixtures/vegeta.json"), "", expected);
}

#[test]
fn output_that_is_something_else_is_not_read() {
    for client in Client::ALL {
        assert_eq!(read(client, "error: connection refused\n", ""), None, "{client}");
        assert_eq!(read(client, "", ""), None, "{client}");
        assert_eq!(read(client, "{}", ""), None, "{client}");
    }
}
