//! Run events on stderr: a live line in a terminal, one line per trial elsewhere.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::talk::say;
use crate::event::RunEvent;

/// Shows a run while it goes on.
pub struct Progress {
    live: Option<ProgressBar>,
    trials: usize,
    blocks: usize,
    trial: String,
    stage: String,
    /// Seconds to go when it was last told, and when that was.
    remaining: (f64, Instant),
    /// Virtual users of the loads whose users are scaled.
    users: BTreeMap<String, u32>,
}

impl Progress {
    /// Live when stderr is a terminal.
    pub fn new() -> Self {
        Self {
            live: io::stderr().is_terminal().then(live_bar),
            trials: 0,
            blocks: 0,
            trial: String::new(),
            stage: String::new(),
            remaining: (0.0, Instant::now()),
            users: BTreeMap::new(),
        }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { trials, blocks, estimate_s, .. } => {
                (self.trials, self.blocks) = (*trials, *blocks);
                self.remaining = (*estimate_s, Instant::now());
                self.tell(&time_budget(event));
            }
            RunEvent::KneeSearch { variant } => {
                self.trial = format!("knee of {variant}");
                self.stage = "searching".into();
                self.redraw("");
            }
            RunEvent::KneeTried { rate_per_s, carried, .. } => {
                let verdict = if *carried { "carried" } else { "too much" };
                self.redraw(&format!("{rate_per_s:.0}/s {verdict}"));
            }
            RunEvent::StartedAnew { arm, reason } => {
                self.tell(&format!("warning: {arm} is started anew: {reason}"));
            }
            RunEvent::KneeFound { variant, rate_per_s } => {
                self.tell(&format!("knee of {variant}: {rate_per_s:.0} requests/s"));
            }
            RunEvent::UsersScaled { load, users, of, knee_per_s, made_for_knee_per_s } => {
                self.users.insert(load.clone(), *users);
                self.tell(&users_scaled(load, [*users, *of], [*knee_per_s, *made_for_knee_per_s]));
            }
            RunEvent::TrialStarted { index, block, arm, load, remaining_s } => {
                let users = self.users.get(load);
                let users = users.map_or(String::new(), |users| format!(" with {users} users"));
                let block = format!("block {block} of {}", self.blocks);
                self.trial = format!("{index}/{} {load}{users}, {arm}, {block}", self.trials);
                self.remaining = (*remaining_s, Instant::now());
            }
            RunEvent::Stage { stage } => {
                self.stage.clone_from(stage);
                self.redraw("");
            }
            RunEvent::Settling { at_s, throughput_per_s, cpu_per_request_us } => {
                self.stage = settling(*at_s, *throughput_per_s, *cpu_per_request_us);
                self.redraw("");
            }
            RunEvent::Progress { throughput_per_s, p50_us, p99_us, errors, .. } => {
                let latency = format!("p50 {:.2} ms p99 {:.2} ms", p50_us / 1e3, p99_us / 1e3);
                let errors = if *errors > 0 { format!(" {errors} errors") } else { String::new() };
                self.redraw(&format!("{throughput_per_s:.0}/s {latency}{errors}"));
            }
            RunEvent::TrialEnded { index, invalid, remaining_s } => {
                self.end_trial(*index, invalid, *remaining_s);
            }
            RunEvent::Ended { interrupted } => self.end(*interrupted),
        }
    }

    fn end_trial(&mut self, index: usize, invalid: &[String], remaining_s: f64) {
        self.remaining = (remaining_s, Instant::now());
        if let [reason, ..] = invalid {
            self.tell(&format!("trial {index} does not count: {reason}"));
        }
        if self.live.is_none() {
            say(&format!("trial {} done, about {} to go", self.trial, clock(remaining_s)));
        }
    }

    fn end(&mut self, interrupted: bool) {
        if let Some(bar) = &self.live {
            bar.finish_and_clear();
        }
        if interrupted {
            say("interrupted: measured trials are kept");
        }
    }

    fn redraw(&self, detail: &str) {
        if let Some(bar) = &self.live {
            let (then_s, told) = self.remaining;
            let left = clock(then_s - told.elapsed().as_secs_f64());
            bar.set_message(format!("{} | {} | {left} to go | {detail}", self.trial, self.stage));
        }
    }

    /// A line that stays.
    fn tell(&self, text: &str) {
        match &self.live {
            Some(bar) => bar.println(text),
            None => say(text),
        }
    }
}

fn live_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {wide_msg}");
    bar.set_style(style.expect("the template is fixed and names known keys"));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// `200 trials, 80 bring-ups: about 13:20 min (bring-ups 3:10 min, trials 10:10 min)`
fn time_budget(started: &RunEvent) -> String {
    let RunEvent::Started { trials, done, estimate_s, bring_ups, bring_ups_s, trials_s, .. } =
        started
    else {
        return String::new();
    };
    let kept = if *done > 0 { format!(", {done} measured before") } else { String::new() };
    let ups = match bring_ups {
        1 => "1 bring-up".into(),
        several => format!("{several} bring-ups"),
    };
    let knees_s = estimate_s - bring_ups_s - trials_s;
    let knees = if knees_s >= 1.0 { format!("knees {}, ", clock(knees_s)) } else { String::new() };
    let (ups_in, trials_in) = (clock(*bring_ups_s), clock(*trials_s));
    format!(
        "{trials} trials{kept}, {ups}: about {} ({knees}bring-ups {ups_in}, trials {trials_in})",
        clock(*estimate_s)
    )
}

/// `settling 7 s: 1,850/s, 1.31 ms CPU a request`
fn settling(at_s: f64, throughput_per_s: f64, cpu_per_request_us: Option<f64>) -> String {
    let cpu = cpu_per_request_us
        .map_or_else(String::new, |us| format!(", {:.2} ms CPU a request", us / 1e3));
    format!("settling {at_s:.0} s: {}/s{cpu}", grouped(throughput_per_s))
}

/// `vus-320: 120 of 320 virtual users: the slowest variant carries 572 requests/s here, 1,526 where ...`
fn users_scaled(load: &str, [users, of]: [u32; 2], [here, there]: [f64; 2]) -> String {
    let (here, there) = (grouped(here), grouped(there));
    let of = if users == of {
        format!("all {of} virtual users")
    } else {
        format!("{users} of {of} virtual users")
    };
    format!(
        "{load}: {of}: the slowest variant carries {here} requests/s here, {there} where they were chosen"
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

    #[test]
    fn scaled_users_are_told_with_the_reason() {
        let told = users_scaled("vus-320", [120, 320], [572.4, 1526.0]);
        let why = "the slowest variant carries 572 requests/s here, 1,526 where they were chosen";
        assert_eq!(told, format!("vus-320: 120 of 320 virtual users: {why}"));
        assert!(users_scaled("vus", [320, 320], [2e3, 1526.0]).starts_with("vus: all 320 virtual"));
    }

    #[test]
    fn a_trial_of_scaled_users_says_how_many_there_are() {
        let mut progress = Progress { live: None, trials: 6, blocks: 5, ..Progress::new() };
        let begins = |load: &str| RunEvent::TrialStarted {
            index: 2,
            block: 1,
            arm: "agent".into(),
            load: load.into(),
            remaining_s: 5.0,
        };
        progress.show(&RunEvent::UsersScaled {
            load: "vus-320".into(),
            users: 120,
            of: 320,
            knee_per_s: 572.0,
            made_for_knee_per_s: 1526.0,
        });
        progress.show(&begins("vus-320"));
        assert_eq!(progress.trial, "2/6 vus-320 with 120 users, agent, block 1 of 5");
        progress.show(&begins("same-rate"));
        assert_eq!(progress.trial, "2/6 same-rate, agent, block 1 of 5");
    }

    fn started(done: usize, bring_ups: usize, knees_s: f64) -> RunEvent {
        let (bring_ups_s, trials_s) = (190.0, 610.0);
        let estimate_s = bring_ups_s + trials_s + knees_s;
        RunEvent::Started {
            trials: 200,
            done,
            blocks: 5,
            estimate_s,
            bring_ups,
            bring_ups_s,
            trials_s,
        }
    }

    #[test]
    fn the_budget_of_a_run_is_told_before_it_begins() {
        assert_eq!(
            time_budget(&started(0, 80, 0.0)),
            "200 trials, 80 bring-ups: about 13:20 min (bring-ups 3:10 min, trials 10:10 min)"
        );
        assert_eq!(
            time_budget(&started(80, 1, 24.0)),
            "200 trials, 80 measured before, 1 bring-up: about 13:44 min (knees 24 s, bring-ups 3:10 min, trials 10:10 min)"
        );
    }

    #[test]
    fn settling_is_told_in_one_line() {
        let known = settling(7.02, 1850.4, Some(1312.0));
        assert_eq!(known, "settling 7 s: 1,850/s, 1.31 ms CPU a request");
        assert_eq!(settling(1.0, 950.0, None), "settling 1 s: 950/s");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
    }
}
