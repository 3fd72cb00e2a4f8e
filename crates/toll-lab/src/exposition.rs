//! Reads numbers with labels out of Prometheus's text form, as Istio's and Linkerd's proxies write it:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;

/// One line of the text.
#[derive(Debug)]
pub(crate) struct Sample {
    labels: BTreeMap<String, String>,
    pub(crate) value: u64,
}

impl Sample {
    /// The value of a label; empty where it has none of this name.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// All lines of the counter `name`.
pub(crate) fn samples<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = Sample> + 'a {
    text.lines().filter_map(move |line| {
        let labels = line.strip_prefix(name)?.strip_prefix('{')?;
        let (labels, rest) = labels_of(labels)?;
        let value = whole(rest.split_ascii_whitespace().next()?)?;
        Some(Sample { labels, value })
    })
}

/// Programs in Go write a million as `1e+06`.
fn whole(text: &str) -> Option<u64> {
    let of_float = || {
        let value: f64 = text.parse().ok()?;
        let is_whole = value >= 0.0 && value.fract() == 0.0 && value < 9e15;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative and exact below 2^53"
        )]
        is_whole.then_some(value as u64)
    };
    text.parse().ok().or_else(of_float)
}

/// The labels up to the closing brace, and what is behind it.
fn labels_of(mut text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let (value, rest) = quoted(rest)?;
        labels.insert(name.to_owned(), value);
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// The text up to the closing quote, and what is behind that. A backslash escapes.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                escaped => escaped,
            }),
            _ => value.push(character),
        }
    }
    None
}
