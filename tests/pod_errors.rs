//! The words of others in the texts of the rules are in the table of what pods show, and docs/errors.md is current.

use std::collections::BTreeSet;
use std::fs;

use nadmit::policy::pod_errors::{ErrorEvidence, POD_ERRORS, PodError};
use nadmit::policy::rules::RULES;
use nadmit::policy::{Action, Facts, Policy, Subject, judge};
use nadmit::resources::Object;
use nadmit::yaml::Documents;
use serde_json::{Value, json};

use crate::case;
use crate::errors_page::{path, seen, with_rest, with_seen, without_error};

/// The families whose rules are about what pods and the programs on a node read.
const FAMILIES: [&str; 5] = ["nad", "plugin", "meta", "ipam", "pod"];

/// The phrases in quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2).filter(|words| words.contains(' '))
}

/// Whether a row that names the rule has the words; `...` and `…` stand for what differs.
fn is_explained(rule: &str, words: &str) -> bool {
    let mut parts = words.split("...").flat_map(|part| part.split('…')).map(str::trim).filter(|part| !part.is_empty());
    let mut rows = POD_ERRORS.iter().filter(|error| error.rules.contains(&rule));
    rows.any(|error| parts.clone().all(|part| error.words.contains(part)) && parts.next().is_some())
}

/// The mistakes that are attached to pods on a node.
fn mistakes() -> Vec<Value> {
    let documents = Documents::new(include_str!("node/errors.yaml"));
    documents.map(|document| serde_json::from_str(&document.node.unwrap().to_json()).unwrap()).collect()
}

/// What the judge reports about one of them: the rules with their notes.
fn notes(mistake: &Value) -> Vec<(&'static str, String)> {
    let object = match mistake["config"].as_str() {
        Some(config) => json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "network", "namespace": "default" }, "spec": { "config": config } }),
        None => {
            let mut annotations = json!({ "k8s.v1.cni.cncf.io/networks": mistake["networks"] });
            if mistake["default-network"].is_string() {
                annotations["v1.multus-cni.io/default-network"] = mistake["default-network"].clone();
            }
            json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [] },
                "metadata": { "name": "p", "namespace": "default", "annotations": annotations } })
        }
    };
    let text = object.to_string();
    let object = Object::read(&text).unwrap().unwrap();
    let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
    verdict.findings.iter().map(|finding| (finding.rule.id, finding.note.clone())).collect()
}

#[test]
fn quoted_errors_are_explained() {
    let mut quotes: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut quote = |rule: &'static str, text: &str| quotes.extend(quoted(text).map(|words| (rule, words.to_owned())));
    for rule in RULES {
        quote(rule.id, rule.why);
    }
    for case in case::all() {
        for (_, verdict) in case.judge() {
            verdict.findings.iter().for_each(|finding| quote(finding.rule.id, &finding.note));
        }
    }
    for mistake in mistakes() {
        notes(&mistake).iter().for_each(|(rule, note)| quote(rule, note));
    }
    for words in
        ["file exists", "already has an IP address different from", "missing network name", "VF pci addr is required"]
    {
        assert!(quotes.iter().any(|(_, quote)| quote == words), "no note of a mistake quotes {words:?}");
    }
    assert!(quotes.len() > 40, "{quotes:#?}");
    // OVN-Kubernetes reports on the NAD and in its log; pods only wait.
    quotes.retain(|(rule, _)| !rule.starts_with("ovn/"));
    let missing: Vec<_> = quotes.iter().filter(|(rule, words)| !is_explained(rule, words)).collect();
    assert!(missing.is_empty(), "no row of POD_ERRORS has these words with the rule: {missing:#?}");
}

#[test]
fn each_mistake_is_one_of_its_rule() {
    for mistake in mistakes() {
        let found = notes(&mistake);
        let Some(rule) = mistake["rule"].as_str() else {
            continue;
        };
        // Whether a NAD exists is a fact of a cluster.
        let is_found = rule == "pod/nad-absent" || found.iter().any(|(id, _)| *id == rule);
        assert!(is_found, "{rule} does not report {mistake}: {found:?}");
    }
}

/// Every rule that denies is found by its error, or the page says why there is none.
#[test]
fn every_rule_that_denies_is_on_the_page() {
    let page = fs::read_to_string(path()).unwrap();
    let shown: BTreeSet<String> = seen(&page).into_values().flatten().collect();
    let without: Vec<String> = without_error().into_iter().map(|one| one.rule).collect();
    assert_eq!(without.iter().collect::<BTreeSet<_>>().len(), without.len(), "a rule is there twice");
    for rule in without.iter().chain(&shown) {
        assert!(RULES.iter().any(|known| known.id == rule), "there is no rule {rule}");
    }
    for rule in RULES.iter().filter(|rule| FAMILIES.contains(&rule.id.split('/').next().unwrap())) {
        let is_known = shown.contains(rule.id) != without.iter().any(|id| id == rule.id);
        assert!(
            is_known || rule.default < Action::Patch,
            "{}: either a pod shows an error, or without_error.yaml has it",
            rule.id
        );
    }
    // What a pod of the tests shows is on the page, and nothing else.
    for error in POD_ERRORS {
        let is_shown =
            seen(&page).keys().any(|message| PodError::of(message).is_some_and(|row| std::ptr::eq(row, error)));
        let is_expected = error.evidence == ErrorEvidence::Pod;
        // The page cuts the stack of a panic off.
        assert!(
            is_shown == is_expected
                || error.words.contains("…Load")
                || error.words.contains("…parse")
                || error.words.contains("…try"),
            "{error:?}"
        );
    }
}

#[test]
fn the_page_is_current() {
    let page = fs::read_to_string(path()).unwrap();
    let want = with_rest(&with_seen(&page, &seen(&page)));
    if std::env::var_os("GENERATE").is_some_and(|value| value == "1") {
        fs::write(path(), &want).unwrap();
        return;
    }
    assert!(page == want, "docs/errors.md is not what the code generates; run `make generate`");
}
