//! The scripts of the repository, checked by shellcheck.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::not_run::not_run;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where scripts are.
const DIRECTORIES: [&str; 9] = [
    ".ci",
    "deploy",
    "deploy/action",
    "deploy/release",
    "tests",
    "tests/cluster",
    "tests/node",
    "tests/readers",
    "fuzz",
];

/// Whether a text is a shell script, by its first line.
fn is_shell(text: &[u8]) -> bool {
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"# shellcheck shell=")
        || first.starts_with(b"#!") && (first.ends_with(b"sh") || first.ends_with(b"bash"))
}

fn scripts() -> Vec<PathBuf> {
    let entries = DIRECTORIES.iter().flat_map(|directory| fs::read_dir(root().join(directory)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut scripts: Vec<PathBuf> = paths.filter(|path| is_shell(&fs::read(path).unwrap())).collect();
    scripts.sort();
    assert!(scripts.len() > 12, "{scripts:?}");
    scripts
}

#[test]
fn shellcheck_finds_nothing() {
    if Command::new("shellcheck").arg("--version").output().is_err() {
        not_run("shellcheck over the scripts", "Install shellcheck.");
        return;
    }
    let check = |scripts: &[PathBuf]| {
        let mut command = Command::new("shellcheck");
        // SC2046: what a program prints as words is split on purpose.
        let options = ["--external-sources", "--source-path=SCRIPTDIR", "--severity=warning", "--exclude=SC2046"];
        command.args(options).arg("--").args(scripts).current_dir(root()).output().unwrap()
    };
    let output = check(&scripts());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let directory = tempfile::tempdir().unwrap();
    let bad = directory.path().join("bad");
    fs::write(&bad, "#!/bin/sh\ncd /nowhere\nrm -rf $1/*\nlocal x\n").unwrap();
    assert!(!check(&[bad]).status.success(), "shellcheck finds nothing at all");
}
