use serde_json::{Value, json};

use super::*;
use crate::resources::NetworkKind;

/// A minute and a half before the time of the tests.
const LONG_AGO: &str = "2026-11-01T08:00:00Z";
const NOW: &str = "2026-11-01T08:01:30Z";

fn id() -> NetworkId {
    NetworkId { kind: NetworkKind::Sriov, namespace: "op".to_owned(), name: "net".to_owned() }
}

fn network() -> Value {
    json!({
        "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork",
        "metadata": { "name": "net", "namespace": "op", "creationTimestamp": LONG_AGO },
        "spec": { "resourceName": "cx7", "networkNamespace": "apps", "vlan": 5 },
    })
}

fn nad() -> Value {
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "net", "namespace": "apps", "annotations": {
            "k8s.v1.cni.cncf.io/resourceName": "openshift.io/cx7",
            "sriovnetwork.openshift.io/owner-ref": "SriovNetwork.sriovnetwork.openshift.io/op/net",
        } },
        "spec": { "config": r#"{"cniVersion":"1.0.0","name":"net","type":"sriov","resourceName":"openshift.io/cx7","vlan":5,"vlanQoS":0,"ipam":{}}"# },
    })
}

/// A cluster in which all is well.
fn well() -> Sight {
    Sight {
        network: Some(network().to_string()),
        namespace: Ok(Some(NamespaceState::Active)),
        operator: Ok(Some(Operator {
            namespace: "op".to_owned(),
            deployment: "sriov-network-operator".to_owned(),
            available: 1,
        })),
        nad: Ok(Some(nad().to_string())),
        last_nad: Lookup::Unknown,
        claims: Ok(vec![NetworkFact {
            id: id(),
            target_namespace: "apps".to_owned(),
            resource_name: "cx7".to_owned(),
        }]),
        policies: Ok(vec![NodePolicy { name: "p".to_owned(), resource_name: "cx7".to_owned() }]),
        states: Ok(vec![state("Succeeded")]),
        nodes: Ok(vec![node(&[("openshift.io/cx7", 4)]), node(&[])]),
        prefix: Some(Prefix { value: "openshift.io".to_owned(), assumed: false }),
    }
}

fn node(devices: &[(&str, u64)]) -> Node {
    let allocatable = devices.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Node { name: "n".to_owned(), allocatable }
}

fn state(sync: &str) -> NodeState {
    NodeState { node: "n".to_owned(), sync: sync.to_owned(), error: "no such device".to_owned() }
}

fn follow(sight: &Sight) -> Chain {
    Chain::follow(&id(), sight, &Policy::default(), NOW.parse().unwrap())
}

/// The links that are not good.
fn others(chain: &Chain) -> Vec<(&'static str, &'static str)> {
    let steps = chain.steps.iter().filter(|step| step.state != State::Good);
    steps.map(|step| (step.link.title(), step.state.name())).collect()
}

#[test]
fn a_chain_that_holds_says_what_a_pod_gets() {
    let chain = follow(&well());
    assert_eq!((others(&chain), chain.state(), chain.steps.len()), (vec![], State::Good, 8));
    let pods = chain.step(Link::Pods).unwrap();
    assert_eq!(pods.says, "1 of 2 nodes has 4 of `openshift.io/cx7` (n) for pods that ask for one and name apps/net");
    assert!(chain.steps.iter().all(|step| step.findings.is_empty() && step.help.is_none()));
}

#[test]
fn each_link_breaks_where_it_breaks() {
    type Change = Box<dyn Fn(&mut Sight)>;
    type Others = &'static [(&'static str, &'static str)];
    fn changed(text: Value, pointer: &str, value: Value) -> String {
        let mut object = text;
        *object.pointer_mut(pointer).unwrap() = value;
        object.to_string()
    }
    let table: Vec<(&str, Change, Others, State)> = vec![
        (
            "the operator complains",
            Box::new(|sight| {
                let mut network = network();
                network["status"] =
                    json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "R", "message": "m" }] });
                sight.network = Some(network.to_string());
            }),
            &[("network", "broken")],
            State::Broken,
        ),
        (
            "it is going away",
            Box::new(|sight| {
                let mut network = network();
                network["metadata"]["deletionTimestamp"] = json!(NOW);
                sight.network = Some(network.to_string());
            }),
            &[("network", "broken")],
            State::Broken,
        ),
        (
            "a spec that cannot be rendered, and nothing there",
            Box::new(|sight| {
                let mut network = network();
                network["spec"]["ipam"] = json!("{\"type\":");
                sight.network = Some(network.to_string());
                sight.nad = Ok(None);
            }),
            &[("rendering", "broken"), ("NAD", "waiting"), ("resourceName", "waiting")],
            State::Broken,
        ),
        (
            "no namespace",
            Box::new(|sight| {
                sight.namespace = Ok(None);
                sight.nad = Ok(None);
            }),
            &[("namespace", "broken"), ("NAD", "waiting"), ("resourceName", "waiting")],
            State::Broken,
        ),
        (
            "a namespace that goes",
            Box::new(|sight| sight.namespace = Ok(Some(NamespaceState::Terminating))),
            &[("namespace", "broken")],
            State::Broken,
        ),
        (
            "no operator",
            Box::new(|sight| {
                sight.operator = Ok(Some(Operator {
                    namespace: "op".to_owned(),
                    deployment: "sriov-network-operator".to_owned(),
                    available: 0,
                }));
                sight.nad = Ok(None);
            }),
            &[("operator", "broken"), ("NAD", "waiting"), ("resourceName", "waiting")],
            State::Broken,
        ),
        (
            "an operator that had time",
            Box::new(|sight| sight.nad = Ok(None)),
            &[("NAD", "broken"), ("resourceName", "waiting")],
            State::Broken,
        ),
        (
            "an operator that has time",
            Box::new(|sight| {
                sight.network = Some(changed(network(), "/metadata/creationTimestamp", json!("2026-11-01T08:01:29Z")));
                sight.nad = Ok(None);
            }),
            &[("NAD", "waiting"), ("resourceName", "waiting")],
            State::Waiting,
        ),
        (
            "an operator that is stuck",
            Box::new(|sight| {
                let mut network = network();
                network["metadata"]["annotations"] = json!({ LAST_NAMESPACE: "" });
                sight.network = Some(network.to_string());
                sight.nad = Ok(None);
            }),
            &[("operator", "broken"), ("NAD", "broken"), ("resourceName", "waiting")],
            State::Broken,
        ),
        (
            "somebody else's NAD",
            Box::new(|sight| {
                let owner = "OVSNetwork.sriovnetwork.openshift.io/op/net";
                let at = "/metadata/annotations/sriovnetwork.openshift.io~1owner-ref";
                sight.nad = Ok(Some(changed(nad(), at, json!(owner))));
            }),
            &[("NAD", "broken")],
            State::Broken,
        ),
        (
            "a NAD of an older spec",
            Box::new(|sight| sight.network = Some(changed(network(), "/spec/vlan", json!(6)))),
            &[("NAD", "broken")],
            State::Broken,
        ),
        (
            "a NAD without the annotation",
            Box::new(|sight| {
                let mut nad = nad();
                nad["metadata"]["annotations"].as_object_mut().unwrap().remove("k8s.v1.cni.cncf.io/resourceName");
                sight.nad = Ok(Some(nad.to_string()));
            }),
            &[("resourceName", "broken"), ("pods", "waiting")],
            State::Broken,
        ),
        (
            "a NAD with the annotation alone",
            Box::new(|sight| {
                sight.nad = Ok(Some(nad().to_string().replace(r#"\"resourceName\":\"openshift.io/cx7\","#, "")));
            }),
            &[],
            State::Good,
        ),
        ("no policy", Box::new(|sight| sight.policies = Ok(vec![])), &[("node policy", "broken")], State::Broken),
        ("no devices", Box::new(|sight| sight.nodes = Ok(vec![node(&[])])), &[("pods", "broken")], State::Broken),
        (
            "no devices yet",
            Box::new(|sight| {
                sight.nodes = Ok(vec![node(&[("openshift.io/cx7", 0)])]);
                sight.states = Ok(vec![state("InProgress")]);
            }),
            &[("pods", "waiting")],
            State::Waiting,
        ),
        (
            "rights that are missing",
            Box::new(|sight| {
                let missing = || "the right to look is missing".to_owned();
                sight.namespace = Err(missing());
                sight.operator = Err(missing());
                sight.policies = Err(missing());
                sight.nodes = Err(missing());
                sight.claims = Err(missing());
            }),
            &[("namespace", "unknown"), ("operator", "unknown"), ("node policy", "unknown"), ("pods", "unknown")],
            State::Good,
        ),
        (
            "the right that matters",
            Box::new(|sight| sight.nad = Err("the right to get it is missing".to_owned())),
            &[("NAD", "unknown"), ("resourceName", "unknown")],
            State::Unknown,
        ),
        ("no network", Box::new(|sight| sight.network = None), &[("network", "broken")], State::Broken),
    ];
    for (what, change, want, whole) in table {
        let mut sight = well();
        change(&mut sight);
        let chain = follow(&sight);
        assert_eq!((others(&chain), chain.state()), (want.to_vec(), whole), "{what}: {chain:#?}");
        // Whatever is broken, somebody is told what to do.
        for step in chain.steps.iter().filter(|step| step.state == State::Broken && step.link != Link::Network) {
            assert!(step.help.is_some() || !step.findings.is_empty(), "{what}: {step:?}");
        }
    }
}

#[test]
fn findings_stand_at_the_link_that_they_concern() {
    let mut sight = well();
    sight.policies = Ok(vec![NodePolicy { name: "p".to_owned(), resource_name: "cx8".to_owned() }]);
    sight.namespace = Ok(None);
    sight.states = Ok(vec![state("Failed")]);
    let chain = follow(&sight);
    let rules = |link| chain.step(link).unwrap().findings.iter().map(|finding| finding.rule.id).collect::<Vec<_>>();
    assert_eq!(rules(Link::Namespace), ["network/namespace-absent"]);
    assert_eq!(rules(Link::NodePolicy), ["network/no-policy"]);
    sight.policies = Ok(vec![NodePolicy { name: "p".to_owned(), resource_name: "cx7".to_owned() }]);
    let chain = follow(&sight);
    let says = &chain.step(Link::NodePolicy).unwrap().says;
    assert_eq!(says, "p offers `cx7`; 1 of 1 nodes failed to apply policies (node n: no such device)");
}
