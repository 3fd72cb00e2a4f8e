//! A command line as written: a list of words, or text that is split as a shell would. No shell runs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program and its arguments, at least one word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "AsWritten", into = "Vec<String>")]
#[schemars(try_from = "Vec<String>", extend(
    "type" = ["array", "string"], "format" = CommandLine::FORMAT, "minItems" = 1, "minLength" = 1,
    "description" = "A program of your own and its arguments, as text or as a list; it must listen on the port.",
    "examples" = [["./my-api", "--port", "{port}"]]
))]
pub struct CommandLine(Vec<String>);

/// The two YAML types that a command line may have.
#[derive(Deserialize)]
#[serde(untagged)]
enum AsWritten {
    Text(String),
    Words(Vec<String>),
}

/// Why a text is no command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoCommandLine {
    /// It holds no word.
    #[error("the command names no program")]
    Empty,
    /// A quote or an escape is not ended.
    #[error("a quote in the command is not closed")]
    OpenQuote,
    /// What only a shell understands.
    #[error("`{0}` is for a shell, and no shell runs this command")]
    Shell(char),
    /// A variable before the program.
    #[error("`{0}` is for a shell, and no shell runs this command")]
    Variable(String),
}

impl CommandLine {
    pub(super) const FORMAT: &str = "toll-command";

    /// The program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// Splits a text as a shell would.
    ///
    /// # Errors
    /// When a quote is open, or a shell would do more than to split it.
    pub(super) fn split(text: &str) -> Result<Self, NoCommandLine> {
        if let Some(sign) = sign_for_a_shell(text) {
            return Err(NoCommandLine::Shell(sign));
        }
        let words = shlex::split(text).ok_or(NoCommandLine::OpenQuote)?;
        match words.first() {
            None => Err(NoCommandLine::Empty),
            Some(first) if is_assignment(first) => Err(NoCommandLine::Variable(first.clone())),
            Some(_) => Ok(Self(words)),
        }
    }
}

/// The first sign by which a shell would do something: outside of quotes, or `$` and a backtick in double ones.
fn sign_for_a_shell(text: &str) -> Option<char> {
    let (mut quote, mut is_escaped) = (None, false);
    for sign in text.chars() {
        match (quote, sign) {
            _ if is_escaped => is_escaped = false,
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(sign),
            (_, '$' | '`') | (None, '|' | '&' | ';' | '<' | '>' | '(' | ')') => return Some(sign),
            _ => {}
        }
    }
    None
}

/// `NAME=value`
fn is_assignment(word: &str) -> bool {
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

impl TryFrom<AsWritten> for CommandLine {
    type Error = NoCommandLine;

    fn try_from(written: AsWritten) -> Result<Self, NoCommandLine> {
        match written {
            AsWritten::Text(text) => Self::split(&text),
            AsWritten::Words(words) if words.is_empty() => Err(NoCommandLine::Empty),
            AsWritten::Words(words) => Ok(Self(words)),
        }
    }
}

impl From<CommandLine> for Vec<String> {
    fn from(line: CommandLine) -> Self {
        line.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_as_a_shell_would() {
        let words = |text: &str| CommandLine::split(text).map(Vec::from);
        assert_eq!(
            words("./shop  --port {port}"),
            Ok(vec!["./shop".into(), "--port".into(), "{port}".into()])
        );
        assert_eq!(words(r#"run 'a b' "c d" e\ f"#).unwrap(), ["run", "a b", "c d", "e f"]);
        assert_eq!(words(r#"get 'http://x/?a=1&b=$2'"#).unwrap(), ["get", "http://x/?a=1&b=$2"]);
        assert_eq!(words("./shop --rate=5").unwrap(), ["./shop", "--rate=5"]);
    }

    #[test]
    fn what_only_a_shell_understands_is_refused() {
        for (text, sign) in [
            ("./shop | tee log", '|'),
            ("./shop > log", '>'),
            ("./shop && ./stock", '&'),
            ("./shop --port $PORT", '$'),
            (r#"./shop "$HOME/data""#, '$'),
            ("./shop `hostname`", '`'),
            ("./shop; ./stock", ';'),
        ] {
            assert_eq!(CommandLine::split(text), Err(NoCommandLine::Shell(sign)), "{text}");
        }
        let variable = NoCommandLine::Variable("PORT=80".into());
        assert_eq!(CommandLine::split("PORT=80 ./shop"), Err(variable));
        assert_eq!(CommandLine::split("./shop 'a"), Err(NoCommandLine::OpenQuote));
        assert_eq!(CommandLine::split("  "), Err(NoCommandLine::Empty));
    }
}
