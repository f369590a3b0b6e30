//! What `nadmit check` reads, and what it rejects.

use std::fs;

use serde_json::Value;

use super::{BAD, run, run_with_stdin, text};

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
        assert_eq!(error.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{error}");
        let out = text(&output.stdout);
        assert_eq!(out.contains("nad/resource-name-missing"), readable, "the document after it is judged: {out}");
    }
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
    assert!(text(&output.stderr).contains("large.yaml: larger than 64 MiB; split the file\n"));
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
