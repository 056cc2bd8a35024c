//! Keeps the order of imports: a module of `src` uses only what stands below it.
//!
//! ```text
//! cli > load > cluster, check > catalog > build > sort, types > record > source > sys
//! ```
//!
//! `error` and `text` may be used by all; `build` knows tuples and comparators, but neither types nor
//! where rows come from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From the top down; those of one line do not use each other.
const LAYERS: &[&[&str]] = &[
    &["cli"],
    &["load"],
    &["cluster", "check"],
    &["catalog"],
    &["build"],
    &["sort", "types"],
    &["record"],
    &["source"],
    &["sys"],
    &["error", "text"],
];

/// Below in the order, and forbidden all the same.
const NEVER: &[(&str, &str)] = &[("build", "types"), ("build", "record"), ("build", "source")];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn allowed(from: &str, to: &str) -> bool {
    from == to || (layer(to).is_some() && layer(from) < layer(to) && !NEVER.contains(&(from, to)))
}

/// The modules of the crate's root that a source text uses.
fn uses(source: &str) -> BTreeSet<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let own_word = code[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '$');
        if !own_word {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            found.extend(group_members(group));
        } else {
            found.insert(first_word(rest));
        }
    }
    found.remove("");
    found
}

/// The first word of each member of a `{a, b::{c, d}}` whose opening brace is behind us.
fn group_members(group: &str) -> Vec<String> {
    let mut members = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                members.push(first_word(group[start..at].trim_start()));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    members
}

fn first_word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn source_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory of sources") {
        let path = entry.expect("its entry").path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn a_module_uses_only_what_stands_below_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    source_files(&src, &mut files);
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in &files {
        let inside = file.strip_prefix(&src).expect("a file of src");
        let module = inside
            .iter()
            .next()
            .expect("a name")
            .to_str()
            .expect("UTF-8");
        let module = module.trim_end_matches(".rs");
        if module == "main" || module == "lib" {
            continue; // the roots: main calls cli, lib lists the modules
        }
        if layer(module).is_none() {
            wrong.push(format!("{module} has no place in the order"));
        }
        seen.insert(module.to_owned());
        for used in uses(&fs::read_to_string(file).expect("a source")) {
            if !allowed(module, &used) {
                wrong.push(format!("{} uses crate::{used}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for module in LAYERS[..9].iter().flat_map(|layer| *layer) {
        assert!(
            *module == "check" || seen.contains(*module),
            "no file of {module} was looked at"
        );
    }
}

#[test]
fn unsafe_stands_in_sys_alone() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    source_files(&src, &mut files);
    for file in files {
        let source = fs::read_to_string(&file).expect("a source");
        let found = source.lines().any(|line| {
            let code = line.split("//").next().unwrap_or_default();
            code.split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == "unsafe")
        });
        assert!(
            !found || file.starts_with(src.join("sys")),
            "{} has unsafe code",
            file.display()
        );
    }
}

#[test]
fn the_reader_of_imports_sees_groups_paths_and_no_comments() {
    let source = "
        //! See [`crate::load`].
        use crate::{error::{Error, Result}, types, build::heap::{self, Writer}};
        use crate::sort::Run;
        fn f() { crate::record::parse(); $crate::cli::main(); other_crate::check::x() }
        // crate::cluster
    ";
    let found = uses(source);
    let expected = ["build", "error", "record", "sort", "types"];
    assert_eq!(
        found.iter().map(String::as_str).collect::<Vec<_>>(),
        expected
    );
    assert!(allowed("types", "record") && allowed("sort", "error") && allowed("load", "check"));
    assert!(!allowed("build", "types") && !allowed("types", "sort") && !allowed("sys", "source"));
    assert!(!allowed("types", "no_such_module"));
}
