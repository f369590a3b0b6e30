//! SARIF 2.1.0. A finding is about a resource or an object, not about a line: its place is the log.

use serde_json::{Value, json};

use crate::audit_log::report::{LOG_RULES, LogFinding, Report};
use crate::json::write::to_json;
use crate::output::{SarifRun, fingerprint, uri};

impl Report {
    /// The SARIF log: one run of one tool.
    pub fn sarif(&self) -> String {
        let run = SarifRun(&LOG_RULES);
        let source = self.log.sources.first().map_or_else(|| "stdin".to_owned(), |source| uri(source));
        let result = |found: &LogFinding| {
            let result = run.result(&found.finding, location(found, &source), &identity(found));
            format!("\n{}", to_json(&result))
        };
        let results: Vec<_> = self.findings.iter().map(result).collect();
        let is_success = self.log.unreadable == 0 && self.log.too_long == 0;
        [run.begin(), results.join(","), run.end(is_success)].concat()
    }
}

fn location(found: &LogFinding, source: &str) -> Value {
    json!({
        "physicalLocation": {"artifactLocation": {"uri": source}, "region": {"startLine": 1}},
        "logicalLocations": [{"name": found.subject, "fullyQualifiedName": found.subject, "kind": "resource"}],
    })
}

/// What makes the result the same one in the next log: who does what to which resource, without the counts.
fn identity(found: &LogFinding) -> String {
    let sentence = found.finding.sentence();
    let agent = sentence.split('`').nth(1).unwrap_or_default();
    fingerprint([found.finding.rule.id, found.subject.as_str(), agent])
}
