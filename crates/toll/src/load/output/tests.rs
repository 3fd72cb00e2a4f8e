use std::collections::BTreeMap;

use toll_load::{
    Check, ErrorKind, Histogram, Identity, LoadModel, LoadPlan, LoadReport, Protocol, Sample,
    SeriesPoint, Stop, Target,
};

use super::*;

const TEXTS: [ReportForm; 7] = [
    ReportForm::Hey,
    ReportForm::Wrk,
    ReportForm::K6,
    ReportForm::Vegeta,
    ReportForm::Json,
    ReportForm::Hdr,
    ReportForm::Prometheus,
];

struct Load {
    plan: LoadPlan,
    report: LoadReport,
}

/// Two seconds in which nothing was answered.
fn nothing() -> Load {
    let target = Target::get("http://localhost:8080/");
    let plan = LoadPlan::new(target, LoadModel::closed(10), Stop::AfterSeconds(2.0));
    let mut report = LoadReport { version: 1, threads: 2, ..LoadReport::default() };
    report.measure.end_ns = 2_000_000_000;
    report.measure.clients = (10, 10);
    Load { plan, report }
}

/// 1,000 answers, from 101 to 1100 µs, over ten connections.
fn answers() -> Load {
    let mut load = nothing();
    let measure = &mut load.report.measure;
    measure.statuses = BTreeMap::from([(200, 1000)]);
    [measure.scheduled, measure.sent, measure.done, measure.completed] = [1000; 4];
    measure.connections_used = 10;
    [measure.bytes_out, measure.bytes_in] = [120_000, 250_000];
    measure.body_bytes_in = 48_000;
    measure.latency = times(1000, |us| us + 100);
    measure.service_time = times(1000, |us| us + 98);
    measure.send_lag = times(1000, |_| 2);
    measure.steps.connect = times(10, |us| us * 10);
    measure.steps.write = times(63, |us| us % 9 + 1);
    measure.steps.wait = times(1000, |us| us + 50);
    measure.steps.read = times(1000, |us| us % 40 + 3);
    let rates = [480.0, 500.0, 520.0, 500.0, 500.0, 480.0, 520.0, 500.0];
    measure.series = (1..).zip(rates).map(|(quarter, rate)| point(quarter, rate)).collect();
    load.report.connections_opened = 10;
    load.report.checks = vec![check("send-lag", true), check("own-cpu", false)];
    load
}

fn times(count: u64, us: impl Fn(u64) -> u64) -> Histogram {
    let mut histogram = Histogram::new();
    (1..=count).for_each(|n| histogram.record_ns(us(n) * 1000));
    histogram
}

fn point(quarter: u32, throughput_per_s: f64) -> SeriesPoint {
    SeriesPoint { at_s: f64::from(quarter) / 4.0, throughput_per_s, p50_us: 600.0, p99_us: 1090.0 }
}

fn check(name: &str, holds: bool) -> Check {
    let text = String::new;
    Check { name: name.into(), holds, seen: text(), bound: text(), advice: text() }
}

impl Load {
    fn answered(mut self, statuses: &[(u16, u64)]) -> Load {
        self.report.measure.statuses = statuses.iter().copied().collect();
        self
    }

    fn failed(mut self, errors: &[(ErrorKind, u64)]) -> Load {
        self.report.measure.errors = errors.iter().copied().collect();
        self
    }

    fn render(&self, form: ReportForm) -> String {
        form.render(Finished { plan: &self.plan, report: &self.report })
    }
}

/// Labels, columns, order and kinds of units of a text; figures and the blanks that align them are taken out.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut rest = text.replace('■', "");
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit() || c == ' ') {
        shape.push_str(&rest[..start]);
        let blank = rest[start..].starts_with(' ');
        let figure = |c: char| if blank { c == ' ' } else { c.is_ascii_digit() || c == '.' };
        let end = rest[start..].find(|c| !figure(c)).map_or(rest.len(), |length| start + length);
        shape.push(if blank { ' ' } else { '0' });
        rest = if blank { rest[end..].to_owned() } else { without_unit(&rest[end..], &mut shape) };
    }
    shape + &rest
}

/// The unit that follows a figure becomes the kind of unit.
fn without_unit(rest: &str, shape: &mut String) -> String {
    for (kind, units) in [
        ("<time>", ["ns", "µs", "us", "ms"].as_slice()),
        ("<bytes>", &["KB", "MB", " kB", " MB", " B"]),
    ] {
        if let Some(rest) = units.iter().find_map(|unit| rest.strip_prefix(unit)) {
            shape.push_str(kind);
            return rest.to_owned();
        }
    }
    match rest.strip_prefix('s') {
        Some(behind) if !behind.starts_with(char::is_alphabetic) => {
            shape.push_str("<time>");
            behind.to_owned()
        }
        _ => rest.to_owned(),
    }
}

#[test]
fn the_text_of_hey_is_heys() {
    // hey 0.1.5 doubles the percent sign; all versions before wrote one.
    let real = include_str!("fixtures/hey.txt").replace("%%", "%");
    assert_eq!(shape(&answers().render(ReportForm::Hey)), shape(&real));
    insta::assert_snapshot!(answers().render(ReportForm::Hey));
}

#[test]
fn errors_stand_where_hey_puts_them() {
    let load = answers().failed(&[(ErrorKind::Reset, 3), (ErrorKind::Timeout, 1)]);
    let real = include_str!("fixtures/hey-errors.txt").replace("%%", "%");
    let in_words = |text: &str| -> String {
        let cut = |line: &str| match line.split_once("]\t") {
            Some((count, message)) if !message.starts_with('|') => format!("{count}]\t…\n"),
            _ => format!("{line}\n"),
        };
        shape(text).lines().map(cut).collect()
    };
    assert_eq!(in_words(&load.render(ReportForm::Hey)), in_words(&real));
}

#[test]
fn hey_without_answers_has_empty_distributions() {
    let load = nothing().failed(&[(ErrorKind::Connect, 8)]);
    let real = include_str!("fixtures/hey-refused.txt").replace(" NaN", "0.0000");
    let (real, _) = real.split_once("[8]").unwrap();
    let ours = load.render(ReportForm::Hey);
    let (ours, _) = ours.split_once("[8]").unwrap();
    assert_eq!(shape(ours), shape(real));
}

#[test]
fn the_bars_of_hey_hold_every_answer_once() {
    let text = answers().render(ReportForm::Hey);
    let counts =
        text.lines().filter_map(|line| line.split_once("]\t|")?.0.split_once('[')?.1.parse().ok());
    let counts: Vec<u64> = counts.collect();
    assert_eq!((counts.len(), counts[0], counts.iter().sum()), (11, 1, 1000));
}

#[test]
fn new_connections_weigh_in_heys_average_by_their_share() {
    // Ten connections of 10 to 100 µs among 1,000 requests: 0.55 µs on average, none for most.
    let averaged = counts::of_every_request(&answers().report.measure.steps.connect, 1000);
    assert!((averaged.mean_us() - 0.55).abs() < 0.01, "{averaged:?}");
    assert_eq!((averaged.count(), averaged.min_us()), (1000, 0.0));
}

#[test]
fn the_text_of_wrk_is_wrks() {
    assert_eq!(
        shape(&thousands().render(ReportForm::Wrk)),
        shape(include_str!("fixtures/wrk.txt"))
    );
    insta::assert_snapshot!(answers().render(ReportForm::Wrk));
}

/// As `answers`, at rates for which wrk writes thousands.
fn thousands() -> Load {
    let mut load = answers();
    load.report.measure.series.iter_mut().for_each(|point| point.throughput_per_s *= 200.0);
    load.report.measure.bytes_in = 30_000_000;
    load
}

#[test]
fn errors_stand_where_wrk_puts_them() {
    let read = [(ErrorKind::Reset, 1000), (ErrorKind::Closed, 301)];
    let errors = thousands().failed(&read).render(ReportForm::Wrk);
    assert_eq!(
        shape(&errors),
        shape(&include_str!("fixtures/wrk-errors.txt").replace("/mixed", "/"))
    );
    assert!(errors.contains("\n  Socket errors: connect 0, read 1301, write 0, timeout 0\n"));

    let missing = thousands().answered(&[(404, 1000)]).render(ReportForm::Wrk);
    let (before, behind) = missing.split_once("  Latency Distribution\n").unwrap();
    let after_distribution: String = behind.split_inclusive('\n').skip(4).collect();
    assert_eq!(
        shape(&(before.to_owned() + &after_distribution)),
        shape(&include_str!("fixtures/wrk-404.txt").replace("/missing", "/"))
    );
}

/// The shape without the blanks that fill the last column up to its widest cell.
fn without_line_ends(text: &str) -> String {
    shape(text).split('\n').map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn the_summary_of_k6_is_k6s() {
    assert_eq!(
        without_line_ends(&answers().render(ReportForm::K6)),
        without_line_ends(include_str!("fixtures/k6.txt"))
    );
    insta::assert_snapshot!(answers().render(ReportForm::K6));
}

#[test]
fn k6_leaves_out_the_expected_responses_when_there_were_others() {
    let missing = answers().answered(&[(404, 1000)]).render(ReportForm::K6);
    assert_eq!(without_line_ends(&missing), without_line_ends(include_str!("fixtures/k6-404.txt")));
    assert!(missing.contains("http_req_failed............: 100.00% 1000 out of 1000\n"));
    let refused = nothing().failed(&[(ErrorKind::Connect, 9)]).render(ReportForm::K6);
    assert_eq!(
        without_line_ends(&refused),
        without_line_ends(include_str!("fixtures/k6-refused.txt"))
    );
}

#[test]
fn an_iteration_of_several_requests_has_a_duration_of_its_own() {
    let mut load = answers();
    load.report.measure.iterations = times(250, |_| 1_000_000);
    let text = load.render(ReportForm::K6);
    assert!(text.contains("iterations.....................: 250    125/s\n"), "{text}");
    assert!(text.contains("iteration_duration.............: avg=1s"), "{text}");
}

#[test]
fn the_report_of_vegeta_is_vegetas() {
    // The real one lasted five minutes, and one answer took milliseconds.
    let real = include_str!("fixtures/vegeta.txt").replace("5m0s", "5s");
    let ours = answers().render(ReportForm::Vegeta);
    assert_eq!(shape(&ours), shape(&real));
    let labels = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.chars().take(48).collect()).collect()
    };
    assert_eq!(labels(&ours), labels(&real));
    insta::assert_snapshot!(answers().render(ReportForm::Vegeta));
}

#[test]
fn errors_stand_where_vegeta_puts_them() {
    let refused = answers().answered(&[(200, 972), (502, 28)]).render(ReportForm::Vegeta);
    assert_eq!(shape(&refused), shape(include_str!("fixtures/vegeta-errors.txt")));
    assert!(refused.contains(" 1000, 500.00, 486.00\n"), "{refused}");
    assert!(refused.contains(" 97.20%\n"), "{refused}");
    let failed = answers().failed(&[(ErrorKind::Connect, 7), (ErrorKind::Reset, 250)]);
    let text = failed.render(ReportForm::Vegeta);
    let (_, end) = text.split_once("Success").unwrap();
    insta::assert_snapshot!(end, @r"
           [ratio]                           80.00%
    Status Codes  [code:count]                      0:250  200:1000  
    Error Set:
    connect
    reset
    ");
}

#[test]
fn answers_after_the_end_add_nothing_to_the_throughput() {
    let mut load = answers();
    load.report.measure.completed = 600;
    let vegeta = load.render(ReportForm::Vegeta);
    assert!(vegeta.lines().next().unwrap().ends_with(" 1000, 500.00, 300.00"), "{vegeta}");
    assert!(load.render(ReportForm::Wrk).contains("\nRequests/sec:    300.00\n"));
    assert!(load.render(ReportForm::Hey).contains("  Requests/sec:\t300.0000\n"));
    assert!(load.render(ReportForm::K6).contains(": 1000   300/s\n"));
}

#[test]
fn a_load_of_milliseconds_has_the_rate_of_its_milliseconds() {
    let mut load = answers();
    load.plan.stop = Stop::AfterRequests(1000);
    load.report.measure.end_ns = 4_000_000;
    for (form, rate) in [
        (ReportForm::Wrk, "\nRequests/sec: 250000.00\nTransfer/sec:     59.60MB\n"),
        (ReportForm::Hey, "  Requests/sec:\t250000.0000\n"),
        (ReportForm::K6, ": 1000   250000/s\n"),
        (ReportForm::Vegeta, " 1000, 250000.00, 250000.00\n"),
        (ReportForm::Json, "\"completed_per_s\": 250000.0,\n"),
    ] {
        let text = load.render(form);
        assert!(text.contains(rate), "{form:?}\n{text}");
    }
    load.report.measure.end_ns = 0;
    for form in TEXTS {
        assert!(!load.render(form).contains("GB"), "{form:?}");
    }
    assert!(load.render(ReportForm::Wrk).contains("\nRequests/sec:      0.00\n"));
}

#[test]
fn json_and_a_condition_count_the_same_errors() {
    let mut load = answers().failed(&[(ErrorKind::Timeout, 10), (ErrorKind::Connect, 99)]);
    load.report.measure.grpc_statuses = [(0, 990), (14, 10)].into();
    load.report.measure.unsent = 240;
    let json: serde_json::Value = serde_json::from_str(&load.render(ReportForm::Json)).unwrap();
    let summary = &json["summary"];
    assert_eq!(summary["error_share"], counts::error_share(&load.report.measure));
    assert_eq!(
        (&summary["error_share"], &summary["status_400_or_more"]),
        (&0.208.into(), &0.into())
    );
    assert!(load.render(ReportForm::K6).contains("1.98%  20 out of 1010\n"));
}

#[test]
fn the_percentile_table_is_that_of_hdr_histogram() {
    // One value of 2 ms and ten of 4 ms, as in the fixture.
    let mut load = nothing();
    load.report.measure.latency = times(11, |n| if n == 1 { 2000 } else { 4000 });
    let ours = load.render(ReportForm::Hdr);
    let real = include_str!("fixtures/hdr.txt");
    assert_eq!(shape(&ours), shape(real));
    let columns = |text: &str| -> Vec<String> {
        // Values are kept to a thousandth; the number of buckets is that of another range.
        let rows = text.lines().skip(2).take(3);
        rows.map(|row| row[12..].to_owned()).collect()
    };
    assert_eq!(columns(&ours), columns(real));
    assert!(ours.lines().zip(real.lines()).all(|(ours, real)| ours.len() == real.len()), "{ours}");
    insta::assert_snapshot!(answers().render(ReportForm::Hdr));
}

#[test]
fn a_percentile_table_of_nothing_has_no_rows() {
    let text = nothing().render(ReportForm::Hdr);
    assert_eq!(text.lines().filter(|line| line.starts_with("#[")).count(), 3);
    assert_eq!(text.lines().count(), 5, "{text}");
}

#[test]
fn json_holds_plan_report_and_a_flat_summary() {
    let load = answers().failed(&[(ErrorKind::Timeout, 250)]);
    let json: serde_json::Value = serde_json::from_str(&load.render(ReportForm::Json)).unwrap();
    let report: LoadReport = serde_json::from_value(json["report"].clone()).unwrap();
    let plan: LoadPlan = serde_json::from_value(json["plan"].clone()).unwrap();
    assert_eq!((report, plan), (load.report, load.plan));
    assert_eq!(json["toll"], env!("CARGO_PKG_VERSION"));
    let summary = json["summary"].as_object().unwrap();
    assert!(summary.values().all(serde_json::Value::is_number));
    assert_eq!((&summary["requests"], &summary["error_share"]), (&1250.into(), &0.2.into()));
    let text = serde_json::to_string_pretty(summary).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn the_key_of_a_client_certificate_stays_out_of_json() {
    let mut load = answers();
    let identity = Identity { chain_pem: "chain".into(), key_pem: "a secret".into() };
    load.plan.connection.tls.identity = Some(identity);
    assert!(!load.render(ReportForm::Json).contains("a secret"));
}

#[test]
fn the_values_of_headers_with_credentials_stay_out_of_json() {
    for protocol in [Protocol::Http1, Protocol::Grpc { streams: 2 }] {
        let mut load = answers();
        load.plan.connection.protocol = protocol;
        let names = ["authorization", "Proxy-Authorization", "COOKIE", "X-Api-Key", "accept"];
        load.plan.targets.push(load.plan.targets[0].clone());
        for target in &mut load.plan.targets {
            target.headers = names.map(|name| (name.into(), format!("a secret of {name}"))).into();
        }
        let text = load.render(ReportForm::Json);
        assert_eq!(text.matches("a secret of accept").count(), 2, "{text}");
        assert_eq!(text.matches("a secret").count(), 2, "{text}");
        assert!(text.contains("\"Proxy-Authorization\""), "that it was sent is no secret: {text}");
    }
}

#[test]
fn an_exposition_is_readable_by_prometheus() {
    let load = answers().failed(&[(ErrorKind::Timeout, 250)]);
    let text = load.render(ReportForm::Prometheus);
    for text in [&text, &nothing().render(ReportForm::Prometheus)] {
        assert_exposition(text);
    }
    insta::assert_snapshot!(text);
}

/// Each line is a head or a sample of the family whose head stands above it; no sample stands twice.
fn assert_exposition(text: &str) {
    let (mut families, mut samples) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let (name, kind) = head.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram", "summary"].contains(&kind), "{line}");
            assert!(!families.contains(&name), "{name} stands twice");
            families.push(name);
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            let name = sample.split('{').next().unwrap();
            let family = families.last().unwrap();
            let suffixes = ["", "_bucket", "_sum", "_count"];
            assert!(suffixes.contains(&name.strip_prefix(family).unwrap()), "{line}");
            assert!(!samples.contains(&sample), "{sample} stands twice");
            samples.push(sample);
        }
    }
}

#[test]
fn the_buckets_of_an_exposition_grow_to_the_count() {
    let text = answers().render(ReportForm::Prometheus);
    let buckets = text.lines().filter(|line| line.contains("_bucket{"));
    let counts: Vec<u64> =
        buckets.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
    assert!(counts.is_sorted());
    // 101 to 1100 µs: 150 answers up to 250 µs, 400 up to 500 µs, 900 up to 1 ms.
    assert_eq!(counts[..6], [0, 0, 150, 400, 900, 1000]);
    assert_eq!(counts.last(), Some(&1000));
}

#[test]
fn no_form_prints_a_number_that_is_none() {
    let mut never_begun = nothing();
    never_begun.report = LoadReport::default();
    never_begun.plan.targets.clear();
    for load in [nothing(), never_begun, nothing().failed(&[(ErrorKind::Timeout, 3)])] {
        for form in TEXTS {
            let text = load.render(form).replace("le=\"+Inf\"", "").to_lowercase();
            let none =
                text.split(|c: char| !c.is_alphabetic()).find(|word| ["nan", "inf"].contains(word));
            assert_eq!(none, None, "{form:?}\n{text}");
        }
    }
}

fn sample(outcome: Result<u16, ErrorKind>) -> Sample {
    let due = 1_795_290_296_463_000_250;
    Sample {
        target: 0,
        client: 4,
        intended_ns: due,
        sent_ns: due + 1_002_000,
        first_byte_ns: due + 30_500_000,
        done_ns: due + 31_900_750,
        connect_ns: 1_000_000,
        bytes_out: 118,
        body_bytes_in: 48,
        outcome,
    }
}

fn rows(form: RowForm, plan: &LoadPlan, samples: &[Sample]) -> String {
    let mut bytes = Vec::new();
    let mut writer = RowWriter::new(form, plan, &mut bytes).unwrap();
    samples.chunks(2).for_each(|chunk| writer.rows(chunk).unwrap());
    writer.flush().unwrap();
    String::from_utf8(bytes).unwrap()
}

const OUTCOMES: [Result<u16, ErrorKind>; 6] = [
    Ok(200),
    Ok(404),
    Err(ErrorKind::Connect),
    Err(ErrorKind::Timeout),
    Err(ErrorKind::Reset),
    Err(ErrorKind::Closed),
];

#[test]
fn the_rows_of_jmeter_are_jmeters() {
    let text = rows(RowForm::JmeterCsv, &nothing().plan, &OUTCOMES.map(sample));
    let real = include_str!("fixtures/jmeter.csv");
    assert_eq!(text.lines().next(), real.lines().next());
    // Label, message and URL are words of the one or the other.
    let kinds = |row: &str| -> Vec<String> {
        let cells = row.split(',').enumerate();
        let words = |column| [2, 4, 13].contains(&column);
        cells
            .map(
                |(column, cell)| {
                    if words(column) { String::new() } else { shape_of_cell(column, cell) }
                },
            )
            .collect()
    };
    for row in text.lines().skip(1) {
        let outcome = row.split(',').nth(3).unwrap();
        let real = real.lines().find(|real| real.split(',').nth(3) == Some(outcome));
        assert_eq!(kinds(row), kinds(real.unwrap_or_else(|| panic!("no row {outcome}"))));
    }
    insta::assert_snapshot!(text);
}

/// The code stands as it is.
fn shape_of_cell(column: usize, cell: &str) -> String {
    if column == 3 { cell.to_owned() } else { shape(cell) }
}

#[test]
fn a_comma_in_a_url_does_not_make_a_column() {
    let mut plan = nothing().plan;
    plan.targets[0].url = "http://localhost:8080/a,\"b\"".into();
    let text = rows(RowForm::JmeterCsv, &plan, &[sample(Ok(200))]);
    assert!(text.contains(",\"http://localhost:8080/a,\"\"b\"\"\","), "{text}");
    assert!(text.contains(",\"GET /a,\"\"b\"\"\","), "{text}");
}

#[test]
fn clients_that_come_and_go_are_not_counted_in_jmeters_rows() {
    let mut plan = nothing().plan;
    plan.model = LoadModel::open(100.0, 10);
    let text = rows(RowForm::JmeterCsv, &plan, &[sample(Ok(200))]);
    assert!(text.ends_with(",0,0,http://localhost:8080/,30,0,1\n"), "{text}");
}

#[test]
fn tolls_own_rows_keep_every_nanosecond() {
    let text =
        rows(RowForm::Csv, &nothing().plan, &[sample(Ok(200)), sample(Err(ErrorKind::Reset))]);
    insta::assert_snapshot!(text, @r"
    target,client,intended_unix_us,send_lag_us,connect_us,wait_us,read_us,latency_us,service_time_us,status,error,bytes_out,body_bytes_in
    0,4,1795290296463000.250,1002.000,1000.000,29498.000,1400.750,31900.750,30898.750,200,,118,48
    0,4,1795290296463000.250,1002.000,1000.000,29498.000,1400.750,31900.750,30898.750,,reset,118,48
    ");
}

#[test]
fn a_writer_that_is_full_is_reported() {
    let mut room = [0_u8; 400];
    let plan = nothing().plan;
    let mut writer = RowWriter::new(RowForm::Csv, &plan, room.as_mut_slice()).unwrap();
    assert!(writer.rows(&[sample(Ok(200)); 9]).is_err());
}
