//! The report of denials, the only report with timestamps.

use serde_json::{Map, Value, json};

use crate::output::report::{CATEGORY, ReportKind, SOURCE, head, short, summary};
use crate::policy::Reports;

/// A denied write, possibly repeated. It does not contain the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Who wrote.
    pub user: String,
    /// The kind of the object.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name; empty for a generated one.
    pub name: String,
    /// `create` or `update`.
    pub operation: &'static str,
    /// The rules that denied it.
    pub rules: Vec<&'static str>,
    /// How often.
    pub count: u64,
    /// Unix time of the last denial.
    pub last: i64,
}

/// The denial report of one replica, latest first; `None` without denials. `is_partial` if older ones were dropped.
pub fn denials(reports: Reports, namespace: &str, name: &str, denials: &[Denial], is_partial: bool) -> Option<Value> {
    let kind = ReportKind::of(reports)?;
    if denials.is_empty() {
        return None;
    }
    let mut denials: Vec<_> = denials.iter().collect();
    denials.sort_by_key(|denied| std::cmp::Reverse(denied.last));
    let mut results: Vec<Value> = denials.into_iter().map(result).collect();
    if is_partial {
        results.push(json!({
            "source": SOURCE,
            "policy": "report",
            "rule": "report/left-out",
            "category": CATEGORY,
            "severity": "info",
            "result": "skip",
            "scored": false,
            "message": "there were more denials in the last hour; these are the latest",
        }));
    }
    Some(json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": head(name, namespace, "denials"),
        "summary": summary(&results),
        "results": results,
    }))
}

fn result(denied: &Denial) -> Value {
    let Denial { user, kind, namespace, name, operation, rules, count, last } = denied;
    let [user, kind, namespace, name] = [user, kind, namespace, name].map(|text| short(text));
    let times = if *count == 1 { String::new() } else { format!(", {count} times") };
    let object = if name.is_empty() { "(unnamed)" } else { &name };
    let message = format!("denied {operation} of {kind} {namespace}/{object} by {user}{times}: {}", rules.join(", "));
    let mut reference = Map::new();
    for (key, value) in [("kind", kind), ("namespace", namespace), ("name", name)] {
        if !value.is_empty() {
            reference.insert(key.to_owned(), value.into());
        }
    }
    json!({
        "source": SOURCE,
        "policy": "admission",
        "rule": rules.first(),
        "category": CATEGORY,
        "severity": "high",
        "result": "fail",
        "scored": true,
        "message": message,
        "resources": [reference],
        "timestamp": { "seconds": last, "nanos": 0 },
        "properties": {
            "user": user, "operation": operation, "count": count.to_string(), "rules": rules.join(","),
        },
    })
}

/// Unix time of the latest denial in a report.
pub fn latest_denial(report: &Value) -> Option<i64> {
    let results = report.get("results").and_then(Value::as_array)?;
    results.iter().filter_map(|result| result.pointer("/timestamp/seconds").and_then(Value::as_i64)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(name: &str, count: u64, last: i64) -> Denial {
        Denial {
            user: "jane".to_owned(),
            kind: "SriovNetwork".to_owned(),
            namespace: "operator".to_owned(),
            name: name.to_owned(),
            operation: "create",
            rules: vec!["network/fragment", "sriov/vlan"],
            count,
            last,
        }
    }

    #[test]
    fn report_names_user_object_and_time() {
        let all = [denied("a", 1, 50), denied("", 3, 70)];
        let report = denials(Reports::Openreports, "nadmit", "nadmit-denials-x", &all, false).unwrap();
        let messages: Vec<_> = report["results"].as_array().unwrap().iter().map(|result| &result["message"]).collect();
        assert_eq!(
            messages,
            [
                "denied create of SriovNetwork operator/(unnamed) by jane, 3 times: network/fragment, sriov/vlan",
                "denied create of SriovNetwork operator/a by jane: network/fragment, sriov/vlan",
            ]
        );
        assert_eq!(report["results"][0]["timestamp"], json!({ "seconds": 70, "nanos": 0 }));
        assert_eq!(report["summary"]["fail"], 2);
        assert_eq!(latest_denial(&report), Some(70));
        assert_eq!(latest_denial(&json!({})), None);
    }

    #[test]
    fn no_denials_means_no_report() {
        assert!(denials(Reports::Openreports, "nadmit", "x", &[], true).is_none());
        assert!(denials(Reports::Off, "nadmit", "x", &[denied("a", 1, 1)], false).is_none());
        let partial = denials(Reports::Wgpolicyk8s, "nadmit", "x", &[denied("a", 1, 1)], true).unwrap();
        assert_eq!(partial["results"][1]["rule"], "report/left-out");
        assert_eq!(partial["summary"]["skip"], 1);
    }
}
