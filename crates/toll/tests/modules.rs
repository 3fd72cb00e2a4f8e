//! In no crate do modules beside each other import in a circle, at any depth: each can be read with those that it uses
//! alone. A module and the folder that it is in belong together; tests may look at whatever they like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module within its crate.
type Module = Vec<String>;

/// Which modules import which others, all in the same folder.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_modules_of_a_crate_import_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates lie in a folder");
    let mut circles = Vec::new();
    for entry in fs::read_dir(crates).expect("the folder of the crates can be listed") {
        let src = entry.expect("an entry can be read").path().join("src");
        let graph = graph(&modules(&src));
        circles.extend(circles_of(&graph).into_iter().map(|circle| format!("{src:?}: {circle}")));
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn a_circle_of_three_is_found_and_named() {
    let module = |name: &str| vec!["lab".to_owned(), name.to_owned()];
    let texts = [
        ("a", "use super::b::One;"),
        ("b", "use crate::{other, lab::{c::Two}};"),
        ("c", "fn f() -> super::a::Three {}"),
        ("d", "use super::a::Three;\n#[cfg(test)]\nmod tests { use super::super::d; }"),
    ];
    let modules = texts.map(|(name, text)| (module(name), text.to_owned()));
    assert_eq!(
        circles_of(&graph(&BTreeMap::from(modules))),
        ["lab::a -> b, lab::b -> c, lab::c -> a"]
    );
}

/// Every module below `src` and its text, tests left out.
fn modules(src: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    collect(src, &[], &mut found);
    found
}

fn collect(folder: &Path, module: &[String], found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry can be read").path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let inner = [module, std::slice::from_ref(&stem)].concat();
        if stem == "tests" || stem == "fixture" || stem.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, &inner, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_folders_own = ["mod", "lib", "main"].contains(&stem.as_str());
            let name = if is_folders_own { module.to_vec() } else { inner };
            found.insert(name, fs::read_to_string(&path).expect("a source can be read"));
        }
    }
}

fn graph(modules: &BTreeMap<Module, String>) -> Graph {
    let mut graph = Graph::new();
    for (module, text) in modules {
        for path in imports(module, text) {
            let Some(target) = module_of(&path, modules) else { continue };
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if common < module.len() && common < target.len() {
                let [from, to] = [module, &target].map(|path| path[..=common].to_vec());
                graph.entry(from).or_default().insert(to);
            }
        }
    }
    graph
}

/// The longest part of a path that is a module or a folder of some.
fn module_of(path: &[String], modules: &BTreeMap<Module, String>) -> Option<Module> {
    let is_module =
        |length: &usize| modules.keys().any(|known| known.starts_with(&path[..*length]));
    (1..=path.len()).rev().find(is_module).map(|length| path[..length].to_vec())
}

/// All paths within the crate that a module names.
fn imports(module: &[String], text: &str) -> Vec<Module> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let tokens = tokens(&code);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let starts = ["crate", "super"].contains(token) && tokens.get(at + 1) == Some(&"::");
        let goes_on = at > 0 && tokens[at - 1] == "::";
        if starts && !goes_on {
            let base = if *token == "crate" { vec![] } else { parent(module) };
            tree(&tokens[at + 2..], &base, &mut found);
        }
    }
    found
}

fn parent(module: &[String]) -> Module {
    module[..module.len().saturating_sub(1)].to_vec()
}

/// Reads what follows a `::`: a name and what is below it, or several in braces. Gives how many tokens that was.
fn tree(tokens: &[&str], base: &[String], found: &mut Vec<Module>) -> usize {
    let Some(first) = tokens.first() else { return 0 };
    if *first != "{" {
        let path = match *first {
            "super" => parent(base),
            "self" => base.to_vec(),
            name => [base, &[name.to_owned()]].concat(),
        };
        found.push(path.clone());
        return match tokens.get(1) {
            Some(&"::") => 2 + tree(&tokens[2..], &path, found),
            _ => 1,
        };
    }
    let mut at = 1;
    while at < tokens.len() && tokens[at] != "}" {
        at += if tokens[at] == "," { 1 } else { tree(&tokens[at..], base, found).max(1) };
    }
    at + 1
}

/// Names, `::`, braces and commas; everything else separates.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if is_name(c) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if !token.trim().is_empty() {
            found.push(token);
        }
        rest = after;
    }
    found
}

/// Modules each of which is reached from all others, as lists of who imports whom.
fn circles_of(graph: &Graph) -> Vec<String> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reached(graph, module))).collect();
    let is_mutual = |module: &Module, other: &Module| {
        reach[module].contains(other) && reach.get(other).is_some_and(|of| of.contains(module))
    };
    let circle = |module: &Module| -> BTreeSet<Module> {
        graph.keys().filter(|other| is_mutual(module, other)).cloned().collect()
    };
    let circles: BTreeSet<BTreeSet<Module>> = graph.keys().map(circle).collect();
    let within = |circle: BTreeSet<Module>| {
        let imports = circle.iter().flat_map(|from| graph[from].iter().map(move |to| (from, to)));
        let inside = imports.filter(|(_, to)| circle.contains(*to));
        let named = inside.map(|(from, to)| format!("{} -> {}", from.join("::"), to[to.len() - 1]));
        named.collect::<Vec<_>>().join(", ")
    };
    circles.into_iter().filter(|circle| !circle.is_empty()).map(within).collect()
}

fn reached<'g>(graph: &'g Graph, from: &Module) -> BTreeSet<&'g Module> {
    let mut seen = BTreeSet::new();
    let mut left: Vec<&Module> = graph.get(from).into_iter().flatten().collect();
    while let Some(module) = left.pop() {
        if seen.insert(module) {
            left.extend(graph.get(module).into_iter().flatten());
        }
    }
    seen
}
