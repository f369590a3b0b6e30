//! `.nadmit.yaml`: where it is found, what it sets, and what wins over it.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::{BAD, GOOD, closing_line, nadmit_in, text, tree};

const NETWORK: &str = "apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetwork
metadata: {name: a, namespace: op}
spec: {resourceName: r, networkNamespace: apps}
";

/// The configuration of the repository, the arguments, the working directory, the exit code and the last line.
#[test]
fn arguments_and_variables_win_over_it() {
    let tree = tree(&[
        (".git/", ""),
        ("policies/warn.yaml", "rules:\n  nad/resource-name-missing: warn\n"),
        ("policies/deny.yaml", "rules:\n  nad/resource-name-missing: deny\n"),
        ("x/y/bad.yaml", BAD),
        ("x/y/gen.yaml", BAD),
        ("x/net.yaml", NETWORK),
    ]);
    let policy = "policy: policies/warn.yaml\n";
    let of_x = "; configuration ../.nadmit.yaml, default policy";
    for (config, arguments, variable, directory, code, end) in [
        ("", &["x/y"] as &[_], "", ".", 1, "; configuration .nadmit.yaml, default policy"),
        (policy, &["x/y"], "", ".", 0, "; configuration .nadmit.yaml, policy policies/warn.yaml"),
        (policy, &["."], "", "x/y", 0, "; configuration ../../.nadmit.yaml, policy "),
        (policy, &[".", "--policy", "../../policies/deny.yaml"], "", "x/y", 1, "policy ../../policies/deny.yaml"),
        (policy, &["x/y"], "NADMIT_POLICY=policies/deny.yaml", ".", 1, ", policy policies/deny.yaml"),
        (policy, &["x/y", "--no-config"], "", ".", 1, "2 documents judged; default policy"),
        (
            "exclude: [gen.yaml, /x/y/bad.yaml]\n",
            &["."],
            "",
            "x/y",
            0,
            "0 documents judged; skipped: 2 ignored paths; configuration ",
        ),
        (
            "exclude: [gen.yaml]\n",
            &[".", "--exclude", "bad.yaml"],
            "",
            "x/y",
            0,
            "skipped: 2 ignored paths; configuration ",
        ),
        ("exclude: [gen.yaml]\n", &["."], "", "x/y", 1, "1 document judged; skipped: 1 ignored path; configuration "),
        ("operatorNamespace: other\n", &["net.yaml"], "", "x", 1, of_x),
        ("operatorNamespace: other\n", &["net.yaml", "--operator-namespace", "op"], "", "x", 0, of_x),
        ("operatorNamespace: other\n", &["net.yaml"], "NADMIT_OPERATOR_NAMESPACE=op", "x", 0, of_x),
        ("operatorNamespace: op\n", &["net.yaml"], "", "x", 0, of_x),
    ] {
        fs::write(tree.path().join(".nadmit.yaml"), config).unwrap();
        let mut command = nadmit_in(&tree.path().join(directory), &[&["check"], arguments].concat());
        if let Some((name, value)) = variable.split_once('=') {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        let what = format!("{config:?} {arguments:?} {variable}: {}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{what}");
        assert!(closing_line(&output).contains(end), "{what}\nwanted: {end}");
    }
}

#[test]
fn the_prefix_of_the_configuration_is_used() {
    let missing = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/missing.yaml")).unwrap();
    let tree = tree(&[(".nadmit.yaml", "resourcePrefix: nvidia.com\n"), ("a.yaml", &missing)]);
    for (arguments, want) in
        [(&[] as &[_], "nvidia.com/cx7anl244"), (&["--resource-prefix", "amd.com"], "amd.com/cx7anl244")]
    {
        let output =
            nadmit_in(tree.path(), &[&["check", "-o", "json", "a.yaml"], arguments].concat()).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["documents"][1]["patch"][0]["value"], want);
    }
}

/// A mistake in it is an error in one line, with its place, and nothing is judged.
#[test]
fn mistakes_stop_the_run() {
    let tree = tree(&[("good.yaml", GOOD), ("other.yaml", "exclude: [good.yaml]\n")]);
    let config = tree.path().join(".nadmit.yaml");
    for (text_of_config, want) in [
        (
            "polcy: p.yaml\n",
            "error: .nadmit.yaml: line 1: column 1: `polcy`: there is no such key; did you mean `policy`?\n",
        ),
        (
            "policy: none.yaml\n",
            "error: .nadmit.yaml: line 1: column 9: `policy`: cannot read \"none.yaml\": no such file or directory\n",
        ),
        ("policy: good.yaml\n", "error: good.yaml: line 1: `apiVersion`: there is no such key"),
        ("exclude: [\n", "error: .nadmit.yaml: line 1: column 10: did not find expected node content"),
    ] {
        fs::write(&config, text_of_config).unwrap();
        let output = nadmit_in(tree.path(), &["check", "."]).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
        assert!(text(&output.stderr).starts_with(want), "{}\nwanted: {want}", text(&output.stderr));
        assert_eq!(text(&output.stderr).lines().count(), 1);
        for other in [&["--no-config"] as &[_], &["--config", "other.yaml"]] {
            let output = nadmit_in(tree.path(), &[&["check", "."], other].concat()).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        }
    }
}

/// Not by its policy, not by a symbolic link, not by a file above the repository.
#[test]
fn a_strangers_repository_reads_nothing_outside() {
    const SECRET: &str = "hunter2: 1\n";
    let tree = tree(&[
        ("secret.yaml", SECRET),
        (".nadmit.yaml", SECRET),
        ("repo/.git/", ""),
        ("repo/good.yaml", GOOD),
        ("repo/policies/", ""),
    ]);
    let at = |name: &str| tree.path().join(name);
    symlink(at("secret.yaml"), at("repo/link.yaml")).unwrap();
    symlink(tree.path(), at("repo/policies/up")).unwrap();
    let check = |directory: &str| nadmit_in(&at(directory), &["check", "good.yaml"]).output().unwrap();
    let output = check("repo");
    assert_eq!(output.status.code(), Some(0), "the file above the repository is not read: {}", text(&output.stderr));
    let absolute = at("secret.yaml").display().to_string();
    for policy in ["../secret.yaml", "link.yaml", "policies/up/secret.yaml", &absolute] {
        fs::write(at("repo/.nadmit.yaml"), format!("policy: {policy}\n")).unwrap();
        let output = check("repo");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains("is outside of the repository of this file; pass it with --policy"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    fs::remove_file(at("repo/.nadmit.yaml")).unwrap();
    symlink(at("secret.yaml"), at("repo/.nadmit.yaml")).unwrap();
    let error = text(&check("repo").stderr);
    assert!(error.contains("not a regular file of this repository") && !error.contains("hunter2"), "{error}");
}
