//! Turns trials into a Markdown table: medians over the rounds, with the lowest and the highest; ratios are
//! taken within a round, so that what disturbs the machine for seconds disturbs both sides.

use std::fmt::Write as _;

use toll_stats::median;

use crate::load::Pace;
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
    cell: |row, _| Some(spread(&each(row, |trial| Some(trial.exactness?.p50_us)), decimal)),
};
pub(crate) const SEND_ERROR_P99: Column = Column {
    heading: "error p99 us",
    cell: |row, _| Some(spread(&each(row, |trial| Some(trial.exactness?.p99_us)), decimal)),
};
pub(crate) const RATE_ERROR: Column = Column {
    heading: "rate error %",
    cell: |row, _| {
        let Pace::PerSecond(offered) = row.contender.load.pace else { return None };
        let share = |trial: &Trial| Some(trial.exactness?.rate_per_s / f64::from(offered) - 1.0);
        Some(format!("{:+.4}", 100.0 * middle(&each(row, share))?))
    },
};
pub(crate) const LAG_P50: Column = Column {
    heading: "lag p50 us",
    cell: |row, _| Some(spread(&each(row, |trial| Some(trial.reading.send_lag?.p50_us)), decimal)),
};
pub(crate) const LAG_P99: Column = Column {
    heading: "lag p99 us",
    cell: |row, _| Some(spread(&each(row, |trial| Some(trial.reading.send_lag?.p99_us)), decimal)),
};
pub(crate) const P50: Column = Column {
    heading: "p50 ms",
    cell: |row, _| Some(decimal(middle(&each(row, |trial| trial.reading.latency.p50_ms))?)),
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
pub(crate) const OFFERED: Column = Column {
    heading: "of the schedule",
    cell: |row, _| {
        let load = row.contender.load;
        let Pace::PerSecond(per_second) = load.pace else { return None };
        Some(thousands(f64::from(per_second * load.seconds)))
    },
};
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
    let Results { load_average, steal, .. } = results;
    format!("\n{made}. Load average {load_average:.2} at the beginning, steal {steal:.1} %.\n")
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

/// The row that others are compared with.
fn of(rows: &[Row], client: Client) -> Option<&Row> {
    rows.iter().find(|row| row.contender.client == client)
}

/// By round; None for a failed one.
fn trials(row: &Row) -> impl Iterator<Item = Option<&Trial>> {
    let trials = match &row.outcome {
        Outcome::Trials(trials) => trials.as_slice(),
        Outcome::Unsupported | Outcome::NotInstalled(_) => &[],
    };
    trials.iter().map(|trial| trial.as_ref().ok())
}

fn each(row: &Row, number: impl Fn(&Trial) -> Option<f64>) -> Vec<f64> {
    trials(row).flatten().filter_map(number).collect()
}

/// `above` / `below` of the rounds in which both have the number.
fn ratios(above: &Row, below: &Row, number: impl Fn(&Trial) -> Option<f64>) -> Vec<f64> {
    let both = trials(above).zip(trials(below));
    both.filter_map(|(above, below)| Some(number(above?)? / number(below?)?)).collect()
}

fn per_cpu_second(trial: &Trial) -> Option<f64> {
    (trial.cpu_s > 0.0).then(|| trial.reading.requests / trial.cpu_s)
}

fn rate(trial: &Trial) -> Option<f64> {
    Some(trial.reading.per_second)
}

fn middle(numbers: &[f64]) -> Option<f64> {
    median(numbers).ok()
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
fn decimal(value: f64) -> String {
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
    use crate::reading::Reading;
    use crate::scenario::{Effort, Scenario};

    fn trial(requests: f64, cpu_s: f64) -> Result<Trial, String> {
        let reading = Reading { requests, per_second: requests / 4.0, ..Reading::default() };
        Ok(Trial { reading, cpu_s, peak_rss_mb: 5.0, served: None, exactness: None })
    }

    fn row(client: Client, outcome: Outcome) -> Row {
        let contenders = Scenario::Closed.contenders(&Effort::new(3, 4));
        let contender = contenders.into_iter().find(|c| c.client == client).unwrap();
        Row { contender, version: "1.0".into(), outcome }
    }

    fn table(rows: Vec<Row>) -> String {
        markdown(&Results { scenario: Scenario::Closed, rows, load_average: 0.5, steal: 0.0 })
    }

    fn line_of<'a>(table: &'a str, client: &str) -> &'a str {
        table.lines().find(|line| line.starts_with(&format!("| {client} "))).unwrap()
    }

    #[test]
    fn ratios_are_taken_within_a_round_before_their_median() {
        let toll = vec![trial(300.0, 1.0), trial(100.0, 1.0), trial(200.0, 1.0)];
        let wrk = vec![trial(100.0, 1.0), trial(100.0, 1.0), trial(100.0, 1.0)];
        let rows =
            [row(Client::Toll, Outcome::Trials(toll)), row(Client::Wrk, Outcome::Trials(wrk))];
        assert_eq!(ratios(&rows[0], &rows[1], per_cpu_second), [3.0, 1.0, 2.0]);
        let table = table(rows.into());
        assert!(line_of(&table, "wrk").contains("| 2.00 (1.00 to 3.00) |"), "{table}");
    }

    #[test]
    fn a_failed_round_drops_out_of_both_sides_of_a_ratio() {
        let toll = vec![trial(300.0, 1.0), Err("crash".into()), trial(200.0, 1.0)];
        let wrk = vec![trial(100.0, 1.0), trial(1.0, 1.0), trial(100.0, 1.0)];
        let rows =
            [row(Client::Toll, Outcome::Trials(toll)), row(Client::Wrk, Outcome::Trials(wrk))];
        assert_eq!(ratios(&rows[0], &rows[1], per_cpu_second), [3.0, 2.0]);
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
        assert!(line_of(&table, "wrk").ends_with("| - | - | - | - | - | - |"));
        assert!(line_of(&table, "oha").contains("failed: exit status: 2: no / such flag"));
    }

    #[test]
    fn without_toll_there_is_no_ratio() {
        let table = table(vec![row(Client::Wrk, Outcome::Trials(vec![trial(800_000.0, 4.0)]))]);
        let expected = "| wrk 1.0 | 200,000 | - | 200,000 | 1.00 | 100 | 5.00 |";
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
