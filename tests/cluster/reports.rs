//! The reports and Events of an audit, written with nadmit's own permissions, and read with kubectl.

use std::sync::Arc;

use nadmit::cluster::leader::denial_reports::DenialReporter;
use nadmit::cluster::leader::events::EventRecorder;
use nadmit::cluster::leader::reports::{ReportWrite, Reporter};
use nadmit::denials::{Denial, RecentDenials};
use nadmit::output::report::{ObjectReference, ReportKind, name, report};
use nadmit::policy::{Facts, Policy, Reports, Subject, Verdict, judge, rules};
use nadmit::resources::Object;
use nadmit::telemetry::metrics::ReportWrites;
use serde_json::{Value, json};

use crate::client::block_on;
use crate::cluster::TestCluster;
use crate::install::read;
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads, network, version};
use crate::processes::wait;

const KINDS: [Reports; 2] = [Reports::Openreports, Reports::Wgpolicyk8s];
const BAD: &str = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b","vlan":"7"}"#;
const BETTER: &str = r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b","vlann":7}"#;
const GOOD: &str = r#"{"cniVersion":"1.0.0","type":"bridge"}"#;

/// The verdict about a stored object.
fn judged(stored: &Value) -> Verdict {
    let json = stored.to_string();
    let object = Object::read(&json).unwrap().unwrap();
    judge(&Subject::manifest(&object), &Facts::default(), &Policy::default())
}

fn about(stored: &Value) -> ObjectReference<'_> {
    let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    ObjectReference {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
        uid: text("/metadata/uid"),
    }
}

/// The cluster with nadmit's permissions.
fn as_nadmit(cluster: &TestCluster) -> nadmit::cluster::Cluster {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    block_on(nadmit::cluster::client::Cluster::by_kubeconfig(&cluster.kubeconfig("nadmit"))).unwrap()
}

/// A reporter of a newly started nadmit.
fn reporter(cluster: &TestCluster, reports: Reports) -> Reporter {
    let mut reporter = Reporter::new(as_nadmit(cluster), ReportWrites::default());
    block_on(reporter.load(reports)).unwrap();
    reporter
}

fn write_report(reporter: &mut Reporter, stored: &Value) -> ReportWrite {
    block_on(reporter.write_report(&about(stored), &judged(stored))).unwrap()
}

/// The path of the report of an object.
fn at(reports: Reports, stored: &Value) -> String {
    let ReportKind { api_version, plural, .. } = ReportKind::of(reports).unwrap();
    let ObjectReference { namespace, uid, .. } = about(stored);
    format!("/apis/{api_version}/namespaces/{namespace}/{plural}/{}", name(uid))
}

fn kubectl_output(cluster: &TestCluster, arguments: &[&str]) -> String {
    let out = cluster.kubectl("admin", arguments, "");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The API server knows each field of a report, for the findings of every rule.
#[test]
fn reports_of_every_rule_fit_their_kinds() {
    let cluster = TestCluster::start();
    cluster.create_other_crds();
    for reports in KINDS {
        let mut made = Vec::new();
        for rule in rules::RULES {
            for (number, manifest) in read(rule.bad).iter().enumerate() {
                let json = manifest.to_string();
                let Ok(Some(object)) = Object::read(&json) else { continue };
                let verdict = judge(&Subject::manifest(&object), &Facts::default(), &Policy::default());
                let uid = format!("{}-{number}", rule.id.replace('/', "-"));
                let about = ObjectReference { namespace: "default", name: "it", uid: &uid, ..about(manifest) };
                made.extend(report(reports, &about, &verdict));
            }
        }
        assert!(made.len() > 40, "{}", made.len());
        cluster.create_strictly(&made, &["--dry-run=server"]);
    }
}

#[test]
fn report_is_written_on_change_and_deleted_when_clean() {
    let cluster = TestCluster::start();
    cluster.namespace("apps");
    let mut stored = cluster.jane.create(&nads("apps"), &nad("net", BAD));
    // Without the CRDs nothing is written, and nothing fails.
    let mut before = reporter(&cluster, Reports::Openreports);
    assert_eq!(write_report(&mut before, &stored), ReportWrite::Unchanged);
    assert_eq!(block_on(before.delete_stale()).unwrap(), 0);
    cluster.create_other_crds();
    assert_eq!(write_report(&mut before, &stored), ReportWrite::Unchanged);
    block_on(before.load(Reports::Openreports)).unwrap();
    assert_eq!(write_report(&mut before, &stored), ReportWrite::Created);
    cluster.admin.delete(&at(Reports::Openreports, &stored));

    for reports in KINDS {
        let at = at(reports, &stored);
        let mut first = reporter(&cluster, reports);
        assert_eq!(write_report(&mut first, &stored), ReportWrite::Created, "{reports:?}");
        let made = cluster.admin.get(&at).unwrap();
        assert_eq!(made["results"][0]["rule"], "nad/field-type");
        assert_eq!(made["summary"]["fail"], 2, "{made:#}");
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], stored["metadata"]["uid"]);
        let plural = ReportKind::of(reports).unwrap().plural;
        let table = kubectl_output(&cluster, &["get", plural, "--namespace=apps", "-o", "wide"]);
        let row = table.lines().nth(1).unwrap();
        assert!(row.contains("NetworkAttachmentDefinition") && row.contains("net"), "{table}");

        // The same findings again write nothing, even by a reporter without a cache.
        assert_eq!(write_report(&mut first, &stored), ReportWrite::Unchanged);
        let mut second = reporter(&cluster, reports);
        assert_eq!(write_report(&mut second, &stored), ReportWrite::Unchanged);
        assert_eq!(block_on(second.delete_stale()).unwrap(), 0);
        assert_eq!(version(&cluster.admin.get(&at).unwrap()), version(&made), "{reports:?}");

        // Labels of other users are ignored.
        let labelled = cluster.admin.patch(&at, &json!({ "metadata": { "labels": { "team": "a" } } }));
        block_on(second.load(reports)).unwrap();
        assert_eq!(write_report(&mut second, &stored), ReportWrite::Unchanged);
        assert_eq!(version(&cluster.admin.get(&at).unwrap()), version(&labelled));
        // A full scan restores a changed result, and keeps the label.
        cluster.admin.patch(&at, &json!({ "results": [{ "policy": "all is well" }] }));
        assert_eq!(write_report(&mut second, &stored), ReportWrite::Unchanged);
        block_on(second.load(reports)).unwrap();
        assert_eq!(write_report(&mut second, &stored), ReportWrite::Replaced);
        let restored = cluster.admin.get(&at).unwrap();
        assert_eq!((&restored["results"], &restored["metadata"]["labels"]["team"]), (&made["results"], &json!("a")));

        // Another finding changes the report; the first reporter's cache is stale, and does no harm.
        stored = cluster.jane.patch(&nad_at("apps", "net"), &json!({ "spec": { "config": BETTER } }));
        assert_eq!(write_report(&mut second, &stored), ReportWrite::Replaced);
        let changed = cluster.admin.get(&at).unwrap();
        assert_ne!(changed["results"], made["results"]);
        assert_eq!(write_report(&mut first, &stored), ReportWrite::Unchanged);
        assert_eq!(version(&cluster.admin.get(&at).unwrap()), version(&changed));

        stored = cluster.jane.patch(&nad_at("apps", "net"), &json!({ "spec": { "config": GOOD } }));
        assert_eq!(write_report(&mut second, &stored), ReportWrite::Deleted);
        assert!(cluster.admin.get(&at).is_none());
        assert_eq!(write_report(&mut second, &stored), ReportWrite::Unchanged);
        stored = cluster.jane.patch(&nad_at("apps", "net"), &json!({ "spec": { "config": BAD } }));
    }
}

#[test]
fn stale_reports_are_deleted() {
    let cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.namespace("apps");
    let first = cluster.jane.create(&nads("apps"), &nad("first", BAD));
    let second = cluster.jane.create(&nads("apps"), &nad("second", BAD));
    let bad = network(TestNetworkKind::Sriov, "third", "apps", &json!({ "ipam": "no JSON" }));
    let third = cluster.jane.create(&TestNetworkKind::Sriov.path(), &bad);
    let [old, new] = KINDS;
    let mut it = reporter(&cluster, old);
    for stored in [&first, &second, &third] {
        assert_eq!(write_report(&mut it, stored), ReportWrite::Created);
    }
    // The garbage collector may take half a minute to discover all kinds.
    cluster.jane.delete(&nad_at("apps", "first"));
    cluster.admin.wait_deleted(&at(old, &first));
    it.forget(first["metadata"]["uid"].as_str().unwrap());

    // There are no findings about the second object any more.
    block_on(it.load(old)).unwrap();
    assert_eq!(write_report(&mut it, &third), ReportWrite::Unchanged);
    assert_eq!(block_on(it.delete_stale()).unwrap(), 1);
    assert!(cluster.admin.get(&at(old, &second)).is_none());
    assert!(cluster.admin.get(&at(old, &third)).is_some());

    // The policy selects the other kind, then none. Reports of others stay.
    let foreign =
        json!({ "apiVersion": "openreports.io/v1alpha1", "kind": "Report", "metadata": { "name": "theirs" } });
    let theirs = cluster.admin.create("/apis/openreports.io/v1alpha1/namespaces/apps/reports", &foreign);
    block_on(it.load(new)).unwrap();
    assert!(cluster.admin.get(&at(old, &third)).is_none());
    assert_eq!(write_report(&mut it, &third), ReportWrite::Created);
    block_on(it.load(Reports::Off)).unwrap();
    assert!(cluster.admin.get(&at(new, &third)).is_none());
    assert_eq!(write_report(&mut it, &third), ReportWrite::Unchanged);
    let path = "/apis/openreports.io/v1alpha1/namespaces/apps/reports/theirs";
    assert_eq!(version(&cluster.admin.get(path).unwrap()), version(&theirs));
}

/// Two leaders at once, for a moment, with different findings.
#[test]
fn concurrent_reporters_converge() {
    let cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.namespace("apps");
    let stored = cluster.jane.create(&nads("apps"), &nad("net", BAD));
    let mut other = stored.clone();
    other["spec"]["config"] = BETTER.into();
    let (bad, better) = (judged(&stored), judged(&other));
    let reports = Reports::Openreports;
    let (mut one, mut two) = (reporter(&cluster, reports), reporter(&cluster, reports));
    block_on(async {
        for round in 0..20 {
            let about = about(&stored);
            let (mine, theirs) = if round % 2 == 0 { (&bad, &better) } else { (&better, &bad) };
            let (first, second) = tokio::join!(one.write_report(&about, mine), two.write_report(&about, theirs));
            first.unwrap();
            second.unwrap();
        }
    });
    for it in [&mut one, &mut two] {
        block_on(it.load(reports)).unwrap();
        let kept = write_report(it, &stored);
        assert!(matches!(kept, ReportWrite::Unchanged | ReportWrite::Replaced), "{kept:?}");
    }
    let last = cluster.admin.get(&at(reports, &stored)).unwrap();
    assert_eq!(last["results"][0]["rule"], "nad/field-type");
    for it in [&mut one, &mut two] {
        block_on(it.load(reports)).unwrap();
        assert_eq!(write_report(it, &stored), ReportWrite::Unchanged);
    }
    assert_eq!(version(&cluster.admin.get(&at(reports, &stored)).unwrap()), version(&last));
}

#[test]
fn event_is_recorded_once() {
    let cluster = TestCluster::start();
    cluster.namespace("apps");
    let bad = network(TestNetworkKind::Sriov, "net", "apps", &json!({ "ipam": "no JSON" }));
    let stored = cluster.jane.create(&TestNetworkKind::Sriov.path(), &bad);
    let record =
        |events: &mut EventRecorder, stored: &Value| block_on(events.record(&about(stored), &judged(stored))).unwrap();
    let mut events = EventRecorder::new(as_nadmit(&cluster), "me".to_owned());
    assert_eq!(record(&mut events, &stored), 1);
    let all = format!("/api/v1/namespaces/{OPERATOR}/events");
    let made = cluster.admin.get(&all).unwrap()["items"].clone();
    assert_eq!(made.as_array().unwrap().len(), 1);

    let described = kubectl_output(&cluster, &["describe", "sriovnetwork", "net", "--namespace", OPERATOR]);
    let line = described.lines().last().unwrap();
    for word in ["Warning", "NetworkFragment", "nadmit", "`ipam` is not valid JSON", "Help: write one JSON object"] {
        assert!(line.contains(word), "{word}: {described}");
    }
    // Neither this recorder nor another writes it again.
    assert_eq!(record(&mut events, &stored), 0);
    assert_eq!(record(&mut EventRecorder::new(as_nadmit(&cluster), "other".to_owned()), &stored), 0);
    assert_eq!(cluster.admin.get(&all).unwrap()["items"], made);
    // After the API server has deleted the Event, it is written again.
    cluster.admin.delete(&format!("{all}/{}", made[0]["metadata"]["name"].as_str().unwrap()));
    assert_eq!(record(&mut EventRecorder::new(as_nadmit(&cluster), "other".to_owned()), &stored), 1);

    let nad = cluster.jane.create(&nads("apps"), &nad("net", BAD));
    assert_eq!(record(&mut events, &nad), 0);
    assert!(cluster.admin.get("/api/v1/namespaces/apps/events").unwrap()["items"].as_array().unwrap().is_empty());
}

#[test]
fn denials_are_reported_for_an_hour() {
    const ALL: &str = "/apis/openreports.io/v1alpha1/namespaces/nadmit/reports";
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    cluster.namespace("apps");
    cluster.deploy();
    // The harness itself made only dry runs.
    assert!(cluster.admin.get(ALL).unwrap()["items"].as_array().unwrap().is_empty());
    for _ in 0..2 {
        let error = cluster.jane.try_create(&nads("apps"), &nad("net", BAD)).unwrap_err();
        assert!(error.message.contains("denied the request"), "{}", error.message);
    }
    let kept = wait("the report", || cluster.admin.get(ALL).unwrap()["items"].get(0).cloned());
    let (name, result) = (kept["metadata"]["name"].as_str().unwrap(), &kept["results"][0]);
    assert!(name.starts_with("nadmit-denials-"), "{name}");
    assert_eq!(
        result["message"],
        "denied create of NetworkAttachmentDefinition apps/net by jane, 2 times: nad/field-type"
    );
    assert_eq!(
        result["resources"][0],
        json!({ "kind": "NetworkAttachmentDefinition", "namespace": "apps", "name": "net" })
    );
    assert!(!kept.to_string().contains("a.io/b"), "{kept:#}");
    let table = kubectl_output(&cluster, &["get", "reports", "--namespace=nadmit"]);
    assert!(table.contains(name), "{table}");
    // Admission itself writes nothing, and its log reports it.
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/nadmit");
        for entry in cluster.admin.get(&path).unwrap()["webhooks"].as_array().unwrap() {
            assert_eq!(entry["sideEffects"], "None", "{entry:#}");
        }
    }

    // After the end of its replica, the leader deletes the report when an hour is over, and not before.
    cluster.kill_nadmit();
    let denials = Arc::<RecentDenials>::default();
    let mut keeper = DenialReporter::new(
        as_nadmit(&cluster),
        "nadmit".to_owned(),
        "leader_1",
        Arc::clone(&denials),
        ReportWrites::default(),
    );
    let last = result["timestamp"]["seconds"].as_i64().unwrap();
    assert_eq!(block_on(keeper.sweep(last + 3599)).unwrap(), 0);
    assert_eq!(block_on(keeper.sweep(last + 3600)).unwrap(), 1);
    assert!(cluster.admin.get(&format!("{ALL}/{name}")).is_none());

    // A running replica deletes its own report.
    let denied = || Denial {
        user: "jane".to_owned(),
        kind: "SriovNetwork".to_owned(),
        namespace: OPERATOR.to_owned(),
        name: String::new(),
        operation: "create",
        rules: vec!["sriov/vlan"],
        count: 1,
        last: 1_000_000,
    };
    denials.add(denied());
    let own = format!("{ALL}/nadmit-denials-leader-1");
    block_on(keeper.write(Reports::Openreports, 1_000_000)).unwrap();
    let first = cluster.admin.get(&own).unwrap();
    block_on(keeper.write(Reports::Openreports, 1_000_001)).unwrap();
    assert_eq!(version(&cluster.admin.get(&own).unwrap()), version(&first));
    denials.add(denied());
    block_on(keeper.write(Reports::Openreports, 1_000_002)).unwrap();
    assert_eq!(cluster.admin.get(&own).unwrap()["results"][0]["properties"]["count"], "2");
    // With the other kind of report.
    let other = "/apis/wgpolicyk8s.io/v1alpha2/namespaces/nadmit/policyreports/nadmit-denials-leader-1";
    block_on(keeper.write(Reports::Wgpolicyk8s, 1_000_003)).unwrap();
    assert!(cluster.admin.get(&own).is_none() && cluster.admin.get(other).is_some());
    block_on(keeper.write(Reports::Wgpolicyk8s, 1_003_600)).unwrap();
    assert!(cluster.admin.get(other).is_none());
}
