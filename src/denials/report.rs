//! The report of denials, the only report with timestamps.

use serde_json::{Map, Value, json};

use super::Denial;
use crate::output::report::{ReportKind, ResultKind, document, left_out, metadata, result, short};
use crate::policy::Reports;

/// The denial report of one replica, latest first; `None` without denials. `is_partial` if older ones were dropped.
pub fn denial_report(
    reports: Reports,
    namespace: &str,
    name: &str,
    denials: &[Denial],
    is_partial: bool,
) -> Option<Value> {
    let kind = ReportKind::of(reports)?;
    if denials.is_empty() {
        return None;
    }
    let mut denials: Vec<_> = denials.iter().collect();
    denials.sort_by_key(|denied| std::cmp::Reverse(denied.last));
    let mut results: Vec<Value> = denials.into_iter().map(denial_result).collect();
    if is_partial {
        let message = "there were more denials in the last hour; these are the latest";
        results.push(left_out(ResultKind::Skip, "info", message.to_owned()));
    }
    Some(document(kind, &metadata(name, namespace, "denials"), &results))
}

fn denial_result(denied: &Denial) -> Value {
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
    let rule = rules.first().copied().unwrap_or_default();
    let mut result = result(ResultKind::Fail, "high", ("admission", rule), message);
    result.insert("resources".to_owned(), json!([reference]));
    result.insert("timestamp".to_owned(), json!({ "seconds": last, "nanos": 0 }));
    let rules = rules.join(",");
    let properties = json!({ "user": user, "operation": operation, "count": count.to_string(), "rules": rules });
    result.insert("properties".to_owned(), properties);
    result.into()
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
        let report = denial_report(Reports::Openreports, "nadmit", "nadmit-denials-x", &all, false).unwrap();
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
        assert!(denial_report(Reports::Openreports, "nadmit", "x", &[], true).is_none());
        assert!(denial_report(Reports::Off, "nadmit", "x", &[denied("a", 1, 1)], false).is_none());
        let partial = denial_report(Reports::Wgpolicyk8s, "nadmit", "x", &[denied("a", 1, 1)], true).unwrap();
        assert_eq!(partial["results"][1]["rule"], "report/left-out");
        assert_eq!(partial["summary"]["skip"], 1);
    }
}
