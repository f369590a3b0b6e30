//! Where `nadmit check` writes, in which formats.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::{BAD, GOOD, nadmit, nadmit_in, run, text, tree};

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

/// The arguments, what is on standard output, and which files are written.
#[test]
fn each_output_goes_where_it_should() {
    let files = [("bad.yaml", BAD), ("good.yaml", GOOD)];
    let alone = |format: &str| {
        let tree = tree(&files);
        text(&nadmit_in(tree.path(), &["check", "-o", format, "."]).output().unwrap().stdout)
    };
    for (outputs, standard, written) in [
        (&["human", "sarif=nadmit.sarif"] as &[_], "human", &[("nadmit.sarif", "sarif")] as &[_]),
        (&["sarif=nadmit.sarif"], "", &[("nadmit.sarif", "sarif")]),
        (
            &["junit=out/junit.xml", "github", "html=page.html", "json=a=b.json"],
            "github",
            &[("out/junit.xml", "junit"), ("page.html", "html"), ("a=b.json", "json")],
        ),
        (&["human", "human=human.txt"], "human", &[("human.txt", "human")]),
        (&["json=-"], "json", &[]),
    ] {
        let tree = tree(&files);
        fs::create_dir(tree.path().join("out")).unwrap();
        let arguments = outputs.iter().flat_map(|output| ["-o", *output]);
        let arguments: Vec<&str> = ["check", "."].into_iter().chain(arguments).collect();
        let output = nadmit_in(tree.path(), &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{outputs:?}: {}", text(&output.stderr));
        let want = if standard.is_empty() { String::new() } else { alone(standard) };
        assert_eq!(text(&output.stdout), want, "{outputs:?}");
        for (name, format) in written {
            assert_eq!(fs::read_to_string(tree.path().join(name)).unwrap(), alone(format), "{outputs:?}: {name}");
        }
        let names = fs::read_dir(tree.path()).unwrap().count() + fs::read_dir(tree.path().join("out")).unwrap().count();
        assert_eq!(names, 3 + written.len(), "{outputs:?}: no other file is left");
    }
}

#[test]
fn outputs_that_cannot_be_are_errors() {
    let tree = tree(&[("good.yaml", GOOD), ("directory/", "")]);
    for (outputs, want) in [
        (
            &["human", "json"] as &[_],
            "--output human and json both go to standard output; name a file for one of them: --output json=FILE",
        ),
        (&["human=a", "json=a"], "--output human and json both go to \"a\""),
        (&["human=a", "json=./a"], "two outputs go to \"./a\""),
        (&["json="], "a file must follow --output json="),
        (&["yaml=a"], "invalid value 'yaml' for '--output <FORMAT[=FILE]>'"),
        (&["jsn"], "json"),
        (&["json=directory"], "cannot write \"directory\": it is a directory"),
        (&["json=none/a"], "cannot write \"none/a\": No such file or directory"),
        (&["json=good.yaml/a"], "cannot write \"good.yaml/a\": Not a directory"),
    ] {
        let arguments = outputs.iter().flat_map(|output| ["-o", *output]);
        let arguments: Vec<&str> = ["check", "good.yaml"].into_iter().chain(arguments).collect();
        let output = nadmit_in(tree.path(), &arguments).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{outputs:?}");
        assert!(text(&output.stderr).contains(want), "{}\nwanted: {want}", text(&output.stderr));
        assert_eq!(fs::read_dir(tree.path()).unwrap().count(), 2, "{outputs:?}: nothing is written");
    }
}

/// The file is whole also if the reader of standard output leaves early.
#[test]
fn files_are_written_after_a_closed_pipe() {
    let many = format!("{BAD}---\n").repeat(3000);
    let tree = tree(&[("many.yaml", &many)]);
    let mut command = nadmit_in(tree.path(), &["check", "-o", "human", "-o", "json=report.json", "many.yaml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&fs::read(tree.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["summary"]["deny"], 3000);
}

/// A run that fails leaves the file of the run before.
#[test]
fn a_failed_run_keeps_the_old_file() {
    let tree = tree(&[("report.json", "old"), ("good.yaml", GOOD)]);
    let report = || fs::read_to_string(tree.path().join("report.json")).unwrap();
    let check = |more: &[&str]| {
        let arguments = [&["check", "good.yaml", "-o", "json=report.json"], more].concat();
        nadmit_in(tree.path(), &arguments).output().unwrap().status.code()
    };
    assert_eq!(check(&["-o", "sarif=none/a"]), Some(2));
    assert_eq!(report(), "old");
    assert_eq!(check(&[]), Some(0));
    assert!(report().starts_with("{\"version\":1,"));
}

/// `audit` takes the same outputs, and rejects the same ones before it asks for a cluster.
#[test]
fn audit_has_the_same_outputs() {
    let error = |outputs: &[&str]| {
        let arguments = outputs.iter().flat_map(|output| ["-o", *output]);
        let arguments: Vec<&str> = ["audit", "--kubeconfig", "/nowhere"].into_iter().chain(arguments).collect();
        text(&run(&arguments).stderr)
    };
    assert!(error(&["human", "json"]).contains("both go to standard output"));
    assert!(error(&["json=/nowhere/a"]).contains("cannot write \"/nowhere/a\""));
    assert!(error(&["human", "json=/dev/null"]).contains("/nowhere"), "the outputs are accepted");
}

/// A finding at two objects says where the manifests of both are, also if they are in two files.
#[test]
fn findings_at_two_objects_show_both_places() {
    let network = |kind: &str| {
        format!(
            "apiVersion: sriovnetwork.openshift.io/v1\nkind: {kind}\nmetadata:\n  namespace: op\n  name: net\nspec:\n  \
             resourceName: cx7\n  networkNamespace: apps\n  bridge: br1\n"
        )
    };
    let (first, second) = (network("SriovNetwork"), network("OVSNetwork"));
    let tree = tree(&[("a.yaml", &first), ("b.yaml", &second)]);
    let output = |format: &str| {
        let arguments = ["check", "--operator-namespace", "op", "-o", format, "."];
        text(&nadmit_in(tree.path(), &arguments).output().unwrap().stdout)
    };
    let human = output("human");
    assert!(human.contains("note: OVSNetwork op/net also renders the NAD apps/net\n --> ./b.yaml:5:9"), "{human}");
    assert!(human.contains("note: SriovNetwork op/net also renders the NAD apps/net\n --> ./a.yaml:5:9"), "{human}");
    let json: Value = serde_json::from_str(&output("json")).unwrap();
    let other =
        json["documents"].as_array().unwrap().iter().flat_map(|document| document["findings"].as_array().unwrap());
    let other: Vec<_> =
        other.filter(|finding| finding["rule"] == "network/claimed").map(|finding| &finding["related"][0]).collect();
    let places: Vec<_> =
        other.iter().map(|other| (other["source"].as_str().unwrap(), other["line"].as_u64().unwrap())).collect();
    assert_eq!(places, [("./b.yaml", 5), ("./a.yaml", 5)]);
    let sarif: Value = serde_json::from_str(&output("sarif")).unwrap();
    let result =
        sarif["runs"][0]["results"].as_array().unwrap().iter().find(|one| one["ruleId"] == "network/claimed").unwrap();
    let place = &result["relatedLocations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"b.yaml".into(), &5.into()));
}
