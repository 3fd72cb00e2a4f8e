//! Turns trials into a Markdown table: medians over the rounds, with the lowest and the highest; ratios are
//! taken within a round, so that what disturbs the machine for seconds disturbs both sides.

use std::fmt::Write as _;

use crate::figures::{
    self, each, middle, of, p50_over_unstalled_us, per_cpu_second, rate, rate_error_percent,
    ratios, trials,
};
use crate::machine::Disturbance;
use crate::peers::Client;
use crate::runner::{Outcome, Results, Row, Trial};

/// One number of a contender.
#[derive(Debug)]
pub(crate) struct Column {
    heading: &'static str,
    cell: fn(&Row, &[Row]) -> Option<String>,
}

pub(crate) const PER_CPU_SECOND: Column = Column {
    heading: "requests per client CPU second",
    cell: |row, _| Some(spread(&each(row, per_cpu_second), thousands)),
};
pub(crate) const TOLL_RATIO: Column = Column {
    heading: "toll / this",
    cell: |row, rows| Some(spread(&ratios(of(rows, Client::Toll)?, row, per_cpu_second), ratio)),
};
pub(crate) const TOLL_SPIN_RATIO: Column = Column {
    heading: "toll-spin / this",
    cell: |row, rows| {
        Some(spread(&ratios(of(rows, Client::TollSpin)?, row, per_cpu_second), ratio))
    },
};
pub(crate) const RATE: Column =
    Column { heading: "requests/s", cell: |row, _| Some(thousands(middle(&each(row, rate))?)) };
pub(crate) const RATE_TO_WRK: Column = Column {
    heading: "this / wrk, requests/s",
    cell: |row, rows| Some(spread(&ratios(row, of(rows, Client::Wrk)?, rate), ratio)),
};
pub(crate) const CORE_SHARE: Column = Column {
    heading: "client core %",
    cell: |row, _| {
        let share = |trial: &Trial| Some(100.0 * rate(trial)? / per_cpu_second(trial)?);
        Some(thousands(middle(&each(row, share))?))
    },
};
pub(crate) const CPU_PER_REQUEST: Column = Column {
    heading: "CPU us/request",
    cell: |row, _| Some(decimal(middle(&each(row, |trial| Some(1e6 / per_cpu_second(trial)?)))?)),
};
pub(crate) const PEAK_RSS: Column = Column {
    heading: "peak RSS MB",
    cell: |row, _| Some(decimal(middle(&each(row, |trial| Some(trial.peak_rss_mb)))?)),
};
pub(crate) const SEND_ERROR_P50: Column = Column {
    heading: "error p50 us",
    cell: |row, _| Some(spread(&each(row, figures::send_error_p50_us), decimal)),
};
pub(crate) const SEND_ERROR_P99: Column = Column {
    heading: "error p99 us",
    cell: |row, _| Some(spread(&each(row, figures::send_error_p99_us), decimal)),
};
pub(crate) const RATE_ERROR: Column = Column {
    heading: "rate error %",
    cell: |row, _| Some(format!("{:+.4}", middle(&rate_error_percent(row))?)),
};
pub(crate) const LAG_P50: Column = Column {
    heading: "lag p50 us",
    cell: |row, _| Some(spread(&each(row, figures::lag_p50_us), decimal)),
};
pub(crate) const LAG_P99: Column = Column {
    heading: "lag p99 us",
    cell: |row, _| Some(spread(&each(row, figures::lag_p99_us), decimal)),
};
pub(crate) const P50: Column = Column {
    heading: "p50 ms",
    cell: |row, _| Some(decimal(middle(&each(row, |trial| trial.reading.latency.p50_ms))?)),
};
pub(crate) const P50_OVER_UNSTALLED: Column = Column {
    heading: "p50 - unstalled p50, us",
    cell: |row, _| Some(spread(&each(row, p50_over_unstalled_us), decimal)),
};
pub(crate) const P99: Column = Column {
    heading: "p99 ms",
    cell: |row, _| Some(spread(&each(row, |trial| trial.reading.latency.p99_ms), decimal)),
};
pub(crate) const P999: Column = Column {
    heading: "p99.9 ms",
    cell: |row, _| Some(spread(&each(row, |trial| trial.reading.latency.p999_ms), decimal)),
};
pub(crate) const SERVED: Column = Column {
    heading: "requests at the server",
    cell: |row, _| Some(spread(&each(row, |trial| trial.served), thousands)),
};
pub(crate) const OFFERED: Column =
    Column { heading: "of the schedule", cell: |row, _| Some(thousands(figures::scheduled(row)?)) };
pub(crate) const SECONDS: Column =
    Column { heading: "seconds", cell: |row, _| Some(row.contender.load.seconds.to_string()) };

/// The table of one scenario, with its heading and the circumstances below.
pub(crate) fn markdown(results: &Results) -> String {
    let columns = results.scenario.columns();
    let headings: Vec<&str> = columns.iter().map(|column| column.heading).collect();
    let mut text = format!("### {}\n\n", results.scenario.title());
    line(&mut text, "client", &headings);
    line(&mut text, "---", &vec!["---:"; columns.len()]);
    for row in &results.rows {
        line(&mut text, &label(row), &cells(row, results, columns));
    }
    text + &circumstances(results)
}

fn circumstances(results: &Results) -> String {
    let rounds = results.rows.iter().map(|row| trials(row).count()).max().unwrap_or(0);
    let made = match rounds {
        1 => "One round".to_owned(),
        _ => format!("Medians of {rounds} interleaved rounds (lowest to highest)"),
    };
    let Disturbance { load_average: [begin, end], steal: [first, last] } = results.disturbance;
    format!(
        "\n{made}. Load average {begin:.2} at the beginning and {end:.2} at the end; steal {first:.1} % in the \
         first round and {last:.1} % in the last.\n"
    )
}

fn line(text: &mut String, label: &str, cells: &[impl AsRef<str>]) {
    let _ = write!(text, "| {label} |");
    cells.iter().for_each(|cell| {
        let _ = write!(text, " {} |", cell.as_ref());
    });
    text.push('\n');
}

fn label(row: &Row) -> String {
    let words = [row.contender.client.name(), &row.version, row.contender.note];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A reason stands in the first cell; what cannot be said is a dash.
fn cells(row: &Row, results: &Results, columns: &[Column]) -> Vec<String> {
    let numbers = columns.iter().map(|column| (column.cell)(row, &results.rows));
    let numbers = numbers.map(|cell| cell.filter(|text| !text.is_empty()).unwrap_or("-".into()));
    let reason = match &row.outcome {
        Outcome::Unsupported => return vec!["-".into(); columns.len()],
        Outcome::NotInstalled(reason) => Some(format!("not installed: {reason}")),
        Outcome::Trials(trials) if trials.iter().any(Result::is_ok) => None,
        Outcome::Trials(trials) => {
            trials.iter().find_map(|trial| trial.as_ref().err()).map(|why| format!("failed: {why}"))
        }
    };
    match reason {
        Some(reason) => {
            let dashes = std::iter::repeat_n("-".into(), columns.len() - 1);
            std::iter::once(reason.replace('|', "/")).chain(dashes).collect()
        }
        None => numbers.collect(),
    }
}

/// `median (lowest to highest)`; empty without numbers.
fn spread(numbers: &[f64], form: fn(f64) -> String) -> String {
    let Some(middle) = middle(numbers) else { return String::new() };
    let lowest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if numbers.len() == 1 {
        return form(middle);
    }
    format!("{} ({} to {})", form(middle), form(lowest), form(highest))
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// Three significant digits or so: 0.06, 4.63, 168.
pub(crate) fn decimal(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A whole number in groups of three.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::fixture::{row, trial};
    use crate::scenario::Scenario;

    fn table(rows: Vec<Row>) -> String {
        let disturbance = Disturbance { load_average: [0.5, 1.5], steal: [0.0, 2.5] };
        markdown(&Results { scenario: Scenario::Closed, rows, disturbance })
    }

    fn line_of<'a>(table: &'a str, client: &str) -> &'a str {
        table.lines().find(|line| line.starts_with(&format!("| {client} "))).unwrap()
    }

    #[test]
    fn both_configurations_of_toll_are_compared_with_every_client() {
        let requests = [(Client::Toll, 300.0), (Client::TollSpin, 150.0), (Client::Wrk, 100.0)];
        let rows = requests.map(|(client, n)| row(client, Outcome::Trials(vec![trial(n, 1.0)])));
        let table = table(rows.into());
        assert!(table.contains("| toll / this | toll-spin / this |"), "{table}");
        assert!(line_of(&table, "toll").contains("| 300 | 1.00 | 0.50 |"), "{table}");
        assert!(line_of(&table, "toll-spin").contains("| 150 | 2.00 | 1.00 |"), "{table}");
        assert!(line_of(&table, "wrk").contains("| 100 | 3.00 | 1.50 |"), "{table}");
    }

    #[test]
    fn below_the_table_stands_how_busy_the_machine_was_at_both_ends() {
        let table = table(vec![row(Client::Toll, Outcome::Trials(vec![trial(1.0, 1.0)]))]);
        assert!(table.ends_with(
            "\n\nOne round. Load average 0.50 at the beginning and 1.50 at the end; steal 0.0 % in the first round \
             and 2.5 % in the last.\n"
        ));
    }

    #[test]
    fn what_has_no_numbers_says_why() {
        let failed = vec![Err("exit status: 2: no | such flag".to_owned())];
        let table = table(vec![
            row(Client::Toll, Outcome::NotInstalled("not built".into())),
            row(Client::Wrk, Outcome::Unsupported),
            row(Client::Oha, Outcome::Trials(failed)),
        ]);
        assert!(line_of(&table, "toll").contains("| not installed: not built | - | - |"));
        assert!(line_of(&table, "wrk").ends_with("| - | - | - | - | - | - | - |"));
        assert!(line_of(&table, "oha").contains("failed: exit status: 2: no / such flag"));
    }

    #[test]
    fn without_toll_there_is_no_ratio() {
        let table = table(vec![row(Client::Wrk, Outcome::Trials(vec![trial(800_000.0, 4.0)]))]);
        let expected = "| wrk 1.0 | 200,000 | - | - | 200,000 | 1.00 | 100 | 5.00 |";
        assert_eq!(line_of(&table, "wrk"), expected);
    }

    #[test]
    fn medians_stand_with_lowest_and_highest() {
        assert_eq!(spread(&[3.0, 1.0, 2.0, 10.0], ratio), "2.50 (1.00 to 10.00)");
        assert_eq!(spread(&[], ratio), "");
    }

    #[test]
    fn numbers_keep_about_three_digits() {
        let forms = [0.0612, 4.634, 168.04, 24_029.0, -12.0].map(decimal);
        assert_eq!(forms, ["0.061", "4.63", "168.0", "24,029", "-12.00"]);
        assert_eq!(
            [5.0, 123.0, 1234.0, 1_234_567.0].map(thousands),
            ["5", "123", "1,234", "1,234,567"]
        );
    }
}
