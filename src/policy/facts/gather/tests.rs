use super::*;
use crate::policy::{OperatorFact, Operators};
use crate::resources::NetworkKind;

/// Knows everything, and has a given number of networks.
struct Everything(NetworkCoverage, usize);

fn network_fact(namespace: &str) -> NetworkFact {
    let id = NetworkId { kind: NetworkKind::Sriov, namespace: namespace.to_owned(), name: "net".to_owned() };
    NetworkFact { id, target_namespace: "apps".to_owned(), resource_name: "cx7".to_owned() }
}

impl FactLookup for Everything {
    fn coverage(&self) -> NetworkCoverage {
        self.0
    }

    fn networks_at(&self, nad: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        assert_eq!(*nad, ObjectKey::new("apps", "net"));
        // Networks of other namespaces come first.
        let strangers = (0..self.1).map(|number| network_fact(&format!("tenant-{number}")));
        strangers.chain([network_fact("op")]).filter(|network| renders(network)).collect()
    }

    fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        Lookup::Found(network_fact(&id.namespace))
    }

    fn nad(&self, _: &ObjectKey) -> Lookup<NadFact> {
        Lookup::Absent
    }

    fn last_nad(&self, key: &ObjectKey) -> Lookup<()> {
        assert_eq!(*key, ObjectKey::new("before", "net"));
        Lookup::Found(())
    }

    fn namespace(&self, _: &str) -> Lookup<NamespaceState> {
        Lookup::Found(NamespaceState::Active)
    }

    fn offered(&self) -> Option<Arc<[String]>> {
        Some(["cx7".to_owned()].into())
    }

    fn unreachable(&self) -> Vec<String> {
        vec!["pods".to_owned()]
    }
}

fn gather(json: &str, lookup: &dyn FactLookup) -> Facts {
    let operator = OperatorFact { namespace: "op".to_owned(), ..OperatorFact::default() };
    let operators = Operators::Known([operator].into());
    let base = Facts { operators, names: NameVisibility::Own(Vec::new()), ..Facts::default() };
    base.gather(&Object::read(json).unwrap().unwrap(), lookup, &Policy::default())
}

fn nad(owner: &str) -> String {
    format!(
        r#"{{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{{"name":"net","namespace":"apps",
        "annotations":{{"sriovnetwork.openshift.io/owner-ref":"{owner}"}}}}}}"#
    )
}

fn network(namespace: &str, name: &str, last: &str) -> String {
    format!(
        r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{{"name":"{name}","namespace":"{namespace}",
        "annotations":{{"operator.sriovnetwork.openshift.io/last-network-namespace":"{last}"}}}},
        "spec":{{"resourceName":"cx7","networkNamespace":"apps"}}}}"#
    )
}

#[test]
fn networks_of_a_nad_are_used_as_far_as_they_are_known() {
    for (coverage, here, claimants, knows) in [
        (NetworkCoverage::Unknown, 0, None, false),
        (NetworkCoverage::Partial, 1, None, false),
        (NetworkCoverage::Cached, 0, Some(1), false),
        (NetworkCoverage::Complete, 1, None, true),
    ] {
        let facts = gather(&nad(""), &Everything(coverage, 0));
        let found = (facts.networks_here.len(), facts.claimants.as_ref().map(Vec::len), facts.knows_networks);
        assert_eq!(found, (here, claimants, knows), "{coverage:?}");
        assert_eq!(facts.named_owner, Lookup::Unknown, "it names no owner");
    }
    let named = gather(&nad("SriovNetwork.sriovnetwork.openshift.io/op/net"), &Everything(NetworkCoverage::Unknown, 0));
    assert_eq!(named.named_owner, Lookup::Found(network_fact("op")));
}

/// Every user may create networks that target another namespace; they must not crowd out the operator's.
#[test]
fn networks_that_are_not_rendered_do_not_count() {
    for coverage in [NetworkCoverage::Cached, NetworkCoverage::Complete] {
        let facts = gather(&nad(""), &Everything(coverage, 100));
        let known = if coverage == NetworkCoverage::Cached { facts.claimants.unwrap() } else { facts.networks_here };
        assert_eq!(known, [network_fact("op")]);
    }
    assert_eq!(gather(&network("op", "net", ""), &Everything(NetworkCoverage::Cached, 100)).networks_here.len(), 1);
}

#[test]
fn a_network_gets_the_facts_about_its_target() {
    let lookup = Everything(NetworkCoverage::Cached, 0);
    let facts = gather(&network("op", "net", "before"), &lookup);
    assert_eq!((facts.target_namespace, facts.nad_here), (Lookup::Found(NamespaceState::Active), Lookup::Absent));
    assert_eq!((facts.networks_here, facts.last_nad), (vec![network_fact("op")], Lookup::Found(())));
    assert_eq!(
        (facts.offered.as_deref(), facts.unreachable),
        (Some(["cx7".to_owned()].as_slice()), vec!["pods".to_owned()])
    );

    let stayed = gather(&network("op", "net", "apps"), &lookup);
    assert_eq!(stayed.last_nad, Lookup::Unknown);

    let unnamed = gather(&network("op", "", ""), &lookup);
    assert_eq!((unnamed.nad_here, unnamed.networks_here), (Lookup::Unknown, Vec::new()));
    assert_eq!(unnamed.target_namespace, Lookup::Found(NamespaceState::Active));

    let foreign = gather(&network("tenant", "net", "before"), &lookup);
    assert_eq!((foreign.target_namespace, foreign.nad_here), (Lookup::Unknown, Lookup::Unknown));
    assert!(foreign.networks_here.is_empty() && foreign.offered.is_none() && foreign.unreachable.is_empty());
    assert_eq!(foreign.last_nad, Lookup::Unknown);
}

#[test]
fn facts_read_for_a_review_are_added() {
    let prefix = Prefix { value: "a.io".to_owned(), assumed: true };
    let found = || Lookup::Found(network_fact("op"));
    let owned = Facts::default().with_owner(found(), Some(prefix.clone()));
    assert_eq!((&owned.named_owner, &owned.prefix, owned.knows_networks), (&found(), &Some(prefix), false));
    let all = owned.clone().with_networks(vec![network_fact("op")], None);
    assert_eq!((all.networks_here.len(), all.knows_networks, all.prefix.is_none()), (1, true, true));
    assert_eq!(owned.clone().with_last_nad(Lookup::Absent).last_nad, Lookup::Absent);
    let claimed = owned.clone().with_claimants(vec![network_fact("op")], Lookup::Absent);
    assert_eq!((claimed.claimants.map(|all| all.len()), claimed.claimants_read), (Some(1), true));
    assert_eq!(claimed.named_owner, Lookup::Absent);
    let names = NameVisibility::Own(Vec::new());
    assert_eq!(owned.with_names(names.clone()).names, names);
}

#[test]
fn without_a_source_nothing_is_known() {
    let facts = gather(&network("op", "net", "before"), &());
    assert_eq!((facts.target_namespace, facts.nad_here, facts.last_nad), Default::default());
    assert_eq!((facts.offered, facts.unreachable.len(), facts.networks_here.len()), (None, 0, 0));
    let facts = gather(&nad("SriovNetwork.sriovnetwork.openshift.io/op/net"), &());
    assert_eq!((facts.named_owner, facts.claimants, facts.knows_networks), (Lookup::Unknown, None, false));
}

/// What was read replaces what the caches knew: a NAD that is gone, is being deleted or says nothing any more matters no more.
#[test]
fn neighbours_that_were_read_replace_those_that_were_known() {
    let of = |name: &str, config: &str| {
        let json = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": name, "namespace": "apps" }, "spec": { "config": config },
        })
        .to_string();
        let Ok(Some(Object::Nad(nad))) = Object::read(&json) else { panic!("{json}") };
        NetworkUse::of(&nad)
    };
    const SLICES: &str =
        r#"{"cniVersion":"1.0.0","name":"n","type":"macvlan","ipam":{"type":"whereabouts","range":"10.0.0.0/16"}}"#;
    let key = |name: &str| ObjectKey::new("apps", name);
    let known = ["changed", "gone", "kept", "said"]
        .map(|name| Arc::new(NeighbourFact { key: key(name), network: None, summary: of(name, SLICES) }));
    let facts = Facts { neighbours: known.to_vec(), ..Facts::default() };
    let changed = of("changed", &SLICES.replace("10.0", "10.1"));
    let read =
        vec![(key("said"), Some(of("said", "{}"))), (key("changed"), Some(changed.clone())), (key("gone"), None)];
    let facts = facts.with_neighbours(read);
    let names: Vec<_> = facts.neighbours.iter().map(|other| other.key.name()).collect();
    assert_eq!(names, ["changed", "kept"]);
    assert_eq!(facts.neighbours[0].summary, changed);
    assert_eq!(facts.certain_neighbours, BTreeSet::from([key("changed")]));
}
