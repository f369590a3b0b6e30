//! The audit report of an object: a `Report` of OpenReports, or the older `PolicyReport` with the same fields.
//!
//! A report is a function of the object's identity and its verdict only: it has no timestamps or counters, and its results are
//! ordered. So equal verdicts give equal reports, which need not be rewritten.

use serde_json::{Map, Value, json};

use super::fingerprint;
use crate::json::write::push_quoted;
use crate::policy::{Action, ExcuseReason, Finding, Reports, Verdict};
use crate::visible;

/// The most results of one report; the worst come first.
const MAX_RESULTS: usize = 100;
/// The maximum size of the results in bytes of JSON. etcd allows more than twenty times as much, but reports are listed in pages.
const MAX_BYTES: usize = 64 << 10;
/// The maximum bytes of a text in a result: pointers contain keys of a possibly hostile config.
const MAX_TEXT_BYTES: usize = 500;

/// The label with the owner of a report.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label with the type of a report: `object` or `denials`.
pub const ABOUT: &str = "nadmit.io/report";
/// The value of the first label, and the source of every result.
pub(crate) const SOURCE: &str = "nadmit";
/// What all results are about.
const CATEGORY: &str = "SR-IOV networks";

/// An object, as references name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the API's")]
pub struct ObjectReference<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
}

/// The label selector of all reports that nadmit made.
pub const OURS: (&str, &str) = (MANAGED_BY, SOURCE);

/// A kind of reports, as the API server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportKind {
    /// Group and version.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The kind in addresses.
    pub plural: &'static str,
}

impl ReportKind {
    const OPENREPORTS: Self = Self { api_version: "openreports.io/v1alpha1", kind: "Report", plural: "reports" };
    /// Newer installations have `v1beta1` too; all have this version, also Kyverno's.
    const WGPOLICYK8S: Self =
        Self { api_version: "wgpolicyk8s.io/v1alpha2", kind: "PolicyReport", plural: "policyreports" };
    /// Every kind that reports are written in.
    pub const ALL: [Self; 2] = [Self::OPENREPORTS, Self::WGPOLICYK8S];

    /// The kind selected by the policy; `None` if disabled.
    pub fn of(reports: Reports) -> Option<Self> {
        match reports {
            Reports::Openreports => Some(Self::OPENREPORTS),
            Reports::Wgpolicyk8s => Some(Self::WGPOLICYK8S),
            Reports::Off => None,
        }
    }
}

/// The name of the report of an object. Kyverno uses the bare UID.
pub fn name(uid: &str) -> String {
    format!("{SOURCE}-{uid}")
}

/// The report of an object; `None` without findings to report: recorded-only findings and those of deleting objects do not count.
pub fn report(reports: Reports, about: &ObjectReference<'_>, verdict: &Verdict) -> Option<Value> {
    let kind = ReportKind::of(reports)?;
    let results = results(verdict);
    if results.is_empty() {
        return None;
    }
    let ObjectReference { api_version, kind: of_kind, namespace, name: of_name, uid } = *about;
    let mut metadata = metadata(&name(uid), namespace, "object");
    let owner = json!({ "apiVersion": api_version, "kind": of_kind, "name": of_name, "uid": uid });
    metadata.insert("ownerReferences".to_owned(), json!([owner]));
    let scope =
        json!({ "apiVersion": api_version, "kind": of_kind, "namespace": namespace, "name": of_name, "uid": uid });
    let mut report = document(kind, &metadata, &results);
    if let Some(report) = report.as_object_mut() {
        report.insert("scope".to_owned(), scope);
    }
    Some(report)
}

/// A report of that kind.
pub(crate) fn document(kind: ReportKind, metadata: &Map<String, Value>, results: &[Value]) -> Value {
    json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "summary": summary(results),
        "results": results,
    })
}

/// The metadata of a report of ours.
pub(crate) fn metadata(name: &str, namespace: &str, about: &str) -> Map<String, Value> {
    let labels = json!({ MANAGED_BY: SOURCE, ABOUT: about });
    let members = [("name", name.into()), ("namespace", namespace.into()), ("labels", labels)];
    members.into_iter().map(|(key, value): (&str, Value)| (key.to_owned(), value)).collect()
}

/// The number of results by kind.
fn summary(results: &[Value]) -> Value {
    let sorts = ["pass", "fail", "warn", "error", "skip"];
    let count = |sort: &str| results.iter().filter(|result| result.get("result").is_some_and(|r| r == sort)).count();
    sorts.into_iter().map(|sort| (sort.to_owned(), count(sort).into())).collect::<Map<_, _>>().into()
}

/// What a result is counted as, in report order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResultKind {
    Fail,
    Warn,
    Skip,
}

impl ResultKind {
    /// Uses the rule's action, also in audit mode.
    fn of(finding: &Finding) -> Option<Self> {
        match finding.would.unwrap_or(finding.action) {
            // A stored object with a pending repair is incomplete.
            Action::Deny | Action::Patch => Some(Self::Fail),
            Action::Warn => Some(Self::Warn),
            Action::Audit if matches!(finding.because, Some(ExcuseReason::Exception(_))) => Some(Self::Skip),
            Action::Audit | Action::Off => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Skip => "skip",
        }
    }
}

/// The results of a verdict, most severe first, else in the order of the rules; the last one says how many were left out.
fn results(verdict: &Verdict) -> Vec<Value> {
    let mut findings: Vec<_> =
        verdict.findings.iter().filter_map(|finding| Some((ResultKind::of(finding)?, finding))).collect();
    findings.sort_by_key(|(sort, _)| *sort);
    let (mut results, mut bytes) = (Vec::new(), 0);
    for (at, (sort, finding)) in findings.iter().enumerate() {
        let result = finding_result(*sort, finding);
        bytes += result.to_string().len();
        if at == MAX_RESULTS || bytes > MAX_BYTES {
            let count = findings.len() - at;
            let message = format!(
                "{count} more findings are not in this report, which lists the most severe ones; fix these first"
            );
            // They are not more severe than the listed ones.
            results.push(left_out(*sort, "low", message));
            break;
        }
        results.push(result);
    }
    results
}

fn finding_result(sort: ResultKind, finding: &Finding) -> Value {
    let done = finding.would.unwrap_or(finding.action);
    let severity = match (sort, done) {
        (ResultKind::Skip, _) => "info",
        (_, Action::Deny) => "high",
        (_, Action::Patch) => "medium",
        _ => "low",
    };
    let mut properties = Map::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            properties.insert(key.to_owned(), short(value).into());
        }
    };
    add("action", done.name());
    add("pointer", &finding.pointer);
    add("configPointer", finding.config.as_ref().map_or("", |place| &place.pointer));
    add("help", &finding.help);
    add("because", finding.because.as_ref().map_or("", ExcuseReason::name));
    if let Some(ExcuseReason::Exception(reason)) = &finding.because {
        add("reason", reason);
    }
    if finding.would.is_some() {
        add("mode", "audit");
    }
    let id = finding.rule.id;
    let policy = id.split('/').next().unwrap_or(id);
    let mut result = result(sort, severity, (policy, id), short(&finding.sentence()));
    result.insert("properties".to_owned(), properties.into());
    result.into()
}

/// The result that says that others are missing.
pub(crate) fn left_out(sort: ResultKind, severity: &str, message: String) -> Value {
    result(sort, severity, ("report", "report/left-out"), message).into()
}

/// The members that every result has.
pub(crate) fn result(
    sort: ResultKind,
    severity: &str,
    (policy, rule): (&str, &str),
    message: String,
) -> Map<String, Value> {
    let members: [(&str, Value); 8] = [
        ("source", SOURCE.into()),
        ("policy", policy.into()),
        ("rule", rule.into()),
        ("category", CATEGORY.into()),
        ("severity", severity.into()),
        ("result", sort.name().into()),
        // Warnings are not scored, by the contract of these kinds.
        ("scored", (sort == ResultKind::Fail).into()),
        ("message", message.into()),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Untrusted text, truncated and escaped: `kubectl` prints reports.
pub(crate) fn short(text: &str) -> String {
    visible::at_most(&visible::line(text), MAX_TEXT_BYTES).to_owned()
}

/// The digest of a report. Fields that only others write are excluded, such as API server fields and foreign labels.
pub fn digest(report: &Value) -> String {
    const REFERENCE: &[&str] = &["apiVersion", "kind", "namespace", "name", "uid"];
    const RESULT: &[&str] = &[
        "source",
        "policy",
        "rule",
        "category",
        "severity",
        "result",
        "scored",
        "message",
        "properties",
        "timestamp",
        "resources",
    ];
    const SUMMARY: &[&str] = &["pass", "fail", "warn", "error", "skip"];
    let mut text = String::new();
    let labels = report.pointer("/metadata/labels");
    let owners = report.pointer("/metadata/ownerReferences");
    part(labels, Some(&[MANAGED_BY, ABOUT]), &mut text);
    part(owners, Some(REFERENCE), &mut text);
    part(report.get("scope"), Some(REFERENCE), &mut text);
    part(report.get("summary"), Some(SUMMARY), &mut text);
    part(report.get("results"), Some(RESULT), &mut text);
    fingerprint([text.as_str()])
}

/// Adds a value, its members by name; of an object, and of objects in a list, only those with these names.
fn part(value: Option<&Value>, names: Option<&[&str]>, text: &mut String) {
    match value {
        Some(Value::Object(members)) => {
            let mut members: Vec<_> = members.iter().collect();
            members
                .retain(|(name, value)| names.is_none_or(|names| names.contains(&name.as_str())) && !value.is_null());
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in members {
                push_quoted(text, name);
                part(Some(value), None, text);
            }
            text.push('}');
        }
        Some(Value::Array(elements)) => {
            text.push('[');
            elements.iter().for_each(|element| part(Some(element), names, text));
            text.push(']');
        }
        Some(scalar) => text.extend([scalar.to_string().as_str(), ","]),
        None => text.push('-'),
    }
}

#[cfg(test)]
mod tests;
