//! What is kept in a cluster about one of its objects: a `Report` of OpenReports, or the older `PolicyReport`, whose fields have the
//! same names.
//!
//! A report is a function of the object's identity and its verdict, and of nothing else: no clock and no counter is in it, and its
//! results have one order. So an equal verdict is an equal report, and nobody needs to write it again.

use serde_json::{Map, Value, json};

use super::fingerprint;
use crate::policy::{Action, Because, Finding, Reports, Verdict};
use crate::visible;

/// The most results of one report; the worst come first.
const MOST_RESULTS: usize = 100;
/// The most that the results of one report take, in bytes of JSON. etcd takes more than twenty times as much; what is read
/// page by page should not.
const MOST_BYTES: usize = 64 << 10;
/// The longest text in a result, in characters: keys of a hostile config are in its pointers.
const MOST_WORDS: usize = 500;

/// Who made a report, and thereby who may change it.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// What a report of ours is about: `object` or `denials`.
pub const ABOUT: &str = "nadmit.io/report";
/// The value of the first label, and the source of every result.
pub(crate) const SOURCE: &str = "nadmit";
/// What all results are about.
pub(super) const CATEGORY: &str = "SR-IOV networks";

/// An object, as references name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the API's")]
pub struct About<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
}

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
    /// The one that the policy names; `None` where it wants none.
    pub fn of(reports: Reports) -> Option<Self> {
        match reports {
            Reports::Openreports => {
                Some(Self { api_version: "openreports.io/v1alpha1", kind: "Report", plural: "reports" })
            }
            // Newer servers of this kind have `v1beta1` too; all have this one, which Kyverno brings along.
            Reports::Wgpolicyk8s => {
                Some(Self { api_version: "wgpolicyk8s.io/v1alpha2", kind: "PolicyReport", plural: "policyreports" })
            }
            Reports::Off => None,
        }
    }
}

/// What the report of an object with that UID is called. Kyverno calls its reports by the bare UID.
pub fn name(uid: &str) -> String {
    format!("{SOURCE}-{uid}")
}

/// The report of an object; `None` where there is nothing to keep: a finding that policy only records, or whose object is being
/// deleted, is no reason for one.
pub fn report(reports: Reports, about: &About<'_>, verdict: &Verdict) -> Option<Value> {
    let kind = ReportKind::of(reports)?;
    let results = results(verdict);
    if results.is_empty() {
        return None;
    }
    let About { api_version, kind: of_kind, namespace, name: of_name, uid } = *about;
    let mut metadata = head(&name(uid), namespace, "object");
    let owner = json!({ "apiVersion": api_version, "kind": of_kind, "name": of_name, "uid": uid });
    metadata.insert("ownerReferences".to_owned(), json!([owner]));
    let scope =
        json!({ "apiVersion": api_version, "kind": of_kind, "namespace": namespace, "name": of_name, "uid": uid });
    Some(json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "scope": scope,
        "summary": summary(&results),
        "results": results,
    }))
}

/// The metadata of a report of ours.
pub(super) fn head(name: &str, namespace: &str, about: &str) -> Map<String, Value> {
    let labels = json!({ MANAGED_BY: SOURCE, ABOUT: about });
    let members = [("name", name.into()), ("namespace", namespace.into()), ("labels", labels)];
    members.into_iter().map(|(key, value): (&str, Value)| (key.to_owned(), value)).collect()
}

/// How many results there are of each sort.
pub(super) fn summary(results: &[Value]) -> Value {
    let sorts = ["pass", "fail", "warn", "error", "skip"];
    let count = |sort: &str| results.iter().filter(|result| result.get("result").is_some_and(|r| r == sort)).count();
    sorts.into_iter().map(|sort| (sort.to_owned(), count(sort).into())).collect::<Map<_, _>>().into()
}

/// What a finding is in a report. The order is that of the report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Fail,
    Warn,
    Skip,
}

impl Sort {
    /// What the rule asks for counts, also in audit mode, where it is not done.
    fn of(finding: &Finding) -> Option<Self> {
        match finding.would.unwrap_or(finding.action) {
            // What would be repaired on its way is stored without the repair.
            Action::Deny | Action::Patch => Some(Self::Fail),
            Action::Warn => Some(Self::Warn),
            Action::Audit if matches!(finding.because, Some(Because::Exception(_))) => Some(Self::Skip),
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

/// The results of a verdict: the worst first, else in the order of the rules; the last one says how many there is no room for.
fn results(verdict: &Verdict) -> Vec<Value> {
    let mut findings: Vec<_> =
        verdict.findings.iter().filter_map(|finding| Some((Sort::of(finding)?, finding))).collect();
    findings.sort_by_key(|(sort, _)| *sort);
    let (mut results, mut bytes) = (Vec::new(), 0);
    for (at, (sort, finding)) in findings.iter().enumerate() {
        let result = result(*sort, finding);
        bytes += result.to_string().len();
        if at == MOST_RESULTS || bytes > MOST_BYTES {
            results.push(left_out(*sort, findings.len() - at));
            break;
        }
        results.push(result);
    }
    results
}

fn result(sort: Sort, finding: &Finding) -> Value {
    let done = finding.would.unwrap_or(finding.action);
    let severity = match (sort, done) {
        (Sort::Skip, _) => "info",
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
    add("because", finding.because.as_ref().map_or("", Because::name));
    if let Some(Because::Exception(reason)) = &finding.because {
        add("reason", reason);
    }
    if finding.would.is_some() {
        add("mode", "audit");
    }
    let id = finding.rule.id;
    json!({
        "source": SOURCE,
        "policy": id.split('/').next().unwrap_or(id),
        "rule": id,
        "category": CATEGORY,
        "severity": severity,
        "result": sort.name(),
        // A warning is told and does not count, by the contract of these kinds.
        "scored": sort == Sort::Fail,
        "message": short(&finding.message),
        "properties": properties,
    })
}

/// The worst of what is left out is not worse than what is there.
fn left_out(sort: Sort, count: usize) -> Value {
    json!({
        "source": SOURCE,
        "policy": "report",
        "rule": "report/left-out",
        "category": CATEGORY,
        "severity": "low",
        "result": sort.name(),
        "scored": sort == Sort::Fail,
        "message": format!("{count} more findings are not in this report, which has room for the worst: mend these first"),
    })
}

/// A text that somebody chose, or as much of it as is kept, as people may read it: reports are shown by `kubectl`.
pub(super) fn short(text: &str) -> String {
    visible::line(text).chars().take(MOST_WORDS).collect()
}

/// What a report says, as a short text: equal for equal reports. Fields that only others write have no part in it, such as what
/// the API server adds, or a label of somebody else's.
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
                text.push_str(&Value::from(name.as_str()).to_string());
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
mod tests {
    use super::super::testing::{Case, NET, finding};
    use super::*;

    fn of(findings: Vec<Finding>) -> Option<Value> {
        report(Reports::Openreports, &NET, &Case::new(findings).verdict)
    }

    fn with(mut finding: Finding, would: Option<Action>, because: Option<Because>) -> Finding {
        (finding.would, finding.because) = (would, because);
        finding
    }

    #[test]
    fn says_all_of_a_finding_and_nothing_of_the_time() {
        let found = finding("nad/field-type", Action::Deny, "`vlan` is a string").in_config("/vlan");
        insta::assert_snapshot!(format!("{:#}", of(vec![found]).unwrap()), @r##"
        {
          "apiVersion": "openreports.io/v1alpha1",
          "kind": "Report",
          "metadata": {
            "labels": {
              "app.kubernetes.io/managed-by": "nadmit",
              "nadmit.io/report": "object"
            },
            "name": "nadmit-f6b1",
            "namespace": "operator",
            "ownerReferences": [
              {
                "apiVersion": "sriovnetwork.openshift.io/v1",
                "kind": "SriovNetwork",
                "name": "net",
                "uid": "f6b1"
              }
            ]
          },
          "results": [
            {
              "category": "SR-IOV networks",
              "message": "`vlan` is a string",
              "policy": "nad",
              "properties": {
                "action": "deny",
                "configPointer": "/vlan",
                "help": "mend it",
                "pointer": "/spec/config"
              },
              "result": "fail",
              "rule": "nad/field-type",
              "scored": true,
              "severity": "high",
              "source": "nadmit"
            }
          ],
          "scope": {
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": "SriovNetwork",
            "name": "net",
            "namespace": "operator",
            "uid": "f6b1"
          },
          "summary": {
            "error": 0,
            "fail": 1,
            "pass": 0,
            "skip": 0,
            "warn": 0
          }
        }
        "##);
    }

    #[test]
    fn each_action_has_its_result() {
        let excepted = || Some(Because::Exception("known".to_owned()));
        for (action, would, because, want) in [
            (Action::Deny, None, None, Some(("fail", "high", true))),
            (Action::Patch, None, None, Some(("fail", "medium", true))),
            (Action::Warn, None, None, Some(("warn", "low", false))),
            (Action::Warn, None, Some(Because::Exempt), Some(("warn", "low", false))),
            // In audit mode it is what the rule asks for.
            (Action::Warn, Some(Action::Deny), None, Some(("fail", "high", true))),
            (Action::Warn, Some(Action::Patch), None, Some(("fail", "medium", true))),
            (Action::Audit, None, excepted(), Some(("skip", "info", false))),
            (Action::Audit, None, None, None),
            (Action::Audit, None, Some(Because::Deleting), None),
            (Action::Off, None, None, None),
        ] {
            let report = of(vec![with(finding("nad/schema", action, "m"), would, because.clone())]);
            let result = report.as_ref().map(|report| &report["results"][0]);
            let found = result.map(|result| {
                let text = |key: &str| result[key].as_str().unwrap();
                (text("result"), text("severity"), result["scored"] == true)
            });
            assert_eq!(found, want, "{action:?} {would:?} {because:?}");
        }
    }

    #[test]
    fn nothing_found_is_no_report() {
        assert!(of(Vec::new()).is_none());
        let found = Case::new(vec![finding("nad/schema", Action::Deny, "m")]).verdict;
        assert!(report(Reports::Off, &NET, &found).is_none());
        let other = report(Reports::Wgpolicyk8s, &NET, &found).unwrap();
        assert_eq!((&other["apiVersion"], &other["kind"]), (&json!("wgpolicyk8s.io/v1alpha2"), &json!("PolicyReport")));
    }

    #[test]
    fn the_worst_come_first_and_the_summary_counts_them() {
        let report = of(vec![
            with(finding("nad/schema", Action::Audit, "a"), None, Some(Because::Exception("known".to_owned()))),
            finding("nad/schema", Action::Warn, "b"),
            finding("nad/schema", Action::Deny, "c"),
            finding("nad/schema", Action::Warn, "d"),
        ])
        .unwrap();
        let messages: Vec<_> = report["results"].as_array().unwrap().iter().map(|result| &result["message"]).collect();
        assert_eq!(messages, ["c", "b", "d", "a"]);
        assert_eq!(report["summary"], json!({"pass": 0, "fail": 1, "warn": 2, "error": 0, "skip": 1}));
        assert_eq!(report["results"][3]["properties"]["reason"], "known");
    }

    /// Neither many findings nor long ones make a large report.
    #[test]
    fn a_hostile_object_makes_no_large_report() {
        let long = "\u{1}".repeat(5000);
        let findings =
            |count: usize, words: &str| (0..count).map(|_| finding("nad/schema", Action::Warn, words)).collect();
        for (count, words, kept) in [(100, "m", 100), (101, "m", 101), (5000, "m", 101), (1000, long.as_str(), 81)] {
            let mut findings: Vec<Finding> = findings(count, words);
            findings.push(finding("nad/schema", Action::Deny, "the worst"));
            let report = of(findings).unwrap();
            let results = report["results"].as_array().unwrap();
            assert_eq!(results[0]["message"], "the worst");
            assert!(results.len() <= kept + 1, "{count}: {}", results.len());
            assert!(report.to_string().len() < MOST_BYTES + 2048, "{}", report.to_string().len());
            let said = results.iter().filter(|result| result["rule"] != "report/left-out").count();
            let last = results.last().unwrap()["message"].as_str().unwrap();
            let missing = count + 1 - said;
            assert_eq!(last.starts_with(&format!("{missing} more findings ")), missing > 0, "{last}");
        }
    }

    #[test]
    fn a_digest_is_of_what_we_say() {
        let report = of(vec![finding("nad/schema", Action::Warn, "m")]).unwrap();
        let same = |change: &dyn Fn(&mut Value)| {
            let mut changed = report.clone();
            change(&mut changed);
            digest(&changed) == digest(&report)
        };
        let others: [&dyn Fn(&mut Value); 5] = [
            &|report| report["metadata"]["labels"]["team"] = "a".into(),
            &|report| report["metadata"]["resourceVersion"] = "7".into(),
            &|report| report["metadata"]["ownerReferences"][0]["controller"] = true.into(),
            &|report| report["results"][0]["new"] = json!({}),
            &|report| report["summary"]["new"] = 0.into(),
        ];
        for (at, change) in others.into_iter().enumerate() {
            assert!(same(change), "{at}");
        }
        let ours: [&dyn Fn(&mut Value); 7] = [
            &|report| report["metadata"]["labels"][MANAGED_BY] = "a".into(),
            &|report| report["metadata"]["ownerReferences"] = json!([]),
            &|report| report["scope"]["name"] = "other".into(),
            &|report| report["summary"]["fail"] = 9.into(),
            &|report| report["results"][0]["message"] = "all is well".into(),
            &|report| report["results"][0]["properties"]["new"] = "".into(),
            &|report| report["results"] = json!([]),
        ];
        for (at, change) in ours.into_iter().enumerate() {
            assert!(!same(change), "{at}");
        }
        // The order of members is the server's.
        let text = r#"{"results":[{"rule":"a","policy":"b"}]}"#;
        let turned = r#"{"results":[{"policy":"b","rule":"a"}]}"#;
        let [one, other] = [text, turned].map(|text| digest(&serde_json::from_str(text).unwrap()));
        assert_eq!(one, other);
    }
}
