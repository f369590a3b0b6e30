//! The report for programs: a stable contract, one document per line.

use json_patch::Patch;
use serde::Serialize;

use super::{Format, JudgedDocument, LocatedFinding, SkippedCounts, Summary};
use crate::json::write::to_json;
use crate::policy::{ExcuseReason, RelatedObject};

/// The JSON report. Its content and order are a contract: keys are added, never renamed, moved or removed while `version` stays
/// the same.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Format for Json {
    fn begin(&self) -> String {
        r#"{"version":1,"documents":["#.to_owned()
    }

    fn document(&self, judged: &JudgedDocument<'_>) -> String {
        // The line break belongs to the document, so that an empty list has none too many.
        format!("\n{}", to_json(&DocumentReport::of(judged)))
    }

    fn between(&self) -> &'static str {
        ","
    }

    fn end(&self, summary: &Summary) -> String {
        let Summary { documents, skipped, unreadable, deny, patch, warn, fixable: _ } = *summary;
        let totals = to_json(&Totals { documents, deny, patch, warn, unreadable, skipped });
        format!("\n],\"summary\":{totals}}}\n")
    }
}

#[derive(Serialize)]
struct DocumentReport<'a> {
    source: &'a str,
    line: usize,
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    findings: Vec<FindingReport<'a>>,
    patch: &'a Patch,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<&'a str>,
}

#[derive(Serialize)]
struct FindingReport<'a> {
    rule: &'a str,
    action: &'a str,
    pointer: &'a str,
    config_pointer: Option<&'a str>,
    line: usize,
    column: usize,
    message: &'a str,
    note: &'a str,
    help: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<RelatedReport<'a>>,
}

/// Another object that a finding is about.
#[derive(Serialize)]
struct RelatedReport<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    relation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

#[derive(Serialize)]
struct Totals {
    documents: usize,
    deny: usize,
    patch: usize,
    warn: usize,
    unreadable: usize,
    skipped: SkippedCounts,
}

impl<'a> DocumentReport<'a> {
    fn of(judged: &'a JudgedDocument<'a>) -> Self {
        Self {
            source: judged.source,
            line: judged.line,
            api_version: judged.api_version,
            kind: judged.kind,
            namespace: judged.namespace,
            name: judged.name,
            findings: judged.findings.iter().map(FindingReport::of).collect(),
            patch: &judged.verdict.patch,
            template: judged.template,
        }
    }
}

impl<'a> FindingReport<'a> {
    fn of(placed: &'a LocatedFinding<'a>) -> Self {
        let finding = placed.finding;
        Self {
            rule: finding.rule.id,
            action: finding.action.name(),
            pointer: &finding.pointer,
            config_pointer: finding.config.as_ref().map(|place| place.pointer.as_str()),
            line: placed.line,
            column: placed.column,
            message: &finding.message,
            note: &finding.note,
            help: &finding.help,
            would: finding.would.map(|action| action.name()),
            because: finding.because.as_ref().map(ExcuseReason::name),
            related: finding.related.iter().map(RelatedReport::of).collect(),
        }
    }
}

impl<'a> RelatedReport<'a> {
    fn of(other: &'a RelatedObject) -> Self {
        let place = other.place.as_ref();
        Self {
            kind: other.kind,
            namespace: other.key.namespace(),
            name: other.key.name(),
            relation: &other.relation,
            source: place.map(|place| &*place.file),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, TestDocument};
    use super::*;
    use crate::policy::Action;

    #[test]
    fn keeps_the_contract() {
        let case = TestDocument::new(vec![
            testing::finding("nad/plugins-ignored", Action::Warn, "`plugins` is ignored")
                .with_note("Multus runs one plugin")
                .in_config("/plugins"),
            testing::finding("nad/schema", Action::Deny, "a \"list\"\nof lines").at("/metadata/annotations/a~1b"),
        ])
        .patched(r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]"#);
        insta::assert_snapshot!(testing::report(&Json, &[&case, &TestDocument::new(Vec::new())]), @r#"
        {"version":1,"documents":[
        {"source":"nets/a b.yaml","line":3,"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","namespace":"apps","name":"net","findings":[{"rule":"nad/plugins-ignored","action":"warn","pointer":"/spec/config","config_pointer":"/plugins","line":9,"column":5,"message":"`plugins` is ignored","note":"Multus runs one plugin","help":"fix it"},{"rule":"nad/schema","action":"deny","pointer":"/metadata/annotations/a~1b","config_pointer":null,"line":9,"column":5,"message":"a \"list\"\nof lines","note":"","help":"fix it"}],"patch":[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]},
        {"source":"nets/a b.yaml","line":3,"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","namespace":"apps","name":"net","findings":[],"patch":[]}
        ],"summary":{"documents":2,"deny":1,"patch":0,"warn":1,"unreadable":0,"skipped":{"other_kinds":0,"no_kind":0,"helm_templates":0,"kustomize_patches":0,"ignored":0,"links":0}}}
        "#);
    }

    #[test]
    fn other_objects_are_named_with_their_places() {
        let case = TestDocument::new(vec![testing::finding("nad/schema", Action::Warn, "m").beside_two_others()]);
        let report: serde_json::Value = serde_json::from_str(&testing::report(&Json, &[&case])).unwrap();
        assert_eq!(
            report["documents"][0]["findings"][0]["related"],
            serde_json::json!([
                {"kind": "NetworkAttachmentDefinition", "namespace": "apps", "name": "other", "relation": "has the same range",
                 "source": "nets/b.yaml", "line": 7, "column": 3},
                {"kind": "SriovNetworkNodePolicy", "namespace": "", "name": "policy", "relation": "offers it"},
            ])
        );
    }

    #[test]
    fn empty_report_is_valid() {
        let report = testing::report(&Json, &[]);
        assert!(report.starts_with("{\"version\":1,\"documents\":[\n],\"summary\":{\"documents\":0,"), "{report}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["documents"], serde_json::json!([]));
    }

    #[test]
    fn a_rendered_document_names_its_template() {
        let mut case = TestDocument::new(Vec::new());
        (case.source, case.template) = ("-", Some("chart/templates/a.yaml"));
        let report = testing::report(&Json, &[&case, &TestDocument::new(Vec::new())]);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let names =
            |number: usize| (&report["documents"][number]["source"], report["documents"][number].get("template"));
        assert_eq!(names(0), (&"-".into(), Some(&"chart/templates/a.yaml".into())));
        assert_eq!(names(1), (&"nets/a b.yaml".into(), None));
    }

    #[test]
    fn json_includes_because() {
        let findings = [
            (None, None),
            (Some(Action::Deny), None),
            (Some(Action::Patch), None),
            (None, Some(ExcuseReason::Deleting)),
            (None, Some(ExcuseReason::Ratchet)),
            (None, Some(ExcuseReason::Exempt)),
            (None, Some(ExcuseReason::Operator)),
            (None, Some(ExcuseReason::Exception("known".to_owned()))),
        ]
        .into_iter()
        .map(|(would, because)| {
            let mut finding = testing::finding("nad/schema", Action::Warn, "m");
            (finding.would, finding.because) = (would, because);
            finding
        })
        .collect();
        let report: serde_json::Value =
            serde_json::from_str(&testing::report(&Json, &[&TestDocument::new(findings)])).unwrap();
        let found: Vec<_> = report["documents"][0]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| (finding["would"].as_str(), finding["because"].as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (None, None),
                (Some("deny"), None),
                (Some("patch"), None),
                (None, Some("deleting")),
                (None, Some("ratchet")),
                (None, Some("exempt")),
                (None, Some("operator")),
                (None, Some("exception")),
            ]
        );
        assert!(report["documents"][0]["findings"][0].as_object().unwrap().get("would").is_none());
    }
}
