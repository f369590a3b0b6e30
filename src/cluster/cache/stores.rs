//! The stores of namespaces, node policies, NADs and operator objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::cluster::cache::prefix;
use crate::cluster::cache::watch::Summarize;
use crate::cluster::client::collection::{ApiObject, members};
use crate::deploy::EXEMPT;
use crate::policy::{
    Lookup, NadFact, NadSummary, NamespaceState, NeighbourFact, NeighbourIndex, NetworkUse, NodePolicyFact,
    NodePolicyIndex, NodeStates, similar_name,
};
use crate::resources::{NetworkId, NetworkNodePolicy, Object, ObjectKey};

/// The summary of an object in no namespace.
pub(in crate::cluster) trait NamedSummary: Send + Sync + Sized + 'static {
    /// Summarizes an object; `None` if it cannot be read.
    fn read(object: &ApiObject<'_>) -> Option<Self>;
}

/// Objects in no namespace, by name.
#[derive(Debug)]
pub(in crate::cluster) struct NamedStore<S>(HashMap<Box<str>, S>);

impl<S> Default for NamedStore<S> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<S: NamedSummary> Summarize for NamedStore<S> {
    type Summarized = S;

    fn read(object: &ApiObject<'_>) -> Option<S> {
        S::read(object)
    }

    fn put(&mut self, key: &ObjectKey, fact: S) {
        self.0.insert(key.name().into(), fact);
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key.name());
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

/// The namespaces.
pub(in crate::cluster) type NamespaceStore = NamedStore<NamespaceSummary>;

/// A namespace.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cluster) struct NamespaceSummary {
    pub(in crate::cluster) state: NamespaceState,
    /// Whether it is exempt by label.
    is_exempt: bool,
}

impl NamespaceStore {
    pub(in crate::cluster) fn find(&self, name: &str) -> Lookup<NamespaceState> {
        self.0.get(name).map_or(Lookup::Absent, |namespace| Lookup::Found(namespace.state))
    }

    /// How many are exempt.
    pub(in crate::cluster) fn exempt(&self) -> usize {
        self.0.values().filter(|namespace| namespace.is_exempt).count()
    }
}

impl NamedSummary for NamespaceSummary {
    fn read(object: &ApiObject<'_>) -> Option<Self> {
        let label = members(&object.meta, "labels").and_then(|labels| labels.text(EXEMPT).value());
        let is_leaving = object.meta.raw("deletionTimestamp").is_some();
        let state = if is_leaving { NamespaceState::Terminating } else { NamespaceState::Active };
        Some(Self { state, is_exempt: label.as_deref() == Some("true") })
    }
}

/// The node policies.
#[derive(Debug, Default)]
pub(in crate::cluster) struct NodePolicyStore {
    policies: BTreeMap<ObjectKey, Arc<NodePolicyFact>>,
    /// The resource names that they offer, computed on first use after a change.
    offered: OnceLock<Arc<[String]>>,
    /// The same policies for lookups, computed likewise.
    index: OnceLock<Arc<NodePolicyIndex>>,
}

impl NodePolicyStore {
    pub(in crate::cluster) fn offered(&self) -> Arc<[String]> {
        let make = || {
            let names = self.policies.values().map(|policy| policy.resource_name.to_string());
            let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
            names.sort_unstable();
            names.dedup();
            names.into()
        };
        Arc::clone(self.offered.get_or_init(make))
    }

    /// The policies for lookups. The caches have no node states: see there.
    pub(in crate::cluster) fn index(&self) -> Arc<NodePolicyIndex> {
        Arc::clone(self.index.get_or_init(|| self.indexed(NodeStates::default()).into()))
    }

    /// The same with the states of the nodes.
    pub(in crate::cluster) fn indexed(&self, states: NodeStates) -> NodePolicyIndex {
        NodePolicyIndex::new(self.policies.values().cloned().collect(), states)
    }
}

impl Summarize for NodePolicyStore {
    type Summarized = Arc<NodePolicyFact>;

    /// A policy with an invalid resourceName offers nothing, like one without.
    fn read(object: &ApiObject<'_>) -> Option<Self::Summarized> {
        NetworkNodePolicy::of_list(object.text).map(|policy| NodePolicyFact::of(&policy).into())
    }

    fn put(&mut self, key: &ObjectKey, fact: Self::Summarized) {
        self.policies.insert(key.clone(), fact);
        (self.offered, self.index) = Default::default();
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.policies.remove(key);
        (self.offered, self.index) = Default::default();
    }

    fn count(&self) -> usize {
        self.policies.len()
    }
}

/// The owner of each NAD, in the compact form of the operator's annotation, what pods need to know about it, and what the NADs mean to
/// each other. In the order of the keys, so that those of a namespace are together.
#[derive(Debug, Default)]
pub(in crate::cluster) struct NadStore {
    nads: BTreeMap<ObjectKey, (Option<Box<str>>, NadSummary)>,
    neighbours: NeighbourIndex,
}

/// The name of a stored object in the same namespace that is nearly the same.
pub(in crate::cluster) fn similar_key<V>(stored: &BTreeMap<ObjectKey, V>, key: &ObjectKey) -> Option<String> {
    let from = ObjectKey::new(key.namespace(), "");
    let here = stored.range(from..).map(|(key, _)| key).take_while(|other| other.namespace() == key.namespace());
    similar_name(key.name(), here.map(ObjectKey::name)).map(str::to_owned)
}

/// A NAD as it is stored.
#[derive(Debug)]
pub(in crate::cluster) struct StoredNad {
    owner: Option<Box<str>>,
    summary: NadSummary,
    network_use: NetworkUse,
}

impl NadStore {
    pub(in crate::cluster) fn find(&self, key: &ObjectKey) -> Lookup<NadFact> {
        let fact = |(owner, summary): &(Option<Box<str>>, NadSummary)| NadFact {
            owner: owner.as_deref().and_then(NetworkId::parse),
            summary: summary.clone(),
        };
        self.nads.get(key).map_or(Lookup::Absent, |nad| Lookup::Found(fact(nad)))
    }

    /// The NAD in the same namespace whose name is nearly the same.
    pub(in crate::cluster) fn similar(&self, key: &ObjectKey) -> Option<String> {
        similar_key(&self.nads, key)
    }

    /// The NADs that matter to one with this key and use.
    pub(in crate::cluster) fn neighbours(&self, key: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        self.neighbours.neighbours(key, own)
    }

    /// The keys of those that matter to a stored NAD.
    pub(in crate::cluster) fn neighbour_keys(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        self.neighbours.neighbour_keys(key)
    }
}

impl Summarize for NadStore {
    type Summarized = StoredNad;

    fn read(object: &ApiObject<'_>) -> Option<StoredNad> {
        match object.typed() {
            Some(Object::Nad(nad)) => {
                let owner = nad.meta.owner().map(|owner| owner.owner_ref().into());
                Some(StoredNad { owner, summary: NadSummary::of(nad), network_use: NetworkUse::of(nad) })
            }
            _ => None,
        }
    }

    fn put(&mut self, key: &ObjectKey, fact: StoredNad) {
        self.nads.insert(key.clone(), (fact.owner, fact.summary));
        self.neighbours.put(key, fact.network_use);
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.nads.remove(key);
        self.neighbours.remove(key);
    }

    fn count(&self) -> usize {
        self.nads.len()
    }
}

/// Namespaces with operator objects, and the resource prefix that a Deployment there states.
#[derive(Debug, Default)]
pub(in crate::cluster) struct OperatorNamespaceStore(BTreeMap<Box<str>, Option<Box<str>>>);

impl OperatorNamespaceStore {
    pub(in crate::cluster) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(AsRef::as_ref)
    }

    /// Whether that namespace has an object.
    pub(in crate::cluster) fn has(&self, namespace: &str) -> bool {
        self.0.contains_key(namespace)
    }

    /// The prefix stated in that namespace.
    pub(in crate::cluster) fn prefix(&self, namespace: &str) -> Option<&str> {
        self.0.get(namespace)?.as_deref()
    }
}

impl Summarize for OperatorNamespaceStore {
    type Summarized = Option<Box<str>>;

    fn read(object: &ApiObject<'_>) -> Option<Self::Summarized> {
        let object: Value = serde_json::from_str(object.text).ok().filter(Value::is_object)?;
        Some(prefix::stated(&object).map(Into::into))
    }

    fn put(&mut self, key: &ObjectKey, prefix: Self::Summarized) {
        self.0.insert(key.namespace().into(), prefix);
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key.namespace());
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::cache::watch::tests::{put, read, store};

    #[test]
    fn summarizes_a_namespace_by_its_state() {
        let namespace = |rest: &str| format!(r#"{{"metadata":{{"name":"n"{rest}}},"status":{{"phase":"Active"}}}}"#);
        let label = |value: &str| namespace(&format!(r#","labels":{{"a":"b","nadmit.io/exempt":{value}}}"#));
        for (object, want) in [
            (namespace(""), Some((NamespaceState::Active, false))),
            (namespace(r#","labels":{"a":5,"":null},"annotations":[]"#), Some((NamespaceState::Active, false))),
            (namespace(r#","deletionTimestamp":null"#), Some((NamespaceState::Active, false))),
            (namespace(r#","deletionTimestamp":"2026-11-01T08:00:00Z""#), Some((NamespaceState::Terminating, false))),
            (label(r#""true""#), Some((NamespaceState::Active, true))),
            (label(r#""false""#), Some((NamespaceState::Active, false))),
            (label("true"), Some((NamespaceState::Active, false))),
            ("{}".to_owned(), None),
            ("[]".to_owned(), None),
        ] {
            let found = read::<NamespaceStore>(&object).map(|namespace| (namespace.state, namespace.is_exempt));
            assert_eq!(found, want, "{object}");
        }
        let namespaces: NamespaceStore = store(&[namespace("")]);
        assert_eq!(namespaces.find("n"), Lookup::Found(NamespaceState::Active));
        assert_eq!(namespaces.find("m"), Lookup::Absent);
        assert_eq!(store::<NamespaceStore>(&[namespace("")]).exempt(), 0);
        assert_eq!(store::<NamespaceStore>(&[label(r#""true""#)]).exempt(), 1);
    }

    #[test]
    fn summarizes_a_node_policy_by_its_resource() {
        let policy =
            |name: &str, spec: &str| format!(r#"{{"metadata":{{"name":"{name}","namespace":"op"}},"spec":{spec}}}"#);
        let offers = |name: &str| format!(r#"{{"resourceName":"{name}","numVfs":4,"nicSelector":{{}}}}"#);
        let mut policies: NodePolicyStore = store(&[
            policy("a", &offers("two")),
            policy("b", &offers("one")),
            policy("c", &offers("two")),
            policy("d", &offers("")),
            policy("e", r#"{"resourceName":7}"#),
            policy("f", "null"),
        ]);
        assert_eq!(policies.offered().as_ref(), ["one", "two"]);
        policies.remove(&ObjectKey::new("op", "a"));
        assert_eq!(policies.offered().as_ref(), ["one", "two"], "another policy offers it, too");
        policies.remove(&ObjectKey::new("op", "c"));
        put(&mut policies, &[policy("f", &offers("three"))]);
        assert_eq!(policies.offered().as_ref(), ["one", "three"]);
        assert_eq!(read::<NodePolicyStore>("5"), None);
    }

    #[test]
    fn summarizes_a_nad_by_its_owner() {
        let nad = |meta: &str| {
            format!(
                r#"{{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition",
                "metadata":{{"name":"n","namespace":"apps"{meta}}},"spec":{{"config":"{{}}"}}}}"#
            )
        };
        let annotated =
            |owner: &str| nad(&format!(r#","annotations":{{"sriovnetwork.openshift.io/owner-ref":"{owner}"}}"#));
        let reference =
            r#","ownerReferences":[{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"OVSNetwork","name":"n"}]"#;
        for (object, want) in [
            (nad(""), None),
            (annotated("SriovNetwork.sriovnetwork.openshift.io/op/n"), Some("SriovNetwork op/n")),
            (annotated("unknown/op/n"), None),
            (nad(reference), Some("OVSNetwork apps/n")),
            (nad(r#","annotations":[5]"#), None),
        ] {
            let Lookup::Found(found) =
                store::<NadStore>(std::slice::from_ref(&object)).find(&ObjectKey::new("apps", "n"))
            else {
                panic!("{object}")
            };
            assert_eq!(found.owner.map(|owner| owner.to_string()).as_deref(), want, "{object}");
        }
        assert_eq!(store::<NadStore>(&[nad("")]).find(&ObjectKey::new("apps", "m")), Lookup::Absent);
        assert!(read::<NadStore>("{}").is_none());
    }
}
