//! The README is complete, and SECURITY.md names tests that exist.

use std::fs;
use std::path::Path;

use clap::builder::PossibleValue;
use clap::{Command, CommandFactory};
use nadmit::cli::Cli;

/// The README explains every flag of every command, and its variable, in a section about this command.
#[test]
fn every_flag_is_explained() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let sections: Vec<&str> = readme.split("\n## ").collect();
    let mut checked = 0;
    for command in Cli::command().get_subcommands() {
        let name = format!("nadmit {}", command.get_name());
        let about: String = sections.iter().filter(|section| section.contains(&name)).copied().collect();
        assert!(!about.is_empty(), "README.md does not mention `{name}`");
        for word in words(command) {
            let is_present = about.match_indices(&word).any(|(at, _)| {
                let next = about[at + word.len()..].chars().next();
                !next.is_some_and(|next| next.is_ascii_alphanumeric() || "-_".contains(next))
            });
            assert!(is_present, "README.md does not explain {word} of `{name}`");
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} flags and variables");
}

/// No argument exists for tests alone: `--help` shows every command and every argument, and explains it.
#[test]
fn no_argument_is_hidden() {
    fn check(command: &Command) -> usize {
        let name = command.get_name();
        assert!(!command.is_hide_set(), "the command {name} is hidden");
        let own = command.get_arguments().map(|argument| {
            let id = argument.get_id();
            let is_hidden = argument.is_hide_set()
                || argument.is_hide_short_help_set()
                || argument.is_hide_long_help_set()
                || argument.get_possible_values().iter().any(PossibleValue::is_hide_set);
            assert!(!is_hidden, "{name}: {id} is hidden");
            assert!(argument.get_help().is_some(), "{name}: {id} has no help");
            1
        });
        own.sum::<usize>() + command.get_subcommands().map(check).sum::<usize>()
    }
    let mut command = Cli::command();
    command.build();
    let checked = check(&command);
    assert!(checked > 60, "only {checked} arguments");
}

/// Each row of the table of attacks names at least one test or case, and all of these exist.
#[test]
fn every_attack_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let security = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let (_, table) = security.split_once("| attack | what stops it | test |\n|---|---|---|\n").unwrap();
    let mut checked = 0;
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let mut named = 0;
        for name in tests.split('`').skip(1).step_by(2) {
            let is_present = match name.split_once("::") {
                Some((file, test)) => {
                    let file = if file.starts_with("src/") { file.to_owned() } else { format!("tests/{file}") };
                    fs::read_to_string(root.join(file)).is_ok_and(|text| text.contains(&format!("fn {test}(")))
                }
                None => root.join("tests/cases").join(name).join("expect.yaml").exists(),
            };
            assert!(is_present, "SECURITY.md names `{name}`, which does not exist");
            named += 1;
        }
        assert!(named > 0, "no test in {row}");
        checked += named;
    }
    assert!(checked > 60, "only {checked} tests");
}

/// The flags of a command and their variables, as the README writes them.
fn words(command: &Command) -> Vec<String> {
    let words = command.get_arguments().flat_map(|argument| {
        let flag = argument.get_long().map(|long| format!("`--{long}"));
        let variable = argument.get_env().map(|variable| format!("`{}", variable.to_string_lossy()));
        [flag, variable]
    });
    words.flatten().filter(|word| word != "`--help").collect()
}
