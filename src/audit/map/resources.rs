//! The resources of devices: what policies and nodes offer of each, and what pods request.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{MapNad, MapNetwork, MapNodePolicy, MapResource, MapUser, ResourceOfNode};
use super::{key, object_name, short};
use crate::resources::raw::RawFields;

/// How many resources of a list are read.
const MAX_READ: usize = 256;

/// The extended resources in a list of quantities: devices are counted, and have a domain that is not that of Kubernetes.
pub(super) fn quantities(list: &RawFields<'_>) -> BTreeMap<String, u64> {
    let is_extended = |name: &&str| name.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"));
    let quantity = |name: &str| -> Option<u64> {
        list.text(name)
            .value()
            .map_or_else(|| list.integer(name).value().and_then(|n| n.try_into().ok()), |text| text.parse().ok())
    };
    let names = list.keys().filter(is_extended).take(MAX_READ);
    names.filter_map(|name| Some((short(name), quantity(name)?))).collect()
}

/// What a node has.
pub(super) fn of_node(json: &str) -> Option<(String, BTreeMap<String, u64>)> {
    let object = RawFields::parse(json).ok()?;
    let member = |of: &RawFields<'_>, key: &str| {
        of.raw(key).and_then(|raw| RawFields::parse(raw).ok().map(|fields| quantities(&fields)))
    };
    let meta = RawFields::parse(object.raw("metadata")?).ok()?;
    let status = RawFields::parse(object.raw("status")?).ok()?;
    Some((short(&meta.text("name").value()?), member(&status, "allocatable")?))
}

/// What the resources of a map are made from.
pub(super) struct ResourceSources<'m> {
    pub(super) prefix: &'m str,
    pub(super) policies: &'m [MapNodePolicy],
    pub(super) networks: &'m [MapNetwork],
    pub(super) nads: &'m [MapNad],
    pub(super) users: &'m [MapUser],
    /// The devices of each node; `None` where nodes are not known.
    pub(super) nodes: Option<&'m BTreeMap<String, BTreeMap<String, u64>>>,
}

impl ResourceSources<'_> {
    /// The rows: one for every resource that a policy, a network or a NAD names.
    pub(super) fn rows(&self) -> Vec<MapResource> {
        let mut rows: BTreeMap<String, MapResource> = BTreeMap::new();
        let full = self.full_names();
        // A policy and a network name a resource without its domain.
        let named = |name: &str| -> Vec<String> {
            let name = name.rsplit('/').next().unwrap_or(name);
            full.get(name)
                .map_or_else(|| vec![format!("{}/{name}", self.prefix)], |full| full.iter().cloned().collect())
        };
        let mut row = |name: String, add: &dyn Fn(&mut MapResource)| {
            add(rows.entry(name.clone()).or_insert_with(|| MapResource { name, ..MapResource::default() }));
        };
        for policy in self.policies.iter().filter(|policy| !policy.resource.is_empty()) {
            for name in named(&policy.resource) {
                row(name, &|row| row.policies.push(key(&policy.namespace, &policy.name)));
            }
        }
        for network in self.networks.iter().filter(|network| !network.resource.is_empty()) {
            for name in named(&network.resource) {
                row(name, &|row| row.networks.push(object_name(network.kind, &network.namespace, &network.name)));
            }
        }
        for nad in self.nads {
            if let Some(name) = &nad.resource {
                row(name.clone(), &|row| row.nads.push(key(&nad.namespace, &nad.name)));
            }
        }
        self.count(&mut rows);
        rows.into_values().collect()
    }

    /// The names with a domain that something has, by their names without it.
    fn full_names(&self) -> BTreeMap<&str, BTreeSet<String>> {
        let of_nodes = self.nodes.into_iter().flat_map(BTreeMap::values).flat_map(BTreeMap::keys);
        let of_users = self.users.iter().flat_map(|user| user.requests.keys());
        let of_nads = self.nads.iter().filter_map(|nad| nad.resource.as_ref());
        let mut full: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for name in of_nodes.chain(of_users).chain(of_nads) {
            if let Some((_, base)) = name.split_once('/') {
                full.entry(base).or_default().insert(name.clone());
            }
        }
        full
    }

    fn count(&self, rows: &mut BTreeMap<String, MapResource>) {
        let mut nodes: BTreeMap<(&str, &str), ResourceOfNode> = BTreeMap::new();
        for (node, has) in self.nodes.into_iter().flatten() {
            for (name, count) in has.iter().filter(|(name, _)| rows.contains_key(*name)) {
                let of = ResourceOfNode { node: node.clone(), allocatable: *count, requested: 0 };
                nodes.insert((name, node), of);
            }
        }
        for user in self.users {
            for (name, count) in &user.requests {
                let Some(row) = rows.get_mut(name) else { continue };
                match user.pods {
                    Some(pods) => row.requested = row.requested.saturating_add(count.saturating_mul(pods)),
                    None => row.requested_on_each_node = row.requested_on_each_node.saturating_add(*count),
                }
                if let Some(of) = nodes.get_mut(&(name.as_str(), user.node.as_str())) {
                    of.requested = of.requested.saturating_add(*count);
                }
            }
        }
        for row in rows.values_mut() {
            row.allocatable = self.nodes.map(|_| 0);
        }
        for ((name, _), of) in nodes {
            if let Some(row) = rows.get_mut(name) {
                row.allocatable = row.allocatable.map(|all| all.saturating_add(of.allocatable));
                row.nodes.push(of);
            }
        }
    }
}
