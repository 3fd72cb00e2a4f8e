//! Every `toll` command line in the documents is one that this command takes, and every study one that can be read.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::spelling;
use crate::study;

/// A command line and where it stands.
struct Line {
    page: PathBuf,
    text: String,
    /// Within a sentence it may be a command's name with what the sentence is about.
    in_a_sentence: bool,
}

#[test]
fn every_command_line_of_the_documents_is_understood() {
    let lines: Vec<Line> = pages().iter().flat_map(|page| command_lines(page)).collect();
    assert!(lines.len() > 50, "only {} command lines were found", lines.len());
    let faults: Vec<String> = lines.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_block_with_commands_of_toll_is_marked_as_one() {
    let pages = pages();
    let unmarked = pages.iter().filter(|page| {
        let text = fs::read_to_string(page).expect("a page can be read");
        let plain = blocks(&text).filter(|(language, _)| language.is_empty());
        plain.flat_map(|(_, block)| block.lines()).any(calls_toll)
    });
    assert_eq!(unmarked.collect::<Vec<_>>(), Vec::<&PathBuf>::new());
}

#[test]
fn every_study_of_the_documents_can_be_read() {
    let mut read = 0;
    for page in pages() {
        let page_text = fs::read_to_string(&page).expect("a page can be read");
        let studies = blocks(&page_text).filter(|(language, block)| {
            language.starts_with("yaml") && block.starts_with("study:")
        });
        for (_, text) in studies {
            let outcome = study::read(&page.to_string_lossy(), text, &every_variable_is_set);
            assert!(outcome.is_ok(), "{}: {:?}\n{text}", page.display(), outcome.err());
            read += 1;
        }
    }
    assert!(read >= 4, "only {read} studies were found");
}

/// What a study takes from the environment is not on the page.
fn every_variable_is_set(_: &str) -> Option<String> {
    Some("given".to_owned())
}

/// The pages for a reader at the root and below it.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
    let folders = [".", "docs", "docs/decisions", "cluster", "bench"].map(|name| root.join(name));
    let entries =
        folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder of pages"));
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Fenced blocks: what stands behind the fence, and the text.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

/// Whether it begins with toll and the name of a command.
fn calls_toll(text: &str) -> bool {
    text.strip_prefix("toll ")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

fn command_lines(page: &Path) -> Vec<Line> {
    let text = fs::read_to_string(page).expect("a page can be read");
    let line = |text: &str, in_a_sentence| Line {
        page: page.to_owned(),
        text: text.trim().to_owned(),
        in_a_sentence,
    };
    let shell = blocks(&text).filter(|(language, _)| *language == "sh");
    let commands: Vec<String> = shell.flat_map(|(_, block)| whole_commands(block)).collect();
    let typed = commands.iter().filter(|text| text.contains("toll "));
    let prose: String = text.split("```").step_by(2).collect();
    let quoted = prose.split('`').skip(1).step_by(2).filter(|text| calls_toll(text));
    typed
        .map(|text| line(text, false))
        .chain(quoted.map(|text| line(text, true)))
        .filter(|line| !line.text.contains("..."))
        .collect()
}

/// Commands of a block; a quoted text may have several lines.
fn whole_commands(block: &str) -> Vec<String> {
    let mut whole = Vec::new();
    let mut begun = String::new();
    for line in block.lines() {
        begun.push_str(line);
        begun.push('\n');
        if shlex::split(&begun).is_some() {
            whole.push(std::mem::take(&mut begun));
        }
    }
    whole.extend((!begun.is_empty()).then_some(begun));
    whole
}

/// What the command says of a line that it does not take.
fn fault(line: &Line) -> Option<String> {
    let typed = words(&line.text)?;
    let error = spelling::parsed(&typed).err()?;
    if error.kind() == ErrorKind::DisplayHelp || (line.in_a_sentence && is_incomplete(&error)) {
        return None;
    }
    Some(format!("{}: `{}`\n{error}", line.page.display(), line.text))
}

/// Whether all that it has is right: what is missing is an argument, or the value of its last option.
fn is_incomplete(error: &clap::Error) -> bool {
    let value = error.get(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::MissingRequiredArgument => true,
        ErrorKind::InvalidValue => {
            value.is_none_or(|value| *value == ContextValue::String(String::new()))
        }
        _ => false,
    }
}

/// The words of the part of a line that calls toll; none if another program is called.
fn words(line: &str) -> Option<Vec<OsString>> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("`{line}` has an open quote"));
    let ends = |word: &&String| ["|", ">", "&&", ";", "||"].contains(&word.as_str());
    let from = words.iter().position(|word| word == "toll")?;
    let called = words[from..].iter().take_while(|word| !ends(word));
    Some(called.map(OsString::from).collect())
}
