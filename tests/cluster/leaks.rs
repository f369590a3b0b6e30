//! A tenant learns nothing about other namespaces.

use serde_json::{Value, json};

use crate::cluster::TestCluster;
use crate::facts::{count, knows_all};
use crate::lookalikes::grant;
use crate::objects::{OPERATOR, TestNetworkKind, nad, nads, network};
use crate::processes::wait;

const NETWORKS: &str = "/apis/sriovnetwork.openshift.io/v1/namespaces/tenant/sriovnetworks";

/// A tenant with their own namespace, a victim, and the operator.
fn cluster() -> TestCluster {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    for namespace in ["tenant", "victim"] {
        cluster.namespace(namespace);
    }
    grant(&cluster, &json!({ "kind": "User", "name": "tom" }), Some("tenant"));
    // An object for each rule that might name it: a NAD and its owner, networks for the tenant's namespace, a node policy.
    let mut theirs = nad("taken", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    let owner = format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/hidden-owner");
    theirs["metadata"]["annotations"] = json!({ "sriovnetwork.openshift.io/owner-ref": owner });
    cluster.admin.create(&nads("victim"), &theirs);
    for (name, target) in [("mine", "tenant"), ("mine-too", "tenant"), ("taken", "victim")] {
        cluster
            .admin
            .create(&TestNetworkKind::Sriov.path(), &network(TestNetworkKind::Sriov, name, target, &json!({})));
    }
    let policy = json!({
        "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy", "metadata": { "name": "p" },
        "spec": { "resourceName": "hiddenx6", "numVfs": 4, "nodeSelector": {}, "nicSelector": { "vendor": "15b3" } },
    });
    let policies = format!("/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworknodepolicies");
    cluster.admin.create(&policies, &policy);
    cluster.deploy_with("audit: {graceSeconds: 1}");
    knows_all(cluster.nadmit());
    wait("the networks", || (count(cluster.nadmit(), "SriovNetwork") >= 3).then_some(()));
    cluster
}

/// The messages for a user who creates an object in a dry run.
fn messages_for(cluster: &TestCluster, user: &str, object: &Value) -> String {
    let out = cluster.kubectl(user, &["create", "--dry-run=server", "-f", "-"], &object.to_string());
    String::from_utf8(out.stderr).unwrap()
}

fn tenants(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork",
        "metadata": { "name": name, "namespace": "tenant" }, "spec": spec,
    })
}

/// Fails if a text names the operator's namespace or one of its objects.
fn assert_reveals_nothing(message: &str) {
    for secret in [OPERATOR, "hidden-owner", "hiddenx6"] {
        assert!(!message.contains(secret), "{secret}: {message}");
    }
}

#[test]
fn foreign_target_gives_one_constant_finding() {
    let cluster = cluster();
    let of = |name: &str, target: &str| {
        let message = messages_for(
            &cluster,
            "tenant",
            &tenants(name, &json!({ "resourceName": "hiddenx7", "networkNamespace": target })),
        );
        assert_reveals_nothing(&message);
        assert!(message.contains("network/target-namespace") && message.matches("(network/").count() == 1, "{message}");
        message.replace(name, "NAME").replace(target, "TARGET")
    };
    // The message is the same for an existing NAD, a missing one, and a missing namespace.
    let there = of("taken", "victim");
    assert_eq!(there, of("free", "victim"));
    assert_eq!(there, of("free", "nowhere"));
    // The last namespace of a network reveals nothing about that namespace either.
    let moved = |name: &str, last: &str| {
        let mut moved = tenants(name, &json!({ "resourceName": "cx7" }));
        moved["metadata"]["annotations"] = json!({ "operator.sriovnetwork.openshift.io/last-network-namespace": last });
        messages_for(&cluster, "tenant", &moved).replace(name, "NAME").replace(last, "LAST")
    };
    assert_eq!(moved("taken", "victim"), moved("free", "victim"));
}

#[test]
fn names_need_the_writers_permission() {
    let cluster = cluster();
    let claimed = tenants("mine", &json!({ "resourceName": "hiddenx7" }));
    let message = messages_for(&cluster, "tenant", &claimed);
    assert!(message.contains("network/claimed") && message.contains("network/no-policy"), "{message}");
    assert_reveals_nothing(&message);
    // A user with read permission gets the names.
    let message = messages_for(&cluster, "jane", &claimed);
    assert!(message.contains(&format!("SriovNetwork {OPERATOR}/mine also renders the NAD tenant/mine")), "{message}");
    assert!(message.contains("did you mean `hiddenx6`?"), "{message}");

    let mut overwritten = nad("mine", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
    overwritten["metadata"]["namespace"] = "tenant".into();
    let message = messages_for(&cluster, "tenant", &overwritten);
    assert!(message.contains("nad/operator-overwrites"), "{message}");
    assert_reveals_nothing(&message);
    assert!(
        messages_for(&cluster, "jane", &overwritten).contains(&format!("SriovNetwork {OPERATOR}/mine renders a NAD"))
    );

    overwritten["metadata"]["annotations"] =
        json!({ "sriovnetwork.openshift.io/owner-ref": "SriovNetwork.sriovnetwork.openshift.io/tenant/x" });
    let message = messages_for(&cluster, "tenant", &overwritten);
    assert!(message.contains("nad/forged-owner") && message.contains("is invalid"), "{message}");
    assert_reveals_nothing(&message);
    assert!(
        messages_for(&cluster, "jane", &overwritten)
            .contains(&format!("SriovNetwork {OPERATOR}/mine renders this NAD"))
    );

    // Whether a network exists that they cannot read.
    let names = |name: &str| {
        let mut named = nad("free", r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
        named["metadata"]["namespace"] = "tenant".into();
        let owner = format!("SriovNetwork.sriovnetwork.openshift.io/{OPERATOR}/{name}");
        named["metadata"]["annotations"] = json!({ "sriovnetwork.openshift.io/owner-ref": owner });
        messages_for(&cluster, "tenant", &named).replace(name, "NAME")
    };
    // The names have equal lengths, because long lines are wrapped.
    assert_eq!(names("taken"), names("ghost"));
}

/// Reports and Events in the tenant's namespace name nothing else.
#[test]
fn reports_and_events_do_not_leak_other_namespaces() {
    let mut cluster = cluster();
    // These objects existed before nadmit.
    cluster.kill_nadmit();
    let tom = cluster.user("tenant");
    let foreign = json!({ "resourceName": "hiddenx7", "networkNamespace": "victim" });
    for name in ["taken", "free"] {
        tom.create(NETWORKS, &tenants(name, &foreign));
    }
    tom.create(NETWORKS, &tenants("mine", &json!({ "resourceName": "hiddenx7" })));
    tom.create(NETWORKS, &tenants("own", &json!({ "resourceName": "hiddenx7" })));
    cluster.start_nadmit();
    let list = |path: &str| cluster.admin.get(path).map(|list| list["items"].clone()).unwrap_or_default();
    let reports = "/apis/openreports.io/v1alpha1/namespaces/tenant/reports";
    let of = |all: &Value, name: &str| {
        let about = |report: &&Value| report["metadata"]["ownerReferences"][0]["name"] == name;
        all.as_array().into_iter().flatten().find(about).cloned()
    };
    // The audit finds the last of them only after it has scanned all.
    let all = wait("the reports", || {
        let all = list(reports);
        let rules = of(&all, "own")?["results"].to_string();
        (rules.contains("audit/nad-absent") && of(&all, "taken").is_some() && of(&all, "mine").is_some()).then_some(all)
    });
    let found = |name: &str| {
        let report = of(&all, name).unwrap();
        let results = report["results"].as_array().unwrap().clone();
        results.iter().map(|result| result["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for name in ["taken", "free"] {
        let rules = found(name);
        assert!(rules.contains(&"network/target-namespace".to_owned()), "{rules:?}");
        assert!(!rules.iter().any(|rule| rule.starts_with("audit/") || rule == "network/claimed"), "{name}: {rules:?}");
    }
    assert!(found("mine").contains(&"network/claimed".to_owned()));
    let texts = |all: &Value| {
        let results = all.as_array().into_iter().flatten().flat_map(|report| report["results"].as_array().cloned());
        results.flatten().map(|result| result.to_string()).collect::<Vec<_>>().join("\n")
    };
    assert_reveals_nothing(&texts(&all));
    let events = list("/api/v1/namespaces/tenant/events");
    let messages: Vec<_> = events.as_array().into_iter().flatten().map(|event| event["message"].to_string()).collect();
    assert!(!messages.is_empty());
    assert_reveals_nothing(&messages.join("\n"));
    // Objects of a tenant do not change the findings of the victim's NAD.
    let victims = list("/apis/openreports.io/v1alpha1/namespaces/victim/reports");
    assert!(!victims.to_string().contains("tenant/"), "{victims:#}");
}
