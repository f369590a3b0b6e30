//! The workflows, checked by actionlint, and their scripts by shellcheck where that is installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::cluster::bin;

/// Checks the workflows of a repository: what is called in one, and the action.
fn lint(workflows: &[(String, String)]) -> Output {
    let repository = tempfile::tempdir().unwrap();
    let at = |path: &str| repository.path().join(path);
    fs::create_dir_all(at(".github/workflows")).unwrap();
    // By this directory actionlint knows where the repository begins.
    fs::create_dir(at(".git")).unwrap();
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml"), at("action.yml")).unwrap();
    for (name, text) in workflows {
        fs::write(at(".github/workflows").join(name), text).unwrap();
    }
    let mut command = Command::new(bin().join("actionlint"));
    command.args(["-no-color", "-pyflakes="]).current_dir(repository.path()).output().unwrap()
}

#[test]
fn actionlint_finds_nothing() {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows")).unwrap();
    let read =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap());
    let workflows: Vec<_> = entries.map(|entry| read(entry.unwrap())).collect();
    assert!(workflows.len() >= 3, "{workflows:?}");
    let output = lint(&workflows);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // An input that the action does not have, a step that is not there, and text of a stranger in a script.
    let (name, good) = workflows.iter().find(|(name, _)| name == "ci.yaml").unwrap();
    for (from, to) in [
        ("install: none", "instal: none"),
        ("steps.bad.outcome", "steps.worse.outcome"),
        ("run: make deny", "run: echo ${{ github.head_ref }} deny"),
    ] {
        assert!(good.contains(from), "{from}");
        assert_eq!(lint(&[(name.clone(), good.replacen(from, to, 1))]).status.code(), Some(1), "{to}");
    }
}
