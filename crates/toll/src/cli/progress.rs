//! Run events on stderr: in a terminal a small table of the headline figures, redrawn in place as their intervals
//! narrow, above a live line; elsewhere a line a round.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::talk::say;
use crate::analysis::findings::{Effect, Estimate, Metric};
use crate::event::RunEvent;

/// Per cent between the ends of an interval that says nothing.
const WILD: f64 = 500.0;

/// Shows a run while it goes on.
pub struct Progress {
    live: Option<Live>,
    began: Instant,
    rounds: Option<usize>,
    round: usize,
    /// Seconds to go by the last estimate, and when that was made.
    remaining: (f64, Instant),
    stage: String,
}

/// What is redrawn in place.
struct Live {
    table: ProgressBar,
    line: ProgressBar,
}

impl Progress {
    /// Live when stderr is a terminal.
    pub fn new() -> Self {
        Self {
            live: io::stderr().is_terminal().then(Live::new),
            began: Instant::now(),
            rounds: None,
            round: 0,
            remaining: (0.0, Instant::now()),
            stage: String::new(),
        }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { rounds, done, arms, estimate_s } => {
                self.rounds = *rounds;
                self.remaining = (*estimate_s, Instant::now());
                self.tell(&begin(*rounds, *done, *arms, *estimate_s));
            }
            RunEvent::RoundStarted { round, remaining_s } => {
                self.round = *round;
                self.remaining = (*remaining_s, Instant::now());
            }
            RunEvent::Stage { stage, arm } => {
                let arm = arm.as_ref().map_or(String::new(), |arm| format!(" {arm}"));
                self.stage = format!("{}{arm}", stage.words());
                self.redraw("");
            }
            RunEvent::Settling { arm, at_s, throughput_per_s, cpu_per_request_us } => {
                self.redraw(&settling(arm, *at_s, *throughput_per_s, *cpu_per_request_us));
            }
            RunEvent::CapacityFound { variant, per_s } => {
                self.tell(&format!("{variant} carries {} requests/s flat out", grouped(*per_s)));
            }
            RunEvent::UsersScaled { load, users, of, capacity_per_s, made_for_per_s } => {
                self.tell(&users_scaled(load, [*users, *of], [*capacity_per_s, *made_for_per_s]));
            }
            RunEvent::SliceEnded {
                progress, arm, load, throughput_per_s, p50_us, invalid, ..
            } => {
                let (done, all) = progress;
                let state = match invalid.first() {
                    Some(reason) => format!("does not count: {reason}"),
                    None => format!("{}/s, p50 {:.2} ms", grouped(*throughput_per_s), p50_us / 1e3),
                };
                self.redraw(&format!("{done}/{all} {load}, {arm}: {state}"));
            }
            RunEvent::ArmInvalid { arm, reason } => {
                let round = self.round;
                self.tell(&format!("round {round}: {arm} does not count: {reason}"));
            }
            RunEvent::RoundEnded { remaining_s, .. } => {
                self.remaining = (*remaining_s, Instant::now());
            }
            RunEvent::Ended { interrupted } => self.end(*interrupted),
        }
    }

    /// Shows what the rounds so far say of the headline metrics.
    pub fn narrow(&self, headline: &[Effect]) {
        match &self.live {
            Some(live) => live.table.set_message(table(headline).join("\n")),
            None => say(&format!("{}: {}", self.position(), in_a_line(headline))),
        }
    }

    /// `round 3 of 10, 1:12 min gone, about 3:48 min to go`
    fn position(&self) -> String {
        let of = self.rounds.map_or(String::new(), |rounds| format!(" of {rounds}"));
        let (then_s, since) = self.remaining;
        let left = clock(then_s - since.elapsed().as_secs_f64());
        let gone = clock(self.began.elapsed().as_secs_f64());
        format!("round {}{of}, {gone} gone, about {left} to go", self.round)
    }

    fn end(&mut self, interrupted: bool) {
        if let Some(live) = &self.live {
            live.line.finish_and_clear();
            live.table.finish_and_clear();
        }
        if interrupted {
            say("interrupted: measured rounds are kept");
        }
    }

    fn redraw(&self, detail: &str) {
        if let Some(live) = &self.live {
            live.line.set_message(format!("{} | {} | {detail}", self.position(), self.stage));
        }
    }

    /// A line that stays.
    fn tell(&self, text: &str) {
        match &self.live {
            Some(live) => live.line.println(text),
            None => say(text),
        }
    }
}

impl Live {
    fn new() -> Self {
        let both = MultiProgress::new();
        let bar = |template: &str| {
            let style = ProgressStyle::with_template(template);
            let bar = both.add(ProgressBar::new_spinner());
            bar.with_style(style.expect("the template is fixed and names known keys"))
        };
        let (table, line) = (bar("{msg}"), bar("{spinner} {wide_msg}"));
        line.enable_steady_tick(Duration::from_millis(250));
        Self { table, line }
    }
}

/// `10 rounds of 3 arms: about 5:02 min`
fn begin(rounds: Option<usize>, done: usize, arms: usize, estimate_s: f64) -> String {
    let rounds = match rounds {
        Some(1) => "1 round".into(),
        Some(rounds) => format!("{rounds} rounds"),
        None => "rounds".into(),
    };
    let kept = if done > 0 { format!(", {done} measured before") } else { String::new() };
    format!("{rounds} of {arms} arms{kept}: about {}", clock(estimate_s))
}

/// A row a variant, a column a headline metric.
fn table(headline: &[Effect]) -> Vec<String> {
    let (mut variants, mut metrics) = (Vec::new(), Vec::new());
    for effect in headline {
        if !variants.contains(&&effect.variant) {
            variants.push(&effect.variant);
        }
        if !metrics.contains(&effect.metric) {
            metrics.push(effect.metric);
        }
    }
    let head = metrics.iter().map(|metric| format!("{:>16}", metric.name())).collect::<String>();
    let row = |variant: &&String| {
        let effect_of = |metric: &Metric| {
            headline.iter().find(|e| e.variant == **variant && e.metric == *metric)
        };
        let cells =
            metrics.iter().map(|metric| effect_of(metric).map_or("-".into(), |e| change(e, half)));
        let cells = cells.map(|cell| format!("{cell:>16}")).collect::<String>();
        format!("  {variant:<12}{cells}")
    };
    let rows = variants.iter().map(row);
    [format!("  {:<12}{head}", "")].into_iter().chain(rows).collect()
}

fn in_a_line(headline: &[Effect]) -> String {
    let in_words = |effect: &Effect| {
        format!("{} {} {}", effect.variant, effect.metric.name(), change(effect, range))
    };
    match headline {
        [] => "nothing to compare yet".into(),
        effects => effects.iter().map(in_words).collect::<Vec<_>>().join("; "),
    }
}

/// `+61 %` and its interval as `ends` has it, with so many digits; without one where its ends lie so far apart that they
/// say nothing.
fn change(effect: &Effect, ends: fn(f64, f64, usize) -> String) -> String {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let Estimate { value, low, high, rounds, .. } = effect.ratio;
    let (value, low, high) = (percent(value), percent(low), percent(high));
    let digits = usize::from(high - low < 10.0);
    match rounds {
        0 | 1 => format!("{} %", signed(value, 0)),
        _ if high - low > WILD => format!("{} % (unsure)", signed(value, 0)),
        _ => format!("{} % {}", signed(value, digits), ends(low, high, digits)),
    }
}

/// `(+58 to +64)`
fn range(low: f64, high: f64, digits: usize) -> String {
    format!("({} to {})", signed(low, digits), signed(high, digits))
}

/// Nothing has a plus.
fn signed(percent: f64, digits: usize) -> String {
    let scale = 10_f64.powi(digits as i32);
    let rounded = (percent * scale).round() / scale + 0.0;
    format!("{rounded:+.digits$}")
}

/// `+-3`
fn half(low: f64, high: f64, digits: usize) -> String {
    format!("+-{:.digits$}", (high - low) / 2.0)
}

/// `istio 7 s: 1,850/s, 1.31 ms CPU a request`
fn settling(arm: &str, at_s: f64, throughput_per_s: f64, cpu_us: Option<f64>) -> String {
    let cpu = cpu_us.map_or_else(String::new, |us| format!(", {:.2} ms CPU a request", us / 1e3));
    format!("{arm} {at_s:.0} s: {}/s{cpu}", grouped(throughput_per_s))
}

/// `vus-320: 120 of 320 virtual users: the slowest variant carries 572 requests/s here, 1,526 where ...`
fn users_scaled(load: &str, [users, wanted]: [u32; 2], [here, there]: [f64; 2]) -> String {
    let (here, there) = (grouped(here), grouped(there));
    let share = match users == wanted {
        true => format!("all {wanted} virtual users"),
        false => format!("{users} of {wanted} virtual users"),
    };
    format!(
        "{load}: {share}: the slowest variant carries {here} requests/s here, {there} where they were chosen"
    )
}

/// A whole number with a comma between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}

fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    if whole < 60 { format!("{whole} s") } else { format!("{}:{:02} min", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(
        variant: &str,
        metric: Metric,
        [value, low, high]: [f64; 3],
        rounds: usize,
    ) -> Effect {
        let estimate = |value, low, high| Estimate { value, low, high, level: 0.95, rounds };
        Effect {
            variant: variant.into(),
            against: None,
            metric,
            baseline: 1.0,
            value,
            difference: estimate(value - 1.0, low - 1.0, high - 1.0),
            ratio: estimate(value, low, high),
            trimmed_ratio: None,
            unexcused_ratio: None,
            scatter: None,
            verdict: None,
        }
    }

    #[test]
    fn the_live_table_has_a_row_a_variant_and_a_column_a_metric() {
        let headline = [
            effect("istio", Metric::LatencyP50, [1.54, 1.40, 1.70], 3),
            effect("istio", Metric::LatencyP99, [4.4, 1.2, 160.0], 3),
            effect("istio", Metric::CpuPerRequest, [1.612, 1.60, 1.63], 3),
            effect("mesher", Metric::CpuPerRequest, [0.999, 0.999, 0.999], 1),
        ];
        let table = table(&headline);
        assert_eq!(
            table[0].split_whitespace().collect::<Vec<_>>().join(" "),
            "p50 p99 CPU per request"
        );
        assert_eq!(
            table[1].split_whitespace().collect::<Vec<_>>().join(" "),
            "istio +54 % +-15 +340 % (unsure) +61.2 % +-1.5"
        );
        assert_eq!(table[2].split_whitespace().collect::<Vec<_>>().join(" "), "mesher - - +0 %");
        assert!(table.iter().all(|line| line.chars().count() <= 80), "{table:?}");
    }

    #[test]
    fn scaled_users_are_told_with_the_reason() {
        let told = users_scaled("vus-320", [120, 320], [572.4, 1526.0]);
        let why = "the slowest variant carries 572 requests/s here, 1,526 where they were chosen";
        assert_eq!(told, format!("vus-320: 120 of 320 virtual users: {why}"));
        assert!(users_scaled("vus", [320, 320], [2e3, 1526.0]).starts_with("vus: all 320 virtual"));
    }

    #[test]
    fn what_a_run_will_take_is_told_before_it_begins() {
        assert_eq!(begin(Some(10), 0, 3, 302.0), "10 rounds of 3 arms: about 5:02 min");
        assert_eq!(begin(None, 2, 3, 9.0), "rounds of 3 arms, 2 measured before: about 9 s");
    }

    #[test]
    fn settling_is_told_in_one_line() {
        let known = settling("istio", 7.02, 1850.4, Some(1312.0));
        assert_eq!(known, "istio 7 s: 1,850/s, 1.31 ms CPU a request");
        assert_eq!(settling("a", 1.0, 950.0, None), "a 1 s: 950/s");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
    }
}
