//! The annotation in which the operator records where it last put a network's NAD.

use super::super::file::Scope;
use super::super::finding::{Findings, Repair};
use super::super::rule::rule;
use super::super::{Facts, Lookup, Names, Subject, Wanted};
use super::network::is_at_home;
use crate::json::escape;
use crate::resources::{LAST_NAMESPACE, Network};

rule! { WEDGED = "network/wedged", Patch + repairs;
"a `last-network-namespace` annotation that stops the operator";
"The annotation tells the operator where it has to delete the old NAD of a network that moved. Where it is empty, or names a namespace in \
which there is no such NAD any more, deleting fails and the new NAD is never made, however often the operator tries. The annotation is taken \
out of the write, and the NAD comes as soon as its namespace is there." }

rule! { FORGED = "network/forged-last-namespace", Deny;
"a `last-network-namespace` annotation that somebody other than the operator sets to another namespace than the network's own target";
"The operator records in this annotation where it put the network's NAD, and deletes the NAD of that name there when the network goes \
elsewhere. Whoever sets it to another namespace has an operator that watches all namespaces delete somebody else's NAD. A value that \
was there before stays allowed, since people change `networkNamespace` beside it. Only a warning in the operator's own namespace, and where the operator's namespace is \
not known." }

/// The rules on the annotation.
pub(super) fn check(
    network: &Network<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &Scope<'_>,
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
    scope: &Scope<'_>,
    out: &mut Findings<'_>,
) -> bool {
    let Some(last) = network.meta.annotation(LAST_NAMESPACE) else { return false };
    // Only a network in the operator's namespace can have moved. For any other one, what is done about the annotation would show its
    // author which NADs other namespaces have, also in a report.
    let reads_all = subject.writer.is_none() && facts.names == Names::All;
    let may_look = reads_all || is_at_home(network, facts, scope) == Some(true);
    let message = if last.is_empty() {
        "the annotation last-network-namespace is empty: the operator fails on it at every retry and never makes the NAD".to_owned()
    } else if last == network.target_namespace() || !may_look {
        return false;
    } else {
        match facts.last_nad {
            Lookup::Found(()) => return false,
            Lookup::Unknown => {
                out.wants(Wanted::LastNad { namespace: last.into_owned() });
                return false;
            }
            Lookup::Absent => format!(
                "the annotation last-network-namespace names `{last}`, where there is no NAD of this network any more: \
                 the operator fails to delete it at every retry and never makes the new one"
            ),
        }
    };
    let pointer = format!("/metadata/annotations/{}", escape(LAST_NAMESPACE));
    out.object(&WEDGED, pointer, message, "it is taken away").mended_by([Repair::RemoveAnnotation(LAST_NAMESPACE)]);
    true
}

/// Whether somebody other than the operator says where the network was.
pub(super) fn forged(
    network: &Network<'_>,
    subject: &Subject<'_>,
    facts: &Facts,
    scope: &Scope<'_>,
    out: &mut Findings<'_>,
) {
    // An empty one stops the operator, and there is a rule about that.
    let Some(last) = network.meta.annotation(LAST_NAMESPACE).filter(|last| !last.is_empty()) else { return };
    let is_forger = |user: &str| !scope.policy.is_operator(user, facts);
    let before = subject.old.and_then(|old| old.meta().annotation(LAST_NAMESPACE));
    if !subject.writer.is_some_and(is_forger) || before.as_ref() == Some(&last) {
        return;
    }
    let is_at_home = is_at_home(network, facts, scope);
    // Elsewhere `networkNamespace` means nothing to the operator.
    let target = if is_at_home == Some(false) { network.meta.namespace.clone() } else { network.target_namespace() };
    if last == target {
        return;
    }
    let name = network.meta.name.as_ref();
    let message = format!(
        "the annotation last-network-namespace names `{last}`, not this network's namespace `{target}`: an operator that watches all \
         namespaces deletes the NAD {last}/{name}"
    );
    let pointer = format!("/metadata/annotations/{}", escape(LAST_NAMESPACE));
    let help = "leave the annotation to the operator";
    let finding = out.object(&FORGED, pointer, message, help);
    if is_at_home != Some(false) {
        finding.at_most_warn();
    }
}
