//! Who pays for what a variant changed in CPU per request (docs/method.md rule 6), within rounds.
//!
//! A component that one arm lacks costs nothing there. The application's own extra (its second TLS, its longer
//! queues) is so kept apart from what the proxies use.

use super::effects::{self, Paired};
use super::findings::{AttributedCost, Attribution, Estimate, Owner, Payer, Role};
use super::tally::{Arms, Tally};

/// One per variant but the baseline, which is the first of `arms`, when both have tallies in one round. Of the
/// baseline it is the mean of its arms.
pub fn attribution(arms: &[Arms<'_>]) -> Vec<Attribution> {
    let Some(((_, baseline), others)) = arms.split_first() else { return vec![] };
    others.iter().filter_map(|(name, tallies)| of_variant(name, baseline, tallies)).collect()
}

fn of_variant(name: &str, baseline: &[&Tally<'_>], variant: &[&Tally<'_>]) -> Option<Attribution> {
    let pair = Pair { baseline, variant };
    let owners = pair.owners();
    let of_owner = |owner: &Owner| pair.line(Payer::Owner(owner.clone()), |one| one == owner);
    let of_role = |role| pair.line(Payer::Role(role), |owner| owner.role == role);
    let alike = owners.chunk_by(|one, next| one.role == next.role);
    let several = alike.filter(|alike| alike.len() > 1 && alike[0].is_measured());
    let mut attribution = Attribution {
        variant: name.into(),
        parts: owners.iter().filter_map(of_owner).collect(),
        subtotals: several.filter_map(|alike| of_role(alike[0].role)).collect(),
        counted: pair.line(Payer::Counted, Owner::is_measured),
        whole: pair.line(Payer::Whole, |owner| !owner.role.is_instrument()),
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
                owners.push(Owner::clone(owner));
            }
        }
        owners.sort_by_key(|owner| owner.role);
        owners
    }

    fn line(&self, payer: Payer, wanted: impl Fn(&Owner) -> bool) -> Option<AttributedCost> {
        let observe = |t: &Tally<'_>| effects::cpu_per_request(t, &wanted);
        let paired = Paired::observing(self.baseline, self.variant, observe);
        let (baseline, value) = paired.means()?;
        Some(AttributedCost {
            payer,
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
    // What is toll's own has no share in what a variant changed.
    for line in lines.filter(|line| !line.payer.role().is_some_and(Role::is_instrument)) {
        line.share = Some(line.change.value / whole.value);
    }
}
