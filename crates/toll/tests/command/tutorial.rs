//! The pages about applications of the user's own: their files and commands, as a reader would take them over.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::run_dir::report;
use crate::skip;
use crate::workplace::{TOLL, Workplace, has};

/// The second one goes on with the files of the first.
const PAGES: [&str; 2] = [
    include_str!("../../../../docs/your-own-app.md"),
    include_str!("../../../../docs/two-versions.md"),
];

/// What a fenced block of a page is.
enum Block<'a> {
    File { name: &'a str, text: &'a str },
    Commands(&'a str),
}

fn blocks() -> impl Iterator<Item = Block<'static>> {
    let fenced = PAGES.iter().flat_map(|page| page.split("```").skip(1).step_by(2));
    fenced.filter_map(|block| {
        let (info, text) = block.split_once('\n')?;
        match info.split_once(' ') {
            Some((_, name)) => Some(Block::File { name, text }),
            None => (info == "sh").then_some(Block::Commands(text)),
        }
    })
}

/// A run as short as can be, where no network of its own is needed.
fn shortened(commands: &str) -> String {
    commands.replace("--quick", "--quick --rounds 1 --isolation loopback --out run-of-$$")
}

#[test]
fn the_files_and_commands_of_the_pages_work_as_they_stand_there() {
    if !has("python3") {
        skip!("the services of the pages are Python programs");
    }
    let place = Workplace::new();
    fs::create_dir(place.path("bin")).unwrap();
    symlink(TOLL, place.path("bin/toll")).unwrap();
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    for block in blocks() {
        match block {
            Block::File { name, text } => fs::write(place.path(name), text).unwrap(),
            Block::Commands(commands) => {
                let mut shell = Command::new("sh");
                shell.current_dir(place.path("")).env("PATH", &path);
                shell.env("TMPDIR", place.path("lab")).args(["-ec", &shortened(commands)]);
                let ended = place.finish(shell);
                // A busy machine may leave nothing that counts; then the run was measured all the same.
                assert!([Some(0), Some(3)].contains(&ended.code()), "{commands}: {ended:#?}");
            }
        }
    }
    let runs = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap());
    let runs = runs.filter(|run| run.file_name().to_string_lossy().starts_with("run-of-"));
    let reports: Vec<_> = runs.map(|run| report(&run.path())).collect();
    assert_eq!(reports.len(), 2);
    let newer = "shop is python3 -O shop.py {host} {port} with MODE=newer";
    assert!(
        reports.iter().any(|report| report["variants"].to_string().contains(newer)),
        "{reports:#?}"
    );
}
