//! `nadmit audit-log` over the log of a real API server with the shipped policy: it reports exactly the blind writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::objects::{OPERATOR, nad, nad_at, nads, version};
use crate::processes::wait;

pub const POLICY: &str = include_str!("../../deploy/audit-policy.yaml");

const PUT: (&str, &str) = ("PUT", "application/json");
pub const MERGE: (&str, &str) = ("PATCH", "application/merge-patch+json");
const JSON: (&str, &str) = ("PATCH", "application/json-patch+json");
const APPLY: (&str, &str) = ("PATCH", "application/apply-patch+yaml");

/// How the report must classify a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WriteClass {
    Blind,
    Stale,
    Conflict,
    Rejected,
    Unchanged,
    ValuesOnly,
}

pub fn states() -> String {
    format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworknodestates")
}

fn state(version: Option<&str>, status: &str) -> Value {
    let mut state = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState",
        "metadata": {"name": "node"}, "status": {"syncStatus": status},
    });
    if let Some(version) = version {
        state["metadata"]["resourceVersion"] = json!(version);
    }
    state
}

pub fn merge(version: Option<&str>, status: &str) -> Value {
    match version {
        Some(version) => json!({"metadata": {"resourceVersion": version}, "status": {"syncStatus": status}}),
        None => json!({"status": {"syncStatus": status}}),
    }
}

fn patch(op: &str, path: &str, value: &str, status: &str) -> Value {
    json!([{"op": op, "path": path, "value": value}, {"op": "add", "path": "/status", "value": {"syncStatus": status}}])
}

/// Waits until the log is written up to a line with that user agent.
pub fn logged(cluster: &TestCluster, agent: &str) {
    wait("the end of the audit log", || {
        let log = fs::read_to_string(cluster.audit_log()).unwrap_or_default();
        (log.ends_with('\n') && log.contains(agent)).then_some(())
    });
}

pub fn report(cluster: &TestCluster, more: &[&str]) -> (Value, Option<i32>) {
    let log = cluster.audit_log();
    let arguments = [&["audit-log", "-o", "json", log.to_str().unwrap()], more].concat();
    let out = run(nadmit(&arguments));
    (serde_json::from_slice(&out.stdout).unwrap(), out.status.code())
}

#[test]
fn reports_exactly_the_blind_writes() {
    use WriteClass::*;
    let cluster = TestCluster::with_audit_log(POLICY);
    let admin = &cluster.admin;
    let node = format!("{}/node", states());
    let first = admin.create(&states(), &json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState", "metadata": {"name": "node"}, "spec": {} }));
    let old = version(&first);
    // (user agent, method, query, the body for the current version, an old version and a new text; the expected classes)
    type Make = fn(&str, &str, &str) -> Value;
    type WriteCase = (&'static str, (&'static str, &'static str), &'static str, Make, &'static [WriteClass]);
    const RV: &str = "/metadata/resourceVersion";
    let table: Vec<WriteCase> = vec![
        ("put", PUT, "", |now, _, text| state(Some(now), text), &[]),
        ("put-the-same", PUT, "", |now, _, _| state(Some(now), "put"), &[Unchanged]),
        ("put-without", PUT, "", |_, _, text| state(None, text), &[Rejected]),
        ("put-stale", PUT, "", |_, old, text| state(Some(old), text), &[Stale]),
        ("merge-blind", MERGE, "", |_, _, text| merge(None, text), &[Blind]),
        ("merge-blind-manager", MERGE, "?fieldManager=m0", |_, _, text| merge(None, text), &[Blind]),
        ("merge", MERGE, "", |now, _, text| merge(Some(now), text), &[]),
        ("merge-the-same", MERGE, "", |now, _, _| merge(Some(now), "merge"), &[Unchanged]),
        ("merge-blind-the-same", MERGE, "", |_, _, _| merge(None, "merge"), &[Blind, Unchanged]),
        ("merge-stale", MERGE, "", |_, old, text| merge(Some(old), text), &[Stale]),
        ("merge-empty", MERGE, "", |_, _, text| merge(Some(""), text), &[Rejected]),
        ("json-blind", JSON, "", |_, _, text| patch("add", "/status", "", text), &[Blind]),
        (
            "json-blind-too",
            JSON,
            "",
            |_, _, text| json!([{"op": "replace", "path": "/status/syncStatus", "value": text}]),
            &[Blind],
        ),
        ("json-test", JSON, "", |now, _, text| patch("test", RV, now, text), &[]),
        ("json-test-stale", JSON, "", |_, old, text| patch("test", RV, old, text), &[Stale]),
        (
            "json-test-fine-rest-not",
            JSON,
            "",
            |now, _, _| json!([{"op": "test", "path": RV, "value": now}, {"op": "remove", "path": "/status/none"}]),
            &[Rejected],
        ),
        ("json-put-in", JSON, "", |now, _, text| patch("replace", RV, now, text), &[]),
        ("json-put-in-stale", JSON, "", |_, old, text| patch("add", RV, old, text), &[Stale]),
        ("json-taken-out", JSON, "", |_, _, text| patch("remove", RV, "", text), &[Rejected]),
        ("json-value", JSON, "", |_, _, text| patch("test", "/status/syncStatus", "json-put-in", text), &[ValuesOnly]),
        ("apply-conflict", APPLY, "?fieldManager=m1", |_, _, text| state(None, text), &[Conflict]),
        ("apply-forced", APPLY, "?fieldManager=m1&force=true", |_, _, text| state(None, text), &[Blind]),
        (
            "apply-forced-same",
            APPLY,
            "?fieldManager=m1&force=true",
            |_, _, _| state(None, "apply-forced"),
            &[Blind, Unchanged],
        ),
        ("apply-own", APPLY, "?fieldManager=m1", |_, _, text| state(None, text), &[Blind]),
        ("apply-version", APPLY, "?fieldManager=m1&force=true", |now, _, text| state(Some(now), text), &[]),
        ("apply-stale", APPLY, "?fieldManager=m1&force=true", |_, old, text| state(Some(old), text), &[Stale]),
        ("dry-run", MERGE, "?dryRun=All", |_, _, text| merge(None, text), &[]),
        ("absent-object", MERGE, "", |_, _, text| merge(None, text), &[Rejected]),
    ];
    let mut want = BTreeMap::new();
    for (agent, (method, kind), query, make, classes) in &table {
        let now = admin.get(&node).unwrap();
        let name = if *agent == "absent-object" { "absent" } else { "node" };
        let path = format!("{}/{name}/status{query}", states());
        let body = make(version(&now), old, agent);
        let result = admin.send_as(agent, method, &path, kind, Some(&body));
        // The table must agree with the response of the API server.
        let is_error = classes.iter().any(|class| matches!(class, Stale | Conflict | Rejected));
        assert_eq!(result.is_err(), is_error, "{agent}: {result:?}");
        if *agent != "dry-run" {
            want.insert((*agent).to_owned(), classes.iter().copied().collect::<BTreeSet<_>>());
        }
    }
    admin.send_as("the-last", MERGE.0, &node, MERGE.1, Some(&json!({"spec": {"interfaces": []}}))).unwrap();
    logged(&cluster, "the-last");

    let (report, code) = report(&cluster, &["--deny", "blind"]);
    assert_eq!(code, Some(1));
    let mut found = BTreeMap::new();
    for row in report["writers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["resource"].as_str().unwrap().ends_with("/status"))
    {
        let counts = [
            ("blind", Blind),
            ("stale", Stale),
            ("conflicts", Conflict),
            ("refused", Rejected),
            ("unchanged", Unchanged),
            ("values_only", ValuesOnly),
        ];
        let classes =
            counts.into_iter().filter(|(key, _)| row[key] != 0).map(|(_, class)| class).collect::<BTreeSet<_>>();
        assert_eq!((&row["writes"], &row["blind_unknown"]), (&json!(1), &json!(0)), "{row}");
        found.insert(row["agent"].as_str().unwrap().to_owned(), classes);
    }
    assert_eq!(found, want);
    assert_eq!(report["log"]["dry_runs"], 1);
    assert_eq!(report["log"]["unreadable"], 0);
    assert_eq!(
        report["totals"]["blind_by"],
        json!({"put": 0, "merge_patch": 3, "json_patch": 2, "apply": 1, "forced_apply": 2})
    );
}

/// Two writers that undo each other's work, and objects that the policy keeps out of the log.
#[test]
fn finds_write_loops_without_recording_secrets() {
    let cluster = TestCluster::with_audit_log(POLICY);
    let admin = &cluster.admin;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "do-not-tell"}});
    admin.create("/api/v1/namespaces/default/secrets", &secret);
    admin.create(
        "/api/v1/namespaces/default/configmaps",
        &json!({"metadata": {"name": "c"}, "data": {"k": "do-not-tell"}}),
    );
    admin.create(&nads("default"), &nad("quiet", "{}"));
    admin.create(&nads("default"), &nad("fought-over", "{}"));
    let at = nad_at("default", "fought-over");
    for number in 0..40 {
        let (agent, value) = if number % 2 == 0 { ("operator", "a") } else { ("repairer", "b") };
        let body = json!({"metadata": {"annotations": {"x": value}}});
        admin.send_as(agent, MERGE.0, &at, MERGE.1, Some(&body)).unwrap();
    }
    admin
        .send_as(
            "the-last",
            MERGE.0,
            &nad_at("default", "quiet"),
            MERGE.1,
            Some(&json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .unwrap();
    logged(&cluster, "the-last");

    let log = fs::read_to_string(cluster.audit_log()).unwrap();
    assert!(!log.contains("do-not-tell") && !log.contains("\"secrets\""), "the log has content of a Secret");
    assert!(!log.contains("managedFields"));
    let (report, code) = report(&cluster, &["--deny", "blind,stale,unchanged"]);
    assert_eq!(code, Some(0), "{report:#}");
    let (_, code) = self::report(&cluster, &["--deny", "loop"]);
    assert_eq!(code, Some(1));
    let loops = report["loops"].as_array().unwrap();
    assert_eq!(loops.len(), 1, "{loops:?}");
    assert_eq!(loops[0]["object"], "default/fought-over");
    let writers = loops[0]["writers"].as_array().unwrap();
    let writes = |agent: &str| writers.iter().find(|writer| writer["agent"] == agent).unwrap()["writes"].clone();
    assert_eq!((writes("operator"), writes("repairer")), (json!(20), json!(20)));
    assert!(loops[0]["turns"].as_u64().unwrap() >= 39);
}
