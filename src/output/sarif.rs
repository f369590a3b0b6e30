//! SARIF 2.1.0, which code-scanning services read: the rules first, then one result per line.
//!
//! The types are our own: a dozen members of the format are used, and serde-sarif generates all of it while nadmit is built.

use std::hash::Hasher;

use fnv::FnvHasher;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};

use super::text::{self, file, full_name, level, path, whole};
use super::{Format, JudgedDocument, LocatedFinding, Summary, reference};
use crate::json::write::to_json;
use crate::policy::rules::RULES;
use crate::policy::{ExcuseReason, Finding, RelatedObject, Rule};

/// The SARIF log: one run of one tool.
#[derive(Clone, Copy, Debug)]
pub struct Sarif;

/// Where the shape of such a log is described.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The run of nadmit in a log, with these rules.
pub(crate) struct SarifRun(pub(crate) &'static [&'static Rule]);

impl SarifRun {
    /// What stands before the results, which are separated by commas.
    pub(crate) fn begin(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let rules: Vec<Value> = self.0.iter().map(|rule| metadata(rule)).collect();
        let tool =
            json!({"driver": {"name": "nadmit", "version": version, "semanticVersion": version, "rules": rules}});
        format!(
            "{{\"$schema\":\"{SCHEMA}\",\"version\":\"2.1.0\",\"runs\":[{{\"tool\":{tool},\
             \"columnKind\":\"unicodeCodePoints\",\"results\":["
        )
    }

    /// What stands behind the results.
    pub(crate) fn end(&self, is_success: bool) -> String {
        let invocation = json!({"executionSuccessful": is_success});
        format!("\n],\"invocations\":[{invocation}]}}]}}\n")
    }

    /// A finding as a result.
    pub(crate) fn result<'f>(&self, finding: &'f Finding, location: Value, fingerprint: &str) -> SarifResult<'f> {
        let suppression = match &finding.because {
            Some(ExcuseReason::Exception(reason)) => Some(json!({"kind": "external", "justification": reason})),
            _ => None,
        };
        SarifResult {
            rule_id: finding.rule.id,
            rule_index: self.0.iter().position(|rule| *rule == finding.rule),
            level: level(finding.action),
            message: json!({"text": whole(finding)}),
            locations: [location],
            related_locations: finding.related.iter().map(related_location).collect(),
            partial_fingerprints: json!({"finding/v1": fingerprint}),
            suppressions: suppression.into_iter().collect(),
            properties: Properties {
                action: finding.action.name(),
                pointer: &finding.pointer,
                config_pointer: finding.config.as_ref().map(|place| place.pointer.as_str()),
                note: &finding.note,
                help: &finding.help,
                would: finding.would.map(|action| action.name()),
                because: finding.because.as_ref().map(ExcuseReason::name),
            },
        }
    }
}

/// The run that judges objects.
const RUN: SarifRun = SarifRun(RULES);

impl Format for Sarif {
    fn begin(&self) -> String {
        RUN.begin()
    }

    fn document(&self, judged: &JudgedDocument<'_>) -> String {
        let mut results = String::new();
        for (index, placed) in judged.findings.iter().enumerate() {
            if index > 0 {
                results.push_str(self.between());
            }
            results.push('\n');
            let fingerprint = fingerprint(judged, index, placed);
            results += &to_json(&RUN.result(placed.finding, location(judged, placed), &fingerprint));
        }
        results
    }

    fn between(&self) -> &'static str {
        ","
    }

    fn end(&self, summary: &Summary) -> String {
        RUN.end(summary.unreadable == 0)
    }
}

fn metadata(rule: &Rule) -> Value {
    let mut metadata = json!({
        "id": rule.id,
        "shortDescription": {"text": rule.wrong},
        "fullDescription": {"text": rule.why},
        "help": {"text": reference::explain(rule), "markdown": reference::details(rule)},
        "defaultConfiguration": {"level": level(rule.default)},
        "properties": {"tags": [reference::family(rule)]},
    });
    if let (Some(uri), Some(members)) = (help_uri(env!("CARGO_PKG_REPOSITORY"), rule), metadata.as_object_mut()) {
        members.insert("helpUri".to_owned(), uri.into());
    }
    metadata
}

/// The rule's page of the reference in the repository; `None` as long as Cargo.toml has only a placeholder for its address, because
/// SARIF requires an absolute URI, and a link to somebody else's repository is worse than none.
fn help_uri(repository: &str, rule: &Rule) -> Option<String> {
    let version = env!("CARGO_PKG_VERSION");
    let path = reference::path(rule);
    let is_known = !repository.is_empty() && !repository.contains("/OWNER/");
    is_known.then(|| format!("{repository}/blob/v{version}/docs/{path}"))
}

/// One result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SarifResult<'a> {
    rule_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'static str,
    message: Value,
    locations: [Value; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Value>,
    partial_fingerprints: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Value>,
    properties: Properties<'a>,
}

/// Additional properties, named as in the JSON report.
#[derive(Serialize)]
struct Properties<'a> {
    action: &'static str,
    pointer: &'a str,
    config_pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    help: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'static str>,
}

fn location(judged: &JudgedDocument<'_>, placed: &LocatedFinding<'_>) -> Value {
    let object = format!("{}/{}", judged.kind, full_name(judged));
    let member = member(placed);
    let mut logical = vec![
        json!({"name": judged.name, "fullyQualifiedName": object, "kind": "object"}),
        json!({"name": member, "fullyQualifiedName": format!("{object}{member}"), "kind": "member"}),
    ];
    if let Some(template) = judged.template {
        logical.push(json!({"name": template, "fullyQualifiedName": template, "kind": "template"}));
    }
    let region = match judged.template {
        // The lines are those of the rendered text, not of the template, which is the artifact.
        Some(_) if path(judged.source).is_none() => json!({"startLine": 1}),
        _ => json!({
            "startLine": placed.line,
            "startColumn": placed.column,
            "endLine": placed.end_line,
            "endColumn": placed.end_column,
        }),
    };
    json!({
        "physicalLocation": {"artifactLocation": {"uri": artifact(judged)}, "region": region},
        "logicalLocations": logical,
    })
}

/// Another object that a finding is about.
fn related_location(other: &RelatedObject) -> Value {
    let object = format!("{}/{}", other.kind, other.key);
    let mut location = json!({
        "message": {"text": text::related(other)},
        "logicalLocations": [{"name": other.key.name(), "fullyQualifiedName": object, "kind": "object"}],
    });
    if let (Some(place), Some(members)) = (&other.place, location.as_object_mut()) {
        let region = json!({"startLine": place.line, "startColumn": place.column});
        let file = json!({"artifactLocation": {"uri": uri(&place.file)}, "region": region});
        members.insert("physicalLocation".to_owned(), file);
    }
    location
}

/// The file of a document, or the template that it was rendered from into standard input.
fn artifact(judged: &JudgedDocument<'_>) -> String {
    uri(&file(judged).unwrap_or_else(|| "-".to_owned()))
}

/// The pointer into the object, and after a `#` the one into its JSON text.
fn member(placed: &LocatedFinding<'_>) -> String {
    let finding = placed.finding;
    match &finding.config {
        Some(place) => format!("{}#{}", finding.pointer, place.pointer),
        None => finding.pointer.clone(),
    }
}

/// The fingerprint of a finding, stable when lines move or the wording changes.
fn fingerprint(judged: &JudgedDocument<'_>, index: usize, placed: &LocatedFinding<'_>) -> String {
    let same =
        |other: &&LocatedFinding<'_>| other.finding.rule == placed.finding.rule && member(other) == member(placed);
    let ordinal = judged.findings.iter().take(index).filter(same).count().to_string();
    let (file, rule, member) = (artifact(judged), placed.finding.rule.id, member(placed));
    hash([file.as_str(), judged.kind, judged.namespace, judged.name, rule, &member, &ordinal])
}

/// A hash of the texts that identify a finding.
pub(crate) fn hash<'t>(parts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hasher = FnvHasher::default();
    for part in parts {
        hasher.write(part.as_bytes());
        hasher.write_u8(0);
    }
    format!("{:016x}", hasher.finish())
}

/// Characters that are not percent-encoded in the path of a URI.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A path as a URI: relative to where nadmit ran, unless it was given from the root.
pub(crate) fn uri(source: &str) -> String {
    let Some(path) = path(source) else { return "stdin".to_owned() };
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", utf8_percent_encode(&path, PLAIN))
}

#[cfg(test)]
mod tests;
