//! The cases of all rules, through the binary.

use serde_json::Value;

use super::run;
use crate::case;

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
