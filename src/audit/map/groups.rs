//! Rows that several objects have in common: networks of OVN-Kubernetes, and namespaces.

use std::collections::BTreeMap;

use super::nads::ReadNad;
use super::rows::{MapNamespace, MapNetwork, MapOvnNetwork};
use super::{MAX_PARTS, NetworkMap};

/// The networks of OVN-Kubernetes that NADs name.
pub(super) fn ovn_networks(nads: &[ReadNad]) -> Vec<MapOvnNetwork> {
    let mut found: BTreeMap<&str, MapOvnNetwork> = BTreeMap::new();
    let add = |words: &mut Vec<String>, word: &String| {
        if !word.is_empty() && words.len() < MAX_PARTS && !words.contains(word) {
            words.push(word.clone());
        }
    };
    for nad in nads {
        let (Some(name), Some((topology, subnets))) = (nad.row.ovn.as_deref(), &nad.ovn) else { continue };
        let row = found.entry(name).or_default();
        row.name = name.to_owned();
        add(&mut row.topologies, topology);
        add(&mut row.subnets, subnets);
        row.nads.push(nad.key());
    }
    found.into_values().collect()
}

/// The namespace of an object that a finding names.
fn namespace_of(object: &str) -> &str {
    let key = object.split_once(' ').map_or(object, |(_, key)| key);
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

/// The namespaces that have anything on a map.
pub(super) fn namespaces(map: &NetworkMap) -> Vec<MapNamespace> {
    let mut found: BTreeMap<String, MapNamespace> = BTreeMap::new();
    let mut count = |name: &str, add: fn(&mut MapNamespace)| {
        let row = found.entry(name.to_owned());
        add(row.or_insert_with(|| MapNamespace { name: name.to_owned(), ..MapNamespace::default() }));
    };
    map.nads.iter().for_each(|nad| count(&nad.namespace, |row| row.nads += 1));
    map.networks.iter().for_each(|network| count(target_of(network), |row| row.networks += 1));
    map.users.iter().for_each(|user| count(&user.namespace, |row| row.users += 1));
    map.findings.iter().for_each(|finding| count(namespace_of(&finding.object), |row| row.findings += 1));
    found.into_values().collect()
}

/// The namespace of the NAD that a network renders; its own where it renders none.
pub(super) fn target_of(network: &MapNetwork) -> &str {
    network.nad.rsplit_once('/').map_or(&network.namespace, |(namespace, _)| namespace)
}
