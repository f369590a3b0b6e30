//! Manifests that Helm or kustomize rendered: where they come from, and `check` as a step between rendering and applying.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{BAD, GOOD, nadmit_in, run_with_stdin, text, tree, with_stdin};

/// As `helm template` prints two templates.
fn rendered(first: &str, second: &str) -> String {
    format!(
        "---\n# Source: nets/templates/first.yaml\n{first}---\n# Source: nets/charts/sub/templates/second.yaml\n{second}"
    )
}

#[test]
fn templates_are_shown_as_files() {
    let input = rendered(GOOD, BAD);
    let output = |format: &str| text(&run_with_stdin(&["check", "-o", format, "-"], input.as_bytes()).stdout);
    let human = output("human");
    assert!(human.contains("--> <stdin> (nets/charts/sub/templates/second.yaml):15:"), "{human}");
    let json: Value = serde_json::from_str(&output("json")).unwrap();
    assert_eq!(json["documents"][0]["template"], "nets/templates/first.yaml");
    assert_eq!((&json["documents"][1]["source"], &json["documents"][1]["line"]), (&json!("-"), &json!(13)));
    let sarif: Value = serde_json::from_str(&output("sarif")).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "nets/charts/sub/templates/second.yaml");
    assert!(output("junit").contains("<testsuite name=\"stdin (nets/charts/sub/templates/second.yaml)\""));
    assert!(output("github").contains("::error file=nets/charts/sub/templates/second.yaml,title="));
    // In a file, the file is what can be opened.
    let tree = tree(&[("out.yaml", &input)]);
    let human = text(&nadmit_in(tree.path(), &["check", "out.yaml"]).output().unwrap().stdout);
    assert!(human.contains("--> out.yaml (nets/charts/sub/templates/second.yaml):15:"), "{human}");
    let github = text(&nadmit_in(tree.path(), &["check", "-o", "github", "out.yaml"]).output().unwrap().stdout);
    assert!(github.contains("::error file=out.yaml,line=15,"), "{github}");
}

/// What is passed through, by the input and the arguments: everything, unchanged, or nothing.
#[test]
fn manifests_pass_unless_something_is_denied() {
    let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: \"1\"}   # kept\n";
    let warned = GOOD.replace("name: good", "name: a.b");
    for (input, arguments, code) in [
        (rendered(config_map, GOOD), &[] as &[&str], 0),
        (config_map.to_owned(), &[], 0),
        (config_map.to_owned(), &["--fail-if-empty"], 2),
        (rendered(GOOD, BAD), &[], 1),
        (warned.clone(), &[], 0),
        (warned, &["--deny", "warn"], 1),
        ("kind: [\n".to_owned(), &[], 2),
        (String::new(), &[], 0),
    ] {
        for format in ["human", "json", "github"] {
            let arguments = [&["check", "-", "--pass-through", "-o", format], arguments].concat();
            let output = run_with_stdin(&arguments, input.as_bytes());
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
            assert_eq!(text(&output.stdout), if code == 0 { input.as_str() } else { "" }, "{arguments:?}");
            assert!(text(&output.stderr).contains("nadmit: "), "the findings are on standard error");
        }
    }
    let output = run_with_stdin(&["check", "-", "shown/good.yaml", "--pass-through"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--pass-through needs - as its only path"));
}

/// As in docs/cli.md: Helm starts a post-renderer with the manifests, and takes what it prints.
#[test]
fn a_script_is_a_post_renderer() {
    let script = "#!/bin/sh\nexec nadmit check --pass-through --output sarif=nadmit.sarif -\n";
    let page = include_str!("../../docs/cli.md");
    assert!(page.contains(&script.replace("--output sarif=nadmit.sarif ", "")), "docs/cli.md shows another script");
    let tree = tree(&[("post-renderer", script)]);
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_nadmit")).parent().unwrap();
    for (input, is_passed) in [(rendered(GOOD, GOOD), true), (rendered(GOOD, BAD), false)] {
        let mut command = Command::new("sh");
        command.arg("post-renderer").current_dir(tree.path()).stderr(Stdio::piped()).env_remove("NADMIT_POLICY");
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        let output = with_stdin(&mut command, input.as_bytes());
        assert_eq!(output.status.success(), is_passed, "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), if is_passed { input.as_str() } else { "" });
        assert!(tree.path().join("nadmit.sarif").exists());
    }
}
