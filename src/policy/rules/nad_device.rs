//! The device behind a NAD, and the network it belongs to.

use super::super::file::Scope;
use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::{Facts, Lookup, Reference, Subject, Wanted};
use crate::json::escape;
use crate::resources::{Nad, NetworkId, OWNER_REF};

rule! { MISSING = "nad/resource-name-missing", Patch + repairs;
"a device plugin without the resourceName its devices come from";
"Multus looks the device up by the annotation `k8s.v1.cni.cncf.io/resourceName` and by nothing else. Without it no device is handed over and \
pods hang in ContainerCreating with \"VF pci addr is required\". The value is taken from the owning network, the annotation, the config or the \
policy, in this order; where none of them has it, the NAD is refused. In a NAD that belongs to a network the config gets the key too." }

rule! { MALFORMED = "nad/resource-name-malformed", Deny + repairs;
"a resourceName that is there and cannot be one";
"The value must be, letter by letter, the name under which nodes offer the devices: `<domain>/<name>`. A bare prefix or a doubled one matches \
nothing, and where the network-resources-injector copies it into pods, the API server refuses those pods. Without a domain it can only be meant \
for claims (DRA), which gets a warning. Repaired where the owning network is known." }

rule! { MISMATCH = "nad/resource-name-mismatch", Patch + repairs;
"annotation, config and owning network name different resources";
"Multus follows the annotation, people read the config, and the operator will write what the network says. They are compared after the slash. \
Where the owning network is known its word is written; otherwise, and where only the domain differs, this is a warning." }

rule! { STATIC_DEVICE = "nad/static-device-id", Warn;
"a fixed `deviceID` instead of a resource";
"It works for one pod on one node: every pod gets the same device, without the scheduler knowing." }

rule! { FORGED_OWNER = "nad/forged-owner", Deny;
"an owner-ref annotation set by someone who is not the operator, on a NAD that another network renders";
"The operator leaves a NAD alone that names another owner, so the network that should render it never gets its NAD. Refused only where that other \
network is known to be there; otherwise (a restore brings the NADs first) a warning." }

rule! { OVERWRITES = "nad/operator-overwrites", Warn;
"a hand-written NAD where a network renders one";
"The operator replaces a NAD of that name that names no owner, with all its annotations and labels, at its next reconcile." }

/// Who this NAD belongs to, and who says so.
pub(crate) fn check_owner(
    nad: &Nad<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &Scope<'_>,
    operator: bool,
    out: &mut Findings<'_>,
) {
    let here = nad.meta.namespace.as_ref();
    let place = facts.renderers(scope.policy, here);
    // The operator takes an empty one for none.
    let Some(owner_ref) = nad.meta.annotation(OWNER_REF).filter(|text| !text.is_empty()) else {
        // One that is stored is that network's: older operators do not write whose it is. Where it differs, an audit says so.
        let is_ours = operator || facts.stored.is_some();
        if let (false, Some(network), None) = (is_ours, place.first(), nad.meta.owner()) {
            let who = named(&network.id, here, facts, out);
            let message = format!("{who} renders a NAD of this name here: the operator will replace this one");
            out.object(
                &OVERWRITES,
                "/metadata/name",
                message,
                "write what you need into the network, or give the NAD another name",
            );
        }
        return;
    };
    if operator || subject.writer.is_none() {
        return;
    }
    let before = subject.old.and_then(|old| old.meta().annotation(OWNER_REF));
    if before.as_ref() == Some(&owner_ref) {
        return;
    }
    let claimed = NetworkId::parse(&owner_ref);
    // The operator writes `unknown` for the kind when it has lost it.
    let unknown = |id: &NetworkId| format!("unknown/{}/{}", id.namespace, id.name);
    if place.iter().any(|network| Some(&network.id) == claimed.as_ref() || unknown(&network.id) == *owner_ref) {
        return;
    }
    // Caches lag: before anything is said, the networks are read as they are now.
    if facts.claimants.is_some() && !facts.claimants_read {
        let known = place.iter().map(|network| network.id.clone());
        out.wants(Wanted::Claimants { networks: claimed.clone().into_iter().chain(known).collect() });
    }
    let pointer = format!("/metadata/annotations/{}", escape(OWNER_REF));
    let help = "leave the annotation sriovnetwork.openshift.io/owner-ref to the operator";
    match place.first() {
        Some(other) => {
            let who = named(&other.id, here, facts, out);
            let message = format!(
                "the owner-ref annotation names \"{owner_ref}\", but {who} renders this NAD: the operator would never write it again"
            );
            out.object(&FORGED_OWNER, pointer, message, help);
        }
        None => {
            // Whether a network of another namespace exists is not everybody's business.
            let is_absent = facts.named_owner == Lookup::Absent
                && claimed.is_none_or(|id| out.may_name(Reference::Network(id), here, facts));
            let what = if is_absent { "is not there" } else { "is not known to render this NAD" };
            let message = format!("the owner-ref annotation names \"{owner_ref}\", which {what}");
            out.object(&FORGED_OWNER, pointer, message, help).at_most_warn();
        }
    }
}

/// A network by its name, where it may be named.
pub(in crate::policy) fn named(id: &NetworkId, namespace: &str, facts: &Facts, out: &mut Findings<'_>) -> String {
    match out.may_name(Reference::Network(id.clone()), namespace, facts) {
        true => id.to_string(),
        false => format!("a {} of another namespace", id.kind.name()),
    }
}
