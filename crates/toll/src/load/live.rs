//! Load events on stderr: a live line in a terminal, a line every few seconds elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use toll_load::{LoadEvent, Phase};

use super::figures;

/// How often a log gets a line, seconds.
const LINE_EVERY_S: f64 = 5.0;
/// Positions of the bar, far more than it has columns.
const BAR: u64 = 10_000;

/// Shows a load while it goes on.
pub struct Live<'a> {
    face: Face<'a>,
}

enum Face<'a> {
    Bar(ProgressBar),
    Lines { say: &'a dyn Fn(&str), next_s: f64 },
    Nothing,
}

impl<'a> Live<'a> {
    /// Live when stderr is a terminal; `say` takes a line when it is not.
    pub fn new(quiet: bool, say: &'a dyn Fn(&str)) -> Self {
        let face = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Face::Nothing,
            (false, true) => Face::Bar(bar()),
            (false, false) => Face::Lines { say, next_s: LINE_EVERY_S },
        };
        Self { face }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &LoadEvent) {
        match event {
            LoadEvent::Phase { phase, .. } => self.begin(*phase),
            LoadEvent::Progress { .. } => self.progress(event),
            LoadEvent::Report { .. } | LoadEvent::Failed { .. } => {}
        }
    }

    /// Takes the line away.
    pub fn end(self) {
        if let Face::Bar(bar) = self.face {
            bar.finish_and_clear();
        }
    }

    fn begin(&mut self, phase: Phase) {
        match &mut self.face {
            Face::Bar(bar) => {
                bar.set_prefix(name(phase));
                bar.set_position(0);
            }
            Face::Lines { next_s, .. } => *next_s = LINE_EVERY_S,
            Face::Nothing => {}
        }
    }

    fn progress(&mut self, event: &LoadEvent) {
        let LoadEvent::Progress { phase, elapsed_s, share, .. } = event else { return };
        match &mut self.face {
            Face::Bar(bar) => {
                bar.set_position((share.unwrap_or(0.0) * BAR as f64) as u64);
                bar.set_message(in_words(event));
            }
            Face::Lines { say, next_s } if elapsed_s >= next_s => {
                *next_s += LINE_EVERY_S;
                say(&format!("{} {}", name(*phase), in_words(event)));
            }
            Face::Lines { .. } | Face::Nothing => {}
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(BAR);
    let style = ProgressStyle::with_template("{prefix:7} {bar:12.cyan/dim} {wide_msg}");
    let style = style.expect("the template is fixed and names known keys");
    bar.set_style(style.progress_chars("━╸─"));
    bar.set_prefix("begin");
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::WarmUp => "warm-up",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
    }
}

/// `0:05 left  12,345/s  p50 402 us  p99 1.20 ms  3 errors`.
fn in_words(event: &LoadEvent) -> String {
    let LoadEvent::Progress { elapsed_s, share, throughput_per_s, p50_us, p99_us, errors, .. } =
        event
    else {
        return String::new();
    };
    let mut pieces = vec![
        time_left(*elapsed_s, *share),
        format!("{:>9}", format!("{}/s", figures::number(throughput_per_s.round()))),
        format!("p50 {:<7}", figures::time(*p50_us)),
        format!("p99 {:<7}", figures::time(*p99_us)),
    ];
    if *errors > 0 {
        pieces.push(format!("{} errors", figures::count(*errors)));
    }
    pieces.join("  ").trim_end().to_owned()
}

/// From the share that is over; without one, the time that has passed.
fn time_left(elapsed_s: f64, share: Option<f64>) -> String {
    match share {
        Some(share) if share > 0.0 => {
            format!("{} left", figures::clock(elapsed_s * (1.0 - share) / share))
        }
        _ => format!("{} so far", figures::clock(elapsed_s)),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn progress(elapsed_s: f64, share: Option<f64>, errors: u64) -> LoadEvent {
        LoadEvent::Progress {
            phase: Phase::Measure,
            elapsed_s,
            share,
            throughput_per_s: 12_345.4,
            p50_us: 402.0,
            p99_us: 1200.0,
            errors,
        }
    }

    #[test]
    fn progress_tells_the_time_left_the_rate_the_latency_and_errors() {
        let with_errors = in_words(&progress(5.0, Some(0.5), 3));
        assert_eq!(with_errors, "0:05 left   12,345/s  p50 402 us   p99 1.20 ms  3 errors");
        assert!(in_words(&progress(5.0, None, 0)).starts_with("0:05 so far"));
        assert!(in_words(&progress(0.0, Some(0.0), 0)).starts_with("0:00 so far"));
    }

    #[test]
    fn a_log_gets_a_line_every_five_seconds() {
        let lines = RefCell::new(Vec::new());
        let say = |line: &str| lines.borrow_mut().push(line.to_owned());
        let mut live = Live { face: Face::Lines { say: &say, next_s: LINE_EVERY_S } };
        for quarter in 0..44 {
            live.show(&progress(f64::from(quarter) * 0.25, Some(0.5), 0));
        }
        assert_eq!(lines.borrow().len(), 2, "{:?}", lines.borrow());
        assert!(lines.borrow()[0].starts_with("measure 0:05 left"));
    }
}
