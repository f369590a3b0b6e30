//! Rules on the device resource of a NAD and on the network that owns it.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::super::{Facts, Lookup, MissingFact, Reference, Subject};
use crate::json::escape;
use crate::resources::{Nad, NetworkId, OWNER_REF};

rule! { MISSING = "nad/resource-name-missing", Patch + repairs;
    wrong: "A plugin needs a device, but the NAD does not name the resource to take it from.";
    why: "The annotation `k8s.v1.cni.cncf.io/resourceName` tells Multus which of the pod's devices belongs to this network. Without it \
        Multus passes no device to the plugin, and pods hang in ContainerCreating with \"VF pci addr is required\". nadmit adds the \
        annotation with the first value that it finds: from the owning network, the annotation, the config (`resourceName`), or the \
        policy's default for the namespace. In a NAD that belongs to a network it adds the key to the config too. If none of them has \
        a value, the NAD is denied. A NAD needs no resourceName if its pods claim their devices (DRA): if a DeviceClass of the SR-IOV \
        DRA driver names the NAD, or a claim in its namespace does and the driver is installed. If the driver is installed and nothing \
        names the NAD, this is a warning. In its mode MULTUS the driver does not use the names of NADs, and every NAD needs the annotation: \
        where the policy states that mode (`draMode`) it is denied, and where the driver's DaemonSet does it is a warning.";
    fix: "Add the annotation `k8s.v1.cni.cncf.io/resourceName: DOMAIN/NAME` with the name under which nodes offer the devices \
        (`kubectl get node -o yaml`, status.allocatable). If pods claim their devices, set `dra: allow` for the namespace in the \
        policy.";
}

rule! { MALFORMED = "nad/resource-name-malformed", Deny + repairs;
    wrong: "The resourceName is not of the form DOMAIN/NAME.";
    why: "Devices are found only under exactly the name that nodes offer, such as `openshift.io/mlxnics`. With a domain alone, a \
        domain given twice, or invalid characters, no pod gets a device; and where the network-resources-injector copies the name into \
        pods, the API server rejects these pods. If the owning network is known, nadmit writes its name instead. Devices \
        that pods claim (DRA) are found under the name that a DeviceAttributes object publishes, whatever its form: such a name is \
        accepted. Any other name without a domain can only be meant for claims, and is a warning.";
    fix: "Write the name exactly as nodes offer it: `kubectl get node -o yaml` lists it under status.allocatable.";
}

rule! { MISMATCH = "nad/resource-name-mismatch", Patch + repairs;
    wrong: "The NAD's annotation, its config and its network do not name the same resource.";
    why: "Multus gives pods a device of the resource in the annotation; people read the one in the config; the operator writes that of \
        the network. If they differ, pods get devices that somebody did not intend. nadmit writes the resource of the owning network \
        everywhere. If the owner is not known, or only the part before the slash differs, this is a warning; so is \
        a name that the SR-IOV DRA driver publishes with another domain or with none, where the driver is in its mode MULTUS.";
    fix: "Correct the wrong one of them. If the owning network itself is wrong, change its `resourceName`.";
}

rule! { STATIC_DEVICE = "nad/static-device-id", Warn;
    wrong: "`deviceID` names one fixed device instead of a resource.";
    why: "Every pod gets this one device, on whatever node it runs. The scheduler does not know of it, so it works for one pod on one \
        node at most.";
    fix: "Remove `deviceID`, and name the resource in the annotation `k8s.v1.cni.cncf.io/resourceName`.";
}

rule! { FORGED_OWNER = "nad/forged-owner", Deny;
    wrong: "The NAD names one network as its owner, but another network renders it.";
    why: "Somebody other than the operator set the owner-ref annotation. The operator does not touch a NAD that belongs to another \
        network, so the network that renders this NAD never gets it. It is denied only if the network that renders this NAD is known \
        to exist; otherwise, as in a restore that creates NADs first, it is a warning.";
    fix: "Remove the annotation `sriovnetwork.openshift.io/owner-ref`: only the operator sets it.";
}

rule! { OVERWRITES = "nad/operator-overwrites", Warn;
    wrong: "A hand-written NAD has the name of a NAD that a network renders.";
    why: "At its next reconcile the operator replaces the hand-written NAD, with its annotations and labels, by the one that it \
        renders.";
    fix: "Put the settings into the network, or rename the NAD.";
}

/// What a fixed `deviceID` means.
pub(in crate::policy) const ONE_DEVICE: &str = "every pod gets this one device, on whatever node it runs";

/// The rules on the owner of a NAD.
pub(crate) fn check_owner(
    nad: &Nad<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    operator: bool,
    out: &mut Findings<'_>,
) {
    let here = nad.meta.namespace.as_ref();
    let place = facts.renderers(scope.policy, here);
    // The operator treats an empty value as absent.
    let Some(owner_ref) = nad.meta.annotation(OWNER_REF).filter(|text| !text.is_empty()) else {
        // A stored NAD belongs to that network: older operators do not set the owner-ref. An audit reports differences.
        let is_ours = operator || facts.stored.is_some();
        if let (false, Some(network), None) = (is_ours, place.first(), nad.meta.owner()) {
            let who = named(&network.id, here, facts, out);
            let headline = format!("{who} renders a NAD of this name");
            let note = "the operator replaces this NAD, with its annotations and labels, at its next reconcile";
            let help = "move the settings into the network, or rename the NAD";
            out.object(&OVERWRITES, "/metadata/name", headline, note, help);
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
    // The network that it names may be newer than the caches, and is read for a repair. It is the owner only if it renders this NAD: an
    // annotation alone proves nothing.
    if let Lookup::Found(network) = &facts.named_owner
        && Some(&network.id) == claimed.as_ref()
        && network.renders(&nad.meta.namespace, &nad.meta.name)
        && scope.policy.may_render(network, here, facts)
    {
        return;
    }
    // Caches may be stale: the networks are read live before anything is reported.
    if facts.claimants.is_some() && !facts.claimants_read {
        let known = place.iter().map(|network| network.id.clone());
        out.request(MissingFact::Claimants { networks: claimed.clone().into_iter().chain(known).collect() });
    }
    let pointer = format!("/metadata/annotations/{}", escape(OWNER_REF));
    let owner = claimed.as_ref().map_or_else(|| format!("{owner_ref:?}"), NetworkId::to_string);
    let help = "remove the annotation sriovnetwork.openshift.io/owner-ref; only the operator sets it";
    match place.first() {
        Some(other) => {
            let who = named(&other.id, here, facts, out);
            let headline = format!("owner-ref names {owner}, but {who} renders this NAD");
            let note = "the operator would never write this NAD again";
            out.object(&FORGED_OWNER, pointer, headline, note, help);
        }
        None => {
            // Whether a network exists in another namespace must not leak.
            let is_absent = facts.named_owner == Lookup::Absent
                && claimed.is_none_or(|id| out.may_name(Reference::Network(id), here, facts));
            let what = if is_absent { "does not exist" } else { "is not known to render this NAD" };
            let headline = format!("owner-ref names {owner}, which {what}");
            let note = "the operator does not update a NAD that names another owner";
            out.object(&FORGED_OWNER, pointer, headline, note, help).at_most_warn();
        }
    }
}

/// The name of a network if the reader may know it, otherwise only its kind.
pub(in crate::policy) fn named(id: &NetworkId, namespace: &str, facts: &Facts, out: &mut Findings<'_>) -> String {
    match out.may_name(Reference::Network(id.clone()), namespace, facts) {
        true => id.to_string(),
        false => unnamed(id),
    }
}

/// A network that the reader may not know.
pub(in crate::policy) fn unnamed(id: &NetworkId) -> String {
    format!("a {} of another namespace", id.kind.name())
}

#[cfg(test)]
mod tests {
    use crate::policy::{Facts, MissingFact, Policy, Subject, judge};
    use crate::resources::Object;

    /// Networks that are only cached are read before somebody is accused of a forged owner.
    #[test]
    fn the_owner_is_looked_for_once() {
        let nad = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps",
            "annotations":{"sriovnetwork.openshift.io/owner-ref":"SriovNetwork.sriovnetwork.openshift.io/op/net"}},
            "spec":{"config":"{\"cniVersion\":\"1.0.0\",\"type\":\"macvlan\"}"}}"#;
        let object = Object::read(nad).unwrap().unwrap();
        for (claimants, claimants_read, is_asked) in [
            (None, false, false),
            (None, true, false),
            (Some(Vec::new()), false, true),
            (Some(Vec::new()), true, false),
        ] {
            let facts = Facts { claimants, claimants_read, ..Facts::default() };
            let subject = Subject { writer: Some("jane"), is_final: true, ..Subject::manifest(&object) };
            let verdict = judge(&subject, &facts, &Policy::default());
            let rules: Vec<_> = verdict.findings.iter().map(|finding| finding.rule.id).collect();
            assert_eq!(rules, ["nad/forged-owner"], "{claimants_read}");
            let asks = matches!(verdict.missing_fact, Some(MissingFact::Claimants { .. }));
            assert_eq!(asks, is_asked, "{claimants_read} {:?}", verdict.missing_fact);
        }
    }
}
