//! Turns a finished load into a page of text: what was run, what came of it, and what weakens it.
//!
//! At most 80 columns, whatever the terminal has; colour only on what is good to find at a glance.

mod bars;
mod wording;

use std::collections::BTreeMap;

use console::Style;
use toll_load::{Check, Histogram, LoadModel, LoadReport, PhaseReport, StageReport};

use super::Finished;
use super::counts::{
    cpu_us_per_request, ended, errors_by_kind, failed, failed_share, per_second, refused, seconds,
    share, throughput,
};
use super::figures;
use wording::{advice, grpc_name, headline};

/// Longer lines are hard to read, shorter ones do not hold the tables.
const WIDTHS: (usize, usize) = (72, 80);
/// Of what stands before each line of facts and times.
const LABEL: usize = 13;
/// Of the same in a table of times whose requests did not all end well.
const LABEL_OF_ANSWERS: usize = 19;
/// Of a column of times.
const COLUMN: usize = 10;
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Where the text will stand.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Columns.
    pub width: usize,
    /// Whether colours show.
    pub colour: bool,
}

/// The summary; its lines end without blanks.
pub fn summary(finished: Finished<'_>, page: &Page) -> String {
    let page = Page { width: page.width.clamp(WIDTHS.0, WIDTHS.1), ..*page };
    let measure = &finished.report.measure;
    let parts = [
        wrap(&headline(finished.plan), page.width)
            .iter()
            .map(|line| page.paint(Style::new().bold(), line))
            .collect(),
        page.facts(finished),
        page.times(measure),
        page.bars(measure),
        page.stages(finished),
        page.warnings(finished),
    ];
    let shown = parts.into_iter().filter(|part: &Vec<String>| !part.is_empty());
    let text = shown.map(|part| part.join("\n")).collect::<Vec<_>>().join("\n\n");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
}

impl Page {
    fn paint(&self, style: Style, text: &str) -> String {
        style.force_styling(self.colour).apply_to(text).to_string()
    }

    fn facts(&self, finished: Finished<'_>) -> Vec<String> {
        let measure = &finished.report.measure;
        let facts = [
            ("requests", Some(requests_told(measure)), None),
            ("statuses", statuses(&measure.statuses, measure.done, |code| code.to_string()), None),
            ("gRPC", statuses(&measure.grpc_statuses, measure.done, grpc_name), None),
            ("errors", Some(errors_told(measure)), Some(tone(measure))),
            ("late", late(measure), Some(Style::new().yellow())),
            ("clients", clients(finished), None),
            ("traffic", Some(traffic(measure)), None),
            ("connections", Some(connections(finished)), None),
            ("generator", Some(generator(finished)), None),
        ];
        let facts =
            facts.into_iter().filter_map(|(label, fact, style)| Some((label, fact?, style)));
        facts.flat_map(|(label, fact, style)| self.fact(label, &fact, style)).collect()
    }

    fn fact(&self, label: &str, fact: &str, style: Option<Style>) -> Vec<String> {
        let lines = wrap(fact, self.width - LABEL);
        let labels = [label].into_iter().chain(std::iter::repeat(""));
        let style = style.unwrap_or_default();
        lines
            .iter()
            .zip(labels)
            .map(|(line, label)| format!("{label:LABEL$}{}", self.paint(style.clone(), line)))
            .collect()
    }

    fn times(&self, measure: &PhaseReport) -> Vec<String> {
        if measure.latency.count() == 0 {
            return Vec::new();
        }
        let steps = &measure.steps;
        // Nothing was late: the service time would only repeat the latency.
        let punctual = measure.send_lag.max_us() == 0.0;
        let tells = |label: &str, times: &Histogram| {
            times.max_us() > 0.0 && !(punctual && label == "service time")
        };
        // Failed requests have no time in the table: a service that fails fast does not look fast.
        let (latency, label_width) = match failed(measure) {
            0 => ("latency", LABEL),
            _ => ("latency of answers", LABEL_OF_ANSWERS),
        };
        let rows = [
            (latency, &measure.latency),
            ("service time", &measure.service_time),
            ("send lag", &measure.send_lag),
            ("iteration", &measure.iterations),
            ("  connect", &steps.connect),
            ("  TLS", &steps.tls),
            ("  write", &steps.write),
            ("  wait", &steps.wait),
            ("  read", &steps.read),
        ];
        let titles = QUANTILES.map(|(title, _)| title).into_iter().chain(["max", "mean"]);
        let titles: String = titles.map(|title| format!("{title:>COLUMN$}")).collect();
        let head = self.paint(Style::new().dim(), &format!("{:label_width$}{titles}", ""));
        let rows = rows.iter().filter(|(label, times)| tells(label, times));
        let rows = rows.map(|(label, times)| self.row(&format!("{label:label_width$}"), times));
        [head].into_iter().chain(rows).collect()
    }

    fn row(&self, label: &str, times: &Histogram) -> String {
        let quantiles = QUANTILES.iter().map(|(_, quantile)| times.quantile_us(*quantile));
        let cells: String = quantiles
            .chain([times.max_us(), times.mean_us()])
            .map(|us| format!("{:>COLUMN$}", figures::time(us)))
            .collect();
        let is_latency = label.starts_with("latency");
        let style = if is_latency { Style::new().bold() } else { Style::new() };
        self.paint(style, &format!("{label}{cells}"))
    }

    fn bars(&self, measure: &PhaseReport) -> Vec<String> {
        bars::bars(&measure.latency, self.width)
            .into_iter()
            .map(|(label, bar)| label + &self.paint(Style::new().cyan(), &bar))
            .collect()
    }

    fn stages(&self, finished: Finished<'_>) -> Vec<String> {
        let stages = &finished.report.measure.stages;
        if stages.is_empty() {
            return Vec::new();
        }
        let of = match &finished.plan.model {
            LoadModel::Closed { .. } => "clients",
            LoadModel::Open { .. } => "arrivals/s",
        };
        let head =
            stage_row("stage", of, ["answered", "per s", "failed", "p50", "p99"].map(String::from));
        [self.paint(Style::new().dim(), &head)]
            .into_iter()
            .chain(stages.iter().map(stage))
            .collect()
    }

    fn warnings(&self, finished: Finished<'_>) -> Vec<String> {
        let report = finished.report;
        let broken = report.checks.iter().filter(|check| !check.holds && is_told(check, report));
        let checks = broken.flat_map(|check| self.warning(check, report));
        let lost = (report.samples_lost > 0).then(|| {
            format!(
                "{} samples were lost: outputs that list requests miss them",
                figures::count(report.samples_lost)
            )
        });
        let unstable = (finished.plan.warm_up.max_s > finished.plan.warm_up.min_s
            && !report.warm_up_stable)
            .then(|| "the warm-up ended at its limit, and its figures still moved".into());
        checks
            .chain([lost, unstable].into_iter().flatten().flat_map(|text| self.marked(&text)))
            .collect()
    }

    fn warning(&self, check: &Check, report: &LoadReport) -> Vec<String> {
        let Check { name, seen, bound, .. } = check;
        let lines = self.marked(&format!("{name}: {seen}; wanted: {bound}"));
        let advice = wrap(&advice(check, report), self.width - 2);
        lines.into_iter().chain(advice.iter().map(|line| format!("  {line}"))).collect()
    }

    fn marked(&self, text: &str) -> Vec<String> {
        let marks = ["! "].into_iter().chain(std::iter::repeat("  "));
        wrap(text, self.width - 2)
            .iter()
            .zip(marks)
            .map(|(line, mark)| self.paint(Style::new().yellow(), &format!("{mark}{line}")))
            .collect()
    }
}

/// Errors have their own line; without answers there is no time in flight that Little's law could compare.
fn is_told(check: &Check, report: &LoadReport) -> bool {
    match check.name.as_str() {
        "errors" => false,
        "littles-law" => report.measure.done > 0,
        _ => true,
    }
}

fn tone(measure: &PhaseReport) -> Style {
    let is_well = refused(measure) == 0 && measure.errors.is_empty();
    if is_well { Style::new().green() } else { Style::new().red() }
}

fn requests_told(measure: &PhaseReport) -> String {
    let answered = figures::count(measure.done);
    let of = if measure.scheduled > measure.done {
        format!(" of {}", figures::count(measure.scheduled))
    } else {
        String::new()
    };
    let rate = figures::number(throughput(measure));
    let length = figures::length(rounded(seconds(measure)));
    let unanswered = match measure.unanswered {
        0 => String::new(),
        some => format!("; {} without an answer yet", figures::count(some)),
    };
    format!("{answered}{of} answered, {rate}/s in {length}{unanswered}")
}

/// To hundredths: the end of a phase is never exact to the microsecond.
fn rounded(seconds: f64) -> f64 {
    if seconds < 1.0 { seconds } else { (seconds * 100.0).round() / 100.0 }
}

fn statuses(
    counts: &BTreeMap<u16, u64>,
    done: u64,
    name: impl Fn(u16) -> String,
) -> Option<String> {
    let counted = counts.iter().map(|(code, count)| {
        let share = figures::share(share(*count as f64, done as f64));
        format!("{}: {} ({share})", name(*code), figures::count(*count)).replace(' ', "\u{a0}")
    });
    (!counts.is_empty()).then(|| counted.collect::<Vec<_>>().join(", "))
}

fn errors_told(measure: &PhaseReport) -> String {
    let refused = match refused(measure) {
        0 => String::new(),
        refused => format!("{} answered with an error", figures::count(refused)),
    };
    let pieces = [errors_by_kind(measure), refused];
    let pieces: Vec<String> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
    if pieces.is_empty() {
        return "none".into();
    }
    let share = match ended(measure) {
        0 => String::new(),
        _ => format!(" ({} of the requests that ended)", figures::share(failed_share(measure))),
    };
    format!("{}{share}", pieces.join(", "))
}

fn late(measure: &PhaseReport) -> Option<String> {
    let pieces = [
        (measure.waited_for_connection, "waited for a connection"),
        (measure.unsent, "never sent"),
    ];
    let counted = pieces.iter().filter(|(count, _)| *count > 0);
    let counted: Vec<_> =
        counted.map(|(n, what)| format!("{} {what}", figures::count(*n))).collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

fn clients(finished: Finished<'_>) -> Option<String> {
    let LoadModel::Closed { clients, iteration } = &finished.plan.model else { return None };
    let is_plain = iteration.requests == 1 && iteration.think_ms == 0.0;
    let (fewest, most) = finished.report.measure.clients;
    let at_work = match (fewest, most) {
        (fewest, most) if fewest == most => figures::count(most),
        (fewest, most) => format!("{} to {}", figures::count(fewest), figures::count(most)),
    };
    if is_plain {
        return (clients.stages.len() > 1).then(|| format!("{at_work} at work"));
    }
    let iterations = figures::count(finished.report.measure.iterations.count());
    Some(format!("{at_work} at work, {iterations} iterations"))
}

fn traffic(measure: &PhaseReport) -> String {
    let in_units = |bytes: u64| {
        let rate = figures::bytes(per_second(measure, bytes as f64));
        format!("{rate}/s ({})", figures::bytes(bytes as f64))
    };
    format!("read {}, written {}", in_units(measure.bytes_in), in_units(measure.bytes_out))
}

fn connections(finished: Finished<'_>) -> String {
    let report = finished.report;
    let resolved = match report.resolve_us {
        us if us > 0.0 => format!("; name resolved in {}", figures::time(us)),
        _ => String::new(),
    };
    format!(
        "{} opened, {} used{resolved}",
        figures::count(report.connections_opened),
        figures::count(report.measure.connections_used)
    )
}

/// CPU that the generator burns is CPU that a measured system on the same machine lacks.
fn generator(finished: Finished<'_>) -> String {
    let measure = &finished.report.measure;
    let cpu_s = measure.cpu_ns as f64 / 1e9;
    let of_a_core = figures::share((per_second(measure, cpu_s) * 1e3).round() / 1e3);
    let each = figures::time(cpu_us_per_request(measure));
    let threads = match finished.report.threads {
        0 | 1 => String::new(),
        threads => format!(", {threads} threads"),
    };
    format!("{of_a_core} of a core, {each} CPU a request{threads}")
}

fn stage(stage: &StageReport) -> String {
    let value = |value: f64| figures::number((value * 100.0).round() / 100.0);
    let of = if stage.from == stage.to {
        value(stage.to)
    } else {
        format!("{} to {}", value(stage.from), value(stage.to))
    };
    let when = format!("{} to {}", figures::clock(stage.begin_s), figures::clock(stage.end_s));
    let quantile = |q| match stage.latency.count() {
        0 => "-".into(),
        _ => figures::time(stage.latency.quantile_us(q)),
    };
    let rate = figures::number(share(stage.done as f64, stage.end_s - stage.begin_s));
    let (done, failed) = (figures::count(stage.done), figures::count(stage.failed));
    stage_row(&when, &of, [done, rate, failed, quantile(0.5), quantile(0.99)])
}

fn stage_row(when: &str, of: &str, cells: [String; 5]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:>10}")).collect();
    format!("{when:LABEL$}{of:>15}{cells}")
}

/// Breaks at blanks; a longer word stands alone.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(word.into());
        } else {
            *line += if length > 0 { " " } else { "" };
            *line += word;
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

#[cfg(test)]
mod tests;
