//! PFs and their VFs: by the states of nodes where these are known, and otherwise by the node policies that name them.

use std::collections::BTreeMap;

use super::rows::{MapNodePolicy, MapPf, VfPartition};
use super::{MAX_PARTS, short};
use crate::resources::raw::RawFields;

/// How many PFs of a node are read.
const MAX_PFS: usize = 64;

/// The PFs in a SriovNetworkNodeState: what its status reports, and what its spec wants of them.
pub(super) fn pfs_of_state(json: &str) -> Vec<MapPf> {
    let Ok(object) = RawFields::parse(json) else { return Vec::new() };
    let member = |key: &str| object.raw(key).and_then(|raw| RawFields::parse(raw).ok()).unwrap_or_default();
    let node = short(&member("metadata").text("name").value().unwrap_or_default());
    let mut pfs: BTreeMap<String, MapPf> = BTreeMap::new();
    let (spec, status) = (member("spec"), member("status"));
    for interface in status.objects("interfaces").value().unwrap_or_default().iter().take(MAX_PFS) {
        let pf = reported(&node, interface);
        pfs.insert(pf.pci_address.clone(), pf);
    }
    for interface in spec.objects("interfaces").value().unwrap_or_default().iter().take(MAX_PFS) {
        let address = text(interface, "pciAddress");
        let pf = pfs.entry(address.clone()).or_insert_with(|| MapPf {
            node: node.clone(),
            name: text(interface, "name"),
            pci_address: address,
            num_vfs: interface.integer("numVfs").value(),
            ..MapPf::default()
        });
        let groups = interface.objects("vfGroups").value().unwrap_or_default();
        pf.partitions = groups.iter().take(MAX_PARTS).filter_map(partition).collect();
        pf.partitions.sort_unstable();
    }
    pfs.into_values().collect()
}

fn text(of: &RawFields<'_>, key: &str) -> String {
    short(&of.text(key).value().unwrap_or_default())
}

fn reported(node: &str, interface: &RawFields<'_>) -> MapPf {
    let device = [text(interface, "vendor"), text(interface, "deviceID")];
    MapPf {
        node: node.to_owned(),
        name: text(interface, "name"),
        pci_address: text(interface, "pciAddress"),
        device: if device.iter().all(String::is_empty) { String::new() } else { device.join(":") },
        link_type: text(interface, "linkType"),
        speed: text(interface, "linkSpeed"),
        total_vfs: interface.integer("totalvfs").value(),
        num_vfs: interface.integer("numVfs").value(),
        partitions: Vec::new(),
    }
}

fn partition(group: &RawFields<'_>) -> Option<VfPartition> {
    let range = text(group, "vfRange");
    let (from, to) = range.split_once('-')?;
    Some(VfPartition {
        from: from.parse().ok()?,
        to: to.parse().ok()?,
        resource: text(group, "resourceName"),
        policy: text(group, "policyName"),
        device_type: text(group, "deviceType"),
    })
}

/// The PFs that policies name, each with what the policies make of it. Policies for different nodes may name different PFs alike, so
/// there is one row for each set of nodes.
pub(super) fn pfs_of_policies(policies: &[MapNodePolicy]) -> Vec<MapPf> {
    let mut pfs: BTreeMap<(&[String], &str), MapPf> = BTreeMap::new();
    for policy in policies {
        for selected in &policy.selects {
            let (name, range) =
                selected.split_once('#').map_or((selected.as_str(), None), |(name, range)| (name, Some(range)));
            // A vendor or a model is no PF.
            if name.contains(' ') || name.is_empty() {
                continue;
            }
            let all = || policy.num_vfs.filter(|count| *count > 0).map(|count| (0, count - 1));
            let written = |range: &str| {
                let (from, to) = range.split_once('-')?;
                Some((from.parse().ok()?, to.parse().ok()?))
            };
            let Some((from, to)) = range.map_or_else(all, written) else { continue };
            let pf = pfs.entry((&policy.nodes, name)).or_default();
            pf.name = name.to_owned();
            pf.num_vfs = pf.num_vfs.max(policy.num_vfs);
            if pf.partitions.len() < MAX_PARTS {
                pf.partitions.push(VfPartition {
                    from,
                    to,
                    resource: policy.resource.clone(),
                    policy: policy.name.clone(),
                    device_type: policy.device_type.clone(),
                });
            }
        }
    }
    let sorted = pfs.into_values().map(|mut pf| {
        pf.partitions.sort_unstable();
        pf
    });
    sorted.collect()
}
