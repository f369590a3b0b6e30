//! Directories hold other files than manifests; a file that is named must hold manifests.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{BAD, GOOD, closing_line, nadmit_in, summary, text, tree};

/// The counts of a JSON summary that are not zero.
fn skipped(output: &std::process::Output) -> serde_json::Value {
    let mut skipped = summary(output)["skipped"].clone();
    skipped.as_object_mut().unwrap().retain(|_, number| *number != 0);
    skipped
}

/// File name and content, the exit code and the skipped ones in a directory, and the error if the file is named.
#[test]
fn other_files_are_skipped_and_counted() {
    let helm = "a Helm template, not a manifest; render it first: helm template";
    for (name, content, code, want, named) in [
        ("values.yaml", "replicas: 2\n", 0, json!({"no_kind": 1}), "`kind` is missing"),
        ("deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\n", 0, json!({"other_kinds": 1}), ""),
        ("two.yaml", "a: 1\n---\nkind: Pod\n---\nb: 2\n", 0, json!({"no_kind": 2, "other_kinds": 1}), "document 3: "),
        ("playbook.yml", "- hosts: all\n", 0, json!({"no_kind": 1}), "expected a mapping"),
        ("text.yaml", "just a text\n", 0, json!({"no_kind": 1}), "expected a mapping"),
        ("list.json", "[1, 2]\n", 0, json!({"no_kind": 1}), "expected a mapping"),
        ("empty.yaml", "# nothing\n", 0, json!({}), ""),
        ("settings.json", "// comment\n{\"a\": 1}\n", 0, json!({"no_kind": 1}), "document 1: "),
        ("ansible.yaml", "a: {{ b }}-{{ c }}\n", 0, json!({"helm_templates": 1}), helm),
        ("policy.yaml", "mode: audit\n", 0, json!({"no_kind": 1}), "this is a policy of nadmit: pass it with --policy"),
        (".nadmit.yaml", "exclude: []\n", 0, json!({}), "this is the configuration of nadmit: pass it with --config"),
        ("Chart.yaml", "apiVersion: v2\nname: c\n", 0, json!({"no_kind": 1}), "`kind` is missing"),
        ("notes.txt", "kind: [\n", 0, json!({}), "did not find expected"),
        // These might be meant as manifests.
        ("broken.yaml", "kind: NetworkAttachmentDefinition\nspec: [\n", 2, json!({}), "did not find expected"),
        ("tabs.yaml", "apiVersion: v1\n\tkind: A\n", 2, json!({}), "line 2: "),
        (
            "kind.yaml",
            "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetwrk\n",
            2,
            json!({}),
            "line 1: sriovnetwork.openshift.io/v1 has no kind `SriovNetwrk`; did you mean `SriovNetwork`?",
        ),
        (
            "kinds.yaml",
            "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinitions\n",
            2,
            json!({}),
            "did you mean `NetworkAttachmentDefinition`?",
        ),
        (
            "state.yaml",
            "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetworkNodeState\n",
            0,
            json!({"other_kinds": 1}),
            "",
        ),
        ("nad.yaml", "apiVersion: k8s.cni.cncf.io/v1\nmetadata: {name: a}\n", 2, json!({}), "`kind` is missing"),
    ] {
        let tree = tree(&[("good.yaml", GOOD), (name, content)]);
        let output = nadmit_in(tree.path(), &["check", "-o", "json", "."]).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {errors}");
        assert_eq!(summary(&output)["documents"], 1, "{name}: {errors}");
        assert_eq!(skipped(&output), want, "{name}: {errors}");
        assert_eq!(errors.contains("error: "), code == 2, "{name}: {errors}");
        let output = nadmit_in(tree.path(), &["check", "--no-config", "good.yaml", name]).output().unwrap();
        let errors = text(&output.stderr);
        assert!(errors.contains(named), "{name}: {errors}\nwanted: {named}");
        assert_eq!(output.status.code(), Some(if named.is_empty() { 0 } else { 2 }), "{name}: {errors}");
    }
}

/// Our own examples: a policy, reviews and manifests. One NAD there is denied.
#[test]
fn the_examples_of_this_repository_are_judged() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = nadmit_in(root, &["check", "-o", "json", "examples"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(summary(&output)["unreadable"], 0);
    assert_eq!(skipped(&output)["no_kind"], 1, "the policy");
}

#[test]
fn an_empty_run_fails_only_on_request() {
    let tree = tree(&[("values.yaml", "a: 1\n"), ("bad.yaml", BAD), ("none/", "")]);
    for (arguments, code, line) in [
        (&["none"] as &[_], 0, "nadmit: 0 documents judged; default policy"),
        (&["none", "--fail-if-empty"], 2, "error: nothing was judged, and --fail-if-empty was given: "),
        (&[".", "--exclude", "bad.yaml", "--fail-if-empty"], 2, "error: nothing was judged"),
        (
            &[".", "--exclude", "bad.yaml"],
            0,
            "nadmit: 0 documents judged; skipped: 1 without a kind, 1 ignored path; default policy",
        ),
        (&[".", "--fail-if-empty"], 1, "nadmit: 1 document judged; skipped: 1 without a kind; default policy"),
    ] {
        let output = nadmit_in(tree.path(), &[&["check"], arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(closing_line(&output).starts_with(line), "{arguments:?}: {}", closing_line(&output));
        let judged = text(&output.stderr).lines().filter(|line| line.starts_with("nadmit: ")).count();
        assert_eq!(judged, 1, "{arguments:?}");
    }
}

/// The notice is one line, however many templates there are, and names the first.
#[test]
fn templates_give_one_notice() {
    let template = "kind: A\nmetadata:\n  {{- toYaml .Values.x }}\n";
    let tree = tree(&[("a.yaml", template), ("b.yaml", template), ("c/d.yaml", template)]);
    let output = nadmit_in(tree.path(), &["check", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stderr),
        "nadmit: 3 Helm templates are not judged, such as ./a.yaml; render them: helm template CHART | nadmit check -\n\
         nadmit: 0 documents judged; skipped: 3 Helm templates; default policy\n"
    );
}

/// A repository cannot make nadmit read files outside of it, and links neither loop nor multiply.
#[test]
fn links_are_followed_to_files_inside_only() {
    let tree = tree(&[("repo/.git/", ""), ("repo/a/good.yaml", GOOD), ("outside.yaml", BAD)]);
    let at = |name: &str| tree.path().join(name);
    symlink(at("outside.yaml"), at("repo/outside.yaml")).unwrap();
    symlink(at("repo"), at("repo/a/loop")).unwrap();
    symlink(at("repo/a"), at("repo/b")).unwrap();
    symlink(at("repo/a/good.yaml"), at("repo/same.yaml")).unwrap();
    for directory in ["repo", "."] {
        let from = if directory == "." { at("repo") } else { tree.path().to_owned() };
        let output = nadmit_in(&from, &["check", "-o", "json", directory]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!((&summary(&output)["documents"], skipped(&output)), (&json!(2), json!({"links": 3})));
    }
    // Who names a link wants what it leads to.
    let output = nadmit_in(tree.path(), &["check", "repo/outside.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    fs::remove_file(at("repo/a/good.yaml")).unwrap();
    let output = nadmit_in(tree.path(), &["check", "-o", "json", "repo"]).output().unwrap();
    assert_eq!(skipped(&output), json!({"links": 4}), "one leads nowhere");
}
