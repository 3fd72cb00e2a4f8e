//! Who pays for what a variant changed in CPU per request (METHOD.md rule 6), within rounds.
//!
//! A component that one arm lacks costs nothing there. The application's own extra (its second TLS, its longer
//! queues) is so kept apart from what the proxies use.

use super::accounts::Owner;
use super::effects::{self, Paired};
use super::findings::{AttributedCost, Attribution, Estimate};
use super::summary::Arms;
use super::tally::Tally;

/// Who pays, in the order in which a request meets them; then what is not counted in CPU per request.
const PAYERS: [&str; 8] = [
    "gateway",
    "application",
    "sidecar",
    "egress_gateway",
    "sni_proxy",
    "node_proxy",
    "waypoint",
    "database",
];
const UNATTRIBUTED: &str = "unattributed";
/// What is toll's own has no share in what a variant changed.
const INSTRUMENT: [&str; 3] = ["collector", "load_generator", "harness"];

/// One per variant but the baseline, which is the first of `arms`, when both have tallies in one round. Of the
/// baseline it is the mean of its arms.
pub fn attribution(arms: &[Arms<'_>]) -> Vec<Attribution> {
    let Some(((_, baseline), others)) = arms.split_first() else { return vec![] };
    others.iter().filter_map(|(name, tallies)| of_variant(name, baseline, tallies)).collect()
}

fn of_variant(name: &str, baseline: &[&Tally<'_>], variant: &[&Tally<'_>]) -> Option<Attribution> {
    let pair = Pair { baseline, variant };
    let counted = pair.line("CPU per request", "counted", Owner::is_measured);
    let whole = pair.line("with what no component owns", "whole", |owner| {
        owner.is_measured() || *owner == Owner::Unattributed
    });
    let mut attribution = Attribution {
        variant: name.into(),
        parts: pair.owners().iter().filter_map(|owner| pair.part(owner)).collect(),
        subtotals: PAYERS.iter().filter_map(|role| pair.subtotal(role)).collect(),
        counted,
        whole,
    };
    share_out(&mut attribution);
    (!attribution.parts.is_empty()).then_some(attribution)
}

/// Two arms under one load.
struct Pair<'a> {
    baseline: &'a [&'a Tally<'a>],
    variant: &'a [&'a Tally<'a>],
}

impl Pair<'_> {
    /// Owners of either arm by role, within a role in the order of the samples.
    fn owners(&self) -> Vec<Owner> {
        let mut owners: Vec<Owner> = Vec::new();
        let tallies = self.baseline.iter().chain(self.variant);
        for (owner, _) in tallies.flat_map(|tally| &tally.sums.cpu.by_owner) {
            if !owners.contains(owner) {
                owners.push(owner.clone());
            }
        }
        let roles: Vec<&str> = PAYERS.into_iter().chain([UNATTRIBUTED]).chain(INSTRUMENT).collect();
        owners.sort_by_key(|owner| roles.iter().position(|role| *role == owner.role()));
        owners
    }

    fn part(&self, owner: &Owner) -> Option<AttributedCost> {
        self.line(&owner.label(), owner.role(), |one| one == owner)
    }

    fn subtotal(&self, role: &str) -> Option<AttributedCost> {
        let several = self.owners().iter().filter(|owner| owner.role() == role).count() > 1;
        several.then(|| self.line(role, role, |owner| owner.role() == role)).flatten()
    }

    fn line(
        &self,
        component: &str,
        role: &str,
        wanted: impl Fn(&Owner) -> bool,
    ) -> Option<AttributedCost> {
        let observe = |t: &Tally<'_>| effects::cpu_per_request(t, &wanted);
        let paired = Paired::observing(self.baseline, self.variant, observe);
        let (baseline, value) = paired.means()?;
        Some(AttributedCost {
            component: component.into(),
            role: role.into(),
            baseline: has(self.baseline, &wanted).then_some(baseline),
            value: has(self.variant, &wanted).then_some(value),
            change: paired.difference_estimate()?,
            share: None,
        })
    }
}

/// Whether any tally has such an owner.
fn has(tallies: &[&Tally<'_>], wanted: impl Fn(&Owner) -> bool) -> bool {
    tallies.iter().any(|tally| tally.sums.cpu.has(&wanted))
}

/// Gives each line its share of the whole change, when there is one beyond doubt.
fn share_out(attribution: &mut Attribution) {
    let is_clear = |e: &Estimate| e.rounds > 1 && (e.low > 0.0 || e.high < 0.0);
    let whole = attribution.whole.as_ref().map(|line| line.change).filter(is_clear);
    let Some(whole) = whole else { return };
    let sums = attribution.counted.iter_mut().chain(&mut attribution.whole);
    let lines = attribution.parts.iter_mut().chain(&mut attribution.subtotals).chain(sums);
    for line in lines.filter(|line| !INSTRUMENT.contains(&line.role.as_str())) {
        line.share = Some(line.change.value / whole.value);
    }
}
