//! How nadmit classifies status writes, row by row, and the response to each: without nadmit, in audit mode, by default,
//! and for a strict resource.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a table of calls reads better with values than with references to them"
)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::{Api, ApiRejection};
use crate::cluster::TestCluster;
use crate::objects::version;
use crate::processes::wait;

const PLANS: &str = "/apis/example.com/v1/namespaces/default/plans";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const FORCED: &str = "?fieldManager=second&force=true";
const SENT: &str = "2026-01-01T00:00:00Z";

/// A write: the object's path, and the object as it was read.
type SendWrite = fn(&TestCluster, &str, &Value) -> Result<Value, ApiRejection>;

/// A way to write a status, and the expected responses.
struct StatusRow {
    name: &'static str,
    write: SendWrite,
    /// The response of the API server without nadmit.
    alone: u16,
    /// nadmit's class, if the API server calls nadmit at all: by default, and for a strict resource.
    class: [Option<&'static str>; 2],
    /// The response with nadmit: by default, and for a strict resource.
    with: [u16; 2],
}

fn at(path: &str, query: &str) -> String {
    format!("{path}/status{query}")
}

fn with_version(mut object: Value, version: Option<&str>) -> Value {
    object["status"]["plan"] = "b".into();
    match version {
        Some(version) => object["metadata"]["resourceVersion"] = version.into(),
        None => drop(object["metadata"].as_object_mut().unwrap().remove("resourceVersion")),
    }
    object
}

fn send(api: &Api, kind: &str, path: &str, body: &Value) -> Result<Value, ApiRejection> {
    api.send("PATCH", path, kind, Some(body))
}

fn replace(api: &Api, path: &str, object: &Value) -> Result<Value, ApiRejection> {
    api.send("PUT", &at(path, ""), "application/json", Some(object))
}

fn merge(cluster: &TestCluster, path: &str, metadata: Value, status: Value) -> Result<Value, ApiRejection> {
    send(&cluster.admin, MERGE, &at(path, ""), &json!({ "metadata": metadata, "status": status }))
}

fn apply(
    cluster: &TestCluster,
    path: &str,
    query: &str,
    metadata: Value,
    status: Value,
) -> Result<Value, ApiRejection> {
    let mut body = json!({ "apiVersion": "example.com/v1", "kind": "Plan", "metadata": metadata, "status": status });
    body["metadata"]["name"] = path.rsplit('/').next().unwrap().into();
    send(&cluster.admin, APPLY, &at(path, query), &body)
}

fn stating(version: &str) -> Value {
    json!({ "annotations": { "if-resource-version.nadmit.io/second": version } })
}

fn b() -> Value {
    json!({ "plan": "b" })
}

const fn row(
    name: &'static str,
    write: SendWrite,
    alone: u16,
    class: [Option<&'static str>; 2],
    with: [u16; 2],
) -> StatusRow {
    StatusRow { name, write, alone, class, with }
}

const fn both(class: &'static str) -> [Option<&'static str>; 2] {
    [Some(class), Some(class)]
}

const ROWS: &[StatusRow] = &[
    row(
        "put",
        |c, p, o| replace(&c.admin, p, &with_version(o.clone(), Some(version(o)))),
        200,
        both("unproven"),
        [200, 422],
    ),
    row(
        "put-unversioned",
        |c, p, o| replace(&c.admin, p, &with_version(o.clone(), None)),
        422,
        both("unversioned"),
        [422, 422],
    ),
    row(
        "put-stale",
        |c, p, o| replace(&c.admin, p, &with_version(o.clone(), Some("1"))),
        409,
        both("stale"),
        [409, 409],
    ),
    row(
        "put-by-who-may-not-patch",
        |c, p, o| replace(&c.user("putter"), p, &with_version(o.clone(), Some(version(o)))),
        200,
        [None, None],
        [200, 200],
    ),
    row("merge", |c, p, _| merge(c, p, json!({}), b()), 200, both("unproven"), [200, 422]),
    row(
        "merge-current",
        |c, p, o| merge(c, p, json!({ "resourceVersion": version(o) }), b()),
        200,
        both("unproven"),
        [200, 422],
    ),
    row("merge-stale", |c, p, _| merge(c, p, json!({ "resourceVersion": "1" }), b()), 409, both("stale"), [409, 409]),
    row("merge-stating", |c, p, o| merge(c, p, stating(version(o)), b()), 200, both("guarded"), [200, 200]),
    row("merge-stating-another", |c, p, _| merge(c, p, stating("1"), b()), 200, both("contradicted"), [409, 409]),
    row(
        "json",
        |c, p, _| send(&c.admin, JSON, &at(p, ""), &json!([{ "op": "replace", "path": "/status/plan", "value": "b" }])),
        200,
        both("unproven"),
        [200, 422],
    ),
    row(
        "json-stale-test",
        |c, p, _| {
            let test = json!({ "op": "test", "path": "/metadata/resourceVersion", "value": "1" });
            send(&c.admin, JSON, &at(p, ""), &json!([test, { "op": "replace", "path": "/status/plan", "value": "b" }]))
        },
        422,
        [None, None],
        [422, 422],
    ),
    row("apply-conflict", |c, p, _| apply(c, p, "?fieldManager=second", json!({}), b()), 409, [None, None], [409, 409]),
    row("apply-forced", |c, p, _| apply(c, p, FORCED, json!({}), b()), 200, both("takeover"), [200, 422]),
    row(
        "apply-forced-current",
        |c, p, o| apply(c, p, FORCED, json!({ "resourceVersion": version(o) }), b()),
        200,
        both("takeover"),
        [200, 422],
    ),
    row(
        "apply-forced-stale",
        |c, p, _| apply(c, p, FORCED, json!({ "resourceVersion": "1" }), b()),
        409,
        both("stale"),
        [409, 409],
    ),
    row(
        "apply-forced-stating",
        |c, p, o| apply(c, p, FORCED, stating(version(o)), b()),
        200,
        both("guarded"),
        [200, 200],
    ),
    row(
        "apply-forced-stating-another",
        |c, p, _| apply(c, p, FORCED, stating("1"), b()),
        200,
        both("contradicted"),
        [409, 409],
    ),
    row(
        "apply-new-field",
        |c, p, _| apply(c, p, "?fieldManager=second", json!({}), json!({ "note": "x" })),
        200,
        both("owned_apply"),
        [200, 200],
    ),
    row(
        "apply-new-condition",
        |c, p, _| {
            let condition = json!({ "type": "Mine", "status": "True" });
            apply(c, p, "?fieldManager=second", json!({}), json!({ "conditions": [condition] }))
        },
        200,
        both("owned_apply"),
        [200, 200],
    ),
    row(
        "apply-own-condition",
        |c, p, _| {
            let condition = json!({ "type": "Ready", "status": "False" });
            apply(c, p, "?fieldManager=applier", json!({}), json!({ "conditions": [condition] }))
        },
        200,
        [Some("owned_apply"), Some("unproven")],
        [200, 422],
    ),
    row(
        "apply-anothers-condition",
        |c, p, _| {
            let condition = json!({ "type": "Ready", "status": "False" });
            apply(c, p, FORCED, json!({}), json!({ "conditions": [condition] }))
        },
        200,
        both("takeover"),
        [200, 422],
    ),
    row(
        "regress",
        |c, p, _| merge(c, p, json!({}), json!({ "observedGeneration": 0 })),
        200,
        both("regressed"),
        [409, 409],
    ),
    // The API server drops a deletionTimestamp in a status write, and it proves nothing.
    row(
        "put-sent-as-deleted",
        |c, p, o| {
            let mut object = with_version(o.clone(), Some(version(o)));
            object["metadata"]["deletionTimestamp"] = SENT.into();
            replace(&c.admin, p, &object)
        },
        200,
        both("unproven"),
        [200, 422],
    ),
    row(
        "merge-sent-as-deleted",
        |c, p, _| merge(c, p, json!({ "deletionTimestamp": SENT }), b()),
        200,
        both("unproven"),
        [200, 422],
    ),
    row(
        "apply-sent-as-deleted",
        |c, p, _| apply(c, p, FORCED, json!({ "deletionTimestamp": SENT }), b()),
        200,
        both("takeover"),
        [200, 422],
    ),
    // Every client can use the operator's name as its field manager.
    row(
        "apply-as-the-operators-manager",
        |c, p, _| apply(c, p, "?fieldManager=sriov-network-operator&force=true", json!({}), b()),
        200,
        both("takeover"),
        [200, 422],
    ),
    row("nothing", |c, p, _| merge(c, p, json!({}), json!({ "plan": "a" })), 200, both("unchanged"), [200, 200]),
];

/// A plan whose status was written by two managers, each of which stated the version that it read.
fn plan(cluster: &TestCluster, name: &str) -> Value {
    let path = format!("{PLANS}/{name}");
    let made = json!({ "apiVersion": "example.com/v1", "kind": "Plan", "metadata": { "name": name } });
    let made = cluster.admin.create(PLANS, &made);
    let first = json!({ "metadata": stating(version(&made)), "status": { "plan": "a", "observedGeneration": 1 } });
    let first = send(&cluster.admin, MERGE, &at(&path, "?fieldManager=first"), &first).unwrap();
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    apply(cluster, &path, "?fieldManager=applier", stating(version(&first)), ready).unwrap()
}

/// The number of writes that create a plan.
const WRITES: usize = 2;

fn write_all(cluster: &TestCluster, setup: &str, want: impl Fn(&StatusRow) -> u16) {
    let mut wrong = Vec::new();
    for row in ROWS {
        let name = format!("{setup}-{}", row.name);
        let read = plan(cluster, &name);
        let answer = (row.write)(cluster, &format!("{PLANS}/{name}"), &read);
        let (code, message) = answer.map_or_else(|error| (error.code, error.message), |_| (200, String::new()));
        if code != want(row) {
            wrong.push(format!("{name}: {code} instead of {}: {message}", want(row)));
        }
        // Denied writes store nothing, and no write stores the annotation.
        let stored = cluster.admin.get(&format!("{PLANS}/{name}")).unwrap();
        assert!(code == 200 || stored["status"] == read["status"], "{name}: {stored:#}");
        assert!(stored["metadata"].get("annotations").is_none(), "{name}: {stored:#}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The classes that nadmit logged for each plan, after those of its creation.
fn classes(cluster: &TestCluster, setup: &str) -> BTreeMap<String, Vec<String>> {
    let marker = format!("{setup}-marker");
    plan(cluster, &marker);
    let lines =
        |text: &str| -> Vec<Value> { text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect() };
    let lines = wait("the log", || {
        let lines = lines(&cluster.nadmit().log_text());
        let is_marker = |line: &&Value| line["name"] == marker.as_str() && line["endpoint"] == "status";
        (lines.iter().filter(is_marker).count() >= WRITES).then_some(lines)
    });
    let mut classes = BTreeMap::<String, Vec<String>>::new();
    for line in lines.iter().filter(|line| line["endpoint"] == "status") {
        let class = line["class"].as_str().unwrap().to_owned();
        classes.entry(line["name"].as_str().unwrap().to_owned()).or_default().push(class);
    }
    classes
}

fn check_classes(cluster: &TestCluster, setup: &str, which: usize) {
    let mut classes = classes(cluster, setup);
    for row in ROWS {
        let seen = classes.remove(&format!("{setup}-{}", row.name)).unwrap();
        // If the API server starts from a stale cached object, it reads again and calls nadmit again: the last response counts.
        let last = seen.last().unwrap();
        match row.class[which] {
            None => assert_eq!(last, "guarded", "{setup}-{}: {seen:?}", row.name),
            Some(class) => assert!(seen.len() > WRITES && last == class, "{setup}-{}: {seen:?}", row.name),
        }
    }
}

#[test]
fn classifies_every_kind_of_status_write() {
    let mut cluster = TestCluster::start();
    cluster.create_plan_crd();
    write_all(&cluster, "alone", |row| row.alone);

    let policy = |mode: &str, strict: bool| {
        format!("mode: {mode}\nstatus: {{resources: {{example.com/plans: {{strict: {strict}}}}}}}\n")
    };
    cluster.set_policy(&policy("audit", false));
    cluster.start_nadmit();
    // A write that changes nothing, until the API server calls nadmit for it.
    plan(&cluster, "probe");
    wait("a call of nadmit", || {
        merge(&cluster, &format!("{PLANS}/probe"), json!({}), json!({ "plan": "a" })).unwrap();
        cluster.nadmit().log_text().contains("\"class\":\"unchanged\"").then_some(())
    });
    write_all(&cluster, "audit", |row| row.alone);
    check_classes(&cluster, "audit", 0);

    for (setup, strict, which) in [("default", false, 0), ("strict", true, 1)] {
        let before = cluster.nadmit().log_text().matches("policy reloaded").count();
        cluster.set_policy(&policy("enforce", strict));
        wait("the policy", || {
            let now = cluster.nadmit().log_text().matches("policy reloaded").count();
            (now > before).then_some(())
        });
        write_all(&cluster, setup, |row| row.with[which]);
        check_classes(&cluster, setup, which);
    }

    // A dry run is judged like any other write.
    let (path, blind) = (format!("{PLANS}/probe"), json!({ "status": { "plan": "dry" } }));
    let dry_run = send(&cluster.admin, MERGE, &at(&path, "?dryRun=All"), &blind).unwrap_err();
    assert_eq!(dry_run.code, 422, "{}", dry_run.message);
    // With a policy that guards nothing, the API server does not call nadmit.
    cluster.set_policy("status: {resources: {}}");
    let asked = || cluster.nadmit().metric("nadmit_review_duration_seconds_count{endpoint=\"status\"}");
    wait("a write without a call of nadmit", || {
        let before = asked();
        send(&cluster.admin, MERGE, &at(&path, ""), &blind).ok().filter(|_| asked() <= before)
    });
    assert!(cluster.nadmit().metric(r#"nadmit_status_writes_total{class="unproven",manager="other"}"#) > 0.0);
}
