//! What older study files had and this one has not: each is answered with what took its place.

use std::mem;

use serde_json::Value;

use super::fault::{Fault, Problem, Span};
use super::tree::{Content, Entry, Node, as_yaml};

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

/// A kind of thing that a program plays, and the keys that older files had beside its port.
pub(super) struct Played {
    section: &'static str,
    kind: &'static str,
    /// The keys; in a service the first four say which program it is.
    pub keys: &'static [&'static str],
    /// Takes from the old keys what the new program is, and with it those that have another place in it.
    program: fn(&mut Vec<Entry>, &Span) -> Entry,
}

/// All of them.
pub(super) const PLAYED: [Played; 2] = [
    Played {
        section: "services",
        kind: "service",
        keys: &[
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
        ],
        program: of_service,
    },
    Played {
        section: "databases",
        kind: "database",
        keys: &["seed", "written", "server", "external", "airline"],
        program: of_database,
    },
];

/// Moves what an older file says of programs into `program`: one fault for each service and each database, which shows
/// the new shape with the values of the file. All later checks are of the new shape.
pub(super) fn move_programs(root: &mut Node, faults: &mut Vec<Fault>) {
    for played in &PLAYED {
        let section = root.get_mut("app").and_then(|app| app.get_mut(played.section));
        for entry in section.into_iter().flat_map(Node::entries_mut) {
            if let Content::Mapping(entries) = &mut entry.node.content {
                faults.extend(move_program(played, entries));
            }
        }
    }
}

fn move_program(played: &Played, entries: &mut Vec<Entry>) -> Option<Fault> {
    let is_old = |entry: &mut Entry| played.keys.contains(&entry.key.as_str());
    let mut old: Vec<Entry> = entries.extract_if(.., is_old).collect();
    let at = old.first()?.key_span.clone();
    let keys = old.iter().map(|entry| entry.key.clone()).collect();
    let given = entries.iter().position(|entry| entry.key == "program");
    let mut program = match given.map(|number| entries.remove(number).node.content) {
        Some(Content::Scalar(Value::String(name))) => entry(&name, mapping(vec![], &at)),
        Some(Content::Mapping(mut given)) if !given.is_empty() => given.swap_remove(0),
        _ => (played.program)(&mut old, &at),
    };
    if let Content::Mapping(keys) = &mut program.node.content {
        keys.extend(old);
    }
    let program = mapping(vec![program], &at);
    let shown = as_yaml(&program.plain());
    entries.push(entry("program", program));
    Some(Fault::new(Problem::BesideProgram { kind: played.kind, keys, program: shown }, at))
}

fn of_service(old: &mut Vec<Entry>, at: &Span) -> Entry {
    let programs = &PLAYED[0].keys[..4];
    let Some(named) = old.iter().position(|entry| programs.contains(&entry.key.as_str())) else {
        return entry("built_in", mapping(vec![], at));
    };
    let Entry { key, node, .. } = old.remove(named);
    match key.as_str() {
        "petclinic" | "airline" => entry(&key, mapping(vec![entry("part", node)], at)),
        _ => entry(&key, node),
    }
}

/// What was below `external` and `airline` stands side by side; only the airline has a choice of servers.
fn of_database(old: &mut Vec<Entry>, at: &Span) -> Entry {
    let airline = old.iter().any(|entry| ["external", "airline"].contains(&entry.key.as_str()));
    let flat = |entry: Entry| match entry.node.content {
        Content::Mapping(keys) => keys,
        _ => vec![entry],
    };
    let keys = mem::take(old).into_iter().filter(|entry| airline || entry.key != "server");
    let keys = mapping(keys.flat_map(flat).collect(), at);
    entry(if airline { "airline" } else { "postgres" }, keys)
}

fn mapping(entries: Vec<Entry>, at: &Span) -> Node {
    Node { content: Content::Mapping(entries), span: at.clone() }
}

fn entry(key: &str, node: Node) -> Entry {
    Entry { key: key.into(), key_span: node.span.clone(), node }
}
