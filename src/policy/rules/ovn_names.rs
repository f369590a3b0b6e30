//! Networks of OVN-Kubernetes that another NAD defines differently.

use super::super::NeighbourFact;
use super::super::finding::Findings;
use super::super::rule::rule;
use super::neighbours::NeighbourCheck;
use crate::cni::OVN_PLUGIN;
use crate::cni::releases::{Program, Since};
use crate::json::Span;

rule! { NAME_CONFLICT = "ovn/name-conflict", Deny;
    wrong: "Another NAD of the namespace defines a network of this `name` differently.";
    why: "The networks of OVN-Kubernetes have one `name` in the whole cluster. NADs with the same `name` are the same network and must \
        agree in topology, role, mtu, subnets, VLAN and the other keys of the network. OVN-Kubernetes takes the first; the other one \
        gets no network (\"CNI config does not match that of network\"), and its control plane does not start again while both are \
        there. Of two NADs, the later one is denied if OVN-Kubernetes certainly takes the other one: in a cluster that one has the \
        annotation `k8s.ovn.org/network-id` and is read again before the denial; in `nadmit check` both are in one directory, and the \
        other one has nothing that a usual cluster rejects. Otherwise it is a warning.";
    fix: "Choose another `name`, or the same config. To change a network, delete its other NADs first.";
    releases: "Releases of OVN-Kubernetes before 1.1 compare fewer keys: if the policy names one (`versions`), this is a warning.";
}

rule! { NAME_TAKEN = "ovn/name-taken", Warn;
    wrong: "A NAD of another namespace defines a network of this `name` differently.";
    why: "As in ovn/name-conflict, OVN-Kubernetes creates no network from this NAD, and its control plane does not start again while both \
        are there. It is a warning, because otherwise whoever creates a NAD first could keep others from using its `name`. Where \
        namespaces belong to people who do not trust each other, the policy can set the rule to deny: the control plane is then safe \
        from a NAD that contradicts a network.";
    fix: "Choose another `name`, for example one that starts with the namespace; or write the same config.";
}

rule! { SECOND_PRIMARY = "ovn/second-primary", Deny;
    wrong: "The namespace already has a primary network.";
    why: "The pods of a namespace have one primary network of OVN-Kubernetes. It creates none from a second NAD with the role primary \
        (\"is primary for the namespace\"), and its control plane does not start again while both are there. Of two NADs, the later \
        one is denied where ovn/name-conflict would deny it. It is a warning if both define the same network: then one is about to \
        replace the other.";
    fix: "Remove `role`, or delete the other NAD first.";
}

/// Since when OVN-Kubernetes reads, and compares, `role`, `joinSubnet` and `physicalNetworkName`.
const ALL_KEYS: Since = Since { program: Program::OvnKubernetes, release: [1, 1, 0] };

const NOT_CREATED: &str =
    "OVN-Kubernetes creates no network from this NAD, and its control plane does not start again while both are there";

/// Reports the oldest NAD that OVN-Kubernetes takes instead of this one.
pub(super) fn check(about: &NeighbourCheck<'_>, out: &mut Findings<'_>) {
    let Some(own) = &about.summary.ovn else { return };
    let span = |key: &str| about.config.root.value_of(key).map(|value| value.span);
    let conflicts = |other: &&NeighbourFact| other.summary.ovn.as_ref().is_some_and(|ovn| own.conflicts(ovn));
    // One of the same namespace may deny, so it goes before those of others, and one that OVN-Kubernetes has accepted before the rest.
    let near = || about.earlier().filter(conflicts).filter(|other| about.is_in_same_namespace(other));
    let other = near().find(|other| about.is_accepted(other)).or_else(|| near().next());
    if let (Some(other), Some(span)) = (other.or_else(|| about.earlier().find(conflicts)), span("name")) {
        conflict(about, other, span, out);
    }
    let is_primary = |other: &&NeighbourFact| {
        about.is_in_same_namespace(other)
            && other.summary.ovn.as_ref().is_some_and(super::super::OvnNetwork::is_primary)
    };
    let primary = || about.earlier().filter(is_primary);
    // The same network under another name is that of a NAD which is being renamed: the old one is deleted later.
    let is_other = |other: &NeighbourFact| other.summary.ovn.as_ref().is_some_and(|ovn| !own.is_same_network(ovn));
    let denies = |other: &NeighbourFact| is_other(other) && about.is_accepted(other);
    let plugin = about.config.plugins.first().filter(|plugin| plugin.kind == OVN_PLUGIN);
    let role = plugin.and_then(|plugin| plugin.object.value_of("role"));
    if own.is_primary()
        && let (Some(other), Some(role)) = (primary().find(|other| denies(other)).or_else(|| primary().next()), role)
    {
        let is_certain = denies(other) && about.is_certain(other, &|other| is_primary(&other) && denies(other), out);
        let (who, related) = about.named(other, "is the primary network of the namespace", out);
        let headline = format!("{who} is the primary network of the namespace already");
        let help = "remove `role`, or delete the other NAD first";
        let finding = out.config(&SECOND_PRIMARY, role.span, headline, NOT_CREATED, help).related_to(related);
        if !is_certain {
            finding.at_most_warn();
        }
    }
}

fn conflict(about: &NeighbourCheck<'_>, other: &NeighbourFact, span: Span, out: &mut Findings<'_>) {
    let (Some(own), Some(ovn)) = (&about.summary.ovn, &other.summary.ovn) else { return };
    let (who, related) = about.named(other, "defines the same network differently", out);
    let headline = format!("{who} defines the network {:?} differently", own.name());
    let rule = if about.is_in_same_namespace(other) { &NAME_CONFLICT } else { &NAME_TAKEN };
    // What differs belongs into the help: an update that changes it keeps the mistake that was there before. Of a NAD that may not be
    // named, nothing is said.
    let help = match (related.is_some(), own.differences(ovn).first()) {
        (true, Some(key)) => format!("choose another `name`, or the same `{key}`"),
        _ => "choose another `name`".to_owned(),
    };
    let knows_all_keys = out.versions.reach(ALL_KEYS) != Some(false);
    let denies = |other: &NeighbourFact| {
        about.is_accepted(other) && other.summary.ovn.as_ref().is_some_and(|ovn| own.conflicts(ovn))
    };
    // What another namespace has denies only where the policy says so.
    let is_certain =
        about.is_accepted(other) && knows_all_keys && (rule == &NAME_TAKEN || about.is_certain(other, &denies, out));
    let finding = out.config(rule, span, headline, NOT_CREATED, help);
    finding.related_to(related);
    if !is_certain {
        finding.at_most_warn();
    }
}
