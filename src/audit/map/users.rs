//! Who uses NADs and devices: pods, and the objects that make pods.

use super::rows::{MapSelection, MapUser};
use super::{MAX_PARTS, key, short};
use crate::resources::raw::RawFields;
use crate::resources::{SelectedNetwork, Selection, Workload, WorkloadKind};

/// Reads a pod or an object that makes pods; `None` if it selects and requests nothing, or has ended.
pub(super) fn read(kind: WorkloadKind, json: &str, place: &str, is_cluster: bool) -> Option<MapUser> {
    let object = RawFields::parse(json).ok()?;
    let member = |key: &str| object.raw(key).and_then(|raw| RawFields::parse(raw).ok()).unwrap_or_default();
    let text = |of: &RawFields<'_>, key: &str| short(&of.text(key).value().unwrap_or_default());
    let (spec, phase) = (member("spec"), text(&member("status"), "phase"));
    // Their devices and addresses are free again.
    if matches!(phase.as_str(), "Succeeded" | "Failed") {
        return None;
    }
    let workload = Workload::of_kind(kind, json)?;
    let namespace = short(&workload.meta.namespace);
    let default = Selection::read(workload.default_network.as_deref().unwrap_or_default(), &namespace);
    let selected = workload.selected().chain(default.networks()).filter(|network| !network.name.is_empty());
    let networks: Vec<_> = selected.take(MAX_PARTS).map(selection).collect();
    let problem = match &workload.selection {
        // In a cluster nothing replaces them any more.
        _ if !is_cluster && workload.selects_by_variable() => Some("its networks depend on variables".to_owned()),
        Selection::Read(_) => None,
        Selection::Wrong(error) => Some(short(&error.problem)),
        Selection::Unknown => Some("its annotation is too large to be read".to_owned()),
    };
    // What is no number of devices has the largest number.
    let requests = workload.requests.iter().filter(|(_, count)| **count < u64::MAX);
    let requests: std::collections::BTreeMap<_, _> = requests.map(|(name, count)| (short(name), *count)).collect();
    if networks.is_empty() && requests.is_empty() && problem.is_none() {
        return None;
    }
    let node = if kind == WorkloadKind::Pod { text(&spec, "nodeName") } else { String::new() };
    let name = short(&workload.meta.name);
    let name = if name.is_empty() { text(&member("metadata"), "generateName") } else { name };
    let pods = pods(kind, &spec);
    Some(MapUser {
        kind: kind.name(),
        namespace,
        name,
        node,
        networks,
        requests,
        pods,
        problem,
        place: place.to_owned(),
    })
}

fn selection(network: &SelectedNetwork) -> MapSelection {
    MapSelection { nad: key(&network.namespace, &network.name), interface: short(&network.interface) }
}

/// How many pods an object makes.
fn pods(kind: WorkloadKind, spec: &RawFields<'_>) -> Option<u64> {
    let count = |key| spec.integer(key).value().map_or(1, |count| u64::try_from(count).unwrap_or_default());
    match kind {
        WorkloadKind::DaemonSet => None,
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::ReplicaSet
        | WorkloadKind::ReplicationController => Some(count("replicas")),
        WorkloadKind::Job => Some(count("parallelism")),
        WorkloadKind::Pod | WorkloadKind::CronJob | WorkloadKind::VirtualMachine => Some(1),
    }
}
