//! The answers of a staircase in sentences: what each case changes at equal rate, then what it carries flat out and what
//! a request takes of the data plane's CPU there, against the baseline and against the case before it. The noise floors
//! stand with the tables. Decides nothing.

use super::Stairs;
use super::words::{as_change, microseconds, percents, several_clients, signed_interval};
use crate::analysis::findings::{Effect, Estimate, Metric, StaircaseDifference, Verdict, View};
use crate::report::content::in_first_order;
use crate::report::figures::{Scale, share};
use crate::report::phrases::{self, join_phrases, metric_in_prose, phrase, what_it_does};
use crate::report::sweep::listed;
use crate::report::wording::{ends, interval, measured_scale};

/// What stands first of all that a report of a staircase says: one answer a case.
pub(in crate::report) fn answers(all: &[Stairs<'_>]) -> Vec<String> {
    all.iter().flat_map(of_stairs).collect()
}

fn of_stairs(stairs: &Stairs<'_>) -> Vec<String> {
    let differences = &stairs.of.differences;
    let cases = in_first_order(differences.iter().map(|d| d.variant.as_str()));
    if cases.is_empty() {
        let load = &stairs.of.load;
        return vec![format!(
            "Nothing can be told of {load}: fewer than two blocks have both a case and what it is held against."
        )];
    }
    let of = |case: &str| -> Vec<&StaircaseDifference> {
        differences.iter().filter(|d| d.variant == case).collect()
    };
    // Said once: it holds for all of them.
    let places = std::iter::once(place(stairs)).chain(std::iter::repeat(String::new()));
    let answer = |(case, place): (&&str, String)| {
        // Once is enough of several staircases.
        let first = if stairs.index == 0 { at_equal_rate(stairs, case) } else { String::new() };
        format!("{first}Flat out{place}, {}.", flat_out(stairs, case, &of(case)))
    };
    cases.iter().zip(places).map(answer).collect()
}

/// ` over 1 to 60 clients`.
fn place(stairs: &Stairs<'_>) -> String {
    let clients = stairs.clients();
    let of = stairs.name().map_or_else(String::new, |name| format!(" of {name}"));
    match (clients.first(), clients.last()) {
        (Some(first), Some(last)) if first != last => {
            format!(" over {first} to {}{of}", several_clients(*last))
        }
        (Some(only), _) => format!(" with {}{of}", several_clients(*only)),
        _ => String::new(),
    }
}

/// `At 704 requests/s gateway adds 0.31 ms to p50 (0.28 to 0.34) and adds 41 µs CPU per request (+3.1 %). `: against
/// the baseline; nothing where no load ran at equal rate.
fn at_equal_rate(stairs: &Stairs<'_>, case: &str) -> String {
    let findings = stairs.findings;
    let Some(load) = findings.loads.iter().find(|load| load.view == View::EqualRate) else {
        return String::new();
    };
    let of = |metric| load.effects.iter().find(|e| e.variant == case && e.metric == metric);
    let all = [Metric::LatencyP50, Metric::CpuPerRequest].into_iter().filter_map(of);
    let (unclear, told): (Vec<&Effect>, Vec<&Effect>) =
        all.partition(|e| matches!(e.verdict, Verdict::CannotTell { .. }));
    let told: Vec<_> = told.iter().map(|e| phrase(e, measured_scale(load, e.metric))).collect();
    let place = phrases::place(load, &findings.baseline);
    let aside =
        |e: &&Effect| format!("; its effect on {} cannot be told", metric_in_prose(e.metric));
    let asides: String = unclear.iter().map(aside).collect();
    match (told.is_empty(), unclear.is_empty()) {
        (true, true) => String::new(),
        (true, false) => {
            let what = what_it_does(case, &unclear);
            format!("{what} cannot be told {place}. ")
        }
        (false, _) => {
            let (place, said) = (place.replacen("at", "At", 1), join_phrases(&told));
            format!("{place} {case} {said}{asides}. ")
        }
    }
}

/// `gateway-mtls carries 15.1 % less than bypass (14.0 to 16.2) and ...; a request takes 305 µs more ...`.
fn flat_out(stairs: &Stairs<'_>, case: &str, differences: &[&StaircaseDifference]) -> String {
    // Of what has no data plane nothing is said of one.
    let cpu = stairs.has_data_plane(case).then(|| cpu(differences));
    let said: Vec<String> =
        carried(case, differences).into_iter().chain(cpu.into_iter().flatten()).collect();
    said.join("; ")
}

fn carried(case: &str, differences: &[&StaircaseDifference]) -> Vec<String> {
    let [mut less, mut same, mut unclear] = [vec![], vec![], vec![]];
    for of in differences {
        let (against, change) = (&of.against, as_change(of.throughput_ratio));
        match of.verdict {
            Verdict::Difference => less.push(changed(percents(), change, "", against, "than")),
            Verdict::NoDifference { bound } => same.push(no_larger(&share(bound), against)),
            Verdict::CannotTell { .. } => {
                unclear.push(format!("{against} ({})", unclear_range(percents(), change)));
            }
        }
    }
    let clauses = [
        (less, [format!("{case} carries "), String::new()]),
        (same, [format!("the throughput of {case} shows "), String::new()]),
        (unclear, [format!("whether {case} carries more or less than "), " cannot be told".into()]),
    ];
    said(clauses)
}

/// `a request takes 305 µs more CPU in the data plane than with bypass (296 to 314) and ...`.
fn cpu(differences: &[&StaircaseDifference]) -> Vec<String> {
    let all: Vec<_> = differences.iter().filter_map(|d| Some((*d, d.mesh_cpu_us?))).collect();
    let scale = microseconds(all.iter().map(|(_, of)| of.value));
    let [mut more, mut same, mut unclear] = [vec![], vec![], vec![]];
    for (difference, of) in all {
        let against = &difference.against;
        match difference.mesh_cpu_verdict {
            Some(Verdict::Difference) => {
                let what = if more.is_empty() { " CPU in the data plane" } else { "" };
                more.push(changed(scale, of, what, against, "than with"));
            }
            Some(Verdict::NoDifference { bound }) => {
                same.push(no_larger(&scale.with_unit(bound), against));
            }
            Some(Verdict::CannotTell { .. }) => {
                unclear.push(format!("{against} ({})", unclear_range(scale, of)));
            }
            None => unclear.push(format!("{against} (no interval)")),
        }
    }
    let clauses = [
        (more, ["a request takes ".into(), String::new()]),
        (same, ["its CPU in the data plane shows ".into(), String::new()]),
        (unclear, ["what its data plane takes beyond that of ".into(), " cannot be told".into()]),
    ];
    said(clauses)
}

/// What there is something of, between what stands before and behind it.
fn said(clauses: [(Vec<String>, [String; 2]); 3]) -> Vec<String> {
    let some = clauses.into_iter().filter(|(of, _)| !of.is_empty());
    some.map(|(of, [before, behind])| format!("{before}{}{behind}", listed(&of))).collect()
}

/// `15.1 % less than bypass (14.0 to 16.2)`.
fn changed(scale: Scale, change: Estimate, what: &str, against: &str, than: &str) -> String {
    let word = if change.value < 0.0 { "less" } else { "more" };
    let (by, range) = (sized(scale, change), size(scale, change));
    format!("{by} {word}{what} {than} {against} ({range})")
}

fn no_larger(bound: &str, against: &str) -> String {
    format!("no difference larger than {bound} from {against}")
}

/// `−1.2 to +0.4 %`.
fn unclear_range(scale: Scale, of: Estimate) -> String {
    match ends(of) {
        Some(_) => format!("{}\u{a0}{}", signed_interval(scale, of), scale.unit()),
        None => "no interval".into(),
    }
}

fn sized(scale: Scale, of: Estimate) -> String {
    scale.with_unit(of.value.abs())
}

/// The interval of a change's size.
fn size(scale: Scale, of: Estimate) -> String {
    if of.value < 0.0 {
        let turned = Estimate { value: -of.value, low: -of.high, high: -of.low, ..of };
        return interval(scale, turned);
    }
    interval(scale, of)
}
