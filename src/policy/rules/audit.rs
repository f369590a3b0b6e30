//! What can only be seen in a cluster, some time after the write: what never came, what drifted, what nobody lets go of.
//!
//! A finding is kept in the cluster as long as it is true, and written anew when its words change. So the words hold nothing that
//! changes by itself: no age, no count.

use super::super::file::Scope;
use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::{
    Action, Facts, Finding, Lookup, NamespaceState, NetworkFact, OperatorLife, Reference, Rewrites, Stored,
};
use super::drift;
use crate::json::escape;
use crate::resources::{Nad, Network, NetworkId, OWNER_REF, Object};

rule! { NAD_ABSENT = "audit/nad-absent", Warn;
"a network without its NAD, and why";
"The operator makes the NAD within a second of the network's last write, unless something is in its way: the namespace, a refusal, a field it \
cannot render, or its own silence. Until the NAD is there, pods that ask for it stay in ContainerCreating. Reported after the grace period, with \
the reason where it can be known." }

rule! { NAD_DRIFT = "audit/nad-drift", Warn;
"a NAD that is not what its network renders to";
"Pods get what the NAD says, people read what the network says. The NAD is compared with the network's rendering as admission completes it: \
the config by its values, whatever its format, and the resourceName. What differs between releases of the operator (`cniVersion`) does not count." }

rule! { NAD_INCOMPLETE = "audit/nad-incomplete", Patch + repairs;
"a stored NAD that admission would have completed";
"It was written before nadmit came, or while it was away. The operator takes it for settled and writes it no more, so that it stays incomplete \
until somebody completes it: the leader of `nadmit serve --register` does, and so does `nadmit audit --fix`." }

rule! { STUCK_DELETION = "audit/stuck-deletion", Warn;
"an object that waits for a finalizer nobody serves";
"It is deleted, and stays: its name stays taken, and its namespace cannot go either. Whoever put the finalizer there does not take it off: it is \
not running, or it fails each time." }

rule! { ORPHAN = "audit/orphan", Warn;
"a NAD that names a network as its owner which is not there";
"Nobody updates it and nobody deletes it, and pods go on using what an older network said." }

rule! { HOT_OBJECT = "audit/hot-object", Warn;
"an object that is written again and again, by whom, and what goes back and forth or is never the same";
"Two writers that undo each other never stop, nor does one that never writes the same twice and wakes itself: each write wakes everybody who watches the object, and what pods get depends on the moment. More \
writes in a minute than the policy's `audit.writesPerMinute` are taken for such a loop." }

rule! { OPERATOR_SILENT = "audit/operator-silent", Warn;
"several networks wait, and an operator that runs has written nothing since";
"An operator that lost its watches, or hangs in one reconcile, looks alive and does nothing. It does not recover by itself." }

/// The rules for a network that is stored.
pub(super) fn check_network(network: &Network<'_>, facts: &Facts, scope: &Scope<'_>, out: &mut Findings<'_>) {
    let Some(stored) = facts.stored.as_deref() else { return };
    let is_due = stored.unchanged_for >= scope.policy.audit.grace() && !network.meta.deleting;
    match &stored.nad {
        Lookup::Absent if is_due => absent(network, facts, stored, out),
        Lookup::Found(nad) if is_due => {
            if let Ok(Some(Object::Nad(nad))) = Object::read(nad)
                && !nad.meta.deleting
                && nad.meta.owner().is_none_or(|owner| owner == network.id())
                && facts.networks_here.iter().all(|other| other.id == network.id())
            {
                drifted(network, &nad, facts, scope, out);
            }
        }
        _ => {}
    }
    check_any(facts, scope, out);
}

/// The rules for a NAD that is stored.
pub(super) fn check_nad(nad: &Nad<'_>, facts: &Facts, scope: &Scope<'_>, out: &mut Findings<'_>) {
    if facts.stored.is_none() {
        return;
    }
    if let (Some(owner), false) = (nad.meta.owner(), nad.meta.deleting)
        && let Some(what) = gone(nad, &owner, facts)
    {
        let message = format!("{owner} made this NAD and {what}: nobody updates or deletes it, and pods still use it");
        let help = "delete the NAD, or bring the network back; a NAD that is meant to stay names no owner";
        let pointer = match nad.meta.annotation(OWNER_REF) {
            Some(_) => format!("/metadata/annotations/{}", escape(OWNER_REF)),
            None => "/metadata/ownerReferences".to_owned(),
        };
        out.object(&ORPHAN, pointer, message, help);
    }
    check_any(facts, scope, out);
}

/// That the network which a NAD names as its owner is not there, in words. Whether one of another namespace exists is not everybody's
/// business: to those who may not read it, one that renders to another place is as good as none.
fn gone(nad: &Nad<'_>, owner: &NetworkId, facts: &Facts) -> Option<&'static str> {
    let is_open = facts.names.allow(&Reference::Network(owner.clone()), &nad.meta.namespace);
    let is_elsewhere =
        |network: &NetworkFact| network.target_namespace != nad.meta.namespace || network.id.name != nad.meta.name;
    match &facts.named_owner {
        Lookup::Absent if is_open => Some("is not there any more"),
        Lookup::Absent => Some("is not there any more, or renders another one"),
        Lookup::Found(network) if !is_open && is_elsewhere(network) => {
            Some("is not there any more, or renders another one")
        }
        Lookup::Found(_) | Lookup::Unknown => None,
    }
}

/// The rules for whatever is stored, which look at nothing but the object itself.
pub(super) fn check_any(facts: &Facts, scope: &Scope<'_>, out: &mut Findings<'_>) {
    let Some(stored) = facts.stored.as_deref() else { return };
    if stored.deleting_for.is_some_and(|waits| waits >= scope.policy.audit.grace())
        && let Some(first) = stored.finalizers.first()
    {
        let message = format!(
            "it is deleted and stays, because nobody takes its finalizer {first} off: its name stays taken, and its namespace cannot go"
        );
        let help = "see whether the controller of that finalizer runs and what its log says; only where it is gone for good, take the finalizer off by hand";
        out.object(&STUCK_DELETION, "/metadata/finalizers", message, help);
    }
    let most = scope.policy.audit.writes_per_minute;
    if let Some(rewrites) = stored.rewrites.as_ref().filter(|rewrites| is_hot(rewrites, most)) {
        hot(rewrites, out);
    }
}

/// So many writes are no loop, however fast they come.
const FEW: f64 = 6.0;

fn is_hot(rewrites: &Rewrites, per_minute: u32) -> bool {
    let most = f64::from(per_minute) * (rewrites.within.as_secs_f64() / 60.0).min(1.0);
    // In a short time a few writes are no loop yet: a new network is written by its author, and then a few times by the operator.
    rewrites.count as f64 > most.max(FEW)
}

fn hot(rewrites: &Rewrites, out: &mut Findings<'_>) {
    let who = match rewrites.managers.as_slice() {
        [] => "somebody writes it again and again".to_owned(),
        [one] => format!("{one} writes it again and again"),
        [one, two] => format!("{one} and {two} write it in turns, again and again"),
        [one, two, ..] => format!("{one}, {two} and others write it again and again"),
    };
    let what = match (rewrites.fields.as_slice(), rewrites.always.as_slice()) {
        ([], []) => String::new(),
        ([], always) => format!(", each time with another {}", always.join(", ")),
        ([one], _) => format!(", and back and forth goes {one}"),
        (fields, _) => format!(", and back and forth go {}", fields.join(", ")),
    };
    let help = match rewrites.managers.len() {
        0 | 1 => "stop that writer, and see why it takes the object for changed each time",
        _ => "let one of them own these fields, and take them out of what the other writes",
    };
    out.object(&HOT_OBJECT, "", format!("{who}{what}: each write wakes everybody who watches it"), help);
}

/// The fact that the NAD is not there, and what is in its way.
fn absent(network: &Network<'_>, facts: &Facts, stored: &Stored, out: &mut Findings<'_>) {
    let target = network.target_namespace();
    let (reason, help) = match (&facts.target_namespace, &stored.refused, &stored.condition) {
        (Lookup::Absent, ..) => {
            (format!("namespace `{target}` is not there"), "create the namespace, or name another in networkNamespace")
        }
        (Lookup::Found(NamespaceState::Terminating), ..) => (
            format!("namespace `{target}` is being deleted"),
            "wait until it is gone and create it anew, or name another",
        ),
        (_, Some(refused), _) => {
            (format!("a dry run of it is refused: {refused}"), "mend what it is refused for, or whoever refuses it")
        }
        (_, _, Some(condition)) => (format!("the operator says: {condition}"), "mend what the operator names"),
        _ if drift::expected(network, facts).is_none() => (
            "the operator can make none of what is in the network's spec".to_owned(),
            "mend what else is found in this network",
        ),
        _ => silence(stored, out),
    };
    let message =
        format!("its NAD {target}/{} is not there: {reason}; pods that ask for it do not start", network.meta.name);
    out.object(&NAD_ABSENT, "", message, help);
}

/// Nothing is in the way but the operator.
fn silence(stored: &Stored, out: &mut Findings<'_>) -> (String, &'static str) {
    match stored.operator {
        OperatorLife::Gone => ("the operator does not run".to_owned(), "start the operator"),
        OperatorLife::Silent => {
            if stored.waiting > 1 {
                let message = "this and other networks wait for their NADs, and the operator runs and has written nothing since: it has gone deaf";
                out.object(
                    &OPERATOR_SILENT,
                    "",
                    message,
                    "restart the operator's pod, and keep its log for its authors",
                );
            }
            (
                "the operator runs, and has written nothing since the network was last written".to_owned(),
                "see the operator's log; restart it where it says nothing of this network",
            )
        }
        OperatorLife::Works => (
            "the operator has written other objects since, and not this NAD".to_owned(),
            "the operator's log says why: search it for the network's name",
        ),
        OperatorLife::Unknown => {
            ("nothing in the cluster says why".to_owned(), "see whether the operator runs, and its log")
        }
    }
}

fn drifted(network: &Network<'_>, nad: &Nad<'_>, facts: &Facts, scope: &Scope<'_>, out: &mut Findings<'_>) {
    let prefix = scope.prefix(facts).filter(|prefix| !prefix.assumed).map(|prefix| prefix.value);
    let differences = drift::differences(network, nad, prefix, facts);
    if differences.is_empty() {
        return;
    }
    let message = format!(
        "its NAD {}/{} is not what the network renders to: {}; pods get what the NAD says",
        network.target_namespace(),
        network.meta.name,
        differences.join("; ")
    );
    let help = "see who writes the NAD (`kubectl get --show-managed-fields`), and write the network once more: the operator then renders it anew";
    out.object(&NAD_DRIFT, "/spec", message, help);
}

/// Of a stored NAD, all that admission would repair is one thing: it is incomplete.
pub(in super::super) fn fold(findings: &mut Vec<Finding>, scope: &Scope<'_>) {
    let Some(at) = findings.iter().position(|finding| finding.action == Action::Patch) else { return };
    let action = scope.action(&NAD_INCOMPLETE).unwrap_or(NAD_INCOMPLETE.default);
    let mut folded: Vec<Finding> = findings.extract_if(at.., |finding| finding.action == Action::Patch).collect();
    if action == Action::Off {
        return;
    }
    let message = folded.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ");
    let repairs = folded.iter_mut().flat_map(|finding| std::mem::take(&mut finding.repairs)).collect();
    let Some(first) = folded.into_iter().next() else { return };
    let help = "`nadmit audit --fix` completes it, and so does the leader of `nadmit serve --register`".to_owned();
    let message =
        super::super::finding::shortened(format!("it was stored without what admission adds: {message}"), 400);
    findings.insert(at, Finding { rule: &NAD_INCOMPLETE, action, message, help, repairs, ..first });
}
