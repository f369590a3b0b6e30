mod links;

use serde_json::{Value, json};

use super::*;
use crate::policy::rules::audit::NAD_ABSENT;
use crate::policy::{FactLookup, NadFact, NamespaceState, NetworkCoverage, OperatorFact, Operators, Prefix};
use crate::resources::{LAST_NAMESPACE, NetworkKind, ObjectKey};

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
        "spec": { "config": r#"{"cniVersion":"1.0.0","name":"net","type":"sriov","resourceName":"openshift.io/cx7","vlan":5,"vlanQoS":0,"ipam":{},"logLevel":"info"}"# },
    })
}

/// A healthy cluster.
fn healthy() -> NetworkSnapshot {
    NetworkSnapshot {
        network: Some(network().to_string()),
        namespace: Ok(Some(NamespaceState::Active)),
        operators: Operators::Known([OperatorFact { namespace: "op".to_owned(), ..OperatorFact::default() }].into()),
        operator: Ok(Some(OperatorDeployment {
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
        policies: Ok(vec![NodePolicy {
            name: "p".to_owned(),
            resource_name: "cx7".to_owned(),
            ..NodePolicy::default()
        }]),
        states: Ok(vec![state("Succeeded")]),
        nodes: Ok(vec![node(&[("openshift.io/cx7", 4)]), node(&[])]),
        prefix: Some(Prefix { value: "openshift.io".to_owned(), assumed: false }),
        device_claims: Default::default(),
        programs: Ok(Vec::new()),
    }
}

fn node(devices: &[(&str, u64)]) -> ClusterNode {
    let allocatable = devices.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    ClusterNode { name: "n".to_owned(), allocatable, ..ClusterNode::default() }
}

fn state(sync: &str) -> NodeState {
    NodeState { node: "n".to_owned(), sync: sync.to_owned(), error: "no such device".to_owned() }
}

fn follow(snapshot: &NetworkSnapshot) -> NetworkChain {
    NetworkChain::follow(&id(), snapshot, &Policy::default(), NOW.parse().unwrap())
}

/// The links that are not ok.
fn others(chain: &NetworkChain) -> Vec<(&'static str, &'static str)> {
    let steps = chain.steps.iter().filter(|step| step.state != LinkHealth::Good);
    steps.map(|step| (step.link.title(), step.state.name())).collect()
}

/// Without a node policy, a DeviceClass may serve the resource (DRA).
#[test]
fn device_class_serves_the_resource() {
    let served = |resource: &str| {
        let mut index = crate::policy::ClaimIndex::default();
        let class = format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"c"}},"spec":{{"extendedResourceName":"{resource}"}}}}"#
        );
        index.add(&crate::resources::DeviceClaim::read_class(&class).unwrap());
        index.finish().into()
    };
    let none = NetworkSnapshot { policies: Ok(Vec::new()), nodes: Ok(vec![node(&[])]), ..healthy() };
    let chain = follow(&NetworkSnapshot { device_claims: served("openshift.io/cx7"), ..none.clone() });
    assert_eq!((others(&chain), chain.state()), (Vec::new(), LinkHealth::Good), "{chain:#?}");
    let says = |link| chain.step(link).unwrap().says.as_str();
    assert_eq!(says(Link::NodePolicy), "a DeviceClass serves `openshift.io/cx7` (DRA)");
    assert_eq!(
        says(Link::Pods),
        "pods that request `openshift.io/cx7` get a claim for a device of its DeviceClass (DRA)"
    );
    let chain = follow(&NetworkSnapshot { device_claims: served("openshift.io/cx8"), ..none });
    assert_eq!(others(&chain), [("node policy", "broken"), ("pods", "broken")], "{chain:#?}");
}

#[test]
fn healthy_chain_reports_the_device_of_a_pod() {
    let chain = follow(&healthy());
    assert_eq!((others(&chain), chain.state(), chain.steps.len()), (vec![], LinkHealth::Good, 8));
    let pods = chain.step(Link::Pods).unwrap();
    assert_eq!(pods.says, "1 of 2 nodes has 4 of `openshift.io/cx7` (n) for pods that request it and use apps/net");
    assert!(chain.steps.iter().all(|step| step.findings.is_empty() && step.help.is_none()));
}

#[test]
fn each_fault_is_reported_at_its_link() {
    type Change = Box<dyn Fn(&mut NetworkSnapshot)>;
    type Others = &'static [(&'static str, &'static str)];
    fn changed(text: Value, pointer: &str, value: Value) -> String {
        let mut object = text;
        *object.pointer_mut(pointer).unwrap() = value;
        object.to_string()
    }
    let table: Vec<(&str, Change, Others, LinkHealth)> = vec![
        (
            "the operator complains",
            Box::new(|snapshot| {
                let mut network = network();
                network["status"] =
                    json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "R", "message": "m" }] });
                snapshot.network = Some(network.to_string());
            }),
            &[("network", "broken")],
            LinkHealth::Broken,
        ),
        (
            "it is going away",
            Box::new(|snapshot| {
                let mut network = network();
                network["metadata"]["deletionTimestamp"] = json!(NOW);
                snapshot.network = Some(network.to_string());
            }),
            &[("network", "broken")],
            LinkHealth::Broken,
        ),
        (
            "a spec that cannot be rendered, and nothing there",
            Box::new(|snapshot| {
                let mut network = network();
                network["spec"]["ipam"] = json!("{\"type\":");
                snapshot.network = Some(network.to_string());
                snapshot.nad = Ok(None);
            }),
            &[("rendering", "broken"), ("NAD", "waiting"), ("resourceName", "waiting")],
            LinkHealth::Broken,
        ),
        (
            "no namespace",
            Box::new(|snapshot| {
                snapshot.namespace = Ok(None);
                snapshot.nad = Ok(None);
            }),
            &[("namespace", "broken"), ("NAD", "waiting"), ("resourceName", "waiting")],
            LinkHealth::Broken,
        ),
        (
            "a namespace that goes",
            Box::new(|snapshot| snapshot.namespace = Ok(Some(NamespaceState::Terminating))),
            &[("namespace", "broken")],
            LinkHealth::Broken,
        ),
        (
            "no operator",
            Box::new(|snapshot| {
                snapshot.operator = Ok(Some(OperatorDeployment {
                    namespace: "op".to_owned(),
                    deployment: "sriov-network-operator".to_owned(),
                    available: 0,
                }));
                snapshot.nad = Ok(None);
            }),
            &[("operator", "broken"), ("NAD", "waiting"), ("resourceName", "waiting")],
            LinkHealth::Broken,
        ),
        (
            "an operator that had time",
            Box::new(|snapshot| snapshot.nad = Ok(None)),
            &[("NAD", "broken"), ("resourceName", "waiting")],
            LinkHealth::Broken,
        ),
        (
            "an operator that has time",
            Box::new(|snapshot| {
                snapshot.network =
                    Some(changed(network(), "/metadata/creationTimestamp", json!("2026-11-01T08:01:29Z")));
                snapshot.nad = Ok(None);
            }),
            &[("NAD", "waiting"), ("resourceName", "waiting")],
            LinkHealth::Waiting,
        ),
        (
            "an operator that is stuck",
            Box::new(|snapshot| {
                let mut network = network();
                network["metadata"]["annotations"] = json!({ LAST_NAMESPACE: "" });
                snapshot.network = Some(network.to_string());
                snapshot.nad = Ok(None);
            }),
            &[("operator", "broken"), ("NAD", "broken"), ("resourceName", "waiting")],
            LinkHealth::Broken,
        ),
        (
            "somebody else's NAD",
            Box::new(|snapshot| {
                let owner = "OVSNetwork.sriovnetwork.openshift.io/op/net";
                let at = "/metadata/annotations/sriovnetwork.openshift.io~1owner-ref";
                snapshot.nad = Ok(Some(changed(nad(), at, json!(owner))));
            }),
            &[("NAD", "broken")],
            LinkHealth::Broken,
        ),
        (
            "a NAD of an older spec",
            Box::new(|snapshot| snapshot.network = Some(changed(network(), "/spec/vlan", json!(6)))),
            &[("NAD", "broken")],
            LinkHealth::Broken,
        ),
        (
            "a NAD without the annotation",
            Box::new(|snapshot| {
                let mut nad = nad();
                nad["metadata"]["annotations"].as_object_mut().unwrap().remove("k8s.v1.cni.cncf.io/resourceName");
                snapshot.nad = Ok(Some(nad.to_string()));
            }),
            &[("resourceName", "broken"), ("pods", "waiting")],
            LinkHealth::Broken,
        ),
        (
            "a NAD with the annotation alone",
            Box::new(|snapshot| {
                snapshot.nad = Ok(Some(nad().to_string().replace(r#"\"resourceName\":\"openshift.io/cx7\","#, "")));
            }),
            &[],
            LinkHealth::Good,
        ),
        (
            "no policy",
            Box::new(|snapshot| snapshot.policies = Ok(vec![])),
            &[("node policy", "broken")],
            LinkHealth::Broken,
        ),
        (
            "no devices",
            Box::new(|snapshot| snapshot.nodes = Ok(vec![node(&[])])),
            &[("pods", "broken")],
            LinkHealth::Broken,
        ),
        (
            "no devices yet",
            Box::new(|snapshot| {
                snapshot.nodes = Ok(vec![node(&[("openshift.io/cx7", 0)])]);
                snapshot.states = Ok(vec![state("InProgress")]);
            }),
            &[("pods", "waiting")],
            LinkHealth::Waiting,
        ),
        (
            "rights that are missing",
            Box::new(|snapshot| {
                let missing = || "missing permission".to_owned();
                snapshot.namespace = Err(missing());
                snapshot.operators = Operators::Unknown;
                snapshot.operator = Err(missing());
                snapshot.policies = Err(missing());
                snapshot.nodes = Err(missing());
                snapshot.claims = Err(missing());
            }),
            &[("namespace", "unknown"), ("operator", "unknown"), ("node policy", "unknown"), ("pods", "unknown")],
            LinkHealth::Good,
        ),
        (
            "the right that matters",
            Box::new(|snapshot| snapshot.nad = Err("the right to get it is missing".to_owned())),
            &[("NAD", "unknown"), ("resourceName", "unknown")],
            LinkHealth::Unknown,
        ),
        ("no network", Box::new(|snapshot| snapshot.network = None), &[("network", "broken")], LinkHealth::Broken),
    ];
    for (what, change, want, whole) in table {
        let mut snapshot = healthy();
        change(&mut snapshot);
        let chain = follow(&snapshot);
        assert_eq!((others(&chain), chain.state()), (want.to_vec(), whole), "{what}: {chain:#?}");
        agrees_with_the_audit(&snapshot, &chain, what);
        // Every broken link has a help text.
        for step in chain.steps.iter().filter(|step| step.state == LinkHealth::Broken && step.link != Link::Network) {
            assert!(step.help.is_some() || !step.findings.is_empty(), "{what}: {step:?}");
        }
    }
}

/// The facts that a full scan has about the network.
struct SnapshotLookup<'a> {
    network: NetworkFact,
    nad: Option<&'a StoredObject>,
    namespace: &'a Read<Option<NamespaceState>>,
}

impl FactLookup for SnapshotLookup<'_> {
    fn coverage(&self) -> NetworkCoverage {
        NetworkCoverage::Complete
    }

    fn networks_at(&self, _: &ObjectKey, _: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        vec![self.network.clone()]
    }

    fn nad(&self, _: &ObjectKey) -> Lookup<NadFact> {
        self.nad.map_or(Lookup::Absent, |nad| Lookup::Found(nad.nad_fact()))
    }

    fn namespace(&self, _: &str) -> Lookup<NamespaceState> {
        match self.namespace {
            Ok(state) => state.map_or(Lookup::Absent, Lookup::Found),
            Err(_) => Lookup::Unknown,
        }
    }
}

/// Audits the network as a full scan does: doctor reports a missing or stale NAD if and only if the audit does.
fn agrees_with_the_audit(snapshot: &NetworkSnapshot, chain: &NetworkChain, what: &str) {
    let Some(stored) = snapshot.network.as_deref().and_then(StoredObject::of) else { return };
    let Ok(nad) = snapshot.nad.as_ref().map(|text| text.as_deref().and_then(StoredObject::of)) else { return };
    let object = Object::read(&stored.text).unwrap().unwrap();
    let Object::Network(network) = &object else { panic!("{what}") };
    let context = AuditContext {
        now: NOW.parse().unwrap(),
        operators: snapshot.operators.clone(),
        prefix: snapshot.prefix.clone(),
        is_operator_running: snapshot.operator.clone().ok().flatten().map(|operator| operator.available > 0),
        ..AuditContext::default()
    };
    let lookup =
        SnapshotLookup { network: NetworkFact::of(network), nad: nad.as_ref(), namespace: &snapshot.namespace };
    let of = NetworkContext {
        nad: nad.as_ref().map_or(Lookup::Absent, Lookup::Found),
        waiting: 1,
        ..NetworkContext::default()
    };
    let verdict = context.network((&object, network, &stored.object_meta), of, &lookup, &Policy::default());
    let about_nad = |findings: &[Finding]| -> Vec<String> {
        let about = findings.iter().filter(|finding| [&NAD_ABSENT, &NAD_DRIFT].contains(&finding.rule));
        about.map(|finding| finding.message.clone()).collect()
    };
    let step = chain.step(Link::Nad).unwrap();
    let found = about_nad(&verdict.findings);
    assert_eq!(about_nad(&step.findings), found, "{what}");
    if !found.is_empty() {
        assert!(step.state > LinkHealth::Unknown && chain.state() == LinkHealth::Broken, "{what}: {chain:#?}");
    }
}

#[test]
fn findings_are_attached_to_their_link() {
    let mut snapshot = healthy();
    snapshot.policies =
        Ok(vec![NodePolicy { name: "p".to_owned(), resource_name: "cx8".to_owned(), ..NodePolicy::default() }]);
    snapshot.namespace = Ok(None);
    snapshot.states = Ok(vec![state("Failed")]);
    let chain = follow(&snapshot);
    let rules = |link| chain.step(link).unwrap().findings.iter().map(|finding| finding.rule.id).collect::<Vec<_>>();
    assert_eq!(rules(Link::Namespace), ["network/namespace-absent"]);
    assert_eq!(rules(Link::NodePolicy), ["network/no-policy"]);
    snapshot.policies =
        Ok(vec![NodePolicy { name: "p".to_owned(), resource_name: "cx7".to_owned(), ..NodePolicy::default() }]);
    let chain = follow(&snapshot);
    let says = &chain.step(Link::NodePolicy).unwrap().says;
    assert_eq!(says, "p offers `cx7`; 1 of 1 nodes failed to apply policies (node n: no such device)");
}
