//! `nadmit audit` over a real cluster: the tests cause every finding of an audit, and then fix it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::harness::nadmit;
use crate::objects::{OPERATOR, TestNetworkKind, annotated, configured, nad, nad_at, nads, network, version};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

/// How many NADs `--fix` completes at once.
const INCOMPLETE: usize = 500;

/// Audits as one of the users, with a grace period of one second.
pub fn audit(cluster: &TestCluster, user: &str, more: &[&str]) -> Output {
    let policy = cluster.directory().join("audit-policy-of-nadmit.yaml");
    fs::write(&policy, "audit: {graceSeconds: 1}\n").unwrap();
    let mut command = nadmit(&["audit"]);
    command.arg("--kubeconfig").arg(cluster.kubeconfig(user)).arg("--policy").arg(policy).args(more);
    command.output().unwrap()
}

/// The findings of an audit: `rule kind/namespace/name`, and the message.
pub fn found(cluster: &TestCluster, user: &str) -> Vec<(String, String)> {
    let out = audit(cluster, user, &["--output=json"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut found = Vec::new();
    for document in report["documents"].as_array().unwrap() {
        for finding in document["findings"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let message = format!("{}: {}", text(&finding["message"]), text(&finding["note"]));
            found.push((format!("{} {}", text(&finding["rule"]), text(&document["source"])), message));
        }
    }
    found.sort();
    found
}

/// The message of a finding, after waiting for it.
fn wait_for_message(cluster: &TestCluster, user: &str, what: &str) -> String {
    wait(what, || found(cluster, user).into_iter().find(|(found, _)| found == what).map(|(_, message)| message))
}

fn wait_clean(cluster: &TestCluster, user: &str) {
    let mut last = Vec::new();
    wait("a clean cluster", || {
        last = found(cluster, user);
        last.is_empty().then_some(())
    });
}

fn network_named(name: &str) -> String {
    format!("SriovNetwork/{OPERATOR}/{name}")
}

pub fn make(cluster: &TestCluster, name: &str, namespace: &str, fields: &Value) {
    cluster.jane.create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, name, namespace, fields));
}

/// A NAD whose network was deleted. Its owner-ref is one that newer operators write.
pub fn orphan() -> Value {
    let mut orphan = nad("orphan", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"openshift.io/cx7"}"#);
    orphan["metadata"]["annotations"] = json!({
        "sriovnetwork.openshift.io/owner-ref": format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/gone"),
        "k8s.v1.cni.cncf.io/resourceName": "openshift.io/cx7",
    });
    orphan
}

/// Changes the vlan in the NAD of a network from 5 to 7.
pub fn change_vlan(cluster: &TestCluster, name: &str) {
    let path = nad_at("apps", name);
    let config =
        cluster.jane.get(&path).unwrap()["spec"]["config"].as_str().unwrap().replace("\"vlan\": 5", "\"vlan\": 7");
    cluster.admin.patch(&path, &json!({ "spec": { "config": config } }));
}

/// Creates a node policy that offers the resource of the tests' networks.
pub fn create_node_policy(cluster: &TestCluster) {
    let policies =
        "/apis/sriovnetwork.openshift.io/v1/namespaces/openshift-sriov-network-operator/sriovnetworknodepolicies";
    let policy = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy", "metadata": { "name": "cx7" },
        "spec": { "resourceName": "cx7", "numVfs": 4, "nicSelector": { "vendor": "15b3" }, "nodeSelector": { "a": "b" } },
    });
    cluster.admin.create(policies, &policy);
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Makes the API server deny NADs in a namespace.
pub fn deny_nads_in(cluster: &TestCluster, namespace: &str) {
    let rule = json!({
        "apiGroups": ["k8s.cni.cncf.io"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["network-attachment-definitions"],
    });
    let policy = json!({ "metadata": { "name": "none" }, "spec": {
        "matchConstraints": { "resourceRules": [rule] },
        "validations": [{ "expression": "false", "message": "the namespace is full" }],
    } });
    cluster.admin.create(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy);
    let selector = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
    let binding = json!({ "metadata": { "name": "none" }, "spec": {
        "policyName": "none", "validationActions": ["Deny"], "matchResources": { "namespaceSelector": selector },
    } });
    cluster.admin.create(&format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding);
    let dry_run = format!("{}?dryRun=All", nads(namespace));
    let other = nad("other", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    wait("a denial", || cluster.admin.try_create(&dry_run, &other).err());
}

/// Ends [`deny_nads_in`].
pub fn allow_nads(cluster: &TestCluster) {
    cluster.admin.delete(&format!("{ADMISSION}/validatingadmissionpolicybindings/none"));
}

pub fn give_reader_its_rights(cluster: &TestCluster) {
    let printed = nadmit(&["install", "--audit-only"]).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let out = cluster.kubectl("admin", &["apply", "--validate=strict", "-f", "-"], &printed);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn audit_findings_appear_and_clear() {
    let mut cluster = TestCluster::with_nadmit(OperatorTemplate::Upstream);
    cluster.operator_is_available(1);
    give_reader_its_rights(&cluster);
    create_node_policy(&cluster);
    cluster.namespace("apps");
    for name in ["one", "two"] {
        make(&cluster, name, "apps", &json!({ "vlan": 5 }));
        cluster.jane.wait(&nad_at("apps", name), |_| true);
    }
    let auditor = "auditor";
    wait_clean(&cluster, auditor);

    // The namespace does not exist.
    make(&cluster, "early", "later", &json!({}));
    let early = format!("audit/nad-absent {}", network_named("early"));
    assert!(wait_for_message(&cluster, auditor, &early).contains("namespace `later` does not exist"));
    // docs/cli.md shows the human output of this finding.
    let shown = String::from_utf8(audit(&cluster, auditor, &[]).stdout).unwrap();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md")).unwrap();
    let example = page.split("```text\n").find(|block| block.starts_with("warning[audit/nad-absent]")).unwrap();
    let example = example.split("```").next().unwrap();
    assert!(shown.contains(example), "docs/cli.md shows\n{example}\nbut the output is\n{shown}");
    cluster.namespace("later");
    cluster.jane.wait(&nad_at("later", "early"), |_| true);
    wait_clean(&cluster, auditor);

    // The API server denies the NAD: users who may create NADs get the reason.
    cluster.namespace("full");
    deny_nads_in(&cluster, "full");
    make(&cluster, "refused", "full", &json!({}));
    let denied = format!("audit/nad-absent {}", network_named("refused"));
    let message = wait_for_message(&cluster, "admin", &denied);
    let is_explained =
        message.contains("a dry run of it is denied") || message.contains("the operator reports an error");
    assert!(is_explained && message.contains("the namespace is full"), "{message}");
    // Newer operators write the reason on the network, where everyone who may read it gets it; a dry run is for those who may create NADs.
    assert!(!wait_for_message(&cluster, auditor, &denied).contains("a dry run of it is denied"));
    allow_nads(&cluster);
    cluster.jane.wait(&nad_at("full", "refused"), |_| true);
    wait_clean(&cluster, auditor);

    // The operator does not run: it creates no NADs, removes no finalizers, and fixes no drift.
    cluster.stop_operator();
    make(&cluster, "waits", "apps", &json!({}));
    let waits = format!("audit/nad-absent {}", network_named("waits"));
    assert!(wait_for_message(&cluster, auditor, &waits).contains("the operator is not running"));
    // It seems to run, but stopped reconciling: two waiting networks are not a coincidence.
    cluster.operator_is_available(1);
    wait("the finding about an operator that writes nothing", || {
        wait_for_message(&cluster, auditor, &waits).contains("has written nothing since").then_some(())
    });
    assert!(!found(&cluster, auditor).iter().any(|(found, _)| found.starts_with("audit/operator-silent")));
    make(&cluster, "waits-too", "apps", &json!({}));
    let silent = format!("audit/operator-silent {}", network_named("waits-too"));
    assert!(wait_for_message(&cluster, auditor, &silent).contains("stopped reconciling"));
    cluster.jane.delete(&TestNetworkKind::Sriov.at("two"));
    let stuck = format!("audit/stuck-deletion {}", network_named("two"));
    assert!(wait_for_message(&cluster, auditor, &stuck).contains("netattdef.finalizers.sriovnetwork.openshift.io"));
    change_vlan(&cluster, "one");
    let drift = format!("audit/nad-drift {}", network_named("one"));
    assert!(wait_for_message(&cluster, auditor, &drift).contains("has `/vlan` 7, its network has 5"));
    let rules: BTreeSet<_> =
        found(&cluster, auditor).into_iter().map(|(found, _)| found.split(' ').next().unwrap().to_owned()).collect();
    let want = ["audit/nad-absent", "audit/nad-drift", "audit/operator-silent", "audit/stuck-deletion"];
    assert_eq!(rules, want.map(str::to_owned).into());

    // The operator runs again, and all findings clear.
    cluster.start_operator(OperatorTemplate::Upstream);
    cluster.jane.wait_deleted(&TestNetworkKind::Sriov.at("two"));
    wait_clean(&cluster, auditor);

    // A NAD whose network was deleted.
    cluster.admin.create(&nads("apps"), &orphan());
    let orphan = "audit/orphan NetworkAttachmentDefinition/apps/orphan";
    assert!(wait_for_message(&cluster, auditor, orphan).contains("does not exist any more"));
    make(&cluster, "gone", "apps", &json!({}));
    cluster.jane.wait(&nad_at("apps", "gone"), |_| true);
    wait_clean(&cluster, auditor);
}

#[test]
fn fix_completes_only_incomplete_nads() {
    let mut cluster = TestCluster::without_nadmit(OperatorTemplate::Faulty);
    cluster.namespace("apps");
    let name = |number: usize| format!("net-{number}");
    let watch = cluster.admin.watch(&nads("apps"));
    (0..INCOMPLETE).for_each(|number| make(&cluster, &name(number), "apps", &json!({})));
    wait("all NADs", || (watch.now().len() == INCOMPLETE).then_some(()));
    let own = |name: &str, config: &str| cluster.jane.create(&nads("apps"), &nad(name, config));
    own("own", r#"{"cniVersion":"1.0.0","type":"sriov","resourceName":"a.io/b"}"#);
    own("other", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    own("hopeless", r#"{"cniVersion":"1.0.0","type":"sriov"}"#);

    // Without nadmit the operator would revert it: only NADs that no network renders are written.
    let out = audit(&cluster, "admin", &["--fix", "--yes", "--output=json"]);
    let message = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{message}");
    assert!(message.contains("1 were completed, 0 were already complete, 500 were skipped, 0 failed"), "{message}");
    assert!(message.contains("would revert it"), "{message}");
    assert_eq!(annotated(&cluster.jane.get(&nad_at("apps", "own")).unwrap()), Some("a.io/b"));

    cluster.deploy_with("{leaveIncomplete: true}");
    let before = versions(&cluster);
    let out = audit(&cluster, "admin", &["--fix", "--output=json"]);
    assert_eq!(out.status.code(), Some(2), "without confirmation");
    assert_eq!(versions(&cluster), before);
    let out = audit(&cluster, "admin", &["--fix", "--yes", "--output=json"]);
    let message = String::from_utf8_lossy(&out.stderr);
    // NADs that cannot be completed are still denied, so the exit code is 1.
    assert_eq!(out.status.code(), Some(1), "{message}");
    assert!(message.contains("of 500 incomplete NADs 500 were completed"), "{message}");
    for number in 0..INCOMPLETE {
        let nad = cluster.jane.get(&nad_at("apps", &name(number))).unwrap();
        assert_eq!(
            (annotated(&nad), configured(&nad).as_deref()),
            (Some("openshift.io/cx7"), Some("openshift.io/cx7"))
        );
    }
    // Nothing else has changed, and nothing writes the NADs any more.
    let after = versions(&cluster);
    let is_other = |name: &str| ["own", "other", "hopeless"].contains(&name);
    for (name, version) in before.iter().filter(|(name, _)| is_other(name)) {
        assert!(after.contains(&(name.clone(), version.clone())), "{name} was written");
    }
    let last = name(INCOMPLETE - 1);
    let reconciled = cluster.reconciles(TestNetworkKind::Sriov, &last);
    for number in 0..INCOMPLETE {
        cluster.jane.patch(
            &TestNetworkKind::Sriov.at(&name(number)),
            &json!({ "metadata": { "labels": { "touched": "yes" } } }),
        );
    }
    wait("a reconcile of the last network", || {
        (cluster.reconciles(TestNetworkKind::Sriov, &last) > reconciled).then_some(())
    });
    assert_eq!(versions(&cluster), after, "the operator and nadmit agree");
    let again = audit(&cluster, "admin", &["--fix", "--yes", "--output=json"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to complete"));
}

fn versions(cluster: &TestCluster) -> BTreeSet<(String, String)> {
    let list = cluster.admin.get(&nads("apps")).unwrap();
    let one = |nad: &Value| (nad["metadata"]["name"].as_str().unwrap().to_owned(), version(nad).to_owned());
    list["items"].as_array().unwrap().iter().map(one).collect()
}

/// Creates every NAD of the rules' own cases that the API server accepts.
fn cases(cluster: &TestCluster) -> usize {
    let mut made = 0;
    for case in crate::case::all().iter().filter(|case| case.is_offline() && case.policy_text.is_none()) {
        for mut manifest in crate::install::read(&case.input) {
            let is_owned =
                manifest.to_string().contains("owner-ref") || !manifest["metadata"]["ownerReferences"].is_null();
            if manifest["kind"] != "NetworkAttachmentDefinition" || is_owned {
                continue;
            }
            let annotations = manifest["metadata"]["annotations"].take();
            manifest["metadata"] = json!({ "name": format!("case-{made}"), "annotations": annotations });
            made += usize::from(cluster.admin.try_create(&nads("apps"), &manifest).is_ok());
        }
    }
    made
}

/// The findings of each NAD in a report: rule, action, and pointer in the config. All repairs count as one.
fn findings_by_nad(report: &[u8]) -> BTreeMap<String, BTreeSet<String>> {
    let report: Value = serde_json::from_slice(report).unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for document in report["documents"].as_array().unwrap() {
        for finding in document["findings"].as_array().unwrap() {
            let line = match finding["action"].as_str().unwrap() {
                "patch" => "repaired".to_owned(),
                action => format!("{} {action} {}", finding["rule"], finding["config_pointer"]),
            };
            found.entry(document["name"].as_str().unwrap().to_owned()).or_default().insert(line);
        }
    }
    found
}

/// Audit and check give the same verdict.
#[test]
fn audit_agrees_with_check() {
    let cluster = TestCluster::start();
    cluster.namespace("apps");
    let made = cases(&cluster);
    assert!(made > 200, "only {made} cases");
    let stored =
        cluster.kubectl("admin", &["get", "network-attachment-definitions", "--namespace=apps", "-o", "yaml"], "");
    let file = cluster.directory().join("stored.yaml");
    fs::write(&file, stored.stdout).unwrap();
    let check = nadmit(&["check", "--output=json"]).arg(&file).output().unwrap();
    let audit = nadmit(&["audit", "--output=json", "--kubeconfig"]).arg(cluster.kubeconfig("admin")).output().unwrap();
    let (check, audit) = (findings_by_nad(&check.stdout), findings_by_nad(&audit.stdout));
    assert!(audit.len() > 100, "{}", audit.len());
    for (name, by_check) in &check {
        assert_eq!(audit.get(name), Some(by_check), "{name}");
    }
    assert_eq!(audit.len(), check.len());
}
