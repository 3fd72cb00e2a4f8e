//! The JSON schema of a study file, made from the types, and a reader's view of it.
//!
//! [`Shape`] sorts a schema into the few forms that our types produce; it is no general JSON Schema
//! engine. A general one would answer "valid under none of the given schemas" where a writer needs
//! to hear which key is wrong and which one was meant.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value};

use super::model::Study;

/// The JSON schema (draft 2020-12) of a study file, for editors.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.transforms.push(Box::new(NothingIsNotAValue));
    });
    settings.into_generator().into_root_schema_for::<Study>().to_value()
}

/// Takes `null` out of the schema: an optional key is left out, not left empty.
#[derive(Debug, Clone)]
struct NothingIsNotAValue;

impl Transform for NothingIsNotAValue {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        transform_subschemas(self, schema);
        let Some(schema) = schema.as_object_mut() else { return };
        if let Some(default) = schema.remove("default").and_then(without_nothing) {
            schema.insert("default".into(), default);
        }
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".into(), only);
            }
        }
        if let Some(inner) = only_alternative_to_null(schema) {
            schema.remove("anyOf");
            inner.into_iter().for_each(|(key, value)| {
                schema.entry(key).or_insert(value);
            });
        }
    }
}

/// The value without what is left out where it is written; none when nothing stays.
fn without_nothing(value: Value) -> Option<Value> {
    match value {
        Value::Object(entries) => {
            let written = entries.into_iter();
            let written = written.filter_map(|(key, value)| Some((key, without_nothing(value)?)));
            let written: Map<String, Value> = written.collect();
            (!written.is_empty()).then_some(Value::Object(written))
        }
        Value::Array(items) if items.is_empty() => None,
        Value::Null => None,
        other => Some(other),
    }
}

fn only_alternative_to_null(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    match schema.get("anyOf")?.as_array()?.as_slice() {
        [inner, null] if null["type"] == "null" => inner.as_object().cloned(),
        _ => None,
    }
}

/// What kind of value a schema describes.
pub(super) enum Shape<'s> {
    /// A mapping with keys that we chose.
    Keys(Keys<'s>),
    /// A mapping with keys that we chose, which depend on the value of one of them.
    Tagged(Tagged<'s>),
    /// A mapping with names that the user chose; the schema of its values.
    Names(&'s Value),
    /// A mapping whose keys are another program's; the schema of its values.
    Foreign(&'s Value),
    /// A list; the schema of its items.
    List(&'s Value),
    /// One of a few words.
    Choice(Vec<&'s str>),
    /// One of a few words, or a mapping with keys that we chose.
    WordOrKeys(Vec<&'s str>, Keys<'s>),
    /// Text or a number.
    Scalar,
}

/// The keys of a mapping.
#[derive(Default)]
pub(super) struct Keys<'s> {
    /// All keys and the schemas of their values, in the order of the types.
    pub known: Vec<(&'s str, &'s Value)>,
    /// The keys that must be there.
    pub required: Vec<&'s str>,
    /// Keys that exclude each other.
    pub groups: Vec<Group<'s>>,
}

/// Keys of which at most one may be there.
pub(super) struct Group<'s> {
    /// In the order of the types.
    pub keys: Vec<&'s str>,
    /// Whether one of them must be there.
    pub required: bool,
}

/// The keys of a mapping, by the value of one of them.
pub(super) struct Tagged<'s> {
    /// The key that decides.
    pub tag: &'s str,
    /// Its values, and the keys that go with each.
    pub branches: Vec<(&'s str, Keys<'s>)>,
}

impl<'s> Shape<'s> {
    /// The shape of the values that the schema describes.
    pub(super) fn of(schema: &'s Value) -> Self {
        if let Some(words) = words(schema) {
            Self::Choice(words)
        } else if let Some(words) = some_words(schema) {
            Self::WordOrKeys(words, Keys::of(schema))
        } else if let Some(tagged) = Tagged::of(schema) {
            Self::Tagged(tagged)
        } else if let Some(values) = schema.get("patternProperties") {
            Self::Names(first_value(values))
        } else if let Some(items) = schema.get("items") {
            Self::List(items)
        } else if let Some(values) = schema.get("additionalProperties").filter(|v| v.is_object()) {
            Self::Foreign(values)
        } else if schema["type"] == "object" || schema.get("oneOf").is_some() {
            Self::Keys(Keys::of(schema))
        } else {
            Self::Scalar
        }
    }
}

impl<'s> Keys<'s> {
    fn of(schema: &'s Value) -> Self {
        let mut keys = Self::default();
        keys.known.extend(entries(&schema["properties"]));
        keys.required.extend(list(&schema["required"]).iter().filter_map(Value::as_str));
        // One group stands in the schema itself, several stand side by side in `allOf`.
        let own = schema.get("oneOf").map(|_| schema);
        list(&schema["allOf"]).iter().chain(own).for_each(|group| keys.add_group(group, true));
        // One that may be left out stands beside a schema that accepts everything.
        list(&schema["anyOf"]).iter().for_each(|group| keys.add_group(group, false));
        keys
    }

    fn add_group(&mut self, group: &'s Value, required: bool) {
        let branches = list(&group["oneOf"]).iter();
        let group: Vec<_> = branches.flat_map(|branch| entries(&branch["properties"])).collect();
        if !group.is_empty() {
            self.groups.push(Group { keys: group.iter().map(|(key, _)| *key).collect(), required });
            self.known.extend(group);
        }
    }

    /// The key that decides which others there are, and its value.
    pub(super) fn tag(&self) -> Option<(&'s str, &'s str)> {
        self.known.iter().find_map(|(key, schema)| Some((*key, schema.get("const")?.as_str()?)))
    }

    /// The schema of the key's value.
    pub(super) fn get(&self, key: &str) -> Option<&'s Value> {
        self.known.iter().find(|(known, _)| *known == key).map(|(_, schema)| *schema)
    }

    /// All keys, as a message shows them.
    pub(super) fn names(&self) -> Vec<String> {
        self.known.iter().map(|(key, _)| (*key).to_owned()).collect()
    }
}

impl<'s> Tagged<'s> {
    fn of(schema: &'s Value) -> Option<Self> {
        let branches = schema.get("oneOf")?.as_array()?;
        let (tag, _) = Keys::of(branches.first()?).tag()?;
        let keys = branches.iter().map(Keys::of);
        let branches = keys.filter_map(|keys| Some((keys.tag()?.1, keys)));
        Some(Self { tag, branches: branches.collect() })
    }

    /// The values of the key that decides, as a message shows them.
    pub(super) fn names(&self) -> Vec<String> {
        self.branches.iter().map(|(name, _)| (*name).to_owned()).collect()
    }
}

/// The words of a choice: `oneOf` with nothing but constants.
fn words(schema: &Value) -> Option<Vec<&str>> {
    schema.get("oneOf")?.as_array()?.iter().map(|word| word.get("const")?.as_str()).collect()
}

/// The words of a choice some of whose alternatives are mappings.
fn some_words(schema: &Value) -> Option<Vec<&str>> {
    let alternatives = list(&schema["oneOf"]).iter();
    let words: Vec<&str> = alternatives.filter_map(|word| word.get("const")?.as_str()).collect();
    (!words.is_empty()).then_some(words)
}

fn entries(properties: &Value) -> impl Iterator<Item = (&str, &Value)> {
    properties.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn first_value(patterns: &Value) -> &Value {
    entries(patterns).next().map_or(&Value::Null, |(_, value)| value)
}

/// A value that the schema allows: its first example, else its default, else the smallest one.
pub(super) fn example_of(schema: &Value) -> Value {
    let stated = schema["examples"].get(0).or(schema.get("default"));
    stated.cloned().unwrap_or_else(|| smallest(schema))
}

fn smallest(schema: &Value) -> Value {
    match Shape::of(schema) {
        Shape::Keys(keys) => example_of_keys(&keys),
        Shape::Tagged(tagged) => match tagged.branches.first() {
            Some((_, keys)) => example_of_keys(keys),
            None => Value::Null,
        },
        Shape::Names(_) | Shape::Foreign(_) => Value::Object(Map::new()),
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Choice(words) | Shape::WordOrKeys(words, _) => words.first().copied().into(),
        Shape::Scalar => {
            schema.get("const").or(schema.get("minimum")).cloned().unwrap_or("".into())
        }
    }
}

fn example_of_keys(keys: &Keys) -> Value {
    let groups = keys.groups.iter().filter(|group| group.required);
    let groups = groups.filter_map(|group| group.keys.first());
    let wanted = keys.required.iter().chain(groups);
    let entry = |key: &&str| Some(((*key).to_owned(), example_of(keys.get(key)?)));
    Value::Object(wanted.filter_map(entry).collect())
}
