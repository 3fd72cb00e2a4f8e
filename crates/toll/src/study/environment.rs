//! Puts the values of environment variables where a study file's texts say `${NAME}`.
//!
//! Only values are touched, never keys. What is not set stays as it is written: the checks
//! of the shape decide whether that is an error or a variant that is skipped.
//!
//! Headers of requests may be secrets, which no run may store: there the text gets a placeholder, `{{env.NAME}}`, that
//! is filled in whenever a load begins.

use super::tree::{Content, Node};

/// Replaces each `${NAME}` that the environment has a value for; an empty value is none.
pub(super) fn fill_in(root: &mut Node, env: &dyn Fn(&str) -> Option<String>) {
    let later = |name: &str| env(name).map(|_| format!("{{{{{OF_ENVIRONMENT}{name}}}}}"));
    let Content::Mapping(entries) = &mut root.content else { return below(root, env, env) };
    for entry in entries {
        match entry.key.as_str() {
            "loads" => below(&mut entry.node, env, &later),
            _ => below(&mut entry.node, env, env),
        }
    }
}

/// What a placeholder of the environment begins with.
pub const OF_ENVIRONMENT: &str = "env.";

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

fn below(node: &mut Node, env: Lookup<'_>, of_headers: Lookup<'_>) {
    match &mut node.content {
        Content::Scalar(serde_json::Value::String(text)) => *text = filled_in(text, env),
        Content::Scalar(_) => {}
        Content::List(items) => items.iter_mut().for_each(|item| below(item, env, of_headers)),
        Content::Mapping(entries) => {
            for entry in entries {
                let env = if entry.key == "headers" { of_headers } else { env };
                below(&mut entry.node, env, of_headers);
            }
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
