//! For the formats' own tests: documents with findings of their choosing.

use super::report::ObjectReference;
use super::{Format, JudgedDocument, LocatedFinding, Summary};
use crate::policy::{Action, ConfigPlace, Finding, Mode, RelatedObject, SourcePlace, Verdict, rules};
use crate::resources::ObjectKey;

/// A document to be shown.
pub(super) struct TestDocument {
    pub(super) source: &'static str,
    pub(super) template: Option<&'static str>,
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    /// Line, column, end line and end column of every finding.
    pub(super) place: (usize, usize, usize, usize),
    pub(super) verdict: Verdict,
}

impl TestDocument {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        let verdict = Verdict {
            mode: Mode::Enforce,
            findings,
            patch: Default::default(),
            would_patch: Default::default(),
            missing_fact: None,
            written_by_operator: false,
            is_incomplete: false,
        };
        Self { source: "nets/a b.yaml", template: None, namespace: "apps", name: "net", place: (9, 5, 9, 14), verdict }
    }

    pub(super) fn patched(mut self, patch: &str) -> Self {
        self.verdict.patch = serde_json::from_str(patch).unwrap();
        self
    }

    pub(super) fn judged(&self) -> JudgedDocument<'_> {
        let (line, column, end_line, end_column) = self.place;
        let place = |finding| LocatedFinding { finding, span: 0..0, line, column, end_line, end_column };
        JudgedDocument {
            source: self.source,
            template: self.template,
            text: "",
            line: 3,
            api_version: "k8s.cni.cncf.io/v1",
            kind: "NetworkAttachmentDefinition",
            namespace: self.namespace,
            name: self.name,
            json: "{}",
            verdict: &self.verdict,
            findings: self.verdict.findings.iter().map(place).collect(),
            change: None,
        }
    }
}

/// A finding at `/spec/config`.
pub(crate) fn finding(rule: &str, action: Action, message: &str) -> Finding {
    Finding {
        rule: rules::find(rule).unwrap(),
        action,
        would: None,
        because: None,
        pointer: "/spec/config".to_owned(),
        config: None,
        message: message.to_owned(),
        note: String::new(),
        help: "fix it".to_owned(),
        is_about_key: false,
        is_excused: false,
        related: Vec::new(),
        ceiling: Action::Deny,
        repairs: Vec::new(),
        replacement: None,
        holds_in_any_release: false,
    }
}

impl Finding {
    /// The same with a note.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.note = note.to_owned();
        self
    }

    /// The same about two other objects, of which one has a manifest.
    pub(crate) fn beside_two_others(mut self) -> Self {
        let other =
            RelatedObject::new("NetworkAttachmentDefinition", ObjectKey::new("apps", "other"), "has the same range");
        let place = SourcePlace { file: "nets/b.yaml".into(), line: 7, column: 3 };
        let policy = RelatedObject::new("SriovNetworkNodePolicy", ObjectKey::new("", "policy"), "offers it");
        self.related_to([RelatedObject { place: Some(place), ..other }, policy]);
        self
    }

    /// The same at another place of the object.
    pub(crate) fn at(mut self, pointer: &str) -> Self {
        self.pointer = pointer.to_owned();
        self
    }

    /// The same inside the config.
    pub(crate) fn in_config(mut self, pointer: &str) -> Self {
        self.config = Some(ConfigPlace { pointer: pointer.to_owned(), span: 0..0, line: 1, column: 1 });
        self
    }
}

/// The whole report, assembled like an entry point does.
pub(super) fn report(format: &dyn Format, cases: &[&TestDocument]) -> String {
    let mut summary = Summary::default();
    let mut report = format.begin();
    let mut any = false;
    for case in cases {
        summary.count(&case.verdict);
        let chunk = format.document(&case.judged());
        if chunk.is_empty() {
            continue;
        }
        if std::mem::replace(&mut any, true) {
            report += format.between();
        }
        report += &chunk;
    }
    report + &format.end(&summary)
}

/// A network, as reports and Events are about it.
pub(crate) const NET: ObjectReference<'_> = ObjectReference {
    api_version: "sriovnetwork.openshift.io/v1",
    kind: "SriovNetwork",
    namespace: "operator",
    name: "net",
    uid: "f6b1",
};
