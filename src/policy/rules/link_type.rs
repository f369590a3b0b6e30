//! The link type of a network's devices, which the node policies that offer them state.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use crate::policy::{Facts, Reference, RelatedObject};
use crate::resources::{NODE_POLICY_KIND, Network, NetworkKind};
use crate::visible::truncated;

rule! { LINK_TYPE = "network/link-type", Deny in check;
    wrong: "The devices of a network have another link type than its plugin needs.";
    why: "The NAD of a SriovNetwork always has a `vlan`, and the sriov plugin sets it on the PF: an InfiniBand PF rejects it. The NAD of a \
        SriovIBNetwork calls the ib-sriov plugin, which needs the GUID of an InfiniBand device. Either way pods hang in \
        ContainerCreating. If only some of the node policies that offer the resource have the wrong link type, or other devices may \
        be offered elsewhere, it is a warning. Of two manifests of one policy, both count.";
    fix: "Use a SriovIBNetwork for InfiniBand and a SriovNetwork for Ethernet, or name the resource of other devices.";
}

/// The rule on a network. A policy without `linkType` offers devices of either type, so it says nothing.
pub(super) fn check(network: &Network<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    let offered = &facts.link_types;
    let (wrong, have, needs, kind) = match network.kind {
        NetworkKind::Sriov => (&offered.infiniband, "InfiniBand", "Ethernet", "SriovIBNetwork"),
        NetworkKind::SriovIb => (&offered.ethernet, "Ethernet", "InfiniBand", "SriovNetwork"),
        NetworkKind::Ovs => return,
    };
    let Some(first) = &wrong.first else { return };
    let name = truncated(network.text("resourceName"), 40);
    let is_all = wrong.count == offered.policies;
    let headline = if is_all {
        format!("the devices of `{name}` are {have}, a {} needs {needs}", network.kind.name())
    } else {
        format!("some devices of `{name}` are {have}, a {} needs {needs}", network.kind.name())
    };
    let note = match network.kind {
        NetworkKind::Sriov => "the plugin cannot set the `vlan` on such a device; pods hang in ContainerCreating",
        _ => "the plugin finds no GUID on such a device; pods hang in ContainerCreating",
    };
    let help = format!("use a {kind}, or the resourceName of {needs} devices");
    // Node policies are in the operator's own namespace.
    let here = &network.meta.namespace;
    let is_named = scope.policy.is_operator_namespace(here, facts) == Some(true)
        || out.may_name(Reference::NodePolicies, here, facts);
    let relation = format!("offers {have} devices");
    let policy = is_named.then(|| RelatedObject::new(NODE_POLICY_KIND, first.clone(), relation));
    let finding = out.object(&LINK_TYPE, "/spec/resourceName", headline, note, help).related_to(policy);
    if !is_all {
        finding.at_most_warn();
    }
}
