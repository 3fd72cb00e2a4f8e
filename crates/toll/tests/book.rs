//! The documents as a book: every link leads somewhere, and every page is in the table of contents.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_link_of_the_documents_leads_to_a_file_and_a_heading() {
    let pages = [pages_in(&root()), pages_of_the_book()].concat();
    let faults: Vec<String> = pages.iter().flat_map(|page| broken_links(page)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_link_of_the_book_stays_within_the_book() {
    let leaves = |page: &PathBuf| {
        let targets = links(&read(page)).into_iter().filter_map(|link| target(page, &link));
        targets.filter_map(|file| file.canonicalize().ok()).any(|file| !file.starts_with(docs()))
    };
    let leaving: Vec<PathBuf> = pages_of_the_book().into_iter().filter(leaves).collect();
    assert_eq!(leaving, Vec::<PathBuf>::new(), "mdBook only knows what is below docs/");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let listed: BTreeSet<PathBuf> =
        links(&read(&summary())).iter().map(|link| docs().join(link)).collect();
    let there: BTreeSet<PathBuf> =
        pages_of_the_book().into_iter().filter(|page| *page != summary()).collect();
    assert_eq!(listed, there);
}

#[test]
fn links_and_headings_are_found_as_a_browser_has_them() {
    let text = "# One `code` name\n\nA [word](a.md#b) and\n\n```sh\n[not](c.md)\n# nor this\n```\n\n## Two, twice\n\n## Two, twice\n\n![picture of\nit](p.png)";
    assert_eq!(links(text), ["a.md#b", "p.png"]);
    assert_eq!(headings(text), ["one-code-name", "two-twice", "two-twice-1"]);
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
    root.canonicalize().expect("the root is there")
}

fn docs() -> PathBuf {
    root().join("docs")
}

fn summary() -> PathBuf {
    docs().join("SUMMARY.md")
}

fn pages_of_the_book() -> Vec<PathBuf> {
    [pages_in(&docs()), pages_in(&docs().join("decisions"))].concat()
}

fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of pages");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

fn broken_links(page: &Path) -> Vec<String> {
    let broken = links(&read(page)).into_iter().filter(|link| {
        let heading = link.split_once('#').map(|(_, heading)| heading.to_owned());
        target(page, link).is_some_and(|file| {
            !file.exists()
                || heading.is_some_and(|heading| !headings(&read(&file)).contains(&heading))
        })
    });
    broken.map(|link| format!("{}: {link}", page.display())).collect()
}

/// The file that a link leads to, unless that is elsewhere in the world.
fn target(page: &Path, link: &str) -> Option<PathBuf> {
    let file = link.split('#').next().filter(|_| !link.contains("://"))?;
    Some(if file.is_empty() { page.to_owned() } else { page.with_file_name(file) })
}

/// The text without its fenced blocks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Where the links and pictures of a page lead to; code within a sentence has none.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let outside_code: String = prose.split('`').step_by(2).collect();
    let behind = outside_code.split("](").skip(1);
    behind.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The anchors of a page's headings: a repeated one is numbered.
fn headings(text: &str) -> Vec<String> {
    let prose = prose(text);
    let lines = prose.lines().filter(|line| line.starts_with('#'));
    let anchors: Vec<String> =
        lines.map(|line| anchor(line.trim_start_matches('#').trim())).collect();
    let numbered = anchors.iter().enumerate().map(|(at, anchor)| {
        match anchors[..at].iter().filter(|before| *before == anchor).count() {
            0 => anchor.clone(),
            repeated => format!("{anchor}-{repeated}"),
        }
    });
    numbered.collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
