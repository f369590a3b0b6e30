//! `nadmit check` as a process: its exit codes, and what people see.

mod cases;
mod configuration;
mod directories;
mod ignored;
mod inputs;
mod outputs;
mod policy;
mod rendered;
mod trees;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::case;

const GOOD: &str = "apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: good
  annotations:
    k8s.v1.cni.cncf.io/resourceName: openshift.io/cx7
spec:
  config: '{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\"}'
";

const BAD: &str = "apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: bad
spec:
  config: '{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\"}'
";

fn nadmit(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    command.env_remove("NADMIT_POLICY").env_remove("NADMIT_RESOURCE_PREFIX").env_remove("NADMIT_OPERATOR_NAMESPACE");
    command
}

/// The same in another directory.
fn nadmit_in(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = nadmit(arguments);
    command.current_dir(directory);
    command
}

/// A directory with files; a name that ends with a slash is a directory.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    directory
}

fn run(arguments: &[&str]) -> Output {
    nadmit(arguments).output().unwrap()
}

fn run_with_stdin(arguments: &[&str], stdin: &[u8]) -> Output {
    with_stdin(&mut nadmit(arguments), stdin)
}

fn with_stdin(command: &mut Command, stdin: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = pipe.write_all(&stdin);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The last line on standard error: what was judged, and what was skipped.
fn closing_line(output: &Output) -> String {
    text(&output.stderr).lines().last().unwrap_or_default().to_owned()
}

/// The summary of a JSON report.
fn summary(output: &Output) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)));
    report["summary"].clone()
}

/// The pages of the rules say what `nadmit check bad.yaml` prints: it is really printed.
#[test]
fn check_prints_what_the_rule_pages_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let messages = fs::read_to_string(root.join("src/output/reference/messages.txt")).unwrap();
    let mut compared = 0;
    for section in messages.split("\n## ").skip(1) {
        let (rule, message) = section.split_once('\n').unwrap();
        let case = case::Case::read(&root.join("tests/cases").join(rule).join("bad"));
        if !case.is_offline() {
            continue;
        }
        let policy = case.directory.join("policy.yaml");
        let mut command = nadmit(&["check", "bad.yaml"]);
        if policy.exists() {
            command.arg("--policy").arg(policy);
        }
        let output = command.current_dir(case.input_file.parent().unwrap()).output().unwrap();
        let printed = text(&output.stdout);
        for finding in message.trim().split("\n\n") {
            assert!(printed.contains(finding), "{rule}: the page shows\n{finding}\nbut the output is\n{printed}");
            compared += 1;
        }
    }
    assert!(compared > 70, "only {compared} messages");
}

#[test]
fn exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write("good.yaml", GOOD);
    let bad = write("bad.yaml", BAD);
    let patched = write("patched.yaml", &BAD.replace("\"type\"", "\"resourceName\": \"a.io/b\", \"type\""));
    let warned = write("warned.yaml", &GOOD.replace("name: good", "name: a.b"));
    let broken = write("broken.yaml", "kind: [");
    let policy = write("policy.yaml", "rules:\n  nad/resource-name-missing: warn\n");
    let audit = write("audit.yaml", "mode: audit\n");
    let elsewhere = write(
        "elsewhere.yaml",
        "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetwork\nmetadata: {name: a, namespace: op}\nspec: {resourceName: r, networkNamespace: apps}\n",
    );
    let bad_policy = write("bad-policy.yaml", "rules:\n  nad/resource-name-mising: warn\n");
    for (arguments, want) in [
        (vec![&*good], 0),
        (vec![&bad], 1),
        (vec![&good, &bad], 1),
        (vec![&patched], 0),
        (vec![&patched, "--deny", "patch"], 1),
        (vec![&warned], 0),
        (vec![&warned, "--deny", "warn"], 1),
        (vec![&warned, "--deny", "patch"], 0),
        (vec![&warned, "--deny", "patch,warn"], 1),
        (vec![&broken], 2),
        (vec![&broken, &bad], 2),
        (vec!["nowhere.yaml"], 2),
        (vec![&elsewhere], 0),
        (vec![&elsewhere, "--operator-namespace", "op"], 0),
        (vec![&elsewhere, "--operator-namespace", "other"], 1),
        (vec![&bad, "--policy", &policy], 0),
        (vec![&bad, "--policy", &audit], 0),
        (vec![&bad, "--policy", &bad_policy], 2),
        (vec![&bad, "--policy", "nowhere.yaml"], 2),
        (vec![&bad, "--output", "yaml"], 2),
        (vec![&bad, "--output", "json", "--diff"], 2),
        (vec![&bad, "--exclude", "["], 2),
        (vec![&good, "--fail-if-empty"], 0),
        (vec![&policy], 2),
        (vec![&good, "--pass-through"], 2),
        (vec![&good, "--no-config", "--config", "x.yaml"], 2),
        (vec![&good, "--config", "nowhere.yaml"], 2),
        (vec![], 2),
    ] {
        let arguments: Vec<&str> = ["check"].into_iter().chain(arguments).collect();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(want), "{arguments:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    }
}

/// The repair uses the prefix of the command line.
#[test]
fn resource_prefix_flag_is_used() {
    let output = run(&["check", "--output", "json", "--resource-prefix", "nvidia.com", "shown/missing.yaml"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["documents"][1]["patch"][0]["value"], "nvidia.com/cx7anl244");
}

#[test]
fn human_output_snapshots() {
    for (name, arguments) in [
        ("operator_nad_without_resource_name", &["--diff", "shown/missing.yaml"] as &[_]),
        ("sriov_network_with_a_broken_ipam", &["shown/network.yaml"]),
        ("inside_every_kind_of_scalar", &["shown/scalars.yaml"]),
        ("nothing_found", &["shown/good.yaml"]),
        ("audit_mode", &["--policy", "audit-policy.yaml", "shown/missing.yaml", "shown/network.yaml"]),
        ("github", &["--output", "github", "shown/network.yaml"]),
        ("junit", &["--output", "junit", "shown/network.yaml", "shown/good.yaml"]),
        ("json", &["--output", "json", "shown/missing.yaml"]),
    ] {
        let arguments: Vec<&str> = ["check", "--color", "never"].iter().chain(arguments).copied().collect();
        let output = run(&arguments);
        let errors = text(&output.stderr);
        assert!(
            errors.starts_with("nadmit: ") && errors.contains(" judged; ") && errors.lines().count() == 1,
            "{errors}"
        );
        insta::assert_snapshot!(name, text(&output.stdout));
    }
}

#[test]
fn help_and_rules_snapshots() {
    for (name, arguments) in [
        ("help", &["--help"] as &[_]),
        ("help_check", &["check", "--help"]),
        ("help_audit_log", &["audit-log", "--help"]),
        ("help_doctor", &["doctor", "--help"]),
        ("rules_one", &["rules", "nad/resource-name-missing"]),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0));
        insta::assert_snapshot!(name, text(&output.stdout));
    }
    for (wrong, hint) in [
        ("nad/resource-name-mising", "did you mean `nad/resource-name-missing`?"),
        ("field-type", "did you mean `nad/field-type`?"),
        ("plugin/vlan", "did you mean `sriov/vlan` or `ovs/vlan`?"),
        ("network/field-type", "did you mean `nad/field-type`?"),
        ("something\u{1b}[0m", "`nadmit rules` lists all rules"),
    ] {
        let output = run(&["rules", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let wrong = wrong.replace('\u{1b}', "\\u{1b}");
        assert_eq!(text(&output.stderr), format!("error: unknown rule `{wrong}`; {hint}\n"));
    }
    let output = run(&["rules", "ovn"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!("rules_of_a_family", text(&output.stdout));
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).stdout.len() > 500);
    }
}
