//! What the bridges of the nodes must have carried: the only witnesses that no proxy and no program can talk over.

use super::window::Window;
use crate::Reading;
use crate::claim::{Claim, LeftOut, Topic};
use crate::evidence::{PathSnapshot, Wire};

/// A count of packets by node; none where it was not read at both ends.
type Packets<'a> = Vec<(&'a str, Option<u64>)>;

/// That nothing but HBONE went from pod to pod in the window.
pub(crate) fn hbone_alone(seen: &Window<'_>) -> Claim {
    let other = growths(seen, |wire| wire.other_packets);
    Claim {
        topic: Topic::Crossings,
        claim: "no plaintext left a pod: no TCP but HBONE crossed a node's wire".to_owned(),
        expected: "0 other packets".to_owned(),
        seen: on_each_node(seen, &other),
        holds: !other.is_empty() && other.iter().all(|(_, packets)| *packets == Some(0)),
    }
}

/// That HBONE went from pod to pod in the window: without it, [`hbone_alone`] holds of counters that count nothing.
pub(crate) fn hbone_crossed(seen: &Window<'_>) -> Claim {
    let hbone = growths(seen, |wire| wire.hbone_packets);
    let total: Option<u64> = hbone.iter().map(|(_, packets)| *packets).sum();
    Claim {
        topic: Topic::Crossings,
        claim: "HBONE crossed a node's wire".to_owned(),
        expected: "at least 1 packet".to_owned(),
        seen: on_each_node(seen, &hbone),
        holds: total.is_some_and(|packets| packets > 0),
    }
}

/// That no HBONE went from pod to pod since the wires were made, or why that is left out; nothing where pods share
/// the machine's network.
pub(crate) fn no_hbone(seen: &Window<'_>) -> (Option<Claim>, Vec<LeftOut>) {
    if let Some(why) = unread(seen.after) {
        return (None, vec![LeftOut::NoHbone { why: why.to_owned() }]);
    }
    let carried: Packets<'_> = wires(seen.after)
        .iter()
        .map(|wire| (wire.node.as_str(), Some(wire.hbone_packets)))
        .collect();
    let claim = (!carried.is_empty()).then(|| Claim {
        topic: Topic::Crossings,
        claim: "no HBONE crossed a node's wire".to_owned(),
        expected: "0 packets".to_owned(),
        seen: on_each_node(seen, &carried),
        holds: carried.iter().all(|(_, packets)| *packets == Some(0)),
    });
    (claim, Vec::new())
}

/// By how much each node's count rose.
fn growths<'a>(seen: &Window<'a>, pick: fn(&Wire) -> u64) -> Packets<'a> {
    let growth = |after: &'a Wire| {
        let before = wires(seen.before).iter().find(|before| before.node == after.node);
        let rose = before.and_then(|before| pick(after).checked_sub(pick(before)));
        (after.node.as_str(), rose)
    };
    wires(seen.after).iter().map(growth).collect()
}

fn wires(snapshot: &PathSnapshot) -> &[Wire] {
    match &snapshot.wire {
        Reading::Value(wires) => wires,
        Reading::Missing(_) => &[],
    }
}

fn unread(snapshot: &PathSnapshot) -> Option<&str> {
    match &snapshot.wire {
        Reading::Value(_) => None,
        Reading::Missing(why) => Some(why),
    }
}

/// For instance `node-1 12, node-2 0`.
fn on_each_node(seen: &Window<'_>, counts: &[(&str, Option<u64>)]) -> String {
    if counts.is_empty() {
        return unread(seen.after).map_or("no wire".to_owned(), |why| format!("not read: {why}"));
    }
    let text = |(node, count): &(&str, Option<u64>)| match count {
        Some(count) => format!("{node} {count}"),
        None => format!("{node} not read"),
    };
    counts.iter().map(text).collect::<Vec<_>>().join(", ")
}
