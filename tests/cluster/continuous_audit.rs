//! The continuous audit beside the real operator: each fault has a report, an Event and a metric, and all of them clear.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::audit::{
    allow_nads, audit, change_vlan, create_node_policy, deny_nads_in, give_reader_its_rights, make, orphan,
};
use crate::browser::Browser;
use crate::cluster::TestCluster;
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

/// The operator and users have two seconds to act.
const POLICY: &str = "audit: {graceSeconds: 2}";

/// The report of an object.
fn report(cluster: &TestCluster, namespace: &str, path: &str) -> Option<Value> {
    let uid = cluster.admin.get(path)?["metadata"]["uid"].as_str().unwrap().to_owned();
    let all = cluster.admin.get(&format!("/apis/openreports.io/v1alpha1/namespaces/{namespace}/reports"))?;
    let reports = all["items"].as_array().unwrap();
    reports.iter().find(|report| report["metadata"]["ownerReferences"][0]["uid"] == *uid).cloned()
}

/// The message about a rule in a report.
fn message(report: &Value, rule: &str) -> Option<String> {
    let results = report["results"].as_array().unwrap();
    let result = results.iter().find(|result| result["rule"] == rule)?;
    Some(result["message"].as_str().unwrap().to_owned())
}

/// The message about an object, after waiting for it.
pub fn wait_for_message(cluster: &TestCluster, namespace: &str, path: &str, rule: &str) -> String {
    wait(rule, || message(&report(cluster, namespace, path)?, rule))
}

pub fn wait_clean(cluster: &TestCluster, namespace: &str, path: &str) {
    wait("a clean object", || report(cluster, namespace, path).is_none().then_some(()));
}

fn count(cluster: &TestCluster, rule: &str) -> f64 {
    let metrics = cluster.nadmit().metrics_text();
    let line = format!("nadmit_audit_findings{{rule=\"{rule}\",action=\"warn\"}} ");
    metrics.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or_default()
}

/// A cluster in which nadmit audits, with an operator with these templates.
fn audited(template: OperatorTemplate) -> TestCluster {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    create_node_policy(&cluster);
    cluster.deploy_with(POLICY);
    cluster.start_operator(template);
    cluster.operator_is_available(1);
    cluster.namespace("apps");
    cluster
}

#[test]
fn reports_appear_and_disappear_with_findings() {
    let mut cluster = audited(OperatorTemplate::Upstream);
    let at = |name: &str| TestNetworkKind::Sriov.at(name);
    wait("the first scan", || cluster.nadmit().log_text().contains("audited the cluster").then_some(()));

    // The namespace does not exist: the network gets a finding, which clears when the namespace exists.
    make(&cluster, "early", "later", &json!({}));
    let message_about =
        |cluster: &TestCluster, name: &str, rule: &str| wait_for_message(cluster, OPERATOR, &at(name), rule);
    assert!(message_about(&cluster, "early", "audit/nad-absent").contains("namespace `later` does not exist"));
    wait("the metric", || (count(&cluster, "audit/nad-absent") == 1.0).then_some(()));
    let events = format!("/api/v1/namespaces/{OPERATOR}/events");
    let is_recorded = |event: &Value| event["involvedObject"]["name"] == "early" && event["reason"] == "AuditNadAbsent";
    wait("an Event", || cluster.admin.get(&events)?["items"].as_array()?.iter().any(is_recorded).then_some(()));
    cluster.namespace("later");
    wait_clean(&cluster, OPERATOR, &at("early"));
    wait("the metric", || (count(&cluster, "audit/nad-absent") == 0.0).then_some(()));
    // Deleting a namespace deletes the NAD.
    cluster.admin.delete("/api/v1/namespaces/later");
    let absent = message_about(&cluster, "early", "audit/nad-absent");
    assert!(absent.contains("namespace `later`"), "{absent}");
    cluster.jane.delete(&at("early"));
    cluster.jane.wait_deleted(&at("early"));

    // An admission policy denies the NAD; the report has its message.
    cluster.allow_dry_runs();
    cluster.namespace("full");
    deny_nads_in(&cluster, "full");
    make(&cluster, "refused", "full", &json!({}));
    wait("the denial in the report", || {
        let message = message(&report(&cluster, OPERATOR, &at("refused"))?, "audit/nad-absent")?;
        message.contains("the namespace is full").then_some(())
    });
    allow_nads(&cluster);
    wait_clean(&cluster, OPERATOR, &at("refused"));

    // The operator is stopped, but its Deployment reports it as available.
    make(&cluster, "one", "apps", &json!({ "vlan": 5 }));
    make(&cluster, "two", "apps", &json!({}));
    for name in ["one", "two"] {
        cluster.jane.wait(&nad_at("apps", name), |_| true);
    }
    cluster.stop_operator();
    cluster.operator_is_available(1);
    for name in ["waits", "waits-too"] {
        make(&cluster, name, "apps", &json!({}));
    }
    for name in ["waits", "waits-too"] {
        assert!(message_about(&cluster, name, "audit/operator-silent").contains("stopped reconciling"));
    }
    cluster.jane.delete(&at("two"));
    assert!(message_about(&cluster, "two", "audit/stuck-deletion").contains("finalizer"));
    change_vlan(&cluster, "one");
    assert!(message_about(&cluster, "one", "audit/nad-drift").contains("has `/vlan` 7, its network has 5"));
    cluster.admin.create(&nads("apps"), &orphan());
    wait_for_message(&cluster, "apps", &nad_at("apps", "orphan"), "audit/orphan");
    for rule in ["operator-silent", "stuck-deletion", "nad-drift", "orphan"] {
        assert!(count(&cluster, &format!("audit/{rule}")) > 0.0, "{rule}");
    }
    let table = cluster.kubectl("admin", &["get", "reports", "--all-namespaces"], "");
    assert!(String::from_utf8_lossy(&table.stdout).lines().count() > 5);

    // All faults are fixed, and no report is left.
    cluster.start_operator(OperatorTemplate::Upstream);
    for name in ["waits", "waits-too", "one"] {
        wait_clean(&cluster, OPERATOR, &at(name));
    }
    cluster.jane.wait_deleted(&at("two"));
    cluster.admin.delete(&nad_at("apps", "orphan"));
    wait("no reports", || {
        let all = cluster.admin.get("/apis/openreports.io/v1alpha1/reports").unwrap();
        all["items"].as_array().unwrap().is_empty().then_some(())
    });
    for rule in ["nad-absent", "operator-silent", "stuck-deletion", "nad-drift", "orphan"] {
        wait(rule, || (count(&cluster, &format!("audit/{rule}")) == 0.0).then_some(()));
    }
}

/// The findings after watching for a while: the report has both writers, and the page shows when each of them wrote.
fn assert_observed(cluster: &TestCluster) {
    let out = audit(cluster, "auditor", &["--observe=5s", "--output=html"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let html = String::from_utf8(out.stdout).unwrap();
    for want in ["audit/hot-object", "Rewrites", "one, two", "/spec/config#/mtu"] {
        assert!(html.contains(want), "{want} is missing:\n{html}");
    }
    let page = cluster.directory().join("audit.html");
    fs::write(&page, html).unwrap();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page, "");
    const STRIP: &str = "document.querySelector('svg.strip')";
    assert_eq!(
        browser
            .value(&format!("{STRIP}.checkVisibility() && {STRIP}.closest('.entry').querySelector('b').textContent")),
        "net"
    );
    let marks =
        browser.value(&format!("[...{STRIP}.querySelectorAll('.mark')].filter((mark) => mark.getBBox().x > 0).length"));
    assert!(marks.as_u64().unwrap() >= 5, "{marks}");
    let hints = browser.value(&format!("{STRIP}.textContent"));
    assert!(hints.as_str().unwrap().contains("one: ") && hints.as_str().unwrap().contains("two: "), "{hints}");
    assert_eq!(browser.requests().len(), 1, "the page requests nothing else");
}

/// Two writers undo each other; the report names both, and it clears when they stop.
#[test]
fn write_loop_names_both_writers() {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.deploy_with(POLICY);
    cluster.namespace("apps");
    let path = nad_at("apps", "net");
    cluster.admin.create(&nads("apps"), &nad("net", r#"{"cniVersion":"1.0.0","type":"macvlan","mtu":1500}"#));
    give_reader_its_rights(&cluster);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (user, mtu) in [("one", 1500), ("two", 9000)] {
            let (cluster, path, is_over) = (&cluster, &path, &is_over);
            scope.spawn(move || {
                let config = json!({ "cniVersion": "1.0.0", "type": "macvlan", "mtu": mtu }).to_string();
                let body = json!({ "spec": { "config": config } });
                let path = format!("{path}?fieldManager={user}");
                while !is_over.load(Ordering::Relaxed) {
                    cluster.admin.patch(&path, &body);
                    thread::sleep(Duration::from_millis(200));
                }
            });
        }
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait("the write loop in the report", || {
                let message = message(&report(&cluster, "apps", &path)?, "audit/hot-object")?;
                (message.contains("one") && message.contains("two") && message.contains("/spec/config#/mtu"))
                    .then_some(())
            });
            assert_observed(&cluster);
        }));
        is_over.store(true, Ordering::Relaxed);
        found.unwrap();
    });
    wait_clean(&cluster, "apps", &path);
}

/// An operator whose template renders something else each time reverts itself, until its template is replaced.
#[test]
fn restless_operator_is_reported() {
    let mut cluster = audited(OperatorTemplate::Restless);
    make(&cluster, "restless", "apps", &json!({ "vlan": 5 }));
    let path = nad_at("apps", "restless");
    wait("the loop", || {
        let message = message(&report(&cluster, "apps", &path)?, "audit/hot-object")?;
        (message.contains("operator") && message.contains("/spec/config#/vlan")).then(|| println!("{message}"))
    });
    wait("the metric", || (count(&cluster, "audit/hot-object") >= 1.0).then_some(()));
    cluster.stop_operator();
    cluster.start_operator(OperatorTemplate::Upstream);
    cluster.operator_is_available(1);
    wait_clean(&cluster, "apps", &path);
    wait("the metric", || (count(&cluster, "audit/hot-object") == 0.0).then_some(()));
}

/// While nothing changes, nothing is written, however many scans run.
#[test]
fn new_leader_writes_nothing_twice() {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.deploy_with(POLICY);
    cluster.namespace("apps");
    make(&cluster, "early", "later", &json!({}));
    wait_for_message(&cluster, OPERATOR, &TestNetworkKind::Sriov.at("early"), "audit/nad-absent");
    let before = report(&cluster, OPERATOR, &TestNetworkKind::Sriov.at("early")).unwrap();
    cluster.kill_nadmit();
    cluster.deploy_with(POLICY);
    wait("the scan of another leader", || cluster.nadmit().log_text().contains("audited the cluster").then_some(()));
    wait("the metric", || (count(&cluster, "audit/nad-absent") == 1.0).then_some(()));
    assert_eq!(report(&cluster, OPERATOR, &TestNetworkKind::Sriov.at("early")).unwrap(), before);
    let writes = cluster.nadmit().metrics_text();
    assert!(!writes.contains("nadmit_audit_report_writes_total{"), "{writes}");
}
