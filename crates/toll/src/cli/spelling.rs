//! Turns what clap finds wrong with a command line into advice for people who come from other tools: their spelling of
//! an option, instead of the option here that has the most letters in common.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error, Parser};

use super::arguments::Arguments;

/// Another tool's option for `toll load`, and what it is here.
struct Foreign {
    /// As clap names it: of `-t2` the first letter.
    option: &'static str,
    advice: &'static str,
}

const FOREIGN: [Foreign; 9] = [
    Foreign { option: "-t", advice: "wrk's threads are `--threads N` here" },
    Foreign { option: "-R", advice: "wrk2's rate is `--rate N` here" },
    Foreign { option: "-L", advice: "percentiles are always printed; leave it out" },
    Foreign { option: "--latency", advice: "percentiles are always printed; leave it out" },
    Foreign {
        option: "--latency-correction",
        advice: "latency counts from the planned instant with `--rate N`; leave it out",
    },
    Foreign { option: "--rps", advice: "arrivals a second are `--rate N` here" },
    Foreign { option: "--qps", advice: "arrivals a second are `--rate N` here" },
    Foreign { option: "--concurrency", advice: "clients are `-c N` here" },
    Foreign { option: "--timeout-ms", advice: "write `--timeout 500ms`" },
];

/// What was typed.
///
/// # Errors
/// clap's, its tip replaced where there is a better one; also help and version, which clap counts as errors.
pub fn parsed(typed: &[OsString]) -> Result<Arguments, Error> {
    if let Some(advice) = single_dash(typed) {
        let message = format!("{advice}\n");
        return Err(Error::raw(ErrorKind::UnknownArgument, message).with_cmd(&Arguments::command()));
    }
    Arguments::try_parse_from(typed).map_err(|error| with_better_tip(error, typed))
}

/// vegeta writes long options with one dash, of which clap takes the first letter for an option and the rest for its value.
fn single_dash(typed: &[OsString]) -> Option<String> {
    let load = Arguments::command().find_subcommand("load")?.clone();
    let after_load = typed.iter().skip_while(|text| *text != "load");
    let mut texts = after_load.filter_map(|text| text.to_str());
    texts.find_map(|text| {
        let (name, value) = text.strip_prefix('-')?.split_once('=')?;
        let is_long = load.get_arguments().any(|argument| argument.get_long() == Some(name));
        (is_long && name.len() > 1)
            .then(|| format!("`{text}` takes two dashes here: `--{name} {value}`"))
    })
}

fn with_better_tip(mut error: Error, typed: &[OsString]) -> Error {
    let tip = match error.kind() {
        ErrorKind::UnknownArgument if typed.iter().any(|text| text == "load") => {
            text(&error, ContextKind::InvalidArg).and_then(foreign)
        }
        _ => None,
    };
    match tip {
        Some(advice) => {
            error.remove(ContextKind::SuggestedArg);
            let tips = ContextValue::StyledStrs(vec![advice.into()]);
            error.insert(ContextKind::Suggested, tips);
            // clap's has the option that it would have suggested.
            let usage = "Usage: toll load [OPTIONS] [URL]...";
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.into()));
        }
        None => without_hidden(&mut error),
    }
    error
}

fn foreign(option: String) -> Option<&'static str> {
    FOREIGN.iter().find(|foreign| foreign.option == option).map(|foreign| foreign.advice)
}

/// A lab's own commands are no help to a person.
fn without_hidden(error: &mut Error) {
    let toll = Arguments::command();
    let hidden = |name: &String| toll.find_subcommand(name).is_some_and(Command::is_hide_set);
    let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand) else {
        return;
    };
    let shown: Vec<String> = names.iter().filter(|name| !hidden(name)).cloned().collect();
    error.remove(ContextKind::SuggestedSubcommand);
    if !shown.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
    }
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(typed: &str) -> String {
        let typed: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        parsed(&typed).unwrap_err().to_string()
    }

    #[test]
    fn other_tools_options_are_answered_with_what_they_are_here() {
        for (typed, advice) in [
            ("toll load -t2 -c4 -z3s http://h", "`--threads N`"),
            ("toll load -R2000 http://h", "`--rate N`"),
            ("toll load --rps 50 http://h", "`--rate N`"),
            ("toll load -rate=50 http://h", "`--rate 50`"),
            ("toll load -duration=3s http://h", "`--duration 3s`"),
            ("toll load -targets=t.txt", "`--targets t.txt`"),
        ] {
            let said = said(typed);
            assert!(said.contains(advice), "{typed}: {said}");
            assert!(!said.contains("--grpc"), "{said}");
        }
    }

    #[test]
    fn a_body_that_begins_as_an_option_does_is_a_body() {
        assert!(parsed(&["toll", "load", "-drate=1", "http://h"].map(OsString::from)).is_ok());
    }

    #[test]
    fn hidden_commands_are_not_suggested_and_others_are() {
        assert!(!said("toll completions").contains("collector"));
        assert!(said("toll studie").contains("studies"));
    }

    #[test]
    fn a_resumed_run_takes_no_study_and_the_usage_says_so() {
        let said = said("toll run mesher --resume runs/x");
        assert!(said.contains("--resume <RUN>\n"), "{said}");
    }
}
