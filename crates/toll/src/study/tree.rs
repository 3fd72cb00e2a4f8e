//! Turns YAML text into a tree in which every key and value knows where it stands.
//!
//! Knows nothing of studies. Plain scalars follow the core schema of YAML 1.2 (chapter 10.3),
//! without its octal and hexadecimal numbers.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};
use serde_json::Value;

use super::fault::{Fault, Problem, Span};

/// One value of the file.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// What it holds.
    pub content: Content,
    /// Where a message about it points: the value if it fits on a line, else the start of it.
    pub span: Span,
}

/// What a value holds.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Text, a number, a truth value or nothing.
    Scalar(Value),
    /// Values in order.
    List(Vec<Node>),
    /// Keys and values in order; the keys are unique.
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

/// The way from the root to a value: keys, and the numbers of list items as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// The way along these steps.
    pub(super) fn to(steps: &[&str]) -> Self {
        Self(steps.iter().map(ToString::to_string).collect())
    }

    /// One step further.
    pub(super) fn child(&self, step: impl ToString) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.to_string());
        Self(steps)
    }

    /// The last step, if it is from there.
    pub(super) fn step_below(&self, parent: &str) -> Option<&str> {
        match self.0.as_slice() {
            [.., last, step] if last == parent => Some(step),
            _ => None,
        }
    }

    /// Whether the other way begins with this one.
    pub(super) fn leads_to(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl Node {
    /// The value at the end of the way.
    pub(super) fn at(&self, pointer: &Pointer) -> Option<&Node> {
        pointer.0.iter().try_fold(self, |node, step| node.child(step))
    }

    /// The key that the way ends with.
    pub(super) fn key_at(&self, pointer: &Pointer) -> Option<Span> {
        let (last, parents) = pointer.0.split_last()?;
        let parent = self.at(&Pointer(parents.to_vec()))?;
        parent.entry(last).map(|entry| entry.key_span.clone())
    }

    /// What it holds, without where that stands.
    pub(super) fn plain(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::plain).collect(),
            Content::Mapping(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.node.plain())).collect()
            }
        }
    }

    /// The value of the key, if this is a mapping that has it.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let entry = self.entries_mut().iter_mut().find(|entry| entry.key == key);
        entry.map(|entry| &mut entry.node)
    }

    /// Keys and values of a mapping; none of anything else.
    pub(super) fn entries_mut(&mut self) -> &mut [Entry] {
        match &mut self.content {
            Content::Mapping(entries) => entries,
            _ => &mut [],
        }
    }

    fn child(&self, step: &str) -> Option<&Node> {
        match &self.content {
            Content::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => self.entry(step).map(|entry| &entry.node),
        }
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.content {
            Content::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }
}

/// The value as one line of YAML.
pub(super) fn as_yaml(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(as_yaml).collect())),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| format!("{key}: {}", as_yaml(value));
            format!("{{{}}}", joined(entries.iter().map(entry).collect()))
        }
        other => other.to_string(),
    }
}

/// Whether a text stays what it is where no quotes are around it, also between brackets.
fn is_plain(text: &str) -> bool {
    let starts = |first: char| first.is_ascii_alphanumeric() || "/.".contains(first);
    let ends = !text.ends_with([' ', ':']);
    let inside = !text.contains(['\n', ',', '[', ']', '{', '}']);
    let inside = inside && !text.contains(": ") && !text.contains(" #");
    text.starts_with(starts) && ends && inside && scalar(text, ScalarStyle::Plain).is_string()
}

/// Reads the text's one document.
///
/// # Errors
/// Text that is not YAML, or holds no document or several. Keys that occur twice do not end the
/// reading: they go to `faults`, and their first value stays.
pub(super) fn grow(text: &str, faults: &mut Vec<Fault>) -> Result<Node, Fault> {
    let offsets = ByteOffsets::of(text);
    let reader =
        Reader { text, offsets: &offsets, parser: Parser::new_from_str(text), depth: 0, faults };
    reader.document().map_err(|stop| match stop {
        Stop::Fault(fault) => fault,
        Stop::Scan(error) => {
            let at = offsets.shown(error.marker().index());
            Fault::new(Problem::Syntax { said: error.info().to_owned() }, at..at)
        }
    })
}

/// Byte offsets of the characters: the parser counts characters, messages count bytes.
struct ByteOffsets(Vec<usize>);

impl ByteOffsets {
    fn of(text: &str) -> Self {
        Self(text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect())
    }

    fn byte(&self, character: usize) -> usize {
        self.0.get(character).or(self.0.last()).copied().unwrap_or(0)
    }

    /// Like [`Self::byte`], but never behind the last character: nothing can be shown there.
    fn shown(&self, character: usize) -> usize {
        self.byte(character.min(self.0.len().saturating_sub(2)))
    }

    fn span(&self, span: saphyr_parser::Span) -> Span {
        self.byte(span.start.index())..self.byte(span.end.index())
    }
}

/// Why the reading ends early.
enum Stop {
    Scan(ScanError),
    Fault(Fault),
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        Self::Scan(error)
    }
}

/// Reads events into nodes, depth first.
struct Reader<'t> {
    text: &'t str,
    offsets: &'t ByteOffsets,
    parser: Parser<'t, StrInput<'t>>,
    depth: usize,
    faults: &'t mut Vec<Fault>,
}

/// Lists and mappings inside each other: the reader recurses, so there must be a limit.
const DEEPEST: usize = 32;

/// The values that `&name` marked, by the parser's number for the name; 0 is no name.
type Anchors = HashMap<usize, Node>;

impl<'t> Reader<'t> {
    fn document(mut self) -> Result<Node, Stop> {
        let mut anchors = Anchors::new();
        let mut root = None;
        while let Some(next) = self.parser.next() {
            let (event, span) = next?;
            match event {
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(Stop::Fault(Fault::new(
                        Problem::SecondDocument,
                        self.offsets.span(span),
                    )));
                }
                Event::DocumentStart(_) => {}
                event => root = Some(self.node(event, span, &mut anchors)?),
            }
        }
        root.ok_or(Stop::Fault(Fault::new(Problem::EmptyFile, 0..0)))
    }

    fn node(
        &mut self,
        event: Event<'t>,
        span: saphyr_parser::Span,
        anchors: &mut Anchors,
    ) -> Result<Node, Stop> {
        let start = self.offsets.span(span);
        let (content, anchor) = match event {
            Event::Alias(anchor) => match anchors.get(&anchor) {
                Some(node) => (node.content.clone(), 0),
                None => return Err(refused("an alias stands inside its own anchor", start)),
            },
            Event::Scalar(text, style, anchor, _) => {
                (Content::Scalar(scalar(&text, style)), anchor)
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if self.depth == DEEPEST => {
                return Err(refused("nested deeper than any study", start));
            }
            Event::SequenceStart(anchor, _) => return self.list(start, anchor, anchors),
            Event::MappingStart(anchor, _) => return self.mapping(start, anchor, anchors),
            _ => unreachable!("only nodes stand inside a document"),
        };
        Ok(remember(Node { content, span: start }, anchor, anchors))
    }

    fn list(&mut self, start: Span, anchor: usize, anchors: &mut Anchors) -> Result<Node, Stop> {
        let mut items = Vec::new();
        self.depth += 1;
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                self.depth -= 1;
                let span = self.one_line(start, self.offsets.span(span));
                return Ok(remember(Node { content: Content::List(items), span }, anchor, anchors));
            }
            items.push(self.node(event, span, anchors)?);
        }
    }

    fn mapping(&mut self, start: Span, anchor: usize, anchors: &mut Anchors) -> Result<Node, Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        self.depth += 1;
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                self.depth -= 1;
                let span = self.one_line(start, self.offsets.span(span));
                return Ok(remember(
                    Node { content: Content::Mapping(entries), span },
                    anchor,
                    anchors,
                ));
            }
            let entry = self.entry(event, span, anchors)?;
            match entries.iter().find(|earlier| earlier.key == entry.key) {
                Some(earlier) => self.faults.push(twice(earlier, entry)),
                None => entries.push(entry),
            }
        }
    }

    fn entry(
        &mut self,
        key: Event<'t>,
        span: saphyr_parser::Span,
        anchors: &mut Anchors,
    ) -> Result<Entry, Stop> {
        let key_span = self.offsets.span(span);
        let Event::Scalar(key, ..) = key else {
            return Err(Stop::Fault(Fault::new(Problem::KeyIsNotText, key_span)));
        };
        let (event, span) = self.next()?;
        let mut node = self.node(event, span, anchors)?;
        if !self.is_written_on_one_line(&node) {
            node.span = key_span.clone();
        }
        Ok(Entry { key: key.into_owned(), key_span, node })
    }

    fn next(&mut self) -> Result<(Event<'t>, saphyr_parser::Span), Stop> {
        let next = self.parser.next().expect("the parser ends each list and mapping that it began");
        Ok(next?)
    }

    /// From the bracket to its end when both stand on one line, else nothing but the start.
    fn one_line(&self, start: Span, end: Span) -> Span {
        let whole = start.start..end.end;
        let bracketed = |text: &str| text.starts_with(['{', '[']) && !text.contains('\n');
        match self.text.get(whole.clone()) {
            Some(text) if bracketed(text) => whole,
            _ => start.start..start.start,
        }
    }

    /// A value that takes several lines, or has no text at all, is best pointed at by its key.
    fn is_written_on_one_line(&self, node: &Node) -> bool {
        let text = self.text.get(node.span.clone()).unwrap_or_default();
        !text.is_empty() && !text.contains('\n')
    }
}

fn refused(said: &str, at: Span) -> Stop {
    Stop::Fault(Fault::new(Problem::Syntax { said: said.into() }, at))
}

fn remember(node: Node, anchor: usize, anchors: &mut Anchors) -> Node {
    if anchor != 0 {
        anchors.insert(anchor, node.clone());
    }
    node
}

fn twice(earlier: &Entry, again: Entry) -> Fault {
    let problem = Problem::DuplicateKey { key: again.key };
    Fault::new(problem, again.key_span).also(earlier.key_span.clone(), "first here")
}

/// The value of a scalar: quoted ones are text, plain ones what they look like.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => number(text).unwrap_or_else(|| text.into()),
    }
}

/// A number; not `inf` and `nan`, which Rust would read but no key of a study can use.
fn number(text: &str) -> Option<Value> {
    let looks_like_one = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let whole = || text.parse::<i64>().ok().map(Value::from);
    let real = || text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from);
    looks_like_one.then(|| whole().or_else(real)).flatten()
}
