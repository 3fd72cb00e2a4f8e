//! Says how a load released its requests.

use crate::analysis::findings::{
    Capacity, Findings, LoadFindings, PlannedRate, PlannedUsers, Release, SliceLength,
};

/// `open loop, 560/s (50 % of the capacity of istio, 1120/s), constant arrivals, slices of 0.25 s`.
pub(super) fn describe(findings: &Findings, load: &LoadFindings) -> String {
    let length = match load.slice {
        SliceLength::Seconds(seconds) => format!("slices of {seconds:.2} s"),
        SliceLength::Requests(count) => format!("slices of {count} requests"),
    };
    match load.release {
        Release::Closed { connections } => {
            format!("closed loop, {connections} connections, as fast as each goes, {length}")
        }
        Release::Users(users) => users_in_words(findings, &users),
        Release::Open { rate, poisson, .. } => {
            let law = if poisson { "Poisson" } else { "constant" };
            format!("open loop, {}, {law} arrivals, {length}", rate_in_words(findings, load, rate))
        }
    }
}

/// What relative rates refer to.
fn lowest(findings: &Findings) -> Option<&Capacity> {
    findings.capacities.iter().min_by(|a, b| a.per_s.total_cmp(&b.per_s))
}

/// `84 of 320 virtual users (...): 4 requests at once, then 1 s of pause; up in 1 s, all for 4 s, down in 0.5 s`.
fn users_in_words(findings: &Findings, users: &PlannedUsers) -> String {
    let PlannedUsers { ramp_s, hold_s, ramp_down_s, think_s, parallel, .. } = users;
    let requests = if *parallel == 1 { "request" } else { "requests at once" };
    format!(
        "{}: {parallel} {requests}, then {think_s} s of pause; up in {ramp_s} s, all for {hold_s} s, down in {ramp_down_s} s",
        how_many(findings, users)
    )
}

fn how_many(findings: &Findings, users: &PlannedUsers) -> String {
    let all = users.users;
    let Some(made_for) = users.made_for_per_s else { return format!("{all} virtual users") };
    let scaled = |lowest: &Capacity| {
        let Capacity { variant, per_s } = lowest;
        let here = users.scaled(Some(*per_s))?;
        Some(format!(
            "{here} of {all} virtual users (the capacity of {variant} is {per_s:.0}/s here, {made_for:.0}/s where there were {all})"
        ))
    };
    let up_to = || format!("up to {all} virtual users, by a capacity not yet known");
    lowest(findings).and_then(scaled).unwrap_or_else(up_to)
}

fn rate_in_words(findings: &Findings, load: &LoadFindings, rate: PlannedRate) -> String {
    match (rate, lowest(findings)) {
        (PlannedRate::PerSecond(rate), _) => format!("{rate}/s"),
        (PlannedRate::OfCapacity(share), None) => {
            format!("{:.0} % of a capacity not yet known", share * 100.0)
        }
        (PlannedRate::OfCapacity(share), Some(Capacity { variant, per_s })) => format!(
            "{:.0}/s ({:.0} % of the capacity of {variant}, {per_s:.0}/s)",
            load.rate_per_s.unwrap_or_default(),
            share * 100.0
        ),
    }
}
