//! What is left out of directories: the same as git ignores, and what is excluded.

use std::fs;
use std::path::Path;
use std::process::Command;

use nadmit::manifests::inputs;
use serde_json::json;

use super::{BAD, GOOD, nadmit_in, summary, text, tree};
use crate::hostile::Numbers;
use crate::not_run::not_run;

/// `--exclude` and what it leaves of the tree.
#[test]
fn excludes_are_patterns_of_the_working_directory() {
    let files = ["a.yaml", "gen/a.yaml", "gen/b.yaml", "x/gen/c.yaml", "x/d.yaml"];
    let tree = tree(&files.map(|name| (name, GOOD)));
    for (arguments, documents, ignored) in [
        (&["."] as &[_], 5, 0),
        (&[".", "--exclude", "gen"], 2, 2),
        (&[".", "--exclude", "/gen"], 3, 1),
        (&[".", "--exclude", "a.yaml", "--exclude", "x/**"], 1, 4),
        (&[".", "--exclude", "gen/*", "--exclude", "!gen/b.yaml"], 4, 1),
        (&["x", "--exclude", "x/gen"], 1, 1),
        // What is named is judged.
        (&["gen", "gen/a.yaml", "--exclude", "gen"], 3, 0),
        (&["a.yaml", "--exclude", "*.yaml"], 1, 0),
    ] {
        let arguments = [&["check", "-o", "json"], arguments].concat();
        let output = nadmit_in(tree.path(), &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        let summary = summary(&output);
        let counts = (&summary["documents"], &summary["skipped"]["ignored"]);
        assert_eq!(counts, (&json!(documents), &json!(ignored)), "{arguments:?}");
    }
    let output = nadmit_in(tree.path(), &["check", ".", "--exclude", "[a"]).output().unwrap();
    assert_eq!(text(&output.stderr), "error: --exclude [a: not a pattern: a bracket or an escape does not end\n");
}

/// Outside of a git work tree a `.gitignore` has no meaning, and `.git` is never entered.
#[test]
fn ignore_files_count_in_work_trees() {
    let tree = tree(&[(".gitignore", "bad.yaml\n"), ("bad.yaml", BAD), ("good.yaml", GOOD)]);
    let code = || nadmit_in(tree.path(), &["check", "."]).output().unwrap().status.code();
    assert_eq!(code(), Some(1));
    fs::create_dir(tree.path().join(".git")).unwrap();
    fs::write(tree.path().join(".git/bad.yaml"), BAD).unwrap();
    assert_eq!(code(), Some(0));
}

impl Numbers {
    fn pick<'p>(&mut self, pieces: &[&'p str]) -> &'p str {
        pieces[self.below(pieces.len())]
    }
}

/// Lines of a `.gitignore` out of everything that has a meaning there. Stars that touch a name are left out when there are two of them: older
/// releases of git take them for a name of their own.
fn patterns(numbers: &mut Numbers) -> String {
    const PIECES: [&str; 14] =
        ["a", "b", "ab", ".yaml", ".yaml", "*", "?", "[ab]", "[!a]", "[a-b]", "[[:alpha:]]", "\\a", "\\*", "["];
    let mut text = String::new();
    for _ in 0..1 + numbers.below(4) {
        text.push_str(numbers.pick(&["", "", "!"]));
        text.push_str(numbers.pick(&["", "", "/"]));
        for segment in 0..1 + numbers.below(3) {
            text.push_str(if segment > 0 { "/" } else { "" });
            if numbers.below(4) == 0 {
                text.push_str("**");
                continue;
            }
            for _ in 0..1 + numbers.below(3) {
                let piece = numbers.pick(&PIECES);
                text.push_str(if piece == "*" && text.ends_with('*') { "?" } else { piece });
            }
        }
        text.push_str(numbers.pick(&["\n", "\n", "\n", "/\n", "\r\n", "  \n", "\\ \n", "\n# a\n", "\n\n"]));
    }
    text
}

fn git(directory: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(directory).env("HOME", directory).env_remove("XDG_CONFIG_HOME");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
    let output = command.output().ok()?;
    assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
    Some(output.stdout)
}

/// For random patterns in several directories, the files that are read are those that git lists.
#[test]
fn ignores_what_git_ignores() {
    let names = [
        "a.yaml",
        "b.yaml",
        "ab.yaml",
        "a/a.yaml",
        "a/b.yaml",
        "a/b/a.yaml",
        "a/b/ab.yaml",
        "b/a.yaml",
        "b/ab/b.yaml",
        "ab/a/b/a.yaml",
    ];
    let tree = tree(&names.map(|name| (name, "")));
    if git(tree.path(), &["init", "--quiet"]).is_none() {
        return not_run("the comparison of ignored files with git", "Install git.");
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut ignored, mut kept) = (0, 0);
    for _ in 0..250 {
        let mut written = String::new();
        for directory in ["", "a/", "a/b/", "b/"] {
            let path = tree.path().join(format!("{directory}.gitignore"));
            let _ = fs::remove_file(&path);
            if directory.is_empty() || numbers.below(3) == 0 {
                let text = patterns(&mut numbers);
                written += &format!("{directory}.gitignore: {text:?}\n");
                fs::write(path, text).unwrap();
            }
        }
        let listed = git(tree.path(), &["ls-files", "--others", "--exclude-standard", "-z"]).unwrap();
        let mut want: Vec<String> =
            text(&listed).split('\0').filter(|name| name.ends_with(".yaml")).map(str::to_owned).collect();
        want.sort();
        let found = inputs(&[tree.path().to_owned()], &[]);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        let prefix = format!("{}/", tree.path().display());
        let mut read: Vec<String> = found.inputs.iter().map(|input| input.name().replacen(&prefix, "", 1)).collect();
        read.sort();
        assert_eq!(read, want, "read (left) is not what git lists (right)\n{written}");
        kept += read.len();
        ignored += names.len() - read.len();
    }
    assert!(ignored > 300 && kept > 300, "{ignored} ignored, {kept} kept");
}
