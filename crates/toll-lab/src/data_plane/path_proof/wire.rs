//! What the bridges of the nodes must have carried: the only witnesses that no proxy and no program can talk over.

use super::{Window, Wire};
use crate::proof::Claim;

/// That nothing but HBONE went from pod to pod in the window, and that HBONE did.
pub(super) fn hbone_alone(seen: &Window<'_>) -> Vec<Claim> {
    let other = growths(seen, |wire| wire.other_packets);
    let hbone = growths(seen, |wire| wire.hbone_packets);
    let total: Option<u64> = hbone.iter().map(|(_, packets)| *packets).sum();
    vec![
        Claim {
            claim: "no plaintext left a pod: no TCP but HBONE crossed a node's wire".to_owned(),
            expected: "0 other packets".to_owned(),
            seen: on_each_node(&other),
            holds: !other.is_empty() && other.iter().all(|(_, packets)| *packets == Some(0)),
        },
        // Without it, the claim above would hold of counters that count nothing.
        Claim {
            claim: "HBONE crossed a node's wire".to_owned(),
            expected: "at least 1 packet".to_owned(),
            seen: on_each_node(&hbone),
            holds: total.is_some_and(|packets| packets > 0),
        },
    ]
}

/// That no HBONE went from pod to pod since the wires were made; nothing where pods share the machine's network.
pub(super) fn no_hbone(seen: &Window<'_>) -> Option<Claim> {
    let carried = |wire: &Wire| (wire.node.clone(), Some(wire.hbone_packets));
    let carried: Vec<(String, Option<u64>)> = seen.after.wire.iter().map(carried).collect();
    (!carried.is_empty()).then(|| Claim {
        claim: "no HBONE crossed a node's wire".to_owned(),
        expected: "0 packets".to_owned(),
        seen: on_each_node(&carried),
        holds: carried.iter().all(|(_, packets)| *packets == Some(0)),
    })
}

/// By how much each node's count rose; none where a reading is missing.
fn growths(seen: &Window<'_>, pick: fn(&Wire) -> u64) -> Vec<(String, Option<u64>)> {
    let growth = |after: &Wire| {
        let before = seen.before.wire.iter().find(|before| before.node == after.node);
        let rose = before.and_then(|before| pick(after).checked_sub(pick(before)));
        (after.node.clone(), rose)
    };
    seen.after.wire.iter().map(growth).collect()
}

/// For instance `node-1 12, node-2 0`.
fn on_each_node(counts: &[(String, Option<u64>)]) -> String {
    let text = |(node, count): &(String, Option<u64>)| match count {
        Some(count) => format!("{node} {count}"),
        None => format!("{node} not read"),
    };
    let texts: Vec<String> = counts.iter().map(text).collect();
    if texts.is_empty() { "no wire was read".to_owned() } else { texts.join(", ") }
}
