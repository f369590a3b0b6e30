//! Rules on what pods ask of the NADs that they select: devices, and arguments for the plugins.

use std::collections::BTreeMap;

use super::super::finding::{Findings, MAX_PER_RULE};
use super::super::pods::ResourceInjector;
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::super::{Facts, Lookup, NadSummary, RelatedObject};
use super::pod::{HANGS, NAD_KIND, SelectedNetworks, VisibleNads};
use crate::cni::arguments::Arguments;
use crate::resources::{SelectedNetwork, Workload, WorkloadKind};

rule! { TOO_FEW = "pod/too-few-devices", Warn;
    wrong: "A pod selects more networks of a resource than it requests devices.";
    why: "Multus hands the devices that the kubelet allocated to the selections in their order. For the remaining ones there is no \
        device, and a plugin that needs one, such as sriov, fails (\"VF pci addr is required\"). network-resources-injector requests devices for the \
        selected networks, but in its default leaves a resource alone that a container already requests. A pod that requests none is \
        reported where nothing can request them any more: in a cluster when it is created, and where the policy says that there is no \
        injector (`resourceInjector`).";
    fix: "Request as many devices as networks of the resource are selected, or leave the requests to the injector.";
}

rule! { NO_CAPABILITY = "pod/no-capability", Warn;
    wrong: "A pod asks something of a network that no plugin of it reads.";
    why: "Multus passes what a selection asks for to the plugins as capability arguments, and the CNI library gives a plugin only those \
        whose capability its config declares. MAC and IP addresses it also passes as CNI_ARGS, which plugins such as sriov and macvlan, \
        and most IPAM plugins, read without a capability. Where no plugin reads it, it is ignored without an error.";
    fix: "Declare the capability in the config of the plugin that implements it, or remove the key from the selection.";
}

/// The rules on devices and arguments.
pub(super) fn check(
    selected: &SelectedNetworks<'_>,
    workload: &Workload<'_>,
    nads: &VisibleNads,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    let own = workload.meta.namespace.as_ref();
    let mut known: Vec<(usize, &SelectedNetwork, &NadSummary)> = Vec::new();
    for (number, network) in selected.all() {
        if let Some(Lookup::Found(nad)) = nads.get(network, own, facts).map(|nad| &nad.nad) {
            known.push((number, network, nad));
        }
    }
    // KubeVirt requests the devices of its machines, and claims bring devices of their own.
    if workload.kind != WorkloadKind::VirtualMachine && !workload.has_claims {
        check_devices(selected, workload, &known, facts, scope, out);
    }
    check_arguments(selected, &known, out);
}

fn check_devices(
    selected: &SelectedNetworks<'_>,
    workload: &Workload<'_>,
    known: &[(usize, &SelectedNetwork, &NadSummary)],
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    let mut wanted: BTreeMap<&str, Vec<&(usize, &SelectedNetwork, &NadSummary)>> = BTreeMap::new();
    for one in known {
        if let Some(resource) = one.2.resource_name.as_deref().filter(|name| !name.is_empty()) {
            wanted.entry(resource).or_default().push(one);
        }
    }
    // Whoever adds requests to pods has done so before a pod is judged in a cluster.
    let is_final = facts.is_cluster && workload.kind == WorkloadKind::Pod;
    let injector = if is_final { Some(ResourceInjector::None) } else { scope.policy.resource_injector };
    for (resource, networks) in wanted.into_iter().take(MAX_PER_RULE) {
        let requested = requested(workload, resource, networks.iter().any(|(_, _, nad)| nad.is_prefix_assumed));
        let are_too_few = match injector {
            Some(ResourceInjector::All) => false,
            Some(ResourceInjector::None) => requested < networks.len() as u64,
            Some(ResourceInjector::Missing) | None => requested > 0 && requested < networks.len() as u64,
        };
        // Multus counts every network of the resource, but without a device only some plugins fail.
        let requested_here = usize::try_from(requested).unwrap_or(usize::MAX);
        let first = networks.iter().skip(requested_here).find(|(_, _, nad)| nad.needs_device(scope));
        let Some((number, network, _)) = first.filter(|_| are_too_few) else { continue };
        let count = networks.len();
        let (these, devices) = (
            if count == 1 { "1 network".to_owned() } else { format!("{count} networks") },
            if requested == 1 { "1 device".to_owned() } else { format!("{requested} devices") },
        );
        let headline = format!("the pod selects {these} of resource {resource}, but requests {devices}");
        let note = format!("Multus has no device left for `{}`, whose plugin fails without one; {HANGS}", network.name);
        let help = format!("request {count} of {resource} in a container");
        let relation = format!("needs a device of {resource}");
        let related = network.nad().map(|nad| RelatedObject::new(NAD_KIND, nad, relation));
        selected.place(*number, network).report(&TOO_FEW, (headline, note, help), out).related_to(related);
    }
}

/// How many devices the containers request.
fn requested(workload: &Workload<'_>, resource: &str, is_prefix_assumed: bool) -> u64 {
    let name_only = |resource: &str| resource.rsplit_once('/').map_or(resource, |(_, name)| name).to_owned();
    let is_meant =
        |requested: &str| requested == resource || (is_prefix_assumed && name_only(requested) == name_only(resource));
    let counts = workload.requests.iter().filter(|(requested, _)| is_meant(requested)).map(|(_, count)| *count);
    counts.fold(0, u64::saturating_add)
}

fn check_arguments(
    selected: &SelectedNetworks<'_>,
    known: &[(usize, &SelectedNetwork, &NadSummary)],
    out: &mut Findings<'_>,
) {
    let unread = known.iter().filter(|(_, network, nad)| !network.arguments.without(nad.arguments).is_empty());
    for (number, network, nad) in unread.take(MAX_PER_RULE) {
        let lost = network.arguments.without(nad.arguments);
        for argument in Arguments::ALL.into_iter().filter(|argument| lost.has(*argument)) {
            let key = argument.key();
            let headline = format!("the pod asks `{}` for `{key}`, which no plugin of the NAD reads", network.name);
            let note = format!("`{key}` is ignored without an error");
            let help = format!(
                "declare \"capabilities\": {{\"{}\": true}} in the config of a plugin that implements it, or remove `{key}`",
                argument.capability()
            );
            let related = network.nad().map(|nad| RelatedObject::new(NAD_KIND, nad, format!("reads no `{key}`")));
            selected.place(*number, network).report(&NO_CAPABILITY, (headline, note, help), out).related_to(related);
        }
    }
}
