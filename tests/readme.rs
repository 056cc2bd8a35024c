//! README.md and the program agree on the options: those in README's section "Options" are those
//! in `--help`, and README's commands use no others.

use std::collections::BTreeSet;
use std::process::Command;
use support::run;

const README: &str = include_str!("../README.md");

/// The long option that a word begins with, without value and punctuation.
fn long_option(word: &str) -> Option<String> {
    let name = word
        .trim_start_matches(['`', '(', '['])
        .strip_prefix("--")?;
    let end = name
        .find(|c: char| !c.is_ascii_lowercase() && c != '-')
        .unwrap_or(name.len());
    (end > 0).then(|| format!("--{}", &name[..end]))
}

/// The long options that a text mentions.
fn mentioned(text: &str) -> BTreeSet<String> {
    text.split_whitespace().filter_map(long_option).collect()
}

/// The long options that `--help` of a command lists. Lines of options are indented by less than
/// eight blanks, what is said of them by more.
fn listed_by_help(command: &[&str]) -> BTreeSet<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pgpagewrite"));
    let help = run(program.args(command).arg("--help")).expect_success();
    help.lines()
        .filter(|line| {
            let option = line.trim_start();
            option.starts_with('-') && line.len() - option.len() < 8
        })
        .filter_map(|line| line.split_whitespace().find_map(long_option))
        .collect()
}

fn listed() -> BTreeSet<String> {
    [&[][..], &["build"], &["register"], &["recover"]]
        .into_iter()
        .flat_map(listed_by_help)
        .collect()
}

/// README's text between a heading and the next.
fn section(heading: &str) -> &'static str {
    let (_, rest) = README
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("README has no section {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The arguments of README's commands, continued lines joined.
fn commands() -> Vec<String> {
    README
        .replace("\\\n", " ")
        .lines()
        .flat_map(|line| line.split("pgpagewrite ").skip(1))
        .filter_map(|arguments| arguments.split('`').next())
        .filter(|arguments| {
            ["build ", "plan ", "register ", "recover "]
                .iter()
                .any(|command| arguments.starts_with(command))
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn readme_lists_the_options_that_help_lists() {
    let in_readme: BTreeSet<String> = section("Options")
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(mentioned)
        .collect();
    let in_help = listed();
    assert!(in_help.contains("--trust-constraints"), "{in_help:?}");
    let missing: Vec<_> = in_help.difference(&in_readme).collect();
    let unknown: Vec<_> = in_readme.difference(&in_help).collect();
    assert!(missing.is_empty(), "README does not list {missing:?}");
    assert!(unknown.is_empty(), "the program does not have {unknown:?}");
}

#[test]
fn readmes_commands_use_options_that_the_program_has() {
    let (commands, known) = (commands(), listed());
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands {
        let unknown: Vec<_> = mentioned(&command).difference(&known).cloned().collect();
        assert!(unknown.is_empty(), "{command}: no {unknown:?}");
    }
}

#[test]
fn options_are_told_from_the_words_around_them() {
    assert_eq!(
        mentioned("`--header[=match]`, --jobs=2 (--wal): -- and -x"),
        BTreeSet::from(["--header".into(), "--jobs".into(), "--wal".into()])
    );
}
