//! The workflows, the action and the hooks for pre-commit: nothing that a stranger writes becomes part of a script, what others wrote is
//! pinned, and no job may do more than it needs. `tests/cluster/workflows.rs` has them checked by actionlint. The examples of docs/ci.md do
//! what they say.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use clap::CommandFactory;
use nadmit::cli::Cli;
use nadmit::yaml::Documents;
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Value {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let mut documents = Documents::new(&text);
    let document = documents.next().unwrap().node.unwrap();
    assert!(documents.next().is_none(), "{path} has several documents");
    serde_json::from_str(&document.to_json()).unwrap()
}

fn workflows() -> Vec<(String, Value)> {
    let entries = fs::read_dir(root().join(".github/workflows")).unwrap();
    let mut paths: Vec<String> =
        entries.map(|entry| format!(".github/workflows/{}", entry.unwrap().file_name().to_str().unwrap())).collect();
    paths.sort();
    assert!(paths.len() >= 3, "{paths:?}");
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// The steps of all workflows and of the action.
fn steps() -> Vec<(String, Value)> {
    let mut steps = Vec::new();
    for (path, workflow) in workflows() {
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            steps.extend(job["steps"].as_array().unwrap().iter().map(|step| (format!("{path}, {name}"), step.clone())));
        }
    }
    let action = read("action.yml");
    steps
        .extend(action["runs"]["steps"].as_array().unwrap().iter().map(|step| ("action.yml".to_owned(), step.clone())));
    assert!(steps.len() > 20, "only {} steps", steps.len());
    steps
}

/// Why a step should not be there.
fn problem(step: &Value) -> Option<&'static str> {
    if step["run"].as_str().is_some_and(|script| script.contains("${{")) {
        return Some("an expression in a script");
    }
    let uses = step["uses"].as_str()?;
    let is_hash = |version: &str| version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    if uses != "./" && !uses.rsplit_once('@').is_some_and(|(_, version)| is_hash(version)) {
        return Some("an action that is not pinned by its commit");
    }
    let is_checkout = uses.starts_with("actions/checkout@");
    (is_checkout && step["with"]["persist-credentials"] != false).then_some("a checkout that keeps the token")
}

#[test]
fn no_step_trusts_strangers() {
    for (place, step) in steps() {
        assert_eq!(problem(&step), None, "{place}: {step:#}");
    }
    let hash = "0123456789012345678901234567890123456789";
    for (step, is_bad) in [
        (json!({"run": "echo ${{ inputs.paths }}"}), true),
        (json!({"run": "echo \"$PATHS\""}), false),
        (json!({"uses": "actions/attest@v4"}), true),
        (json!({"uses": format!("actions/attest@{hash}")}), false),
        (json!({"uses": format!("actions/checkout@{hash}")}), true),
        (json!({"uses": "./"}), false),
    ] {
        assert_eq!(problem(&step).is_some(), is_bad, "{step}");
    }
}

/// A pinned action says which release the commit is.
#[test]
fn every_pin_names_its_release() {
    let mut paths: Vec<String> = workflows().into_iter().map(|(path, _)| path).collect();
    paths.push("action.yml".to_owned());
    for path in paths {
        for line in fs::read_to_string(root().join(&path)).unwrap().lines().filter(|line| line.contains("uses: ")) {
            let is_named = line.split_once(" # v").is_some_and(|(_, version)| version.split('.').count() == 3);
            assert!(line.ends_with("uses: ./") || is_named, "{path}: {line}");
        }
    }
}

/// A workflow may read, and a job that writes is listed here with what it may write.
#[test]
fn permissions_are_the_least() {
    let mut writers = BTreeSet::new();
    for (path, workflow) in workflows() {
        let of_all = &workflow["permissions"];
        assert!(*of_all == json!({}) || *of_all == json!({"contents": "read"}), "{path}: {of_all}");
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            assert!(job["timeout-minutes"].is_u64(), "{path}, {name}: no timeout");
            for (scope, level) in job["permissions"].as_object().into_iter().flatten() {
                if level != "read" {
                    writers.insert(format!("{path} {name} {scope}"));
                }
            }
        }
    }
    let release = ["attestations", "contents", "id-token", "packages"];
    let wanted: BTreeSet<String> =
        release.iter().map(|scope| format!(".github/workflows/release.yaml publish {scope}")).collect();
    assert_eq!(writers, wanted);
}

/// Workflows that pull requests start have no secrets, and none is started by `pull_request_target`, which would have them.
#[test]
fn pull_requests_get_no_secrets() {
    for (path, workflow) in workflows() {
        let text = workflow.to_string();
        assert!(!text.contains("pull_request_target") && !text.contains("secrets."), "{path}");
    }
}

/// The scripts that workflows and the action call exist.
#[test]
fn called_scripts_exist() {
    let mut called = BTreeSet::new();
    for (_, step) in steps() {
        let script = step["run"].as_str().unwrap_or_default().replace("$GITHUB_ACTION_PATH/", "");
        let words = script.split(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
        called.extend(words.filter(|word| word.starts_with("deploy/") || word.starts_with(".ci/")).map(str::to_owned));
    }
    assert!(called.len() > 6, "{called:?}");
    for script in called {
        assert!(root().join(&script).is_file(), "{script} does not exist");
    }
}

/// The tests with pods need root (`tests/node/run` ends in CI without it), and the toolchains of the user who started the job: `sudo`
/// replaces both variables that lead to them.
#[test]
fn all_tests_run_as_root() {
    let mut scripts = steps().into_iter().filter_map(|(_, step)| Some(step["run"].as_str()?.to_owned()));
    let script = scripts.find(|script| script.contains(".ci/run")).expect("a workflow runs .ci/run");
    assert_eq!(scripts.find(|script| script.contains(".ci/run")), None, "it runs twice");
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(
        "bin/sudo",
        "[ \"$1\" != --preserve-env ] || shift\nexec env PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root IS_ROOT=yes \"$@\"",
    );
    write(".ci/run", "echo \"$IS_ROOT $HOME $PATH\"");
    let path = format!("{}/bin:/opt/go/bin:/usr/bin:/bin", directory.path().display());
    let mut shell = Command::new("sh");
    shell.args(["-ec", &script]).current_dir(directory.path()).env_remove("IS_ROOT");
    let out = shell.env("HOME", "/home/somebody").env("PATH", &path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), format!("yes /home/somebody {path}\n"), "{script}: {out:?}");
}

/// Each input of the action reaches a script, each variable of a script is an input, and docs/ci.md explains each.
#[test]
fn inputs_of_the_action_are_used_and_explained() {
    let action = read("action.yml");
    let page = fs::read_to_string(root().join("docs/ci.md")).unwrap();
    let steps = action["runs"]["steps"].to_string();
    for name in action["inputs"].as_object().unwrap().keys() {
        assert!(steps.contains(&format!("inputs.{name}")), "the input {name} is not used");
        assert!(page.contains(&format!("| `{name}` |")), "docs/ci.md does not explain the input {name}");
    }
    for name in action["outputs"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{name}`")), "docs/ci.md does not name the output {name}");
    }
    let scripts = ["install", "check"].map(|name| fs::read_to_string(root().join("deploy/action").join(name)).unwrap());
    let of_scripts: BTreeSet<&str> = scripts.iter().flat_map(|script| variables(script)).collect();
    let of_action: BTreeSet<&str> = variables(&steps).collect();
    assert_eq!(of_scripts, of_action, "the variables of deploy/action (left) are not those of action.yml (right)");
    assert!(of_action.len() > 6, "{of_action:?}");
}

/// The names `INPUT_…` in a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("INPUT_").map(|(at, _)| {
        let rest = &text[at..];
        &rest[..rest.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(rest.len())]
    })
}

/// What the hooks for pre-commit run is a command line of nadmit.
#[test]
fn hooks_run_valid_commands() {
    let hooks = read(".pre-commit-hooks.yaml");
    let hooks = hooks.as_array().unwrap();
    assert_eq!(hooks.len(), 2);
    for hook in hooks {
        let entry = hook["entry"].as_str().unwrap().split(' ');
        let arguments = hook["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
        Cli::command().try_get_matches_from(entry.chain(arguments)).unwrap();
        assert_eq!(hook["pass_filenames"], false, "manifests that belong together would be judged apart");
    }
}

/// The YAML documents that a page shows.
fn shown(page: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split_once("\n```").unwrap().0);
    blocks
        .map(|block| serde_json::from_str(&Documents::new(block).next().unwrap().node.unwrap().to_json()).unwrap())
        .collect()
}

/// Every example gives the action inputs that it has, and names hooks that exist.
#[test]
fn examples_use_what_there_is() {
    let action = read("action.yml");
    let inputs = action["inputs"].as_object().unwrap();
    let hooks: BTreeSet<String> = read(".pre-commit-hooks.yaml")
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| hook["id"].as_str().unwrap().to_owned())
        .collect();
    let (mut actions, mut used_hooks) = (0, 0);
    for document in shown("docs/ci.md").into_iter().chain(shown("README.md")) {
        let jobs = document["jobs"].as_object().into_iter().flatten();
        for step in jobs.flat_map(|(_, job)| job["steps"].as_array().unwrap()) {
            if step["uses"].as_str().is_some_and(|uses| uses.contains("/nadmit@")) {
                for input in step["with"].as_object().unwrap().keys() {
                    assert!(inputs.contains_key(input), "the action has no input {input}");
                }
                actions += 1;
            }
        }
        for hook in
            document["repos"].as_array().into_iter().flatten().flat_map(|repo| repo["hooks"].as_array().unwrap())
        {
            assert!(hooks.contains(hook["id"].as_str().unwrap()), "{hook}");
            let arguments = hook["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
            Cli::command().try_get_matches_from(["nadmit", "check"].into_iter().chain(arguments)).unwrap();
            used_hooks += 1;
        }
    }
    assert!(actions >= 2 && used_hooks >= 1, "{actions} actions, {used_hooks} hooks");
}

/// The job for GitLab fails for a manifest that is denied, and leaves a report either way.
#[test]
fn the_job_for_gitlab_reports_and_decides() {
    let page = shown("docs/ci.md");
    let job = page.iter().find_map(|document| document.get("nadmit")).unwrap();
    assert_eq!(job["artifacts"]["reports"]["junit"], "nadmit.xml");
    let lines: Vec<&str> = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    for (example, code) in [("good", Some(0)), ("bad", Some(1))] {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("manifests")).unwrap();
        let from = root().join(format!("src/policy/rules/examples/nad/field-type/{example}.yaml"));
        fs::copy(from, directory.path().join("manifests/a.yaml")).unwrap();
        symlink(env!("CARGO_BIN_EXE_nadmit"), directory.path().join("nadmit")).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-ec", &lines.join("\n")]).current_dir(directory.path());
        let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
        assert_eq!(shell.env("PATH", path).output().unwrap().status.code(), code, "{example}");
        let report = fs::read_to_string(directory.path().join("nadmit.xml")).unwrap();
        assert!(report.contains("<testsuite"), "{report}");
        assert_eq!(report.contains("<failure"), example == "bad", "{report}");
    }
}
