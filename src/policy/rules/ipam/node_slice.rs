//! Slices of a range for each node, which whereabouts keeps in a NodeSlicePool.

use super::super::super::finding::Findings;
use super::super::super::neighbours::{SliceUse, has_name};
use super::super::super::rule::rule;
use super::super::neighbours::NeighbourCheck;
use crate::cni::Config;

rule! { NODE_SLICE = "ipam/node-slice", Deny;
    wrong: "The node slices of whereabouts have no name, or contradict those of another NAD.";
    why: "The controller of whereabouts names the NodeSlicePool after `network_name`, or after the `name` beside the plugin's type; it \
        does not pass the name of a list on. Without a name it creates no pool, and every pod fails to start. Of all NADs with one \
        `network_name`, also of those that have none, it wants the same first range and, as a text, the same `node_slice_size`: \
        otherwise nodes get no slices any more. A NAD of another namespace, or one without slices, is a warning; so is one that \
        cannot be read again before the denial, or whose manifest is in another directory.";
    fix: "Set a `network_name` of its own. NADs that share it must have equal ranges and sizes.";
    releases: "whereabouts has node slices since release 0.9: they are denied if the policy names such a release (`versions`), and a \
        warning if it names none.";
}

/// Reports slices that get no name.
pub(in crate::policy::rules) fn check_name(config: &Config<'_>, out: &mut Findings<'_>) {
    let Some(slices) = SliceUse::of(config).filter(SliceUse::has_slices) else { return };
    let Some(value) = config.plugins.first().and_then(|plugin| plugin.ipam()?.0.value_of("node_slice_size")) else {
        return;
    };
    if slices.network_name().is_empty() && !has_name(config) {
        let headline = "the pool of the node slices has no name";
        let note = "whereabouts creates no NodeSlicePool, and every pod that uses this network fails to start";
        out.config(&NODE_SLICE, value.span, headline, note, "set `network_name` in `ipam`");
    }
}

/// Reports the oldest NAD with the same `network_name` and other slices.
pub(in crate::policy::rules) fn check(about: &NeighbourCheck<'_>, out: &mut Findings<'_>) {
    let Some(own) = &about.summary.slices else { return };
    let is_other =
        |other: &crate::policy::NeighbourFact| other.summary.slices.as_ref().is_some_and(|other| own.disagrees(other));
    // One of the same namespace may deny, so it goes before those of others.
    let near = about.earlier().find(|other| about.is_in_same_namespace(other) && is_other(other));
    let Some(other) = near.or_else(|| about.earlier().find(|other| is_other(other))) else { return };
    let Some((section, _)) = about.config.plugins.first().and_then(|plugin| plugin.ipam()) else { return };
    let at = ["node_slice_size", "network_name", "range", "ipRanges"].into_iter();
    let Some(value) = at.filter_map(|key| section.value_of(key)).next() else { return };
    let (who, related) = about.named(other, "has the same `network_name`", out);
    let name = match own.network_name() {
        "" => "no `network_name`, too,".to_owned(),
        name => format!("the `network_name` {name:?}, too,"),
    };
    let headline = format!("{who} has {name} and other node slices");
    let (note, is_certain) = match own.has_slices() {
        true => ("whereabouts cuts no slices for this NAD, and pods on new nodes fail to start", true),
        false => ("whereabouts cuts no more slices for that NAD, whose pods on new nodes fail to start", false),
    };
    let matters = |other: &crate::policy::NeighbourFact| is_other(other);
    let is_certain = is_certain && about.is_certain(other, &matters, out);
    let finding = out.config(&NODE_SLICE, value.span, headline, note, "set a `network_name` of its own in `ipam`");
    finding.related_to(related);
    if !is_certain {
        finding.at_most_warn();
    }
}
