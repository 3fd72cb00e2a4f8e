//! What a database must show whose rows the study counts.

use crate::claim::{Claim, Topic};
use crate::programs::rows::{doubled_claim, range_claim, written};
use crate::proof::bounds::Bounds;
use crate::proof::expected::Expected;
use crate::proof::window::Window;

/// Of its rows, against what the load sent and got acknowledged.
pub(crate) fn row_claims(seen: &Window<'_>, name: &str) -> Vec<Claim> {
    let [all, different] = written(seen, name);
    let claim = format!("{name}: no row was written twice");
    vec![rows_claim(seen, name, all), doubled_claim(claim, all, different)]
}

fn rows_claim(seen: &Window<'_>, name: &str, rows: Option<u64>) -> Claim {
    // Each write makes as many rows as it leads to queries of those that write.
    let once = Expected::of_requests(seen.deployment, 1);
    let writers = seen.deployment.callers_of(name).filter(|caller| caller.program.writes());
    let each: u64 = writers.map(|caller| once.calls(caller, name).least).sum();
    let (least, most) = (seen.traffic.acknowledged * each, seen.traffic.writes * each);
    let claim = format!("{name}: every acknowledged write is there, and nothing that was not sent");
    range_claim(claim, Bounds { least, most }, rows).about(Topic::Acknowledged)
}
