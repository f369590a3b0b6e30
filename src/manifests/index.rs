//! The index of a set of manifests, which provides facts about each of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use jiff::civil::Date;

use super::Manifest;
use super::manifest_nads::ManifestNads;
use super::object_places::{ObjectPlace, ObjectPlaces};
use super::objects::is_ours;
use crate::json::LineIndex;
use crate::policy::{
    ClaimFacts, ClaimIndex, FactLookup, Facts, Lookup, MAX_RENDERERS, NadFact, NadSummary, NamespaceState,
    NeighbourFact, NetworkCoverage, NetworkFact, NetworkUse, NodePolicyFact, NodePolicyIndex, NodeStates, Policy,
    Prefix, Verdict, similar_name,
};
use crate::resources::{
    DRA_DRIVER, DriverObject, NETWORK_GROUP, NODE_STATE_KIND, NetworkId, NetworkKind, NodeInterfaces, Object, ObjectKey,
};
use crate::yaml::YamlNode;

/// The networks, NADs, namespaces and node policies in a set of manifests. Small, because it holds all of them at once.
#[derive(Debug, Default)]
pub struct Index {
    networks: Vec<NetworkEntry>,
    /// The places in `networks`, in the order of the networks' own names.
    by_id: Vec<u32>,
    nads: Vec<NadEntry>,
    namespaces: BTreeMap<Box<str>, NamespaceState>,
    resources: BTreeSet<String>,
    has_policies: bool,
    words: HashSet<Arc<str>>,
    offered: Option<Arc<[String]>>,
    /// The node policies and node states, until all are known.
    policies: Vec<Arc<NodePolicyFact>>,
    states: NodeStates,
    node_policies: Arc<NodePolicyIndex>,
    claims: ClaimIndex,
    places: ObjectPlaces,
    neighbours: ManifestNads,
}

/// Assumptions without a cluster.
#[derive(Clone, Debug)]
pub struct Assumptions {
    /// The operator's resource prefix.
    pub prefix: Prefix,
    /// The operator's namespace, if given.
    pub operator_namespace: Option<String>,
    /// The date.
    pub today: Date,
}

/// Namespaces and resources are few and named often: their texts are shared.
#[derive(Debug, PartialEq)]
struct NetworkEntry {
    kind: NetworkKind,
    namespace: Arc<str>,
    name: Box<str>,
    target: Arc<str>,
    resource: Arc<str>,
}

#[derive(Debug)]
struct NadEntry {
    namespace: Arc<str>,
    name: Box<str>,
    owner: Option<Box<str>>,
    summary: NadSummary,
}

impl NetworkEntry {
    fn id(&self) -> (NetworkKind, &str, &str) {
        (self.kind, &self.namespace, &self.name)
    }

    fn fact(&self) -> NetworkFact {
        let id = NetworkId { kind: self.kind, namespace: self.namespace.to_string(), name: self.name.to_string() };
        NetworkFact { id, target_namespace: self.target.to_string(), resource_name: self.resource.to_string() }
    }
}

impl Index {
    /// Adds an object of a file to the index.
    pub fn add(&mut self, manifest: &Manifest, source: &str, lines: &LineIndex<'_>) {
        let api_version = manifest.text("apiVersion");
        if is_ours(api_version) {
            self.add_place(manifest, source, lines);
        }
        match (api_version, manifest.text("kind")) {
            ("v1", "Namespace") => self.add_namespace(&manifest.node),
            (_, NODE_STATE_KIND) if api_version.starts_with(NETWORK_GROUP) => {
                if let Some(state) = NodeInterfaces::read(&manifest.node.to_json()) {
                    self.states.add(state);
                }
            }
            ("apps/v1", "DaemonSet") => self.add_driver_object(manifest),
            (_, "DeviceAttributes" | "SriovResourcePolicy") if api_version.starts_with(DRA_DRIVER) => {
                self.add_driver_object(manifest);
            }
            _ if is_ours(api_version) => {
                let json = manifest.node.to_json();
                if let Ok(Some(object)) = Object::read(&json) {
                    self.add_object(&object);
                }
            }
            _ => {}
        }
    }

    fn add_place(&mut self, manifest: &Manifest, source: &str, lines: &LineIndex<'_>) {
        let text = |pointer: &str| manifest.node.follow(pointer).0;
        let name = text("/metadata/name");
        // A position of more than 32 bits is of no use to anybody.
        let (line, column) = lines.at(name.span.start);
        let (Ok(line), Ok(column)) = (line.try_into(), column.try_into()) else { return };
        let namespace = text("/metadata/namespace").as_str().unwrap_or_default();
        let [kind, namespace, file] = [manifest.text("kind"), namespace, source].map(|word| self.shared(word));
        let name = name.as_str().unwrap_or_default().into();
        self.places.add(ObjectPlace { kind, namespace, name, file, line, column });
    }

    fn add_driver_object(&mut self, manifest: &Manifest) {
        if let Some(object) = DriverObject::read(&manifest.node.to_json()) {
            self.claims.add_driver_object(object);
        }
    }

    fn add_namespace(&mut self, node: &YamlNode) {
        let Some(name) = node.follow("/metadata/name").0.as_str() else { return };
        let terminating = node.follow("/status/phase").0.as_str() == Some("Terminating")
            || node.get("metadata").is_some_and(|metadata| metadata.get("deletionTimestamp").is_some());
        let state = if terminating { NamespaceState::Terminating } else { NamespaceState::Active };
        self.namespaces.insert(name.into(), state);
    }

    fn add_object(&mut self, object: &Object<'_>) {
        self.neighbours.add(object);
        let meta = object.meta();
        let (namespace, name) = (self.shared(&meta.namespace), meta.name.as_ref().into());
        match object {
            Object::Network(network) => {
                let target = self.shared(&network.target_namespace());
                let resource = self.shared(&network.text("resourceName"));
                self.networks.push(NetworkEntry { kind: network.kind, namespace, name, target, resource });
            }
            Object::Nad(nad) => {
                let owner = meta.owner().map(|owner| owner.owner_ref().into());
                self.nads.push(NadEntry { namespace, name, owner, summary: NadSummary::of(nad) });
            }
            Object::Claim(claim) => self.claims.add(claim),
            Object::NodePolicy(policy) => {
                self.has_policies = true;
                self.resources.extend(policy.spec.text("resourceName").value().map(Cow::into_owned));
                self.policies.push(NodePolicyFact::of(policy).into());
            }
            // Nothing is judged by the pods that there are.
            Object::Workload(_) => {}
        }
    }

    /// Merges another index.
    pub fn merge(&mut self, other: Self) {
        // Entries are reallocated compactly; the worker that read them frees its own memory.
        for mut network in other.networks {
            network.name = network.name.as_ref().into();
            for word in [&mut network.namespace, &mut network.target, &mut network.resource] {
                *word = self.shared(word);
            }
            self.networks.push(network);
        }
        for mut nad in other.nads {
            nad.namespace = self.shared(&nad.namespace);
            nad.name = nad.name.as_ref().into();
            self.nads.push(nad);
        }
        for mut place in other.places.into_places() {
            place.name = place.name.as_ref().into();
            for word in [&mut place.kind, &mut place.namespace, &mut place.file] {
                *word = self.shared(word);
            }
            self.places.add(place);
        }
        self.namespaces.extend(other.namespaces);
        self.resources.extend(other.resources);
        self.has_policies |= other.has_policies;
        self.policies.extend(other.policies);
        self.states.merge(other.states);
        self.claims.merge(other.claims);
        self.neighbours.merge(other.neighbours);
    }

    /// The one copy of a word that is kept.
    fn shared(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.words.get(word) {
            return known.clone();
        }
        let word: Arc<str> = word.into();
        self.words.insert(word.clone());
        word
    }

    /// Sorts the index for lookups.
    pub fn finish(mut self) -> Self {
        self.networks.sort_by(|a, b| (&a.target, &a.name, a.id()).cmp(&(&b.target, &b.name, b.id())));
        self.nads.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        // The same manifest may be given twice, as an overlay and as its base.
        self.networks.dedup();
        self.networks.shrink_to_fit();
        self.by_id = (0..self.networks.len() as u32).collect();
        let networks = &self.networks;
        self.by_id.sort_by_key(|at| networks.get(*at as usize).map(NetworkEntry::id));
        self.nads.shrink_to_fit();
        self.places.finish();
        self.neighbours.finish();
        let resources = std::mem::take(&mut self.resources);
        self.claims = self.claims.finish();
        self.offered = self.has_policies.then(|| resources.into_iter().collect());
        let (policies, states) = (std::mem::take(&mut self.policies), std::mem::take(&mut self.states));
        self.node_policies = Arc::new(NodePolicyIndex::new(policies, states));
        self
    }

    /// Adds to the findings of a verdict where the manifests of the other objects are that they are about.
    pub fn locate_related(&self, verdict: &mut Verdict) {
        for other in verdict.findings.iter_mut().flat_map(|finding| &mut finding.related) {
            other.place = self.places.find(other.kind, &other.key);
        }
    }

    /// The facts about an object.
    pub fn facts(&self, object: &Object<'_>, assume: &Assumptions, policy: &Policy) -> Facts {
        let base = Facts {
            prefix: Some(assume.prefix.clone()),
            operator_namespace: assume.operator_namespace.clone(),
            today: Some(assume.today),
            ..Facts::default()
        };
        base.gather(object, self, policy)
    }
}

/// What is not among the manifests is unknown, not absent.
impl FactLookup for Index {
    fn coverage(&self) -> NetworkCoverage {
        NetworkCoverage::Partial
    }

    fn networks_at(&self, nad: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        let place = (nad.namespace(), nad.name());
        let start = self.networks.partition_point(|network| (&*network.target, &*network.name) < place);
        let here = self.networks.iter().skip(start);
        let here = here.take_while(|network| (&*network.target, &*network.name) == place).map(NetworkEntry::fact);
        // Whether there are two, three or a thousand makes no difference to any rule.
        here.filter(renders).take(MAX_RENDERERS).collect()
    }

    /// Unknown also where two manifests of it disagree.
    fn network(&self, id: &NetworkId) -> Lookup<NetworkFact> {
        let entry = |at: &u32| self.networks.get(*at as usize);
        let wanted = Some((id.kind, id.namespace.as_str(), id.name.as_str()));
        let start = self.by_id.partition_point(|at| entry(at).map(NetworkEntry::id) < wanted);
        let mut same =
            self.by_id.iter().skip(start).filter_map(entry).take_while(|network| Some(network.id()) == wanted);
        match same.next() {
            Some(first) if same.all(|other| other == first) => Lookup::Found(first.fact()),
            _ => Lookup::Unknown,
        }
    }

    fn nad(&self, key: &ObjectKey) -> Lookup<NadFact> {
        let place = (key.namespace(), key.name());
        let start = self.nads.partition_point(|nad| (&*nad.namespace, &*nad.name) < place);
        let mut same = self.nads.iter().skip(start).take_while(|nad| (&*nad.namespace, &*nad.name) == place);
        let Some(nad) = same.next() else { return Lookup::Unknown };
        // Of several manifests of it nobody knows which one counts.
        let is_certain = same.all(|other| other.summary == nad.summary);
        let summary = if is_certain { nad.summary.clone() } else { NadSummary::default() };
        Lookup::Found(NadFact { owner: nad.owner.as_deref().and_then(NetworkId::parse), summary })
    }

    fn similar_nad(&self, key: &ObjectKey) -> Option<String> {
        let start = self.nads.partition_point(|nad| &*nad.namespace < key.namespace());
        let here = self.nads.iter().skip(start).take_while(|nad| &*nad.namespace == key.namespace());
        let first = self.networks.partition_point(|network| &*network.target < key.namespace());
        let rendered = self.networks.iter().skip(first).take_while(|network| &*network.target == key.namespace());
        let names = here.map(|nad| &*nad.name).chain(rendered.map(|network| &*network.name));
        similar_name(key.name(), names).map(str::to_owned)
    }

    fn namespace(&self, name: &str) -> Lookup<NamespaceState> {
        self.namespaces.get(name).map_or(Lookup::Unknown, |state| Lookup::Found(*state))
    }

    fn offered(&self) -> Option<Arc<[String]>> {
        self.offered.clone()
    }

    fn node_policies(&self) -> Option<Arc<NodePolicyIndex>> {
        Some(Arc::clone(&self.node_policies))
    }

    fn served_by_classes(&self) -> Arc<[String]> {
        self.claims.served()
    }

    fn claims(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        self.claims.facts(nad, resource_name)
    }

    fn neighbours(&self, nad: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        self.neighbours.neighbours(nad, own)
    }

    /// Those in the same file or directory: others may be for another cluster.
    fn certain_neighbours(&self, object: &Object<'_>, found: &[Arc<NeighbourFact>]) -> BTreeSet<ObjectKey> {
        let own = object.key();
        let is_beside = |other: &&Arc<NeighbourFact>| {
            let (kind, key) = match &other.network {
                Some(network) => (network.kind.name(), network.key()),
                None => ("NetworkAttachmentDefinition", other.key.clone()),
            };
            self.places.are_together((object.kind(), &own), (kind, &key))
        };
        found.iter().filter(is_beside).map(|other| other.key.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
