//! The modules stand in the order of the mathematics: none may use one declared below it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where each name of the crate's root stands: modules by their order in `lib.rs`, and what
/// the root re-exports by the module it comes from.
fn positions(lib: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for line in lib.lines() {
        let line = line.trim_start_matches("pub ");
        if let Some(module) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            found.insert(module.to_owned(), found.len());
        }
    }
    for line in lib.lines() {
        let Some((module, names)) =
            line.strip_prefix("pub use ").and_then(|rest| rest.split_once("::"))
        else {
            continue;
        };
        if let Some(&position) = found.get(module) {
            for name in root_names(names) {
                found.insert(name.to_owned(), position);
            }
        }
    }
    found
}

/// The first names of a use tree: `a::b` gives `a`; `{a, b::{c, d}}` gives `a` and `b`.
fn root_names(tree: &str) -> Vec<&str> {
    let name =
        |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(group) = tree.strip_prefix('{') else {
        return vec![&tree[..name(tree)]];
    };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                names.push(&group[at..at + name(&group[at..])]);
                start = false;
            }
            _ => {}
        }
    }
    names
}

/// Every name after `crate::` in the code that stands below `module`, or nowhere.
fn looks_down<'a>(
    source: &'a str,
    module: &str,
    positions: &BTreeMap<String, usize>,
) -> Vec<&'a str> {
    let code_only = |at: usize| {
        let line = source[..at].rfind('\n').map_or(0, |end| end + 1);
        !source[line..at].contains("//")
    };
    source
        .match_indices("crate::")
        .filter(|(at, _)| code_only(*at))
        .flat_map(|(at, found)| root_names(&source[at + found.len()..]))
        .filter(|name| positions.get(*name).is_none_or(|found| *found > positions[module]))
        .collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .map(|entry| entry.expect("a folder that can be listed").path())
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn no_module_uses_one_declared_below_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).expect("lib.rs");
    let positions = positions(&lib);
    let mut wrong = Vec::new();
    for module in positions.keys() {
        let mut files = rust_files(&source.join(module));
        files.extend(Some(source.join(format!("{module}.rs"))).filter(|file| file.exists()));
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            for name in looks_down(&text, module, &positions) {
                wrong.push(format!("{} uses crate::{name}", file.display()));
            }
        }
    }
    assert!(positions.len() > 1, "no modules found in lib.rs");
    assert!(wrong.is_empty(), "lib.rs declares these later, or not at all:\n{}", wrong.join("\n"));
}

#[test]
fn the_check_sees_what_it_should() {
    let positions =
        positions("pub mod error;\nmod data;\npub mod model;\npub use model::{Mlp, Output};\n");
    let from_data = |source| looks_down(source, "data", &positions);
    assert!(from_data("use crate::error::Error;\nuse crate::{data::Row, error};").is_empty());
    assert!(from_data("// see crate::model\n/// [`crate::model::Mlp`]").is_empty());
    assert_eq!(from_data("use crate::model::Mlp;"), ["model"]);
    assert_eq!(from_data("fn f(m: &crate::Mlp) {}"), ["Mlp"]);
    assert_eq!(from_data("use crate::{error::{Error, Result}, model};"), ["model"]);
    assert_eq!(from_data("use crate::later::Thing;"), ["later"]);
}

/// The crates of the workspace that each one may depend on; it is linked into whatever depends
/// on it, so the Python package carries the library and the ledger alone.
const CRATES: [(&str, &[&str]); 6] = [
    ("crates/tyrex", &[]),
    ("crates/tyrex-ledger", &["tyrex"]),
    ("crates/tyrex-lab", &["tyrex"]),
    ("crates/tyrex-server", &["tyrex", "tyrex-lab", "tyrex-ledger"]),
    ("crates/tyrex-cli", &["tyrex", "tyrex-lab", "tyrex-ledger", "tyrex-server"]),
    ("python", &["tyrex", "tyrex-ledger"]),
];

#[test]
fn crates_depend_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = |folder: &str| -> toml::Table {
        fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap().parse().unwrap()
    };
    for (folder, allowed) in CRATES {
        let manifest = manifest(folder);
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = manifest.get(kind) else { continue };
            for name in table.as_table().unwrap().keys().filter(|name| name.starts_with("tyrex")) {
                assert!(allowed.contains(&name.as_str()), "{folder}: {kind} has {name}");
            }
        }
    }
    // A crate that is not in the list would not be checked.
    let mut folders: Vec<String> = fs::read_dir(root.join("crates"))
        .unwrap()
        .map(|entry| format!("crates/{}", entry.unwrap().file_name().to_str().unwrap()))
        .chain(["python".to_owned()])
        .collect();
    folders.sort();
    let mut listed = CRATES.map(|(folder, _)| folder);
    listed.sort_unstable();
    assert_eq!(folders, listed);
}
