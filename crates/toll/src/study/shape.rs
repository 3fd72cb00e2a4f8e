//! Holds a file's tree against the schema: finds every fault, and mends a copy to the types' shape.
//!
//! A wrong value is reported, then replaced by an example of the right shape, so that the checks of
//! the sense can run in the same round. The replaced places are named: what the checks say about
//! them is not the user's doing. Knows nothing of what the keys mean.

use serde_json::{Map, Number, Value, json};

use super::command_line::CommandLine;
use super::environment::first_variable;
use super::fault::{Fault, Problem, Span, nearest};
use super::quantity::{self, Binary, Name};
use super::retired::retired;
use super::schema::{Keys, Shape, Tagged, example_of};
use super::tree::{Content, Entry, Node, Pointer, as_yaml};

/// A file's tree, mended.
pub(super) struct Mended {
    /// A value of the schema's shape.
    pub value: Value,
    /// Places with a stand-in instead of what the file says.
    pub stand_ins: Vec<Pointer>,
}

/// Holds the tree against the schema.
pub(super) fn check(root: &Node, schema: &Value, faults: &mut Vec<Fault>) -> Mended {
    let mut walk = Walk { faults, stand_ins: Vec::new() };
    let value = walk.value(&Spot { node: root, schema, at: Pointer::to(&[]) });
    Mended { value, stand_ins: walk.stand_ins }
}

struct Walk<'f> {
    faults: &'f mut Vec<Fault>,
    stand_ins: Vec<Pointer>,
}

/// Where the walk is.
struct Spot<'a> {
    /// The file's value.
    node: &'a Node,
    /// What it should be.
    schema: &'a Value,
    /// The way to it.
    at: Pointer,
}

impl Walk<'_> {
    fn value(&mut self, spot: &Spot) -> Value {
        match (Shape::of(spot.schema), &spot.node.content) {
            (Shape::Keys(keys), Content::Mapping(entries)) => self.keys(spot, entries, &keys),
            (Shape::Tagged(tagged), Content::Mapping(entries)) => {
                self.tagged(spot, entries, &tagged)
            }
            (Shape::Names(values), Content::Mapping(entries)) => self.names(spot, entries, values),
            (Shape::Foreign(values), Content::Mapping(entries)) => {
                self.foreign(spot, entries, values)
            }
            (Shape::List(items), Content::List(nodes)) => self.list(spot, nodes, items),
            (Shape::List(_) | Shape::Names(_), Content::Scalar(Value::String(text)))
                if allows("string", spot.schema) =>
            {
                let problem = text_problem(text, spot.schema);
                self.sound_or_stand_in(spot, text.as_str().into(), problem)
            }
            (Shape::Choice(words), Content::Scalar(Value::String(word))) => {
                self.sound_or_stand_in(spot, word.as_str().into(), bad_choice(word, &words))
            }
            (Shape::WordOrKeys(_, keys), Content::Mapping(entries)) => {
                self.keys(spot, entries, &keys)
            }
            (Shape::WordOrKeys(mut words, keys), Content::Scalar(Value::String(word))) => {
                let known = words.contains(&word.as_str());
                let others = keys.known.iter().map(|(key, _)| *key);
                let others: Vec<&str> = others.filter(|key| !words.contains(key)).collect();
                words.extend(others);
                let problem = bad_choice(word, &words).or(needs_keys(spot, known));
                let value = match keys.get(word) {
                    Some(_) => json!({word: {}}),
                    None => word.as_str().into(),
                };
                self.sound_or_stand_in(spot, value, problem)
            }
            (Shape::Scalar, Content::Scalar(value)) => {
                self.sound_or_stand_in(spot, value.clone(), scalar_problem(value, spot.schema))
            }
            _ => self.stand_in(spot, wrong_type(spot)),
        }
    }

    fn keys(&mut self, spot: &Spot, entries: &[Entry], keys: &Keys) -> Value {
        let mut mended = Map::new();
        for entry in entries {
            match keys.get(&entry.key) {
                Some(schema) => {
                    let value = self.value(&spot.child(&entry.key, &entry.node, schema));
                    mended.insert(entry.key.clone(), value);
                }
                None => {
                    self.fault(unknown_key(spot, &entry.key, keys), entry.key_span.clone());
                    self.note_slip(spot, &entry.key, entries, keys);
                }
            }
        }
        self.remove_surplus(spot, keys, &mut mended);
        self.fill_gaps(spot, entries, keys, &mut mended);
        Value::Object(mended)
    }

    /// The key that was meant is not there: what follows from that is no news.
    fn note_slip(&mut self, spot: &Spot, unknown: &str, entries: &[Entry], keys: &Keys) {
        let names = keys.names();
        let meant = meant(unknown, &names);
        let absent = meant.filter(|key| entries.iter().all(|entry| entry.key != **key));
        self.stand_ins.extend(absent.map(|key| spot.at.child(key)));
    }

    /// Of keys that exclude each other, the first one stays.
    fn remove_surplus(&mut self, spot: &Spot, keys: &Keys, mended: &mut Map<String, Value>) {
        for group in &keys.groups {
            let present: Vec<_> =
                group.keys.iter().filter(|key| mended.contains_key(**key)).collect();
            if let [_, surplus @ ..] = present.as_slice()
                && !surplus.is_empty()
            {
                let keys = present.iter().map(ToString::to_string).collect();
                self.fault(Problem::MoreThanOneOf { keys }, spot.node.span.clone());
                mended.retain(|key, _| !surplus.iter().any(|extra| **extra == key));
                self.stand_ins.extend(surplus.iter().map(|key| spot.at.child(key)));
            }
        }
    }

    /// Examples take the place of keys that should be there.
    fn fill_gaps(
        &mut self,
        spot: &Spot,
        entries: &[Entry],
        keys: &Keys,
        mended: &mut Map<String, Value>,
    ) {
        let single = keys.required.iter().map(std::slice::from_ref);
        let groups = keys.groups.iter().filter(|group| group.required);
        for gap in single.chain(groups.map(|group| group.keys.as_slice())) {
            if gap.iter().any(|key| mended.contains_key(*key)) {
                continue;
            }
            let (key, example) = (gap[0], keys.get(gap[0]).map_or(Value::Null, example_of));
            if !is_misspelt(gap, entries, keys) {
                self.fault(missing(gap, &example), spot.node.span.clone());
            }
            self.stand_ins.push(spot.at.child(key));
            mended.insert(key.into(), example);
        }
    }

    fn tagged(&mut self, spot: &Spot, entries: &[Entry], tagged: &Tagged) -> Value {
        let Some(entry) = entries.iter().find(|entry| entry.key == tagged.tag) else {
            let example = tagged.branches.first().map_or("", |(name, _)| name).into();
            return self.stand_in(spot, missing(&[tagged.tag], &example));
        };
        let word = match &entry.node.content {
            Content::Scalar(Value::String(word)) => word.as_str(),
            _ => "",
        };
        match tagged.branches.iter().find(|(name, _)| *name == word) {
            Some((_, keys)) => self.keys(spot, entries, keys),
            None => {
                let problem = Problem::BadChoice { value: word.into(), allowed: tagged.names() };
                self.fault(problem, entry.node.span.clone());
                self.replace(spot)
            }
        }
    }

    fn names(&mut self, spot: &Spot, entries: &[Entry], values: &Value) -> Value {
        if entries.is_empty() && spot.schema.get("minProperties").is_some() {
            return self.stand_in(spot, Problem::Empty);
        }
        let mut mended = Map::new();
        for entry in entries {
            let value = self.value(&spot.child(&entry.key, &entry.node, values));
            if entry.key.parse::<Name>().is_ok() {
                mended.insert(entry.key.clone(), value);
            } else {
                self.fault(not_a_name(&entry.key), entry.key_span.clone());
                self.stand_ins.push(spot.at.clone());
            }
        }
        Value::Object(mended)
    }

    fn foreign(&mut self, spot: &Spot, entries: &[Entry], values: &Value) -> Value {
        let value = |entry: &Entry| {
            let value = self.value(&spot.child(&entry.key, &entry.node, values));
            (entry.key.clone(), value)
        };
        Value::Object(entries.iter().map(value).collect())
    }

    fn list(&mut self, spot: &Spot, nodes: &[Node], items: &Value) -> Value {
        if nodes.is_empty() && spot.schema.get("minItems").is_some() {
            return self.stand_in(spot, Problem::Empty);
        }
        let numbered = nodes.iter().enumerate();
        numbered.map(|(number, item)| self.value(&spot.child(number, item, items))).collect()
    }

    fn sound_or_stand_in(&mut self, spot: &Spot, value: Value, problem: Option<Problem>) -> Value {
        match problem {
            None => value,
            Some(problem) => self.stand_in(spot, problem),
        }
    }

    /// Reports the problem and gives an example of what should be there.
    fn stand_in(&mut self, spot: &Spot, problem: Problem) -> Value {
        self.fault(problem, spot.node.span.clone());
        self.replace(spot)
    }

    fn replace(&mut self, spot: &Spot) -> Value {
        self.stand_ins.push(spot.at.clone());
        example_of(spot.schema)
    }

    fn fault(&mut self, problem: Problem, at: Span) {
        self.faults.push(Fault::new(problem, at));
    }
}

impl<'a> Spot<'a> {
    fn child(&self, step: impl ToString, node: &'a Node, schema: &'a Value) -> Self {
        Self { node, schema, at: self.at.child(step) }
    }
}

/// Whether an unknown key was meant to be one of these: that they are missing would be said twice.
fn is_misspelt(gap: &[&str], entries: &[Entry], keys: &Keys) -> bool {
    let names = keys.names();
    let unknown = entries.iter().filter(|entry| keys.get(&entry.key).is_none());
    unknown.filter_map(|entry| meant(&entry.key, &names)).any(|key| gap.contains(&key))
}

/// The key that an unknown one stands for.
fn meant<'k>(unknown: &str, names: &'k [String]) -> Option<&'k str> {
    let successor = retired(unknown).and_then(|retired| retired.key);
    let successor = names.iter().find(|name| successor == Some(name.as_str()));
    successor.map(String::as_str).or_else(|| nearest(unknown, names))
}

fn missing(gap: &[&str], example: &Value) -> Problem {
    match gap {
        [key] => Problem::MissingKey { key: (*key).into(), example: as_yaml(example) },
        keys => Problem::MissingOneOf { keys: keys.iter().map(ToString::to_string).collect() },
    }
}

fn unknown_key(spot: &Spot, key: &str, keys: &Keys) -> Problem {
    let unknown = || {
        let (key, allowed) = (key.to_owned(), keys.names());
        let Some(program) = spot.at.step_below("program") else {
            return Problem::UnknownKey { key, allowed };
        };
        let part = keys.tag().map(|(tag, word)| format!(" with `{tag}: {word}`"));
        let program = format!("`{program}`{}", part.unwrap_or_default());
        Problem::UnknownKeyOfProgram { program, key, allowed }
    };
    of_older_files(key).unwrap_or_else(unknown)
}

fn of_older_files(written: &str) -> Option<Problem> {
    let instead = retired(written)?.instead;
    Some(Problem::Retired { written: written.into(), instead })
}

fn bad_choice(word: &str, words: &[&str]) -> Option<Problem> {
    let allowed = || words.iter().map(ToString::to_string).collect();
    let problem = || Problem::BadChoice { value: word.into(), allowed: allowed() };
    (!words.contains(&word)).then(problem)
}

/// A key that stands alone, without what belongs below it.
fn needs_keys(spot: &Spot, is_word: bool) -> Option<Problem> {
    (!is_word).then(|| wrong_type(spot))
}

fn not_a_name(text: &str) -> Problem {
    Problem::Unreadable {
        text: text.into(),
        wanted: "a name (small letters, digits, dashes)".into(),
        examples: vec!["client".into(), "same-rate".into()],
    }
}

fn wrong_type(spot: &Spot) -> Problem {
    let found = match &spot.node.content {
        Content::Scalar(value) => kind_of(value),
        Content::List(_) => "a list",
        Content::Mapping(_) => "a mapping",
    };
    Problem::WrongType { wanted: wanted(spot.schema), found, examples: examples(spot.schema) }
}

/// What could stand there, as YAML; never empty.
fn examples(schema: &Value) -> Vec<String> {
    match schema["examples"].as_array() {
        Some(examples) => examples.iter().map(as_yaml).collect(),
        None => vec![as_yaml(&example_of(schema))],
    }
}

/// What is wrong with a scalar, if anything is.
fn scalar_problem(value: &Value, schema: &Value) -> Option<Problem> {
    match value {
        Value::String(text) if allows("string", schema) => text_problem(text, schema),
        Value::Number(number) if allows("number", schema) => number_problem(number, schema),
        Value::Number(number) if allows("integer", schema) && number.is_i64() => {
            number_problem(number, schema)
        }
        Value::Bool(_) if allows("boolean", schema) => None,
        _ => {
            let any_text = allows("string", schema) && schema.get("format").is_none();
            let quoted = || vec![format!("\"{value}\"")];
            let examples = if any_text && !value.is_null() { quoted() } else { examples(schema) };
            Some(Problem::WrongType { wanted: wanted(schema), found: kind_of(value), examples })
        }
    }
}

fn allows(kind: &str, schema: &Value) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|allowed| allowed == kind),
        only => only == kind,
    }
}

fn text_problem(text: &str, schema: &Value) -> Option<Problem> {
    let format = schema["format"].as_str().unwrap_or_default();
    if let Some(variable) = first_variable(text).filter(|_| format != Binary::FORMAT) {
        return Some(Problem::VariableNotSet { variable: variable.into() });
    }
    if format == CommandLine::FORMAT {
        let problem = CommandLine::split(text).err();
        return problem.map(|why| Problem::NoCommandLine { why, text: text.into() });
    }
    let least = schema["minLength"].as_u64().unwrap_or(0);
    let fits = quantity::fits(format, text) && text.len() as u64 >= least;
    let unreadable = || Problem::Unreadable {
        text: text.into(),
        wanted: wanted(schema),
        examples: examples(schema),
    };
    (!fits).then(|| of_older_files(text).unwrap_or_else(unreadable))
}

fn number_problem(number: &Number, schema: &Value) -> Option<Problem> {
    let value = number.as_f64()?;
    let limits = ["minimum", "exclusiveMinimum", "maximum"].map(|key| schema[key].as_f64());
    let inside = limits[0].is_none_or(|least| value >= least)
        && limits[1].is_none_or(|below| value > below)
        && limits[2].is_none_or(|most| value <= most);
    let range = || match limits {
        [Some(least), _, Some(most)] => format!("{least} to {most}"),
        [Some(least), _, None] => format!("{least} or more"),
        [None, below, _] => format!("above {}", below.unwrap_or(0.0)),
    };
    (!inside).then(|| Problem::OutOfRange { number: number.to_string(), range: range() })
}

/// What the schema wants, with its article.
fn wanted(schema: &Value) -> String {
    let kind = match (Shape::of(schema), schema["title"].as_str(), schema["type"].as_str()) {
        (Shape::Keys(_) | Shape::Tagged(_) | Shape::Names(_) | Shape::Foreign(_), ..) => {
            "a mapping"
        }
        (Shape::List(_), ..) if allows("string", schema) => "text or a list",
        (Shape::List(_), ..) => "a list",
        (Shape::Choice(_), ..) => "a word",
        (Shape::WordOrKeys(..), ..) => "a word or a mapping",
        (Shape::Scalar, Some(title), _) => return with_article(title),
        (Shape::Scalar, None, Some("integer")) => "a whole number",
        (Shape::Scalar, None, Some("number")) => "a number",
        (Shape::Scalar, None, Some("boolean")) => "`true` or `false`",
        (Shape::Scalar, None, _) => "text",
    };
    kind.into()
}

fn with_article(title: &str) -> String {
    let article = if title.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {title}")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(number) if number.is_i64() => "a whole number",
        Value::Number(_) => "a fraction",
        _ => "text",
    }
}
