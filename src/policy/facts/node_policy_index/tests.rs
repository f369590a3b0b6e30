use super::*;
use crate::resources::Object;

fn fact(name: &str, spec: &str) -> Arc<NodePolicyFact> {
    let json = format!(
        r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkNodePolicy","metadata":{{"name":"{name}","namespace":"op"}},
        "spec":{{"resourceName":"cx7","numVfs":8,{spec}}}}}"#
    );
    match Object::read(&json).unwrap().unwrap() {
        Object::NodePolicy(policy) => NodePolicyFact::of(&policy).into(),
        _ => panic!("{json}"),
    }
}

fn node(node: &str, names: &[&str]) -> NodeInterfaces {
    let pf = |(at, name): (usize, &&str)| PhysicalFunction {
        name: (*name).into(),
        pci_address: format!("0000:3b:00.{at}").into(),
        ..PhysicalFunction::default()
    };
    NodeInterfaces { namespace: "op".into(), node: node.into(), pfs: names.iter().enumerate().map(pf).collect() }
}

fn shared(own: &str, other: &str, states: NodeStates) -> Vec<String> {
    let (own, other) = (fact("own", own), fact("other", other));
    let index = NodePolicyIndex::new(vec![Arc::clone(&own), other], states);
    let place = |shared: SharedPf| format!("{} {}", shared.pf, shared.node.unwrap_or_default());
    index.neighbours(&own).pfs.into_iter().map(place).collect()
}

const ADDRESS: &str = r#""nicSelector":{"rootDevices":["0000:3b:00.0"]}"#;
const NAME: &str = r#""nicSelector":{"pfNames":["ens1"]}"#;

/// The labels of nodes are not known: what one node shows holds only if no node shows another thing.
#[test]
fn node_states_show_which_pf_is_meant() {
    let on = |nodes: &[NodeInterfaces]| {
        let mut states = NodeStates::default();
        nodes.iter().cloned().for_each(|node| states.add(node));
        states
    };
    assert_eq!(shared(ADDRESS, NAME, NodeStates::default()), [] as [&str; 0]);
    let alike = on(&[node("w2", &["ens1"]), node("w1", &["ens1"])]);
    assert_eq!(alike.nodes.len(), 1, "nodes with the same PFs are kept once");
    assert_eq!(shared(ADDRESS, NAME, alike), ["ens1 w1"]);
    let others = on(&[node("w1", &["ens1"]), node("w2", &["ens2"])]);
    assert_eq!(shared(ADDRESS, NAME, others.clone()), ["ens1 w1"], "wherever there is an ens1, it has this address");
    let swapped = on(&[node("w1", &["ens1", "ens2"]), node("w2", &["ens2", "ens1"])]);
    assert_eq!(shared(ADDRESS, NAME, swapped.clone()), [] as [&str; 0]);
    let host = |policy: &str| format!(r#"{policy},"nodeSelector":{{"kubernetes.io/hostname":"w1"}}"#);
    assert_eq!(shared(&host(ADDRESS), &host(NAME), swapped), ["ens1 w1"]);
    // Of these two, the address is on more nodes than the label selects: that there is an ens1 on those is not known.
    let labelled = format!(r#"{ADDRESS},"nodeSelector":{{"a":"b"}}"#);
    assert_eq!(shared(&labelled, NAME, others), [] as [&str; 0]);
}

#[test]
fn states_are_bounded() {
    let mut states = NodeStates::default();
    for number in 0..=MAX_NODES {
        states.add(node("w1", &["ens1", &format!("n{number}")]));
    }
    assert_eq!((states.nodes.len(), states.is_cut), (MAX_NODES, true));
    assert_eq!(shared(ADDRESS, NAME, states.clone()), [] as [&str; 0], "something may differ on the others");
    let mut merged = NodeStates::default();
    merged.merge(states);
    assert!(merged.is_cut);
    let mut wide = NodeStates::default();
    wide.add(node("w1", &vec!["ens1"; MAX_PFS + 1]));
    assert!(wide.is_cut && wide.nodes.is_empty());
}

#[test]
fn neighbours_are_bounded_and_of_one_namespace() {
    let policies: Vec<_> = (0..200).map(|number| fact(&format!("p{number:03}"), NAME)).collect();
    let own = Arc::clone(&policies[0]);
    let index = NodePolicyIndex::new(policies, NodeStates::default());
    let found = index.neighbours(&own);
    assert_eq!((found.pfs.len(), found.same_resource.len()), (MAX_NEIGHBOURS, MAX_NEIGHBOURS));
    assert!(found.pfs.iter().all(|shared| shared.other.key != own.key));
    let elsewhere = NodePolicyFact { key: ObjectKey::new("other", "p"), ..NodePolicyFact::clone(&own) };
    assert_eq!(index.neighbours(&elsewhere), NodePolicyNeighbours::default());
}

#[test]
fn of_two_different_policies_with_one_key_nothing_is_known() {
    let (low, high) = (fact("low", NAME), fact("high", NAME));
    let index = |all: &[&Arc<NodePolicyFact>]| {
        NodePolicyIndex::new(all.iter().map(|policy| Arc::clone(policy)).collect(), NodeStates::default())
    };
    let other_high = fact("high", ADDRESS);
    assert_eq!(index(&[&low, &high, &high]).neighbours(&low).pfs.len(), 1, "the same manifest twice");
    assert_eq!(index(&[&low, &high, &other_high]).neighbours(&low).pfs.len(), 0);
    assert_eq!(index(&[&low, &high, &other_high]).neighbours(&high).pfs.len(), 0);
    let ignored = fact("default", NAME);
    assert_eq!(index(&[&low, &ignored]).neighbours(&low).pfs.len(), 0);
}

#[test]
fn link_types_are_counted_where_policies_count() {
    let policies = vec![
        fact("a", r#""linkType":"IB""#),
        fact("b", r#""linkType":"ib""#),
        fact("c", r#""linkType":"ETH""#),
        fact("d", r#""linkType":"eth","deviceType":"vfio-pci""#),
        fact("e", r#""isRdma":true"#),
    ];
    let index = NodePolicyIndex::new(policies, NodeStates::default());
    let found = index.link_types("cx7", &|_| true);
    assert_eq!((found.policies, found.infiniband.count, found.ethernet.count), (5, 2, 1));
    assert_eq!(found.infiniband.first, Some(ObjectKey::new("op", "a")));
    for found in [index.link_types("cx7", &|namespace| namespace != "op"), index.link_types("cx8", &|_| true)] {
        assert_eq!(found, OfferedLinkTypes::default());
    }
}

/// Which of two different manifests counts is not known, so each may offer the resource.
#[test]
fn ambiguous_policies_count_as_offering() {
    let policies = [("a", "IB"), ("b", "IB"), ("b", "ETH")];
    let policies = policies.map(|(name, link)| fact(name, &format!(r#""linkType":"{link}",{NAME}"#)));
    let index = NodePolicyIndex::new(policies.to_vec(), NodeStates::default());
    let found = index.link_types("cx7", &|_| true);
    assert_eq!((found.policies, found.infiniband.count, found.ethernet.count), (3, 2, 1));
    assert_eq!(index.neighbours(&policies[0]), NodePolicyNeighbours::default());
}
