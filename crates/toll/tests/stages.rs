//! Inside `toll` a stage imports only earlier ones, and the leaf crates never see each other.

use std::fs;
use std::path::{Path, PathBuf};

/// In the order of the flow.
const STAGES: [&str; 10] =
    ["study", "event", "plan", "store", "run", "analysis", "report", "calibrate", "load", "cli"];
const LEAVES: [&str; 5] = ["toll-collector", "toll-lab", "toll-load", "toll-service", "toll-stats"];

#[test]
fn a_stage_never_imports_a_later_one() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (position, stage) in STAGES.iter().enumerate() {
        for file in sources_of(&src, stage) {
            let text = fs::read_to_string(&file).unwrap();
            for later in &STAGES[position + 1..] {
                if text.contains(&format!("crate::{later}::"))
                    || text.contains(&format!("crate::{later};"))
                {
                    wrong.push(format!("{} imports {later}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_of_the_command_is_a_known_stage() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(src).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        assert!(
            name == "main" || STAGES.contains(&name.as_str()),
            "{name} has no place in the flow"
        );
    }
}

#[test]
fn the_leaves_never_see_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for leaf in LEAVES {
        let manifest = fs::read_to_string(crates.join(leaf).join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
        assert!(!dependencies.contains("toll"), "{leaf} depends on another crate of the workspace");
    }
}

fn sources_of(src: &Path, stage: &str) -> Vec<PathBuf> {
    let file = src.join(format!("{stage}.rs"));
    let mut found = if file.exists() { vec![file] } else { rust_files(&src.join(stage)) };
    assert!(!found.is_empty(), "no sources for {stage}");
    found.sort();
    found
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a stage is a file or a folder");
    let (dirs, files): (Vec<_>, Vec<_>) = entries
        .map(|entry| entry.expect("the folder can be listed").path())
        .partition(|path| path.is_dir());
    let mut found: Vec<PathBuf> =
        files.into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs")).collect();
    found.extend(dirs.iter().flat_map(|dir| rust_files(dir)));
    found
}
