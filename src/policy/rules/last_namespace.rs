//! The annotation in which the operator records where it last created a network's NAD.

use super::super::finding::{Findings, Repair};
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::super::{Facts, Lookup, MissingFact, NameVisibility, Subject};
use super::network::is_in_operator_namespace;
use crate::json::escape;
use crate::resources::{LAST_NAMESPACE, Network};

rule! { WEDGED = "network/wedged", Patch + repairs;
    wrong: "The annotation last-network-namespace keeps the operator from creating the NAD.";
    why: "The annotation `operator.sriovnetwork.openshift.io/last-network-namespace` tells the operator where to delete the old NAD of \
        a network that moved. If it is empty, or names a namespace that has no such NAD, the deletion fails at every retry and the new \
        NAD is never created. nadmit removes the annotation from the write, and the operator then creates the NAD once the target \
        namespace exists.";
    fix: "Remove the annotation. Do not copy it from a backup or between clusters: only the operator sets it.";
}

rule! { FORGED = "network/forged-last-namespace", Deny;
    wrong: "A user other than the operator set last-network-namespace to another namespace.";
    why: "The operator records in this annotation where the network's NAD is, and deletes the NAD of that name there when the network \
        moves. If it is set to another namespace, an operator that watches all namespaces deletes somebody else's NAD. A value that \
        was stored before is accepted, because `networkNamespace` may change beside it. In the operator's own namespace, and if that \
        is not known, this is a warning.";
    fix: "Remove the annotation: only the operator sets it.";
}

/// The rules on the annotation.
pub(super) fn check(
    network: &Network<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    if !wedged(network, subject, facts, scope, out) {
        forged(network, subject, facts, scope, out);
    }
}

/// True if the annotation stops the operator, and is removed.
fn wedged(
    network: &Network<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) -> bool {
    let Some(last) = network.meta.annotation(LAST_NAMESPACE) else { return false };
    // Only a network in the operator's namespace can have moved. For any other one, the handling of the annotation would reveal
    // to its author which NADs exist in other namespaces, also through a report.
    let reads_all = subject.writer.is_none() && facts.names == NameVisibility::All;
    let may_look = reads_all || is_in_operator_namespace(network, facts, scope) == Some(true);
    let (headline, note) = if last.is_empty() {
        let note = "the operator fails on it at every retry and never creates the NAD";
        ("annotation last-network-namespace is empty".to_owned(), note)
    } else if last == network.target_namespace() || !may_look {
        return false;
    } else {
        match facts.last_nad {
            Lookup::Found(()) => return false,
            Lookup::Unknown => {
                out.request(MissingFact::LastNad { namespace: last.into_owned() });
                return false;
            }
            Lookup::Absent => (
                format!("annotation last-network-namespace is `{last}`, where this network has no NAD"),
                "the operator fails to delete that NAD at every retry and never creates the new one",
            ),
        }
    };
    let pointer = format!("/metadata/annotations/{}", escape(LAST_NAMESPACE));
    out.object(&WEDGED, pointer, headline, note, "nadmit removes the annotation")
        .with_repairs([Repair::RemoveAnnotation(LAST_NAMESPACE)]);
    true
}

/// Reports an annotation that was set by someone other than the operator.
pub(super) fn forged(
    network: &Network<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    // An empty one stops the operator; another rule reports that.
    let Some(last) = network.meta.annotation(LAST_NAMESPACE).filter(|last| !last.is_empty()) else { return };
    let is_forger = |user: &str| !scope.policy.is_operator(user, facts);
    let before = subject.old.and_then(|old| old.meta().annotation(LAST_NAMESPACE));
    if !subject.writer.is_some_and(is_forger) || before.as_ref() == Some(&last) {
        return;
    }
    let is_in_operator_namespace = is_in_operator_namespace(network, facts, scope);
    // In other namespaces the operator ignores `networkNamespace`.
    let target = if is_in_operator_namespace == Some(false) {
        network.meta.namespace.clone()
    } else {
        network.target_namespace()
    };
    if last == target {
        return;
    }
    let name = network.meta.name.as_ref();
    let headline = format!("annotation last-network-namespace is `{last}`, expected `{target}`");
    let note = format!("an operator that watches all namespaces deletes the NAD {last}/{name}");
    let pointer = format!("/metadata/annotations/{}", escape(LAST_NAMESPACE));
    let help = "remove the annotation; only the operator sets it";
    let finding = out.object(&FORGED, pointer, headline, note, help);
    if is_in_operator_namespace != Some(false) {
        finding.at_most_warn();
    }
}
