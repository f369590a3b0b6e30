//! `nadmit map` of manifests, through the binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn map(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nadmit"));
    command.arg("map").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env_remove("NADMIT_POLICY").env("KUBECONFIG", "/nowhere").env("HOME", "/nowhere");
    command.output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let out = map(&[&["--no-config", "--output", "json"], arguments].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Version 1 of the JSON: fields are added, and none is changed or taken away.
#[test]
fn the_json_of_the_example_is_stable() {
    insta::assert_snapshot!(format!("{:#}", json(&["tests/shown/map.yaml"])));
}

#[test]
fn order_and_duplicates_of_files_do_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shown/map.yaml")).unwrap();
    let mut documents: Vec<&str> = text.split("\n---\n").collect();
    let without_places = |mut map: Value| {
        for list in ["networks", "nads", "policies", "users"] {
            for row in map[list].as_array_mut().unwrap() {
                row.as_object_mut().unwrap().remove("place");
            }
        }
        map
    };
    let write = |name: &str, documents: &[&str]| {
        let path = directory.path().join(name);
        fs::write(&path, documents.join("\n---\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let one = without_places(json(&[&write("one.yaml", &documents)]));
    documents.reverse();
    let (first, second) = documents.split_at(documents.len() / 2);
    let several = [write("a.yaml", first), write("b.yaml", second), write("c.yaml", first)];
    assert_eq!(without_places(json(&several.each_ref().map(String::as_str))), one);
}

#[test]
fn exit_codes_and_outputs() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (page, data) = (format!("html={}", file("map.html")), format!("json={}", file("map.json")));
    let both = ["--no-config", "tests/shown/map.yaml", "-o", &page, "-o", &data];
    let out = map(&both);
    assert_eq!((out.status.code(), out.stdout.is_empty()), (Some(0), true));
    assert!(fs::read_to_string(file("map.html")).unwrap().starts_with("<!doctype html>"));
    assert!(fs::read_to_string(file("map.json")).unwrap().starts_with("{\"version\":1,"));
    fs::write(file("broken.yaml"), "kind: Pod\nmetadata: [\n").unwrap();
    let broken = file("broken.yaml");
    // (arguments, exit code, a part of standard error)
    for (arguments, code, want) in [
        (&["tests/shown/map.yaml", &broken] as &[&str], 2, "broken.yaml: line 2"),
        (&[&broken], 2, "nothing could be read"),
        (&["none.yaml"], 2, "none.yaml"),
        (&["tests/shown/map.yaml", "--namespace", "apps"], 2, "--namespace is for a cluster"),
        (&["tests/shown/map.yaml", "-o", "html", "-o", "json"], 2, "both go to standard output"),
        (&["tests/shown/map.yaml", "-o", "yaml"], 2, "invalid value 'yaml'"),
        (&[], 2, "no cluster: no kubeconfig found"),
        (&["examples/telco.yaml"], 0, ""),
    ] {
        let out = map(arguments);
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(want), "{arguments:?}: {error}");
    }
    // What could be read is on the map.
    let out = map(&["tests/shown/map.yaml", &broken, "-o", "json"]);
    assert_eq!(serde_json::from_slice::<Value>(&out.stdout).unwrap()["nads"].as_array().unwrap().len(), 9);
}

#[test]
fn hostile_manifests_are_no_problem() {
    let out = map(&["--no-config", "--output", "json", "tests/hostile", "tests/cases"]);
    assert!(matches!(out.status.code(), Some(0 | 2)), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(!String::from_utf8_lossy(&out.stderr).contains("panicked"));
    let map: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(map["nads"].as_array().unwrap().len() > 20);
}
