//! What older study files had and this one has not: each is answered with what took its place.

use std::mem;

use serde_json::Value;

use super::fault::{Fault, Problem};
use super::tree::{Content, Entry, Node, Span, as_yaml};

/// A key or a word of older study files.
pub(super) struct Retired {
    /// As it was written.
    pub word: &'static str,
    /// The key that took its place, if one did.
    pub key: Option<&'static str>,
    /// What to do about it.
    pub instead: &'static str,
}

/// All of them.
pub(super) const RETIRED: [Retired; 6] = [
    Retired {
        word: "blocks",
        key: Some("rounds"),
        instead: "rounds took their place, and each starts every variant anew: write `rounds: 8`",
    },
    Retired {
        word: "bring_up",
        key: None,
        instead: "all variants stand side by side in each round: remove it",
    },
    Retired {
        word: "warm_up",
        key: None,
        instead: "every slice begins with a guard that is not counted, and services settle before the first: remove it",
    },
    Retired {
        word: "duration",
        key: Some("slice"),
        instead: "a load is measured in many short slices: write `slice: 400ms`, and `rounds`, `cycles` or `for: 5m` say how long in all",
    },
    Retired {
        word: "rehearse",
        key: None,
        instead: "services settle under all that the loads ask: remove it",
    },
    Retired {
        word: "knee",
        key: Some("capacity"),
        instead: "rates refer to the capacity, what the slowest variant carries flat out: write `rate: 50% of capacity`, or `scale: {capacity: 1526/s}`",
    },
];

/// What became of a key, or of a text that ends with one of the words.
pub(super) fn retired(written: &str) -> Option<&'static Retired> {
    RETIRED.iter().find(|retired| written.split_whitespace().last() == Some(retired.word))
}

/// Keys that stood beside the port of a service.
pub(super) const OF_PROGRAMS: [&str; 12] = [
    "command",
    "nginx",
    "petclinic",
    "airline",
    "runtime",
    "work",
    "reply",
    "postgres",
    "stall",
    "database",
    "connections",
    "heap_mib",
];

/// Moves what a service of an older file says of its program into `program`: one fault for each such service, which
/// shows the new shape with the values of the file. All later checks are of the new shape.
pub(super) fn move_programs(root: &mut Node, faults: &mut Vec<Fault>) {
    let services = root.get_mut("app").and_then(|app| app.get_mut("services"));
    for service in services.into_iter().flat_map(Node::entries_mut) {
        let Content::Mapping(entries) = &mut service.node.content else { continue };
        let is_old = |entry: &Entry| OF_PROGRAMS.contains(&entry.key.as_str());
        let (old, mut kept): (Vec<_>, Vec<_>) = mem::take(entries).into_iter().partition(is_old);
        if let Some(first) = old.first() {
            let at = first.key_span.clone();
            let keys = old.iter().map(|entry| entry.key.clone()).collect();
            let given = kept.iter().position(|entry| entry.key == "program");
            let given = given.map(|number| kept.remove(number).node.content);
            let program = program(given, old, &at);
            let problem = Problem::BesideProgram { keys, program: as_yaml(&program.plain()) };
            faults.push(Fault::new(problem, at.clone()));
            kept.push(Entry { key: "program".into(), key_span: at, node: program });
        }
        *entries = kept;
    }
}

/// The program that is given or that the first of the old keys names, with all old keys in it.
fn program(given: Option<Content>, mut old: Vec<Entry>, at: &Span) -> Node {
    let mapping = |entries| Node { content: Content::Mapping(entries), span: at.clone() };
    let entry = |key: &str, node| Entry { key: key.into(), key_span: at.clone(), node };
    let named = old.iter().position(|entry| OF_PROGRAMS[..4].contains(&entry.key.as_str()));
    let mut program = match (given, named) {
        (Some(Content::Scalar(Value::String(name))), _) => entry(&name, mapping(vec![])),
        (Some(Content::Mapping(mut given)), _) if !given.is_empty() => given.swap_remove(0),
        (_, None) => entry("built_in", mapping(vec![])),
        (_, Some(number)) => {
            let named = old.remove(number);
            let has_parts = ["petclinic", "airline"].contains(&named.key.as_str());
            let part = |node| mapping(vec![entry("part", node)]);
            entry(&named.key, if has_parts { part(named.node) } else { named.node })
        }
    };
    if let Content::Mapping(keys) = &mut program.node.content {
        keys.extend(old);
    }
    mapping(vec![program])
}
