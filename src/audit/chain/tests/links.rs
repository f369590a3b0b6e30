//! What the links say, and which findings they show.

use super::*;
use crate::audit::chain::links::link_of;

/// What each link says about the same network in other clusters.
#[test]
fn links_say_what_they_saw() {
    let says = |change: &dyn Fn(&mut NetworkSnapshot), link| {
        let mut snapshot = healthy();
        change(&mut snapshot);
        follow(&snapshot).step(link).unwrap().says.clone()
    };
    let unchanged = |_: &mut NetworkSnapshot| ();
    for (link, want) in [
        (Link::Operator, "runs in op"),
        (Link::ResourceName, "openshift.io/cx7, by the NAD's annotation"),
        (Link::NodePolicy, "p offers `cx7`"),
    ] {
        assert_eq!(says(&unchanged, link), want);
    }
    let undetected = |snapshot: &mut NetworkSnapshot| snapshot.operator = Ok(None);
    assert!(says(&undetected, Link::Operator).starts_with("unknown: no Deployment"));
    let damaged = |snapshot: &mut NetworkSnapshot| snapshot.nad = Ok(Some("{".to_owned()));
    assert_eq!(says(&damaged, Link::Nad), "apps/net cannot be parsed");
    let failed = |snapshot: &mut NetworkSnapshot| snapshot.states = Ok(vec![state("Succeeded"), state("Failed")]);
    assert_eq!(
        says(&failed, Link::NodePolicy),
        "p offers `cx7`; 1 of 2 nodes failed to apply policies (node n: no such device)"
    );
    let busy = |snapshot: &mut NetworkSnapshot| snapshot.states = Ok(vec![state("InProgress"), state("Succeeded")]);
    assert_eq!(says(&busy, Link::NodePolicy), "p offers `cx7`; 1 of 2 nodes are still applying it");
    let hidden = |snapshot: &mut NetworkSnapshot| snapshot.states = Err("forbidden".to_owned());
    assert_eq!(says(&hidden, Link::NodePolicy), "p offers `cx7`; the state of the nodes is unknown: forbidden");
    let many = |snapshot: &mut NetworkSnapshot| {
        let policy = |number| NodePolicy {
            name: format!("p{number}"),
            resource_name: "cx7".to_owned(),
            ..NodePolicy::default()
        };
        snapshot.policies = Ok((0..5).map(policy).collect());
        snapshot.nodes = Ok(vec![node(&[("openshift.io/cx7", 4)]), node(&[("openshift.io/cx7", 3)])]);
    };
    assert!(says(&many, Link::NodePolicy).contains(" and 2 more offers `cx7`"), "{}", says(&many, Link::NodePolicy));
    assert!(says(&many, Link::Pods).starts_with("2 of 2 nodes have 7 of `openshift.io/cx7` (n, n)"));
    let few = |snapshot: &mut NetworkSnapshot| {
        let policy = |number| NodePolicy {
            name: format!("p{number}"),
            resource_name: "cx7".to_owned(),
            ..NodePolicy::default()
        };
        snapshot.policies = Ok((0..3).map(policy).collect());
    };
    assert!(says(&few, Link::NodePolicy).starts_with("p0, p1, p2 offers `cx7`"), "{}", says(&few, Link::NodePolicy));
}

/// Where the operator has not rendered the network yet, a NAD without an owner is somebody else's.
#[test]
fn a_nad_without_an_owner_may_be_of_somebody_else() {
    let mut nad = nad();
    nad["metadata"]["annotations"].as_object_mut().unwrap().remove("sriovnetwork.openshift.io/owner-ref");
    let mut network = network();
    for (rendered_to, want) in [("apps", LinkHealth::Good), ("before", LinkHealth::Broken)] {
        network["metadata"]["annotations"] = json!({ LAST_NAMESPACE: rendered_to });
        let snapshot = NetworkSnapshot {
            network: Some(network.to_string()),
            nad: Ok(Some(nad.to_string())),
            last_nad: Lookup::Absent,
            ..healthy()
        };
        let chain = follow(&snapshot);
        assert_eq!(chain.step(Link::Nad).map(|step| step.state), Some(want), "{chain:#?}");
    }
}

/// The one network that renders a NAD decides its resource name, also of a NAD that names no owner.
#[test]
fn a_nad_is_compared_with_the_network_that_renders_it() {
    const RULE: &str = "nad/resource-name-mismatch";
    let mut network = network();
    network["metadata"]["annotations"] = json!({ LAST_NAMESPACE: "apps" });
    for (name, policy, is_reported) in [
        ("openshift.io/cx7", "{}", false),
        ("other.io/cx7", "{}", true),
        ("other.io/cx7", "rules: {nad/resource-name-mismatch: audit}", false),
    ] {
        let mut nad = nad();
        nad["metadata"]["annotations"] = json!({ "k8s.v1.cni.cncf.io/resourceName": name });
        let (network, nad) = (Some(network.to_string()), Ok(Some(nad.to_string())));
        let snapshot = NetworkSnapshot { network, nad, ..healthy() };
        let policy = Policy::parse(policy).unwrap();
        let chain = NetworkChain::follow(&id(), &snapshot, &policy, NOW.parse().unwrap());
        let found = &chain.step(Link::ResourceName).unwrap().findings;
        let prefix = found.iter().any(|found| found.message.contains("the operator's prefix is openshift.io"));
        assert_eq!((prefix, found.iter().any(|found| found.rule.id == RULE)), (is_reported, is_reported), "{found:#?}");
    }
}

#[test]
fn findings_on_a_network_have_their_link() {
    for (rule, link) in [
        ("network/namespace-absent", "namespace"),
        ("network/moves-to-nowhere", "namespace"),
        ("network/wedged", "operator"),
        ("audit/operator-silent", "operator"),
        ("network/claimed", "NAD"),
        ("audit/nad-absent", "NAD"),
        ("audit/stuck-deletion", "network"),
        ("network/no-policy", "node policy"),
        ("network/fragment", "rendering"),
        ("network/crd", "network"),
        ("sriov/vlan", "rendering"),
    ] {
        assert_eq!(link_of(rule).title(), link, "{rule}");
    }
}

/// A bridge gives a port to each pod; every other kind needs a device.
#[test]
fn only_a_bridge_needs_no_device() {
    for (kind, want) in [("OVSNetwork", LinkHealth::Good), ("SriovNetwork", LinkHealth::Waiting)] {
        let (mut network, mut nad) = (network(), nad());
        network["kind"] = json!(kind);
        nad["metadata"]["annotations"].as_object_mut().unwrap().remove("k8s.v1.cni.cncf.io/resourceName");
        let (network, nad) = (Some(network.to_string()), Ok(Some(nad.to_string())));
        let kind = NetworkKind::from_kind(kind).unwrap();
        let snapshot = NetworkSnapshot { network, nad, ..healthy() };
        let id = NetworkId { kind, ..id() };
        let chain = NetworkChain::follow(&id, &snapshot, &Policy::default(), NOW.parse().unwrap());
        assert_eq!(chain.step(Link::Pods).map(|step| step.state), Some(want), "{chain:#?}");
    }
}
