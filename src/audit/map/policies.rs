//! Node policies.

use super::rows::MapNodePolicy;
use super::{MAX_PARTS, short};
use crate::resources::{NamedVfs, NetworkNodePolicy, NicSelector, PfName};

/// Reads a SriovNetworkNodePolicy; `None` for one that the operator ignores.
pub(super) fn read(json: &str, place: &str) -> Option<MapNodePolicy> {
    let policy = NetworkNodePolicy::of_list(json).filter(|policy| !policy.is_ignored())?;
    let nodes = policy.node_selector().unwrap_or_default();
    Some(MapNodePolicy {
        namespace: short(&policy.meta.namespace),
        name: short(&policy.meta.name),
        resource: short(&policy.text("resourceName")),
        num_vfs: policy.integer("numVfs"),
        selects: policy.nic_selector().map(|nics| selected(&nics)).unwrap_or_default(),
        nodes: nodes.iter().take(MAX_PARTS).map(|(label, value)| format!("{label}={value}")).collect(),
        device_type: short(&policy.text("deviceType")),
        link_type: short(&policy.text("linkType")),
        place: place.to_owned(),
    })
}

/// What a policy selects, in words. A PF has no space in its name.
fn selected(nics: &NicSelector) -> Vec<String> {
    let named = nics.pf_names.iter().map(pf_name).chain(nics.root_devices.iter().map(ToString::to_string));
    let others = [("vendor", &nics.vendor), ("model", &nics.device_id), ("network", &nics.net_filter)];
    let others = others.into_iter().filter(|(_, value)| !value.is_empty());
    named.take(MAX_PARTS).chain(others.map(|(word, value)| format!("{word} {value}"))).collect()
}

fn pf_name(entry: &PfName) -> String {
    match entry.vfs {
        NamedVfs::All => entry.name.to_string(),
        NamedVfs::Range(from, to) => format!("{}#{from}-{to}", entry.name),
        NamedVfs::Unreadable => format!("{}#?", entry.name),
    }
}
