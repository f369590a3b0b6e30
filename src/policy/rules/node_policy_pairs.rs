//! Rules on two node policies that meet: on one PF, or by their resource name on one node. The operator's webhook compares only the
//! names of PFs, and ends at the first pair that does not overlap.

use super::super::finding::Findings;
use super::super::rule::rule;
use crate::policy::{Facts, NodePolicyFact, RelatedObject, SharedPf};
use crate::resources::{NODE_POLICY_KIND, NetworkNodePolicy};
use crate::visible::truncated;

rule! { SAME_NAME_ONE_PF = "node-policy/same-name-one-pf", Warn;
    wrong: "Two node policies split one PF, but have the same `resourceName`.";
    why: "When the operator merges policies on a PF, it keeps one group of VFs for each resource name. The range of the other policy is \
        never configured: its VFs keep their default driver and settings. The operator's webhook accepts both.";
    fix: "Give each policy its own `resourceName`, or write one policy with the whole range.";
}

rule! { OVERLAP = "node-policy/overlap", Warn;
    wrong: "Two node policies configure the same VFs of a PF.";
    why: "Of two groups that overlap the operator keeps one: that of the policy with the smaller number in `priority`, and among equals the \
        one whose name comes last. The other resource may have no devices, or devices with the wrong driver. The operator's webhook denies \
        some of these pairs: it compares names of PFs only, ends at the first pair that does not overlap, and never compares a name with \
        a PCI address or a vendor.";
    fix: "Give each policy a range of its own in `pfNames`, as in `ens1#0-3` and `ens1#4-7`.";
}

rule! { NUM_VFS = "node-policy/num-vfs", Warn;
    wrong: "Two node policies request different numbers of VFs for one PF.";
    why: "A PF has one number of VFs. Where the operator merges both policies, it takes the higher one; otherwise that of the policy with the \
        smaller number in `priority`. The operator's webhook does not compare them.";
    fix: "Write the same `numVfs` in both policies: the number for the whole PF.";
}

rule! { EXTERNALLY_MANAGED = "node-policy/externally-managed", Warn;
    wrong: "Two node policies on one PF disagree on `externallyManaged`.";
    why: "Either the operator creates the VFs of a PF or someone else does. The operator's webhook denies the second policy if both name \
        the PF; otherwise the policy with the smaller number in `priority` decides for both.";
    fix: "Write the same `externallyManaged` in both policies.";
}

rule! { SHARED_RESOURCE = "node-policy/shared-resource", Warn;
    wrong: "Two node policies offer one resource on the same nodes with different settings.";
    why: "The device plugin has one entry for each resource name. Of `isRdma`, `needVhostNet` and `vdpaType` it gets the values of one \
        policy: the one with the greater number in `priority`, and among equals the one whose name comes first. The operator's webhook \
        denies different values of `excludeTopology`.";
    fix: "Write the same values in both policies, or give each its own `resourceName`.";
}

/// The rules on what a policy has in common with others.
pub(super) fn check(policy: &NetworkNodePolicy<'_>, facts: &Facts, out: &mut Findings<'_>) {
    let neighbours = &facts.node_policies;
    if neighbours.pfs.is_empty() && neighbours.same_resource.is_empty() {
        return;
    }
    let own = NodePolicyFact::of(policy);
    // Each mistake is reported once for each other policy, however many PFs the two share.
    let mut reported: Vec<(&str, &NodePolicyFact)> = Vec::new();
    for shared in &neighbours.pfs {
        for (id, report) in CHECKS {
            let key = (id, &*shared.other);
            if !reported.contains(&key) && report(&own, shared, out) {
                reported.push(key);
            }
        }
    }
    for other in &neighbours.same_resource {
        shared_resource(&own, other, out);
    }
}

/// A check of two policies on one PF, which returns whether it reported something.
type PairCheck = fn(&NodePolicyFact, &SharedPf, &mut Findings<'_>) -> bool;

const CHECKS: [(&str, PairCheck); 3] = [("vfs", vfs), ("numVfs", num_vfs), ("externallyManaged", externally_managed)];

/// Another policy, which is in the namespace of the judged one: who writes it may read the others.
fn named(other: &NodePolicyFact) -> String {
    format!("policy `{}`", truncated(other.key.name(), 40))
}

/// The same with its place in a file.
fn related(other: &NodePolicyFact, relation: String) -> [RelatedObject; 1] {
    [RelatedObject::new(NODE_POLICY_KIND, other.key.clone(), relation)]
}

/// A PF, and on which node both policies mean it where they themselves do not say so.
fn place(shared: &SharedPf) -> String {
    let pf = truncated(shared.pf.as_str(), 24);
    match &shared.node {
        None => format!("`{pf}`"),
        Some(node) => format!("`{pf}` of node `{}`", truncated(node.as_ref(), 24)),
    }
}

/// Where the judged policy names the PF.
fn pointer(shared: &SharedPf) -> String {
    match shared.entry {
        Some(at) => format!("/spec/nicSelector/pfNames/{at}"),
        None => "/spec/nicSelector".to_owned(),
    }
}

fn vfs(own: &NodePolicyFact, shared: &SharedPf, out: &mut Findings<'_>) -> bool {
    let (Some(range), Some(their)) = (shared.own, shared.their) else { return false };
    let (other, pf) = (named(&shared.other), place(shared));
    let ranges = format!("VFs {}-{} and {}-{} of PF {pf}", range.from, range.to, their.from, their.to);
    if range.overlaps(their) {
        let headline = format!("VFs {}-{} of {pf} overlap with those of {other}", range.from, range.to);
        let note = format!("of the two groups, {ranges}, the operator configures one");
        let help = "give each policy its own range in pfNames, as in `ens1#0-3` and `ens1#4-7`";
        let relation = format!("configures VFs {}-{} of {pf}", their.from, their.to);
        out.object(&OVERLAP, pointer(shared), headline, note, help).related_to(related(&shared.other, relation));
        return true;
    }
    if own.resource_name.is_empty() || own.resource_name != shared.other.resource_name {
        return false;
    }
    let name = truncated(own.resource_name.as_ref(), 40);
    let headline = format!("{other} has resourceName `{name}` on the same PF");
    let note = format!("the operator keeps one group of VFs for each name: of {ranges} one is never configured");
    let help = "give each policy its own resourceName, or write one policy with the whole range";
    let relation = format!("has the same resourceName for VFs {}-{} of {pf}", their.from, their.to);
    let finding = out.object(&SAME_NAME_ONE_PF, "/spec/resourceName", headline, note, help);
    finding.related_to(related(&shared.other, relation));
    true
}

fn num_vfs(own: &NodePolicyFact, shared: &SharedPf, out: &mut Findings<'_>) -> bool {
    let (Some(count), Some(their)) = (own.num_vfs, shared.other.num_vfs) else { return false };
    // A policy without VFs is not applied to a PF.
    if count == their || count.min(their) < 1 {
        return false;
    }
    let (other, pf) = (named(&shared.other), place(shared));
    let headline = format!("numVfs is {count}, but {their} in {other}");
    let note =
        format!("PF {pf} has one number of VFs: the operator takes the higher one where it merges both policies");
    let finding = out.object(&NUM_VFS, "/spec/numVfs", headline, note, "write the same numVfs in both policies");
    finding.related_to(related(&shared.other, format!("requests {their} VFs of {pf}")));
    true
}

fn externally_managed(own: &NodePolicyFact, shared: &SharedPf, out: &mut Findings<'_>) -> bool {
    let (Some(is_own), Some(is_their)) = (own.is_externally_managed, shared.other.is_externally_managed) else {
        return false;
    };
    if is_own == is_their {
        return false;
    }
    let (other, pf) = (named(&shared.other), place(shared));
    let headline = format!("externallyManaged is {is_own}, but {is_their} in {other}");
    let note =
        format!("either the operator creates the VFs of PF {pf} or someone else does; one policy decides for both");
    let help = "write the same value in both policies";
    let finding = out.object(&EXTERNALLY_MANAGED, "/spec/externallyManaged", headline, note, help);
    finding.related_to(related(&shared.other, format!("selects {pf}, too")));
    true
}

fn shared_resource(own: &NodePolicyFact, other: &NodePolicyFact, out: &mut Findings<'_>) {
    for ((field, own), (_, their)) in own.shared.iter().zip(&other.shared) {
        let (Some(own), Some(their)) = (own, their) else { continue };
        if own == their {
            continue;
        }
        let show = |value: &str| if value.is_empty() { "absent".to_owned() } else { truncated(value, 16) };
        let headline = format!("{field} is {}, but {} in {}", show(own), show(their), named(other));
        let note = match *field {
            "excludeTopology" => "both offer the same resource on the same nodes; the operator's webhook denies that",
            _ => "both offer the same resource on the same nodes; the device plugin gets the value of one policy",
        };
        let help = "write the same value in both policies, or give each its own resourceName";
        let finding = out.object(&SHARED_RESOURCE, format!("/spec/{field}"), headline, note, help);
        finding.related_to(related(other, "offers the same resource".to_owned()));
    }
}
