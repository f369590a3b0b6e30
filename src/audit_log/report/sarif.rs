//! SARIF 2.1.0. A finding is about a resource or an object, not about a line: its place is the log.

use serde_json::{Value, json};

use crate::audit_log::report::{LogFinding, LogRule, Report};
use crate::output::{SARIF_SCHEMA, fingerprint, uri};
use crate::policy::Action;

impl Report {
    /// The SARIF log: one run of one tool.
    pub fn sarif(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let rules: Vec<_> = LogRule::ALL.into_iter().map(rule).collect();
        let source = self.log.sources.first().map_or_else(|| "stdin".to_owned(), |source| uri(source));
        let results: Vec<_> = self.findings.iter().map(|finding| result(finding, &source)).collect();
        let log = json!({
            "$schema": SARIF_SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {"name": "nadmit", "version": version, "semanticVersion": version, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": results,
                "invocations": [{"executionSuccessful": self.log.unreadable == 0 && self.log.too_long == 0}],
            }],
        });
        format!("{log}\n")
    }
}

fn rule(kind: LogRule) -> Value {
    let level = if matches!(kind, LogRule::Blind | LogRule::Loop) { Action::Warn } else { Action::Audit };
    json!({
        "id": kind.id(),
        "shortDescription": {"text": kind.finds()},
        "help": {"text": kind.help()},
        "defaultConfiguration": {"level": level_name(level)},
        "properties": {"tags": ["audit-log"]},
    })
}

fn result(finding: &LogFinding, source: &str) -> Value {
    let LogFinding { rule, message, note, help, .. } = finding;
    let (id, message) = (rule.id(), format!("{message}\nnote: {note}\nhelp: {help}"));
    // The counts change with every log; who does what to which resource stays.
    let agent = message.split('`').nth(1).unwrap_or_default().to_owned();
    json!({
        "ruleId": id,
        "ruleIndex": LogRule::ALL.iter().position(|kind| *kind == finding.rule),
        "level": level_name(finding.action),
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": source}, "region": {"startLine": 1}},
            "logicalLocations": [{"name": finding.subject, "fullyQualifiedName": finding.subject, "kind": "resource"}],
        }],
        "partialFingerprints": {"finding/v1": fingerprint([id, finding.subject.as_str(), &agent])},
        "properties": {"action": finding.action.name(), "note": note, "help": help},
    })
}

fn level_name(action: Action) -> &'static str {
    if action == Action::Warn { "warning" } else { "note" }
}
