//! What people see of real manifests: judged, located and rendered.

use jiff::civil::date;

use super::*;
use crate::json::LineIndex;
use crate::output::locate;
use crate::output::testing::finding;
use crate::policy::{Facts, Finding, Policy, Subject, Verdict, judge};
use crate::resources::Object;
use crate::yaml::{Documents, YamlNode};

/// A manifest and its verdict.
struct JudgedManifest {
    text: String,
    node: YamlNode,
    json: String,
    verdict: Verdict,
}

impl JudgedManifest {
    fn new(text: &str, policy: &str) -> Self {
        let node = Documents::new(text).next().unwrap().node.unwrap();
        let json = node.to_json();
        let facts = Facts { today: Some(date(2026, 11, 1)), ..Facts::default() };
        let object = Object::read(&json).unwrap().unwrap();
        let verdict = judge(&Subject::manifest(&object), &facts, &Policy::parse(policy).unwrap());
        Self { text: text.to_owned(), node, json, verdict }
    }

    fn show(&self, format: &Human) -> String {
        let lines = LineIndex::of(&self.text);
        let mut findings: Vec<_> =
            self.verdict.findings.iter().map(|finding| locate(finding, &self.node, &lines)).collect();
        findings.sort_by_key(|placed| placed.span.start);
        let change = (!self.verdict.patch.is_empty()).then(|| {
            let mut value = serde_json::from_str(&self.json).unwrap();
            json_patch::patch(&mut value, &self.verdict.patch).unwrap();
            (self.json.clone(), value.to_string())
        });
        let text_at = |pointer| self.node.follow(pointer).0.as_str().unwrap_or_default();
        format.document(&JudgedDocument {
            source: "nets.yaml",
            template: None,
            text: &self.text,
            line: 1,
            api_version: "k8s.cni.cncf.io/v1",
            kind: text_at("/kind"),
            namespace: text_at("/metadata/namespace"),
            name: text_at("/metadata/name"),
            json: &self.json,
            verdict: &self.verdict,
            findings,
            change,
        })
    }
}

fn nad(config: &str) -> String {
    format!(
        "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: net\n  namespace: apps\n  \
         annotations:\n    k8s.v1.cni.cncf.io/resourceName: intel.com/vfs\nspec:\n  config: {config}\n"
    )
}

fn shown(text: &str, policy: &str) -> String {
    JudgedManifest::new(text, policy).show(&Human::new(false, true))
}

#[test]
fn value_is_underlined_in_the_file() {
    let config = "|\n    {\n      \"cniVersion\": \"1.0.0\",\n      \"type\": \"sriov\",\n      \"name\": \"é\", \"vlan\": 5000,\n      \
                  \"spoofchk\": \"of\"\n    }";
    insta::assert_snapshot!(shown(&nad(config), ""));
}

/// A value of the object itself is underlined like one inside the config.
#[test]
fn value_of_a_network_is_underlined() {
    let network = "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetwork\nmetadata:\n  name: net\n  namespace: sriov-network-operator\n\
                   spec:\n  resourceName: cx7\n  vlan: 5000\n  trust: maybe\n";
    insta::assert_snapshot!(shown(network, ""));
}

#[test]
fn missing_value_is_shown_at_its_parent_with_the_repair() {
    let text =
        nad(r#"'{"cniVersion":"1.0.0","type":"sriov","resourceName":"intel.com/vfs"}'"#).replace("k8s.v1.cni", "x");
    insta::assert_snapshot!(shown(&text, ""));
}

#[test]
fn repair_is_shown_only_if_asked_for() {
    let text =
        nad(r#"'{"cniVersion":"1.0.0","type":"sriov","resourceName":"intel.com/vfs"}'"#).replace("k8s.v1.cni", "x");
    let manifest = JudgedManifest::new(&text, "");
    assert!(manifest.show(&Human::new(false, true)).contains("as it would be stored"));
    assert!(!manifest.show(&Human::new(false, false)).contains("as it would be stored"));
    assert!(manifest.show(&Human::new(true, false)).contains("\u{1b}["));
}

#[test]
fn reason_of_a_weaker_action_is_a_note() {
    let text = nad(r#"'{"cniVersion":"1.0.0","type":"sriov","vlan":5000}'"#);
    insta::assert_snapshot!(shown(&text, "exempt: {namespaces: [apps]}"));
    insta::assert_snapshot!(shown(&text, "mode: audit"));
}

/// Findings with the action `audit` are for reports, not for people who check a file.
#[test]
fn findings_that_are_only_audited_are_left_out() {
    let text = nad(r#"'{"cniVersion":"1.0.0","type":"sriov","vlan":5000}'"#);
    assert_eq!(shown(&text, "rules: {sriov/vlan: audit}"), "");
}

/// Of a file that is one long line only the place and what is around it is shown, and nothing that a terminal would obey.
#[test]
fn long_line_is_cut_to_its_place() {
    let padding = "é".repeat(1500);
    let config =
        format!(r#""{{\"cniVersion\":\"1.0.0\",\"type\":\"sriov\",\"name\":\"{padding}\\u001b[2J\",\"vlan\":5000}}""#);
    insta::assert_snapshot!(shown(&nad(&config), "rules: {nad/network-name: off}"));
}

#[test]
fn place_in_the_object_is_named() {
    let name = |finding: &Finding| {
        let verdict = JudgedManifest::new(&nad("'{}'"), "").verdict;
        let placed = LocatedFinding { finding, span: 0..0, line: 1, column: 1, end_line: 1, end_column: 1 };
        let judged = JudgedDocument {
            source: "-",
            template: None,
            text: "",
            line: 1,
            api_version: "v1",
            kind: "Kind",
            namespace: "",
            name: "net",
            json: "{}",
            verdict: &verdict,
            findings: Vec::new(),
            change: None,
        };
        object(&judged, &placed)
    };
    let plain = finding("sriov/vlan", Action::Deny, "wrong");
    assert_eq!(name(&plain.clone().at("")), "Kind net");
    assert_eq!(name(&plain), "Kind net, /spec/config");
    assert_eq!(name(&plain.clone().in_config("")), "Kind net, /spec/config");
    assert_eq!(name(&plain.in_config("/vlan")), "Kind net, /spec/config at /vlan");
}

#[test]
fn last_line_counts_what_there_was() {
    let none = Summary { documents: 1, ..Summary::default() };
    for (summary, want) in [
        (Summary::default(), "0 documents judged: no findings"),
        (none, "1 document judged: no findings"),
        (Summary { documents: 2, deny: 1, ..none }, "2 documents judged: 1 denial"),
        (Summary { deny: 2, patch: 1, warn: 3, ..none }, "1 document judged: 2 denials, 1 repair, 3 warnings"),
        (Summary { patch: 2, ..none }, "1 document judged: 2 repairs"),
        (Summary { warn: 1, unreadable: 2, ..none }, "1 document judged: 1 warning; 2 could not be read"),
        (
            Summary { patch: 2, fixable: 1, ..none },
            "1 document judged: 2 repairs\n1 finding can be fixed with `nadmit check --fix`",
        ),
        (
            Summary { warn: 3, fixable: 2, ..none },
            "1 document judged: 3 warnings\n2 findings can be fixed with `nadmit check --fix`",
        ),
    ] {
        assert_eq!(Human::new(false, false).end(&summary), format!("{want}\n"));
    }
}

/// Another object that a finding is about comes last, with the place of its manifest.
#[test]
fn other_objects_are_shown_with_their_places() {
    let mut judged = JudgedManifest::new(&nad(r#"{"cniVersion":"1.0.0","type":"macvlan"}"#), "{}");
    judged.verdict.findings = vec![finding("nad/schema", Action::Warn, "two objects disagree").beside_two_others()];
    insta::assert_snapshot!(judged.show(&Human::new(false, false)), @r#"
    warning[nad/schema]: two objects disagree
     --> nets.yaml:9:3
      |
    9 |   config: {"cniVersion":"1.0.0","type":"macvlan"}
      |   ^^^^^^
      |
      = in: NetworkAttachmentDefinition apps/net, /spec/config
      = help: fix it
    note: NetworkAttachmentDefinition apps/other has the same range
     --> nets/b.yaml:7:3
    note: SriovNetworkNodePolicy policy offers it
    "#);
}
