//! The answers of a staircase in sentences: what each case carries and what a request takes of the data plane's CPU,
//! against the baseline and against the case before it. Decides nothing.

use super::Stairs;
use super::words::{as_change, floor_aside, is_clear, microseconds, percents, several_clients};
use crate::analysis::findings::{Estimate, StaircaseDifference, Verdict};
use crate::report::content::in_first_order;
use crate::report::figures::{Scale, share};
use crate::report::sweep::listed;
use crate::report::wording::{blocks_aside, ends, interval, range};

/// What stands first of all that a report of a staircase says: one answer a case.
pub(in crate::report) fn answers(all: &[Stairs<'_>]) -> Vec<String> {
    all.iter().flat_map(of_stairs).collect()
}

fn of_stairs(stairs: &Stairs<'_>) -> Vec<String> {
    let differences = &stairs.of.differences;
    let cases = in_first_order(differences.iter().map(|d| d.variant.as_str()));
    if cases.is_empty() {
        let load = &stairs.of.load;
        return vec![format!("Nothing can be told: no two variants ran under {load}.")];
    }
    let of = |case: &str| -> Vec<&StaircaseDifference> {
        differences.iter().filter(|d| d.variant == case).collect()
    };
    // Said once: it holds for all of them.
    let places = std::iter::once(place(stairs)).chain(std::iter::repeat(String::new()));
    let answer = |(case, place): (&&str, String)| format!("{}.", answer(case, &of(case), &place));
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

/// `gateway-mtls carries 15.1 % less than bypass (14.0 to 16.2) and ...; a request takes 305 µs more ...`.
fn answer(case: &str, differences: &[&StaircaseDifference], place: &str) -> String {
    let carried = carried(case, differences, place);
    let cpu = cpu(differences).map_or_else(String::new, |said| format!("; {said}"));
    carried + &cpu
}

fn carried(case: &str, differences: &[&StaircaseDifference], place: &str) -> String {
    let told: Vec<String> = differences.iter().filter_map(|d| told(d)).collect();
    let unclear: Vec<String> = differences.iter().filter_map(|d| unclear(d)).collect();
    let unclear = listed(&unclear);
    match (told.is_empty(), unclear.is_empty()) {
        (true, _) => {
            format!("Whether {case} carries more or less than {unclear} cannot be told{place}")
        }
        (false, true) => format!("{case} carries {}{place}", listed(&told)),
        (false, false) => format!(
            "{case} carries {}{place}; whether more or less than {unclear} cannot be told",
            listed(&told)
        ),
    }
}

/// `15.1 % less than bypass (14.0 to 16.2)`; none of what cannot be told.
fn told(difference: &StaircaseDifference) -> Option<String> {
    let StaircaseDifference { against, verdict, .. } = difference;
    let change = as_change(difference.throughput_ratio);
    match verdict {
        Verdict::Difference => {
            let word = if change.value < 0.0 { "less" } else { "more" };
            Some(format!(
                "{} {word} than {against} ({})",
                sized(percents(), change),
                size(percents(), change)
            ))
        }
        Verdict::NoDifference { bound } => {
            Some(format!("as much as {against} within {}", share(*bound)))
        }
        Verdict::CannotTell { .. } => None,
    }
}

/// `sidecar (−1.2 to +0.4 %: the noise floor is 4.0 %; run 6 more blocks)`.
fn unclear(difference: &StaircaseDifference) -> Option<String> {
    let Verdict::CannotTell { floor, more_blocks } = difference.verdict else { return None };
    let change = as_change(difference.throughput_ratio);
    let range = match ends(change) {
        Some((low, high)) => {
            format!("{}\u{a0}%", range(&percents().signed(low), &percents().signed(high)))
        }
        None => "no interval".into(),
    };
    let (floor, more) = (floor_aside(floor), blocks_aside(more_blocks));
    Some(format!("{} ({range}{floor}{more})", difference.against))
}

/// `a request takes 305 µs more CPU in the data plane than with bypass (296 to 314) and ...`.
fn cpu(differences: &[&StaircaseDifference]) -> Option<String> {
    let all: Vec<(&str, Estimate)> =
        differences.iter().filter_map(|d| Some((d.against.as_str(), d.mesh_cpu_us?))).collect();
    let (clear, unclear): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, of)| is_clear(*of));
    let scale = microseconds(clear.iter().map(|(_, of)| of.value));
    let told = clear.iter().enumerate().map(|(i, (against, of))| {
        let word = if of.value < 0.0 { "less" } else { "more" };
        let what = if i == 0 { " CPU in the data plane" } else { "" };
        format!("{} {word}{what} than with {against} ({})", sized(scale, *of), size(scale, *of))
    });
    let told: Vec<String> = told.collect();
    let told = (!told.is_empty()).then(|| format!("a request takes {}", listed(&told)));
    let unclear: Vec<String> = unclear.iter().map(|(against, _)| (*against).to_owned()).collect();
    let unclear = (!unclear.is_empty()).then(|| {
        format!("what its data plane takes beyond that of {} cannot be told", listed(&unclear))
    });
    let said: Vec<String> = told.into_iter().chain(unclear).collect();
    (!said.is_empty()).then(|| said.join("; "))
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
