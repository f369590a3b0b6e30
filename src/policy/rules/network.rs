//! Rules on networks: mistakes that otherwise surface only in the operator.

use super::super::file::is_default_operator_namespace;
use super::super::finding::Findings;
use super::super::resource_name::is_name;
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::super::similar::{named_once, suggest};
use super::super::{Facts, Lookup, NamespaceState, NetworkFact, Reference, RelatedObject, Subject, served_resource};
use super::last_namespace;
use super::nad_device::{named, unnamed};
use crate::json::escape;
use crate::resources::{Network, NetworkKind, Object, crd};
use crate::visible::truncated;

rule! { RESOURCE_NAME = "network/resource-name", Deny;
    wrong: "`resourceName` is empty, too long, has invalid characters, or includes a domain.";
    why: "The operator puts its own domain in front, and writes the result into the NAD. Nodes offer no resource `openshift.io/` or \
        `openshift.io/openshift.io/cx7`, so the plugin gets no device, and pods hang in ContainerCreating.";
    fix: "Write the `resourceName` of the SriovNetworkNodePolicy: at most 63 letters, digits, `_`, `-` and `.`, without a domain.";
}

rule! { TARGET_NAMESPACE = "network/target-namespace", Deny;
    wrong: "`networkNamespace` is set in a network outside of the operator's namespace.";
    why: "Only networks in the operator's own namespace may have their NAD in another namespace. The operator ignores this one, and \
        sets Ready=False. If the operator's namespace is not known, this is a warning.";
    fix: "Move the network to the operator's namespace; or remove `networkNamespace` and create the network in the namespace where its \
        pods are.";
}

rule! { NAMESPACE_ABSENT = "network/namespace-absent", Warn;
    wrong: "The namespace for the NAD does not exist, or is being deleted.";
    why: "The operator creates no NAD until the namespace exists, and pods there cannot use the network.";
    fix: "Create the namespace, or correct `networkNamespace`.";
}

rule! { CLAIMED = "network/claimed", Warn;
    wrong: "Another network or a hand-written NAD already has the name of this one's NAD.";
    why: "Two networks with the same name and target namespace render the same NAD: only one of them gets it, and the other never \
        becomes ready. A hand-written NAD of that name is replaced by the operator. It is a warning, because moving a network creates \
        the new one before the old one is deleted.";
    fix: "Rename one of the networks or the NAD, or change the `networkNamespace` of one network.";
}

rule! { NO_POLICY = "network/no-policy", Warn;
    wrong: "No SriovNetworkNodePolicy offers the `resourceName`.";
    why: "A policy makes nodes offer the devices. Without one no node has this resource, and pods that use the network stay Pending.";
    fix: "Correct `resourceName`, or create a SriovNetworkNodePolicy with it.";
}

rule! { MTU = "network/mtu", Deny;
    wrong: "The `mtu` of an OVSNetwork is negative.";
    why: "The CRD accepts the number, but the operator cannot decode it. One such object stops the operator's watch on all OVSNetworks \
        of the cluster.";
    fix: "Write a positive number, or remove `mtu`.";
}

rule! { MOVES_TO_NOWHERE = "network/moves-to-nowhere", Warn;
    wrong: "`networkNamespace` changes to a namespace that does not exist.";
    why: "The operator deletes the old NAD at once, but creates the new one only when the namespace exists. Until then pods cannot use \
        the network in either namespace.";
    fix: "Create the namespace first, then change `networkNamespace`.";
}

rule! { SCHEMA = "network/schema", Deny;
    wrong: "A field of the network has a value that the CRD does not allow.";
    why: "The API server rejects the object. In a review of manifests this finding shows it before anybody applies them.";
    fix: "Write a value that the message lists.";
}

rule! { UNKNOWN_FIELD = "network/unknown-field", Warn;
    wrong: "`spec` has a field that the CRD does not have.";
    why: "The API server drops unknown fields when it stores the object, so the setting never reaches the NAD.";
    fix: "Correct the spelling, or remove the field.";
}

const REJECTED: &str = "the API server rejects the object";

/// Whether a network is in the operator's namespace; `None` if that namespace is not known.
pub(super) fn is_in_operator_namespace(
    network: &Network<'_>,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
) -> Option<bool> {
    let here = network.meta.namespace.as_ref();
    let known = scope.policy.is_operator_namespace(here, facts);
    match known {
        Some(false) if here.is_empty() => None,
        None => is_default_operator_namespace(here).then_some(true),
        known => known,
    }
}

/// Whether a network requests its NAD in another namespace without being in the operator's; `None` if that cannot be known.
pub(super) fn is_foreign(network: &Network<'_>, facts: &Facts, scope: &NamespaceScope<'_>) -> Option<bool> {
    if network.target_namespace() == network.meta.namespace {
        return Some(false);
    }
    is_in_operator_namespace(network, facts, scope).map(|is_in_operator_namespace| !is_in_operator_namespace)
}

/// The rules for a network with a foreign target namespace. The operator creates no NAD for it, and its author must learn nothing
/// about that namespace.
pub(crate) fn check_foreign(
    network: &Network<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    target_namespace(network, facts, scope, out);
    last_namespace::forged(network, subject, facts, scope, out);
}

/// The rules on the network and on the known facts about the cluster.
pub(crate) fn check(
    network: &Network<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    schema(network, out);
    resource_name(network, out);
    target_namespace(network, facts, scope, out);
    // If the target may be foreign, its author must learn nothing about it either.
    if subject.writer.is_none() || is_foreign(network, facts, scope) == Some(false) {
        namespace_state(network, subject, facts, out);
        claimed(network, facts, scope, out);
    }
    no_policy(network, facts, scope, out);
    if let (NetworkKind::Ovs, Some(mtu)) = (network.kind, network.integer("mtu").filter(|mtu| *mtu < 0)) {
        let headline = format!("`spec.mtu` is {mtu}, expected a positive number");
        let note = "the operator cannot decode it, and its watch on all OVSNetworks of the cluster stops";
        out.object(&MTU, "/spec/mtu", headline, note, "write a positive number, or remove `mtu`");
    }
    last_namespace::check(network, subject, facts, scope, out);
}

fn schema(network: &Network<'_>, out: &mut Findings<'_>) {
    for wrong in &network.misshapen {
        let path = wrong.pointer.trim_start_matches('/').replace('/', ".");
        let headline = format!("`{path}` is {}, expected {}", wrong.found, wrong.expected);
        out.object(&SCHEMA, wrong.pointer.clone(), headline, REJECTED, wrong.help());
    }
    // Without a spec the CRD requires nothing in it; the rule on resourceName does.
    let has_spec = network.spec.keys().next().is_some();
    for violation in crd::violations(network.kind, &network.spec) {
        let is_absent = violation.found == "nothing";
        if is_absent && !has_spec {
            continue;
        }
        let path = violation.path.trim_start_matches('/').replace('/', ".");
        let expected = violation.expected;
        let (pointer, headline, help) = if is_absent {
            let help = format!("add `{path}`, {expected}");
            ("/spec".to_owned(), format!("`spec.{path}` is missing"), help)
        } else {
            let found = truncated(violation.found, 40);
            let headline = format!("`spec.{path}` is {found}, expected {expected}");
            (format!("/spec{}", violation.path), headline, format!("write {expected}"))
        };
        out.object(&SCHEMA, pointer, headline, REJECTED, help).replaced_by(violation.meant);
    }
    unknown_fields(network, out);
}

fn unknown_fields(network: &Network<'_>, out: &mut Findings<'_>) {
    let known = crd::fields(network.kind);
    let names = || known.iter().map(|field| field.name);
    let unknown = network.spec.keys().filter(|key| !names().any(|name| name == *key));
    let near: Vec<_> = unknown.map(|key| (key, suggest(key, names()))).collect();
    let named = named_once(near.iter().filter_map(|(_, close)| *close));
    for (key, close) in near {
        let longer = || names().find(|name| name.len() > 3 && key.to_lowercase().starts_with(&name.to_lowercase()));
        let headline = format!("{} has no field `{key}`", network.kind.name());
        let note = "the API server drops it, and the setting never reaches the NAD";
        let help = match close.map(|close| close.word).or_else(longer) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "remove it".to_owned(),
        };
        let is_free = |word: &str| named.contains(&word) && network.spec.raw(word).is_none();
        let fits = |word: &str| known.iter().any(|field| field.name == word && crd::accepts(field, &network.spec, key));
        let meant = close.filter(|close| close.is_only && is_free(close.word) && fits(close.word));
        let finding = out.object(&UNKNOWN_FIELD, format!("/spec/{}", escape(key)), headline, note, help);
        finding.about_key().replaced_by(meant.map(|close| close.word));
    }
}

fn resource_name(network: &Network<'_>, out: &mut Findings<'_>) {
    let has_spec = network.spec.keys().next().is_some();
    if has_spec && network.spec.text("resourceName").value().is_none() {
        // Absent or not a string: the schema rule reports it.
        return;
    }
    let name = network.text("resourceName");
    let problem = if name.is_empty() {
        "is empty"
    } else if name.contains('/') {
        "already has a domain"
    } else if name.len() > 63 {
        "is longer than 63 characters"
    } else if !is_name(&name) {
        "contains invalid characters"
    } else {
        return;
    };
    let pointer = if has_spec { "/spec/resourceName" } else { "/metadata/name" };
    let headline = format!("resourceName {:?} {problem}", truncated(name.as_ref(), 40));
    let note = "the operator adds its own domain in front; no node offers the resulting resource, and pods hang";
    let help = match name.rsplit_once('/') {
        Some((_, own)) if is_name(own) => format!("write `{own}`, the name in the SriovNetworkNodePolicy"),
        _ => "write the resourceName of the SriovNetworkNodePolicy: at most 63 letters, digits, `_`, `-` and `.`"
            .to_owned(),
    };
    out.object(&RESOURCE_NAME, pointer, headline, note, help);
}

fn target_namespace(network: &Network<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    let target = network.text("networkNamespace");
    let here = network.meta.namespace.as_ref();
    let known = scope.policy.is_operator_namespace(here, facts);
    if target.is_empty() || known.unwrap_or_else(|| is_default_operator_namespace(here)) {
        return;
    }
    let place =
        if here.is_empty() { "the namespace it is applied in".to_owned() } else { format!("namespace `{here}`") };
    match known {
        Some(_) if !here.is_empty() => {
            let headline = format!("networkNamespace `{target}` is allowed only in the operator's namespace");
            let note = format!("the network is in {place}; the operator ignores it (Ready=False) and creates no NAD");
            let help = "move the network to the operator's namespace, or remove networkNamespace and create the network in the target namespace";
            out.object(&TARGET_NAMESPACE, "/spec/networkNamespace", headline, note, help);
        }
        _ => {
            let headline = format!("networkNamespace `{target}` works only in the operator's namespace");
            let note = format!("nadmit does not know whether that is {place}; elsewhere the operator creates no NAD");
            let help = "set operator.namespace in the policy, or pass --operator-namespace";
            out.object(&TARGET_NAMESPACE, "/spec/networkNamespace", headline, note, help).at_most_warn();
        }
    }
}

fn namespace_state(network: &Network<'_>, subject: &Subject<'_>, facts: &Facts, out: &mut Findings<'_>) {
    let target = network.target_namespace();
    let state = match facts.target_namespace {
        Lookup::Absent => "does not exist",
        Lookup::Found(NamespaceState::Terminating) => "is being deleted",
        Lookup::Found(NamespaceState::Active) | Lookup::Unknown => return,
    };
    let before = match subject.old {
        Some(Object::Network(old)) => Some(old.target_namespace()),
        _ => None,
    };
    if let (Some(before), Lookup::Absent) = (before.filter(|before| *before != target), &facts.target_namespace) {
        let headline = format!("the NAD moves from namespace `{before}` to `{target}`, which does not exist");
        let note = "the operator deletes the old NAD at once; until the namespace exists, pods have no NAD";
        let help = format!("create namespace `{target}` first");
        out.object(&MOVES_TO_NOWHERE, "/spec/networkNamespace", headline, note, help);
        return;
    }
    let pointer =
        if network.text("networkNamespace").is_empty() { "/metadata/namespace" } else { "/spec/networkNamespace" };
    let headline = format!("namespace `{target}` {state}");
    let note = "the operator creates no NAD until the namespace exists";
    out.object(&NAMESPACE_ABSENT, pointer, headline, note, format!("create namespace `{target}`"));
}

fn claimed(network: &Network<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    let id = network.id();
    let place = format!("{}/{}", network.target_namespace(), network.meta.name);
    let place = place.trim_start_matches('/');
    let target = network.target_namespace();
    let renders = |other: &&NetworkFact| other.id != id && scope.policy.may_render(other, &target, facts);
    if let Some(other) = facts.networks_here.iter().find(renders) {
        let is_named = out.may_name(Reference::Network(other.id.clone()), &id.namespace, facts);
        let who = if is_named { other.id.to_string() } else { unnamed(&other.id) };
        let relation = || format!("also renders the NAD {place}");
        let other_network = is_named.then(|| RelatedObject::new(other.id.kind.name(), other.id.key(), relation()));
        let headline = format!("{who} also renders the NAD {place}");
        let note = "only one of the two networks gets its NAD; the other never becomes ready";
        let help = "rename one of them, or change its target namespace";
        out.object(&CLAIMED, "/metadata/name", headline, note, help).related_to(other_network);
        return;
    }
    let Lookup::Found(nad) = &facts.nad_here else { return };
    let (headline, note) = match &nad.owner {
        Some(owner) if *owner == id => return,
        Some(owner) => {
            let owner = named(owner, &id.namespace, facts, out);
            (
                format!("the NAD {place} belongs to {owner}"),
                "the operator does not touch it, and this network never gets its NAD",
            )
        }
        // Older operators do not set the owner-ref, but last-network-namespace.
        None if network.is_rendered_to_target() => return,
        // Once both are stored, differences are reported as drift.
        None if facts.stored.is_some() => return,
        None => (format!("a hand-written NAD {place} exists"), "the operator replaces it with the NAD of this network"),
    };
    let nad =
        RelatedObject::new("NetworkAttachmentDefinition", network.nad_key(), "has the place of this network's NAD");
    out.object(&CLAIMED, "/metadata/name", headline, note, "rename the network or the NAD").related_to([nad]);
}

fn no_policy(network: &Network<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    let Some(offered) = &facts.offered else { return };
    let name = network.text("resourceName");
    let prefix = scope.prefix(facts).filter(|prefix| !prefix.assumed).map(|prefix| prefix.value);
    let is_offered = offered.iter().any(|known| *known == name)
        || served_resource(&facts.served_by_classes, &name, prefix).is_some();
    if name.is_empty() || is_offered {
        return;
    }
    let headline = format!("no SriovNetworkNodePolicy offers the resource `{name}`");
    let note = "no node has the devices; pods that use this network stay Pending";
    // Node policies are in the operator's own namespace.
    let close = suggest(&name, offered.iter().map(String::as_str)).filter(|_| {
        scope.policy.is_operator_namespace(&network.meta.namespace, facts) == Some(true)
            || out.may_name(Reference::NodePolicies, &network.meta.namespace, facts)
    });
    let help = match close {
        Some(close) => format!("did you mean `{}`?", close.word),
        None => format!("add a SriovNetworkNodePolicy with resourceName: {name}"),
    };
    // `cx6` beside `cx7` may be a resource that nobody showed us; only other case and separators are a misspelling for certain.
    let meant = close.filter(|close| close.is_only && close.has_same_letters);
    out.object(&NO_POLICY, "/spec/resourceName", headline, note, help).replaced_by(meant.map(|close| close.word));
}

#[cfg(test)]
mod tests;
