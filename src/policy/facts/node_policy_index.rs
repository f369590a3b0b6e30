//! The node policies of a cluster or of a set of manifests, found by what they may have in common, and the PFs of nodes.
//!
//! Manifests and audits have node states, reviews have none. Only what tells PFs apart is kept of a state; nodes of one model are alike, so
//! there are few different ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::node_policies::{LinkType, NodePolicyFact, NodePolicyNeighbours, OfferedLinkTypes, SharedPf};
use crate::resources::{DEFAULT_NODE_POLICY, NicSelector, NodeInterfaces, ObjectKey, PhysicalFunction};

/// How many PFs of a node are kept.
const MAX_PFS: usize = 64;
/// How many different nodes are kept.
const MAX_NODES: usize = 128;
/// How many policies are compared with one.
const MAX_COMPARED: usize = 1024;
/// How many of them are reported to rules; more make no difference.
const MAX_NEIGHBOURS: usize = 16;
/// How many PFs are reported to rules for each of them.
const MAX_SHARED: usize = 8;
/// The label that has the name of the node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Node policies, and node states where they are known.
#[derive(Clone, Debug, Default)]
pub struct NodePolicyIndex {
    policies: Vec<Arc<NodePolicyFact>>,
    /// The places in `policies` by a property, in their order.
    by: HashMap<(PolicyProperty, Box<str>), Vec<u32>>,
    /// The keys of which there are different policies: manifests of several clusters may be in one repository. Each of them may offer its
    /// resource; what they have in common with others is not known.
    ambiguous: BTreeSet<ObjectKey>,
    states: NodeStates,
}

/// What policies of one namespace may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PolicyProperty {
    /// The name or address of a PF.
    Pf,
    /// That they name no PF.
    NamesNone,
    /// The resource name.
    Resource,
    /// The namespace alone.
    Namespace,
    /// The resource name, in any namespace.
    Offer,
}

/// The PFs of nodes. Nodes with the same PFs are kept once, with the name of the first.
#[derive(Clone, Debug, Default)]
pub struct NodeStates {
    nodes: BTreeMap<(Box<str>, Vec<Box<str>>), StateEntry>,
    /// Whether there are more nodes than are kept. Then nothing is claimed about all of them.
    is_cut: bool,
}

#[derive(Clone, Debug)]
struct StateEntry {
    names: BTreeSet<Box<str>>,
    pfs: Vec<PhysicalFunction>,
}

impl NodeStates {
    /// Adds the state of a node.
    pub fn add(&mut self, state: NodeInterfaces) {
        if state.pfs.len() > MAX_PFS {
            self.is_cut = true;
            return;
        }
        let text = |pf: &PhysicalFunction| {
            let others = pf.alternative_names.iter().map(|name| &**name);
            let all = [&*pf.name, &pf.pci_address, &pf.vendor, &pf.device_id].into_iter().chain(others);
            all.collect::<Vec<_>>().join("\0").into()
        };
        let key = (state.namespace, state.pfs.iter().map(text).collect());
        if let Some(entry) = self.nodes.get_mut(&key) {
            entry.names.insert(state.node);
        } else if self.nodes.len() < MAX_NODES {
            self.nodes.insert(key, StateEntry { names: BTreeSet::from([state.node]), pfs: state.pfs });
        } else {
            self.is_cut = true;
        }
    }

    /// Adds all of another set.
    pub fn merge(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        for ((namespace, _), entry) in other.nodes {
            for node in entry.names {
                self.add(NodeInterfaces { namespace: namespace.clone(), node, pfs: entry.pfs.clone() });
            }
        }
    }
}

/// The PFs of a node that a policy selects.
struct SelectedPfs<'s> {
    entry: &'s StateEntry,
    pfs: Vec<&'s PhysicalFunction>,
}

impl StateEntry {
    /// The name of one of its nodes: the first, or the one that is asked for.
    fn node(&self, host: Option<&str>) -> Option<&str> {
        match host {
            None => self.names.first().map(|name| &**name),
            Some(host) => self.names.get(host).map(|name| &**name),
        }
    }
}

impl NodeStates {
    fn of<'s>(&'s self, namespace: &'s str) -> impl Iterator<Item = &'s StateEntry> {
        self.nodes.iter().filter(move |((here, _), _)| **here == *namespace).map(|(_, entry)| entry)
    }

    /// The PFs that a policy selects, on each node where it selects any.
    fn selected_by(&self, policy: &NodePolicyFact) -> Vec<SelectedPfs<'_>> {
        let mut found = Vec::new();
        for ((namespace, _), entry) in &self.nodes {
            let pfs: Vec<_> = entry.pfs.iter().filter(|pf| policy.selects(pf)).collect();
            if **namespace == *policy.key.namespace() && !pfs.is_empty() {
                found.push(SelectedPfs { entry, pfs });
            }
        }
        found
    }
}

impl NodePolicyIndex {
    /// Sorts policies for lookups, without the one of the name `default`, which the operator ignores.
    pub fn new(mut policies: Vec<Arc<NodePolicyFact>>, states: NodeStates) -> Self {
        policies.retain(|policy| policy.key.name() != DEFAULT_NODE_POLICY);
        policies.sort_by(|one, other| one.key.cmp(&other.key));
        // The same manifest may be given twice, as an overlay and as its base.
        policies.dedup();
        let twice = policies.windows(2).filter_map(|two| match two {
            [one, other] if one.key == other.key => Some(one.key.clone()),
            _ => None,
        });
        let ambiguous: BTreeSet<_> = twice.collect();
        let mut index = Self { policies, by: HashMap::new(), ambiguous, states };
        for (place, policy) in index.policies.iter().enumerate() {
            let is_clear = !index.ambiguous.contains(&policy.key);
            for (property, text) in properties(policy) {
                if !is_clear && property != PolicyProperty::Offer {
                    continue;
                }
                let places = index.by.entry((property, text)).or_default();
                if places.last() != Some(&(place as u32)) {
                    places.push(place as u32);
                }
            }
        }
        index
    }

    /// The link types of the policies that offer a resource, of those in namespaces that `counts` accepts.
    pub fn link_types(&self, resource_name: &str, counts: &dyn Fn(&str) -> bool) -> OfferedLinkTypes {
        let mut found = OfferedLinkTypes::default();
        let places = self.by.get(&(PolicyProperty::Offer, resource_name.into())).into_iter().flatten();
        let offering = places.filter_map(|place| self.policies.get(*place as usize));
        for policy in offering.filter(|policy| counts(policy.key.namespace())) {
            found.policies += 1;
            match policy.link_type {
                LinkType::InfiniBand => found.infiniband.add(&policy.key),
                LinkType::Ethernet if !policy.is_vfio => found.ethernet.add(&policy.key),
                LinkType::Ethernet | LinkType::Unstated => {}
            }
        }
        found
    }

    /// The policies that meet one, of its namespace.
    pub fn neighbours(&self, own: &NodePolicyFact) -> NodePolicyNeighbours {
        let mut found = NodePolicyNeighbours::default();
        if self.ambiguous.contains(&own.key) {
            return found;
        }
        let is_other = |other: &&Arc<NodePolicyFact>| other.key != own.key && other.shares_nodes(own);
        if !own.resource_name.is_empty() {
            let same = self.having(own, PolicyProperty::Resource, &own.resource_name).filter(is_other);
            found.same_resource = same.take(MAX_NEIGHBOURS).cloned().collect();
        }
        let on_nodes = self.states.selected_by(own);
        let mut others = 0;
        for other in self.candidates(own).into_iter().filter_map(|place| self.policies.get(place as usize)) {
            if others < MAX_NEIGHBOURS && is_other(&other) {
                let shared = self.shared(own, &on_nodes, other);
                others += usize::from(!shared.is_empty());
                found.pfs.extend(shared.into_iter().take(MAX_SHARED));
            }
        }
        found
    }

    /// The PFs that two policies share: by their selectors, or by what the states of the nodes show.
    fn shared(&self, own: &NodePolicyFact, on_nodes: &[SelectedPfs<'_>], other: &Arc<NodePolicyFact>) -> Vec<SharedPf> {
        let mut shared = own.shared_by_selectors(other);
        if !shared.is_empty() || self.states.is_cut {
            return shared;
        }
        let host = hostname(own).or_else(|| hostname(other));
        for here in on_nodes {
            let Some(node) = here.entry.node(host) else { continue };
            shared.extend(here.pfs.iter().filter_map(|pf| own.shared_on(other, node, pf)));
        }
        // The labels of nodes are not known, so this holds only where the policy with more conditions on nodes shares a PF wherever
        // it selects any.
        let has_pf = |here: &StateEntry| here.pfs.iter().any(|pf| own.selects(pf) && other.selects(pf));
        let is_alone = |policy: &NodePolicyFact| {
            let nodes = self.states.of(own.key.namespace()).filter(|here| here.node(host).is_some());
            nodes.filter(|here| here.pfs.iter().any(|pf| policy.selects(pf))).any(|here| !has_pf(here))
        };
        let is_certain = !shared.is_empty()
            && match (own.has_nodes_within(other), other.has_nodes_within(own)) {
                (true, true) => !is_alone(own) || !is_alone(other),
                (true, false) => !is_alone(own),
                _ => !is_alone(other),
            };
        if is_certain { shared } else { Vec::new() }
    }

    /// The places of the policies that may share a PF with one, at most so many that comparing them takes no time.
    fn candidates(&self, own: &NodePolicyFact) -> BTreeSet<u32> {
        let Some(nics) = &own.nics else { return BTreeSet::new() };
        let places = |property: PolicyProperty, text: &str| self.by.get(&(property, in_namespace(own, text)));
        // One that names no PF may share one with any, and node states may show that two names mean one PF.
        if nics.names_none() || !self.states.nodes.is_empty() {
            return places(PolicyProperty::Namespace, "").into_iter().flatten().copied().take(MAX_COMPARED).collect();
        }
        let named = pfs(own).filter_map(|pf| places(PolicyProperty::Pf, pf));
        let all = named.chain(places(PolicyProperty::NamesNone, "")).flatten();
        all.copied().take(MAX_COMPARED).collect()
    }

    /// The policies in the namespace of one with a property.
    fn having<'i>(
        &'i self,
        own: &NodePolicyFact,
        property: PolicyProperty,
        text: &str,
    ) -> impl Iterator<Item = &'i Arc<NodePolicyFact>> + use<'i> {
        let places = self.by.get(&(property, in_namespace(own, text)));
        places.into_iter().flatten().filter_map(|place| self.policies.get(*place as usize)).take(MAX_COMPARED)
    }
}

/// The node that a policy names, if it does.
fn hostname(policy: &NodePolicyFact) -> Option<&str> {
    policy.nodes.as_ref()?.iter().find(|(key, _)| **key == *HOSTNAME).map(|(_, name)| &**name)
}

/// What a policy is found by.
fn properties(policy: &NodePolicyFact) -> Vec<(PolicyProperty, Box<str>)> {
    let mut all = vec![
        (PolicyProperty::Namespace, in_namespace(policy, "")),
        (PolicyProperty::Resource, in_namespace(policy, &policy.resource_name)),
        (PolicyProperty::Offer, policy.resource_name.clone()),
    ];
    all.extend(pfs(policy).map(|pf| (PolicyProperty::Pf, in_namespace(policy, pf))));
    if policy.nics.as_ref().is_some_and(NicSelector::names_none) {
        all.push((PolicyProperty::NamesNone, in_namespace(policy, "")));
    }
    all
}

/// The PFs that a policy names.
fn pfs(policy: &NodePolicyFact) -> impl Iterator<Item = &str> {
    policy.nics.iter().flat_map(|nics| {
        nics.pf_names.iter().map(|entry| &*entry.name).chain(nics.root_devices.iter().map(|root| &**root))
    })
}

fn in_namespace(policy: &NodePolicyFact, text: &str) -> Box<str> {
    [policy.key.namespace(), "\0", text].concat().into()
}

#[cfg(test)]
mod tests;
