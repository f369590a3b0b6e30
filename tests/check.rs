//! `nadmit check` as a process: its output for scripts and people.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::browser::Browser;
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

fn run(arguments: &[&str]) -> Output {
    nadmit(arguments).output().unwrap()
}

fn run_with_stdin(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut command = nadmit(arguments);
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

/// The binary reports the same findings as the judgement, in every case that needs no cluster.
#[test]
fn each_case_through_the_binary() {
    let mut judged = 0;
    for case in case::all().iter().filter(|case| case.is_offline()) {
        let input = &case.input_file;
        let policy = case.directory.join("policy.yaml");
        let mut arguments = vec!["check", "--output", "json", input.to_str().unwrap()];
        if policy.exists() {
            arguments.extend(["--policy", policy.to_str().unwrap()]);
        }
        let output = run(&arguments);
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let documents = report["documents"].as_array().unwrap();
        let mut found: Vec<_> = documents
            .iter()
            .enumerate()
            .flat_map(|(number, document)| {
                document["findings"].as_array().unwrap().iter().map(move |finding| {
                    let field = |key: &str| finding[key].as_str().map(ToOwned::to_owned);
                    (
                        number,
                        field("rule").unwrap(),
                        field("action").unwrap(),
                        field("pointer").unwrap(),
                        field("config_pointer"),
                    )
                })
            })
            .collect();
        found.sort();
        let mut expected: Vec<_> = case
            .expect
            .findings
            .iter()
            .cloned()
            .map(|finding| (finding.document, finding.rule, finding.action, finding.pointer, finding.config_pointer))
            .collect();
        expected.sort();
        assert_eq!(found, expected, "{}", case.name);
        if let Some(patch) = &case.expect.patch {
            assert_eq!(documents[0]["patch"], *patch, "{}", case.name);
        }
        let denied = expected.iter().any(|(_, _, action, ..)| action == "deny");
        assert_eq!(output.status.code(), Some(i32::from(denied)), "{}", case.name);
        judged += 1;
    }
    assert!(judged > 300, "only {judged} cases");
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
        (vec![], 2),
    ] {
        let arguments: Vec<&str> = ["check"].into_iter().chain(arguments).collect();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(want), "{arguments:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn policy_errors_name_line_and_key() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("p.yaml");
    for (content, want) in [
        (
            "mode: enforce\nrules:\n  nad/resource-name-mising: warn\n",
            "line 3: `nad/resource-name-mising`: there is no such rule; did you mean `nad/resource-name-missing`?",
        ),
        ("rules:\n  sriov/vlan: patch\n", "line 2: `sriov/vlan`: this rule has no repair; use deny"),
        ("mode: loud\n", "line 1: `mode`: unknown variant `loud`, expected `enforce` or `audit`"),
        ("exempt:\n  user: [x]\n", "line 2: `exempt.user`: unknown field `user`, expected `users` or `namespaces`"),
        ("a: [\n", "line 1, column 1: did not find expected node content while parsing a flow node"),
        ("mode: audit\n---\nmode: audit\n", "line 3: a policy file has one document"),
        (
            "exceptions:\n- {rule: sriov/vlan, namespace: a, name: b, reason: x, expires: soon}\n",
            "line 2: `exceptions[0].expires`: ",
        ),
        (
            "exceptions:\n- {rule: sriov/vlan, namespace: a, name: b, reason: ' ', expires: 2030-01-01}\n",
            "line 2: `reason`: an exception needs a reason",
        ),
        (
            "namespaces:\n- names: [a]\n  defaultResourceName: cx7\n",
            "line 3: `defaultResourceName`: `cx7` has no domain",
        ),
    ] {
        fs::write(&policy, content).unwrap();
        let output = run(&["check", "--policy", policy.to_str().unwrap(), "-"]);
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains("p.yaml") && error.contains(want), "{error}\nwanted: {want}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Each unreadable input gives one line that names the file and the document, and the other documents are judged.
#[test]
fn input_errors_are_one_line() {
    let bomb = "kind: X\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    let deep = format!("kind: X\na: {}", "[".repeat(100_000));
    for (input, want) in [
        (b"kind: \xff\n".to_vec(), "-: line 1: not UTF-8 text (byte 6)".to_owned()),
        (
            bomb.as_bytes().to_vec(),
            "-: line 7: document 1: column 5: anchors and aliases expand to more than 16 MiB".to_owned(),
        ),
        (deep.into_bytes(), "-: line 2: document 1: column 132: nested deeper than 128 levels".to_owned()),
        (b"metadata: {}\n".to_vec(), "-: line 1: document 1: not a Kubernetes object: `kind` is missing".to_owned()),
        (b"- a\n".to_vec(), "-: line 1: document 1: not a Kubernetes object: expected a mapping".to_owned()),
        (
            b"kind: X\n---\na: b: c\n".to_vec(),
            "-: line 3: document 2: column 5: mapping values are not allowed".to_owned(),
        ),
    ] {
        let mut with_more = input.clone();
        with_more.extend_from_slice(b"\n---\n");
        with_more.extend_from_slice(BAD.as_bytes());
        let readable = std::str::from_utf8(&input).is_ok();
        let output = run_with_stdin(&["check", "-"], &with_more);
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.starts_with(&format!("error: {want}")), "{error}\nwanted: {want}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let out = text(&output.stdout);
        assert_eq!(out.contains("nad/resource-name-missing"), readable, "the document after it is judged: {out}");
    }
}

/// The repair uses the prefix of the command line.
#[test]
fn resource_prefix_flag_is_used() {
    let output = run(&["check", "--output", "json", "--resource-prefix", "nvidia.com", "shown/missing.yaml"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["documents"][1]["patch"][0]["value"], "nvidia.com/cx7anl244");
}

/// A config of nothing but brackets is a finding, and does not crash the parser.
#[test]
fn file_snippets_point_at_brackets() {
    let manifest = BAD.replace("{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\"}", &"[".repeat(100_000));
    let output = run_with_stdin(&["check", "--output", "json", "-"], manifest.as_bytes());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["documents"][0]["findings"][0]["rule"], "nad/config-too-large");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_that_is_too_large_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.yaml");
    fs::File::create(&path).unwrap().set_len(100 << 20).unwrap();
    let output = run(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).ends_with("large.yaml: larger than 64 MiB; split the file\n"));
}

/// `nadmit check … | head` exits without an error.
#[test]
fn a_closed_pipe_is_no_error() {
    let many = format!("{BAD}---\n").repeat(3000);
    let mut command = nadmit(&["check", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(many.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn lists_and_json_are_read() {
    let list = format!("{{\"kind\": \"List\", \"items\": [{}]}}", json_of(BAD));
    for input in [
        json_of(BAD),
        list,
        format!("kind: NetworkAttachmentDefinitionList\nitems:\n- {}\n- {{kind: Pod}}\n", json_of(BAD)),
    ] {
        let output = run_with_stdin(&["check", "--output", "json", "-"], input.as_bytes());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["summary"]["documents"], 1, "{input}");
        assert_eq!(report["documents"][0]["name"], "bad");
        assert_eq!(output.status.code(), Some(1));
    }
}

fn json_of(manifest: &str) -> String {
    nadmit::yaml::Documents::new(manifest).next().unwrap().node.unwrap().to_json()
}

/// Equal input gives equal bytes, in every format, with any number of cores.
#[test]
fn output_is_the_same_every_time() {
    const EXAMPLE: &str = "../src/policy/rules/examples/nad/unknown-key/bad.yaml";
    for format in ["human", "json", "sarif", "junit", "github"] {
        let first = run(&["check", "--output", format, "shown", EXAMPLE]);
        assert_eq!(first.status.code(), Some(1), "{}", text(&first.stderr));
        assert!(first.stdout.len() > 1000);
        assert_eq!(first.stdout, run(&["check", "--output", format, "shown", EXAMPLE]).stdout, "{format}");
    }
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
        assert_eq!(text(&output.stderr), "");
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
    let output = run(&["rules", "nad/resource-name-mising"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: unknown rule `nad/resource-name-mising`; did you mean `nad/resource-name-missing`?\n"
    );
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).stdout.len() > 500);
    }
}

/// The page of objects in a real browser: search, filter, and an opened object with the changes of admission.
#[test]
fn the_page_of_objects_works_in_a_browser() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("check.html");
    let out = run(&["check", "-o", "html", "../examples/telco.yaml"]);
    assert_eq!(out.status.code(), Some(1));
    fs::write(&page, out.stdout).unwrap();
    let Some(mut browser) = Browser::start() else { return };
    const OBJECTS: &str = "[...document.querySelectorAll('table')].at(-1)";
    let names = format!(
        "[...{OBJECTS}.querySelectorAll('tbody:not([hidden]) tr:first-child')].map((row) => row.cells[3].textContent)"
    );
    browser.open(&page, "");
    assert_eq!(browser.value(&names), serde_json::json!(["telco-data", "telco-mgmt"]));
    assert_eq!(browser.value("document.querySelector('tbody td').textContent"), "apps", "by namespace");
    browser.open(&page, "#only=patch");
    assert_eq!(browser.value(&names), serde_json::json!(["telco-mgmt"]));
    browser.press("Tab", 9, "");
    browser.write("vlan proto");
    assert_eq!(browser.value(&names), serde_json::json!([]));
    browser.open(&page, "#q=telco-mgmt");
    let added = "[...document.querySelectorAll('pre.diff ins')].filter((line) => line.checkVisibility()).map((line) => line.textContent).join('')";
    assert_eq!(browser.value(added), "");
    browser.click("tbody:not([hidden]) button");
    let shown = browser.value(added);
    assert!(shown.as_str().unwrap().contains("k8s.v1.cni.cncf.io/resourceName: openshift.io/cx7anl244"), "{shown}");
    assert_eq!(browser.requests().len(), 1, "the page requests nothing else");
}
