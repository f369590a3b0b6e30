//! What programs that read SARIF find in the log.

use super::*;
use crate::output::testing::{self, TestDocument};
use crate::policy::Action;

fn log(cases: &[&TestDocument]) -> Value {
    serde_json::from_str(&testing::report(&Sarif, cases)).unwrap()
}

#[test]
fn other_objects_are_related_locations() {
    let case = TestDocument::new(vec![testing::finding("nad/schema", Action::Warn, "m").beside_two_others()]);
    let result = &log(&[&case])["runs"][0]["results"][0];
    let text = result["message"]["text"].as_str().unwrap();
    assert!(
        text.contains("\nalso: NetworkAttachmentDefinition apps/other has the same range (nets/b.yaml:7:3)\n"),
        "{text}"
    );
    let [first, second] = result["relatedLocations"].as_array().unwrap().as_slice() else { panic!("{result}") };
    assert_eq!(first["message"]["text"], "NetworkAttachmentDefinition apps/other has the same range");
    assert_eq!(first["logicalLocations"][0]["fullyQualifiedName"], "NetworkAttachmentDefinition/apps/other");
    assert_eq!(
        first["physicalLocation"],
        json!({"artifactLocation": {"uri": "nets/b.yaml"}, "region": {"startLine": 7, "startColumn": 3}})
    );
    assert_eq!(
        (second["logicalLocations"][0]["name"].as_str(), second.get("physicalLocation")),
        (Some("policy"), None)
    );
}

#[test]
fn the_log_has_what_the_standard_requires() {
    let case = TestDocument::new(vec![
        testing::finding("nad/no-plugin", Action::Deny, "no plugin").in_config("/plugins"),
        testing::finding("nad/schema", Action::Audit, "recorded").at("/metadata/name"),
    ]);
    let log = log(&[&TestDocument::new(Vec::new()), &case, &case]);
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "nadmit");
    assert_eq!(driver["version"], env!("CARGO_PKG_VERSION"));
    let rules = driver["rules"].as_array().unwrap();
    assert_eq!(rules.len(), RULES.len());
    for rule in rules {
        for text in ["/id", "/shortDescription/text", "/fullDescription/text", "/help/text", "/help/markdown"] {
            assert!(rule.pointer(text).unwrap().as_str().is_some_and(|text| !text.is_empty()), "{rule}");
        }
        let level = rule["defaultConfiguration"]["level"].as_str().unwrap();
        assert!(["none", "note", "warning", "error"].contains(&level));
    }
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(result["message"]["text"].as_str().unwrap().ends_with("\nhelp: fix it"));
        let region = &result["locations"][0]["physicalLocation"]["region"];
        assert_eq!(region, &json!({"startLine": 9, "startColumn": 5, "endLine": 9, "endColumn": 14}));
    }
    assert_eq!(results[0]["level"], "error");
    assert_eq!(results[1]["level"], "note");
    let place = &results[0]["locations"][0];
    assert_eq!(place["physicalLocation"]["artifactLocation"]["uri"], "nets/a%20b.yaml");
    assert_eq!(
        place["logicalLocations"][1]["fullyQualifiedName"],
        "NetworkAttachmentDefinition/apps/net/spec/config#/plugins"
    );
}

#[test]
fn a_rendered_document_names_its_template() {
    let mut case = TestDocument::new(vec![testing::finding("nad/schema", Action::Deny, "m")]);
    case.template = Some("chart/templates/a b.yaml");
    let at = |case: &TestDocument| log(&[case])["runs"][0]["results"][0]["locations"][0].clone();
    let in_a_file = at(&case);
    assert_eq!(in_a_file["physicalLocation"]["artifactLocation"]["uri"], "nets/a%20b.yaml");
    assert_eq!(in_a_file["physicalLocation"]["region"]["startLine"], 9);
    assert_eq!(in_a_file["logicalLocations"][2]["name"], "chart/templates/a b.yaml");
    case.source = "-";
    let on_stdin = at(&case);
    assert_eq!(on_stdin["physicalLocation"]["artifactLocation"]["uri"], "chart/templates/a%20b.yaml");
    assert_eq!(on_stdin["physicalLocation"]["region"], json!({"startLine": 1}));
}

#[test]
fn results_have_note_and_help_apart() {
    let found = testing::finding("nad/no-plugin", Action::Deny, "`plugins` is empty").with_note("Multus panics");
    let log = log(&[&TestDocument::new(vec![found])]);
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["message"]["text"], "`plugins` is empty\nnote: Multus panics\nhelp: fix it");
    assert_eq!(result["properties"]["note"], "Multus panics");
    assert_eq!(result["properties"]["help"], "fix it");
}

#[test]
fn rules_link_to_the_reference_in_the_repository() {
    let rule = RULES[0];
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        help_uri("https://example.org/nadmit", rule),
        Some(format!("https://example.org/nadmit/blob/v{version}/docs/rules/nad.md#nadconfig-not-json"))
    );
    assert_eq!(help_uri("", rule), None);
    assert_eq!(help_uri("https://github.com/OWNER/nadmit", rule), None);
}

#[test]
fn results_are_lines() {
    let case = TestDocument::new(vec![testing::finding("nad/schema", Action::Deny, "two\nlines"); 2]);
    let report = testing::report(&Sarif, &[&case, &case]);
    assert_eq!(report.lines().filter(|line| line.starts_with("{\"ruleId\"")).count(), 4);
    assert_eq!(log(&[])["runs"][0]["results"], json!([]));
}

#[test]
fn fingerprints_are_stable_and_distinct() {
    let prints = |case: &TestDocument| -> Vec<String> {
        let judged = case.judged();
        judged.findings.iter().enumerate().map(|(index, placed)| fingerprint(&judged, index, placed)).collect()
    };
    let twice = || {
        TestDocument::new(vec![
            testing::finding("nad/ambiguous-key", Action::Warn, "first").in_config("/vlan"),
            testing::finding("nad/ambiguous-key", Action::Warn, "second").in_config("/vlan"),
            testing::finding("nad/ambiguous-key", Action::Warn, "third").in_config("/mtu"),
            testing::finding("nad/field-type", Action::Warn, "fourth").in_config("/vlan"),
        ])
    };
    let before = prints(&twice());
    let distinct: std::collections::BTreeSet<_> = before.iter().collect();
    assert_eq!(distinct.len(), 4);
    // What else was found before it does not count.
    let mut fewer = twice();
    fewer.verdict.findings.remove(0);
    let fewer = prints(&fewer);
    assert_eq!((&fewer[0], &fewer[1..]), (&before[0], &before[2..]));
    let mut moved = twice();
    moved.place = (20, 1, 21, 3);
    moved.verdict.findings[0].message = "other words".to_owned();
    assert_eq!(prints(&moved), before);
    let mut elsewhere = twice();
    elsewhere.namespace = "other";
    assert_ne!(prints(&elsewhere), before);
}

#[test]
fn paths_become_uris() {
    for (source, want) in [
        ("-", "stdin"),
        ("./nets/a.yaml", "nets/a.yaml"),
        ("a:b,c%#?.yaml", "a%3Ab%2Cc%25%23%3F.yaml"),
        ("ü/\n.yaml", "%C3%BC/%0A.yaml"),
        ("/srv/nets/a b.yaml", "file:///srv/nets/a%20b.yaml"),
    ] {
        assert_eq!(uri(source), want);
    }
}

#[test]
fn exceptions_become_suppressions() {
    let mut excepted = testing::finding("nad/schema", Action::Audit, "m");
    excepted.because = Some(ExcuseReason::Exception("until the move".to_owned()));
    let mut would = testing::finding("nad/schema", Action::Warn, "m");
    would.would = Some(Action::Deny);
    let log = log(&[&TestDocument::new(vec![excepted, would])]);
    let results = &log["runs"][0]["results"];
    assert_eq!(results[0]["suppressions"], json!([{"kind": "external", "justification": "until the move"}]));
    assert_eq!(results[0]["properties"]["because"], "exception");
    assert!(results[1].get("suppressions").is_none());
    assert_eq!(results[1]["level"], "warning");
    assert_eq!(results[1]["message"]["text"], "would deny: m\nhelp: fix it");
}
