//! NADs that do not fit together, written for real: what the writer is told, what is denied, what the Reports say, and that all of it clears.

use serde_json::{Value, json};

use crate::audit::found;
use crate::cluster::TestCluster;
use crate::facts::{count, knows_all};
use crate::lookalikes::grant;
use crate::objects::{nad, nad_at, nads};
use crate::processes::wait;

/// A tenant with a namespace, somebody else with another one, and nadmit.
fn cluster() -> TestCluster {
    let mut cluster = TestCluster::start();
    cluster.create_other_crds();
    for namespace in ["tenant", "victim"] {
        cluster.namespace(namespace);
    }
    grant(&cluster, &json!({ "kind": "User", "name": "tom" }), Some("tenant"));
    cluster.deploy_with("versions: {whereabouts: '0.9'}");
    knows_all(cluster.nadmit());
    wait("the first scan", || cluster.nadmit().log_text().contains("audited the cluster").then_some(()));
    cluster
}

/// A NAD that OVN-Kubernetes has accepted, as its cluster manager annotates it.
fn accepted(mut nad: Value) -> Value {
    nad["metadata"]["annotations"]["k8s.ovn.org/network-id"] = "5".into();
    nad
}

fn in_namespace(namespace: &str, name: &str, config: &Value) -> Value {
    let mut nad = nad(name, &config.to_string());
    nad["metadata"]["namespace"] = namespace.into();
    nad
}

/// What the API server answers to a user who applies an object.
fn applied(cluster: &TestCluster, user: &str, object: &Value) -> String {
    let out = cluster.kubectl(user, &["apply", "--server-side", "--force-conflicts", "-f", "-"], &object.to_string());
    let text = String::from_utf8(out.stderr).unwrap();
    let is_denied = text.contains("is invalid");
    assert_eq!(out.status.success(), !is_denied, "{text}");
    // Long warnings are wrapped.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits until nadmit has so many NADs in its cache: watch events arrive a moment after they are stored.
fn knows_nads(cluster: &TestCluster, wanted: usize) {
    wait("the NADs", || (count(cluster.nadmit(), "NetworkAttachmentDefinition") == wanted).then_some(()));
}

/// All messages about a rule in the reports of a namespace.
fn reported(cluster: &TestCluster, namespace: &str, rule: &str) -> Vec<String> {
    let reports = cluster.admin.get(&format!("/apis/openreports.io/v1alpha1/namespaces/{namespace}/reports"));
    let reports = reports.map(|list| list["items"].as_array().cloned().unwrap_or_default()).unwrap_or_default();
    let results = reports.iter().flat_map(|report| report["results"].as_array().cloned().unwrap_or_default());
    let of_rule = results.filter(|result| result["rule"] == rule);
    of_rule.map(|result| result["message"].as_str().unwrap().to_owned()).collect()
}

fn vlan(range: &str, network_name: &str) -> Value {
    json!({
        "cniVersion": "1.0.0", "name": network_name, "type": "vlan", "master": "eth1", "vlanId": 100,
        "ipam": { "type": "whereabouts", "range": range, "network_name": network_name },
    })
}

fn ovn(namespace: &str, name: &str, subnets: &str) -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "blue", "type": "ovn-k8s-cni-overlay", "topology": "layer2",
        "netAttachDefName": format!("{namespace}/{name}"), "subnets": subnets,
    })
}

#[test]
fn overlaps_are_reported_on_both_sides_and_clear() {
    let cluster = cluster();
    let secret = in_namespace("victim", "secret", &vlan("10.0.0.64-10.0.0.79/24", "secret"));
    assert!(!applied(&cluster, "jane", &secret).contains("ipam/overlap"));
    knows_nads(&cluster, 1);
    let mine = in_namespace("tenant", "mine", &vlan("10.0.0.0/24", "mine"));
    // Who may read the other NAD gets its name and addresses; the tenant gets neither.
    let text = applied(&cluster, "jane", &mine);
    assert!(text.contains("NAD victim/secret hands out 10.0.0.64-10.0.0.79, too"), "{text}");
    cluster.jane.delete(&nad_at("tenant", "mine"));
    knows_nads(&cluster, 1);
    let text = applied(&cluster, "tenant", &mine);
    assert!(text.contains("another NAD in this cluster hands out some of 10.0.0.1-10.0.0.254, too"), "{text}");
    assert!(!text.contains("victim") && !text.contains("10.0.0.64"), "{text}");

    // Both have a report, and neither names the other.
    for namespace in ["tenant", "victim"] {
        let other = if namespace == "tenant" { "victim" } else { "tenant" };
        let messages =
            wait("a report", || Some(reported(&cluster, namespace, "ipam/overlap")).filter(|all| !all.is_empty()));
        assert!(messages.iter().all(|message| !message.contains(&format!("{other}/"))), "{messages:?}");
    }
    let names: Vec<String> =
        found(&cluster, "admin").into_iter().map(|(rule, _)| rule).filter(|rule| rule.starts_with("ipam/")).collect();
    assert_eq!(names.len(), 2, "{names:?}");

    // The tenant separates the ranges, and both reports clear.
    let separate = in_namespace("tenant", "mine", &vlan("10.0.0.128/25", "mine"));
    assert!(!applied(&cluster, "tenant", &separate).contains("ipam/overlap"));
    for namespace in ["tenant", "victim"] {
        wait("no report", || reported(&cluster, namespace, "ipam/overlap").is_empty().then_some(()));
    }
    assert!(found(&cluster, "admin").iter().all(|(rule, _)| !rule.starts_with("ipam/")));

    // Where the other NAD goes, the report of this one goes too.
    applied(&cluster, "tenant", &mine);
    wait("a report", || (reported(&cluster, "tenant", "ipam/overlap").len() == 1).then_some(()));
    cluster.jane.delete(&nad_at("victim", "secret"));
    wait("no report", || reported(&cluster, "tenant", "ipam/overlap").is_empty().then_some(()));
}

#[test]
fn the_later_network_of_ovn_is_denied_and_a_stored_one_is_not() {
    let mut cluster = cluster();
    let first = in_namespace("tenant", "blue", &ovn("tenant", "blue", "10.1.0.0/24"));
    assert!(!applied(&cluster, "tenant", &first).contains("ovn/"));
    knows_nads(&cluster, 1);
    // OVN-Kubernetes may have rejected the first one.
    let second = in_namespace("tenant", "second", &ovn("tenant", "second", "10.2.0.0/24"));
    let text = applied(&cluster, "tenant", &second);
    assert!(text.contains("ovn/name-conflict") && !text.contains("is invalid"), "{text}");
    cluster.jane.delete(&nad_at("tenant", "second"));
    applied(&cluster, "tenant", &accepted(first));
    let text = wait("the annotation", || {
        let text = applied(&cluster, "tenant", &second);
        if text.contains("is invalid") {
            return Some(text);
        }
        cluster.jane.delete(&nad_at("tenant", "second"));
        None
    });
    assert!(text.contains("NAD tenant/blue defines the network \"blue\" differently"), "{text}");
    assert!(text.contains("ovn/name-conflict") && text.contains("is invalid"), "{text}");
    let same = in_namespace("tenant", "second", &ovn("tenant", "second", "10.1.0.0/24"));
    assert!(!applied(&cluster, "tenant", &same).contains("ovn/"));
    knows_nads(&cluster, 2);

    // A name that is taken elsewhere keeps nobody from writing.
    let taken = in_namespace("victim", "own", &ovn("victim", "own", "10.3.0.0/24"));
    let text = applied(&cluster, "jane", &taken);
    assert!(text.contains("ovn/name-taken") && !text.contains("is invalid"), "{text}");
    cluster.jane.delete(&nad_at("victim", "own"));
    cluster.jane.delete(&nad_at("tenant", "second"));
    knows_nads(&cluster, 1);

    // What was stored while nadmit was away can be changed, with a warning.
    cluster.kill_nadmit();
    cluster.user("tenant").create(&nads("tenant"), &second);
    cluster.deploy();
    knows_all(cluster.nadmit());
    knows_nads(&cluster, 2);
    let mut changed = ovn("tenant", "second", "10.2.0.0/24");
    changed["mtu"] = 1300.into();
    let text = applied(&cluster, "tenant", &in_namespace("tenant", "second", &changed));
    assert!(text.contains("ovn/name-conflict") && !text.contains("is invalid"), "{text}");
    // Only the later one has a report.
    let messages =
        wait("a report", || Some(reported(&cluster, "tenant", "ovn/name-conflict")).filter(|all| !all.is_empty()));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("NAD tenant/blue"), "{messages:?}");
}

/// A NAD that was deleted a moment ago denies nothing, although the caches may still know it.
#[test]
fn a_nad_that_is_gone_denies_nothing() {
    let cluster = cluster();
    for number in 0..20 {
        let name = format!("old-{number}");
        let old = in_namespace("tenant", &name, &ovn("tenant", &name, "10.1.0.0/24"));
        applied(&cluster, "tenant", &accepted(old));
        knows_nads(&cluster, 1);
        cluster.jane.delete(&nad_at("tenant", &name));
        let name = format!("new-{number}");
        let new = in_namespace("tenant", &name, &ovn("tenant", &name, "10.2.0.0/24"));
        let text = applied(&cluster, "tenant", &new);
        assert!(!text.contains("is invalid"), "{text}");
        cluster.jane.delete(&nad_at("tenant", &name));
        knows_nads(&cluster, 0);
    }
}

#[test]
fn node_slices_must_agree_within_a_namespace() {
    let cluster = cluster();
    let slices = |size: &str| {
        json!({
            "cniVersion": "1.0.0", "name": "n", "type": "macvlan",
            "ipam": { "type": "whereabouts", "range": "10.0.0.0/16", "network_name": "x", "node_slice_size": size },
        })
    };
    assert!(!applied(&cluster, "tenant", &in_namespace("tenant", "a", &slices("/24"))).contains("ipam/"));
    knows_nads(&cluster, 1);
    let text = applied(&cluster, "tenant", &in_namespace("tenant", "b", &slices("/25")));
    assert!(text.contains("ipam/node-slice") && text.contains("is invalid"), "{text}");
    let text = applied(&cluster, "jane", &in_namespace("victim", "b", &slices("/25")));
    assert!(text.contains("ipam/node-slice") && !text.contains("is invalid"), "{text}");
}
