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
        let policy = |number| NodePolicy { name: format!("p{number}"), resource_name: "cx7".to_owned() };
        snapshot.policies = Ok((0..5).map(policy).collect());
        snapshot.nodes = Ok(vec![node(&[("openshift.io/cx7", 4)]), node(&[("openshift.io/cx7", 3)])]);
    };
    assert!(says(&many, Link::NodePolicy).contains(" and 2 more offers `cx7`"), "{}", says(&many, Link::NodePolicy));
    assert!(says(&many, Link::Pods).starts_with("2 of 2 nodes have 7 of `openshift.io/cx7` (n, n)"));
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
