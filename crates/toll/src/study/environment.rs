//! Puts the values of environment variables where a study file's texts say `${NAME}`.
//!
//! Only values are touched, never keys. What is not set stays as it is written: the checks
//! of the shape decide whether that is an error or a variant that is skipped.

use super::tree::{Content, Node};

/// Replaces each `${NAME}` that the environment has a value for; an empty value is none.
pub(super) fn fill_in(node: &mut Node, env: &dyn Fn(&str) -> Option<String>) {
    match &mut node.content {
        Content::Scalar(serde_json::Value::String(text)) => *text = filled_in(text, env),
        Content::Scalar(_) => {}
        Content::List(items) => items.iter_mut().for_each(|item| fill_in(item, env)),
        Content::Mapping(entries) => {
            entries.iter_mut().for_each(|entry| fill_in(&mut entry.node, env));
        }
    }
}

/// Name of the first `${NAME}` in the text.
pub(super) fn first_variable(text: &str) -> Option<&str> {
    split_at_variable(text).map(|(_, name, _)| name)
}

fn filled_in(text: &str, env: &dyn Fn(&str) -> Option<String>) -> String {
    let Some((before, name, after)) = split_at_variable(text) else {
        return text.to_owned();
    };
    let value = env(name).filter(|value| !value.is_empty());
    let value = value.unwrap_or_else(|| format!("${{{name}}}"));
    format!("{before}{value}{}", filled_in(after, env))
}

/// What stands before the first `${NAME}`, the name, and what stands after.
fn split_at_variable(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}
