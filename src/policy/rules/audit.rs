//! Rules that need a stored object and time: NADs that were never created, drift, and deletions that hang.
//!
//! A finding is kept in the cluster as long as it holds, and rewritten when its text changes. So texts contain nothing that
//! changes by itself: no age and no count.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::super::{
    Action, Facts, Finding, Lookup, NamespaceState, NetworkFact, OperatorHealth, Reference, Rewrites, StoredState,
};
use super::drift;
use crate::json::escape;
use crate::resources::{Nad, Network, NetworkId, OWNER_REF, Object};

rule! { NAD_ABSENT = "audit/nad-absent", Warn;
    wrong: "The NAD of a network does not exist.";
    why: "The operator creates the NAD within a second after the network is written, unless something prevents it: a missing \
        namespace, a denial, a field that it cannot render, or because it stopped reconciling. Until the NAD exists, pods that use it \
        do not start. It is reported after a grace period (`audit.graceSeconds`), with the reason if that is known.";
    fix: "Remove the reason that the message names; else look for the network's name in the operator's log.";
}

rule! { NAD_DRIFT = "audit/nad-drift", Warn;
    wrong: "A NAD differs from what its network renders.";
    why: "Pods use the NAD, but people read the network. nadmit compares the NAD with what the operator renders and admission \
        completes: the resourceName, and the values of the config regardless of their formatting. `cniVersion`, which differs between \
        releases of the operator, is not compared.";
    fix: "Find out who writes the NAD (`kubectl get --show-managed-fields`), then write the network once more, so that the operator \
        renders the NAD again.";
}

rule! { NAD_INCOMPLETE = "audit/nad-incomplete", Patch + repairs;
    wrong: "A stored NAD lacks what admission would have added, such as its resourceName.";
    why: "It was written before nadmit was installed, or while nadmit was unavailable. The operator sees no difference and does not \
        write it again, so pods that use it keep failing until it is completed: by the leader of `nadmit serve --register`, or by \
        `nadmit audit --fix`.";
    fix: "Run `nadmit audit --fix`, or let the leader complete it.";
}

rule! { STUCK_DELETION = "audit/stuck-deletion", Warn;
    wrong: "An object was deleted, but a finalizer keeps it.";
    why: "The name stays taken, and the namespace cannot be deleted. The controller that set the finalizer does not remove it: it does \
        not run, or it fails each time.";
    fix: "Check that the controller of the finalizer runs, and read its log. Remove the finalizer by hand only if that controller no \
        longer exists.";
}

rule! { ORPHAN = "audit/orphan", Warn;
    wrong: "The network that owns a NAD does not exist.";
    why: "No controller updates or deletes the NAD, and pods that use it keep the settings of a network that is gone.";
    fix: "Delete the NAD if no pod uses it, or create the network again. If the NAD is meant to stay, remove its owner-ref annotation.";
}

rule! { HOT_OBJECT = "audit/hot-object", Warn;
    wrong: "An object is written again and again.";
    why: "Two writers that undo each other's changes never stop, and neither does one that writes a new value each time and reacts to \
        its own write. Each write sends a watch event to every client, and what a pod gets depends on the moment it starts. The \
        message names the writers and the fields. A loop is more writes per minute than `audit.writesPerMinute` in the policy.";
    fix: "Let one writer own these fields, and remove them from what the other one writes. A single writer must compare before it \
        writes.";
}

rule! { OPERATOR_SILENT = "audit/operator-silent", Warn;
    wrong: "The operator runs but stopped reconciling; several networks wait for their NADs.";
    why: "An operator that lost its watches, or hangs in one reconcile, looks healthy but does nothing. It does not recover without a \
        restart.";
    fix: "Restart the operator's pod, and keep its log for a bug report.";
}

/// The rules for a network that is stored.
pub(super) fn check_network(network: &Network<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    let Some(stored) = facts.stored.as_deref() else { return };
    let is_due = stored.unchanged_for >= scope.policy.audit.grace() && !network.meta.deleting;
    match &stored.nad {
        Lookup::Absent if is_due => nad_absent(network, facts, stored, out),
        Lookup::Found(nad) if is_due => {
            if let Ok(Some(Object::Nad(nad))) = Object::read(nad)
                && !nad.meta.deleting
                && nad.meta.owner().is_none_or(|owner| *owner == network.id())
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
pub(super) fn check_nad(nad: &Nad<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    if facts.stored.is_none() {
        return;
    }
    if let (Some(owner), false) = (nad.meta.owner(), nad.meta.deleting)
        && let Some(what) = missing_owner(nad, owner, facts)
    {
        let headline = format!("the owner {owner} {what}");
        let note = "no controller updates or deletes this NAD, and pods still use it";
        let help = "delete the NAD, or recreate the network; remove the owner from a NAD that is meant to stay";
        let pointer = match nad.meta.annotation(OWNER_REF) {
            Some(_) => format!("/metadata/annotations/{}", escape(OWNER_REF)),
            None => "/metadata/ownerReferences".to_owned(),
        };
        out.object(&ORPHAN, pointer, headline, note, help);
    }
    check_any(facts, scope, out);
}

/// Describes that the owner of a NAD does not exist. Whether a network exists in another namespace must not leak: to users who
/// may not read it, one that renders elsewhere is reported like a missing one.
fn missing_owner(nad: &Nad<'_>, owner: &NetworkId, facts: &Facts) -> Option<&'static str> {
    let is_open = facts.names.allow(&Reference::Network(owner.clone()), &nad.meta.namespace);
    let is_elsewhere =
        |network: &NetworkFact| network.target_namespace != nad.meta.namespace || network.id.name != nad.meta.name;
    match &facts.named_owner {
        Lookup::Absent if is_open => Some("does not exist any more"),
        Lookup::Absent => Some("does not exist any more, or renders another NAD"),
        Lookup::Found(network) if !is_open && is_elsewhere(network) => {
            Some("does not exist any more, or renders another NAD")
        }
        Lookup::Found(_) | Lookup::Unknown => None,
    }
}

/// The rules for any stored object that need only the object itself.
pub(super) fn check_any(facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    let Some(stored) = facts.stored.as_deref() else { return };
    if stored.deleting_for.is_some_and(|waits| waits >= scope.policy.audit.grace())
        && let Some(first) = stored.finalizers.first()
    {
        let headline = format!("the deletion waits for the finalizer {first}");
        let note = "the name stays taken, and the namespace cannot be deleted";
        let help = "check that the controller of the finalizer runs, and its log; remove the finalizer by hand only if that controller no longer exists";
        out.object(&STUCK_DELETION, "/metadata/finalizers", headline, note, help);
    }
    let most = scope.policy.audit.writes_per_minute;
    if let Some(rewrites) = stored.rewrites.as_ref().filter(|rewrites| is_hot(rewrites, most)) {
        hot_object(rewrites, out);
    }
}

/// This many writes are never a loop, however fast they come.
const MIN_LOOP_WRITES: f64 = 6.0;

fn is_hot(rewrites: &Rewrites, per_minute: u32) -> bool {
    let most = f64::from(per_minute) * (rewrites.within.as_secs_f64() / 60.0).min(1.0);
    // A few writes in a short time are no loop yet: the author writes a new network, and then the operator a few times.
    rewrites.count as f64 > most.max(MIN_LOOP_WRITES)
}

fn hot_object(rewrites: &Rewrites, out: &mut Findings<'_>) {
    let who = match rewrites.managers.as_slice() {
        [] => "somebody keeps writing this object".to_owned(),
        [one] => format!("{one} keeps writing this object"),
        [one, two] => format!("{one} and {two} overwrite each other"),
        [one, two, ..] => format!("{one}, {two} and others keep writing this object"),
    };
    let what = match (rewrites.fields.as_slice(), rewrites.always.as_slice()) {
        ([], []) => String::new(),
        ([], always) => format!("; fields with a new value each time: {}", always.join(", ")),
        (fields, _) => format!("; fields that change back and forth: {}", fields.join(", ")),
    };
    let help = match rewrites.managers.len() {
        0 | 1 => "stop that writer, and check why it sees a difference every time",
        _ => "let one of them own these fields, and remove them from what the other writes",
    };
    out.object(&HOT_OBJECT, "", who, format!("each write sends a watch event to every client{what}"), help);
}

/// Why a NAD does not exist: the reason if it is certain, what else is known, and the help.
type AbsenceReason<'a> = (String, &'a str, &'static str);

/// Reports that the NAD does not exist, and why.
fn nad_absent(network: &Network<'_>, facts: &Facts, stored: &StoredState, out: &mut Findings<'_>) {
    let target = network.target_namespace();
    // What the operator itself says comes first.
    let condition = stored.condition.as_deref().unwrap_or_default();
    let (reason, details, help): AbsenceReason<'_> = match (&facts.target_namespace, &stored.denial) {
        (Lookup::Absent, _) => (
            format!("namespace `{target}` does not exist"),
            condition,
            "create the namespace, or set another one in networkNamespace",
        ),
        (Lookup::Found(NamespaceState::Terminating), _) => (
            format!("namespace `{target}` is being deleted"),
            condition,
            "wait until it is deleted and create it again, or set another one",
        ),
        _ if !condition.is_empty() => {
            ("the operator reports an error".to_owned(), condition, "fix what the operator reports")
        }
        (_, Some(denial)) => {
            ("a dry run of it is denied".to_owned(), denial.as_str(), "fix what it is denied for, or whoever denies it")
        }
        _ if drift::expected(network, facts).is_none() => {
            ("the operator cannot render the network's spec".to_owned(), "", "fix the other findings of this network")
        }
        _ => operator_reason(stored, out),
    };
    let mut headline = format!("NAD {target}/{} does not exist", network.meta.name);
    if !reason.is_empty() {
        headline.extend([", because ", &reason]);
    }
    let separator = if details.is_empty() { "" } else { "; " };
    let note = format!("{details}{separator}pods that use this network do not start");
    out.object(&NAD_ABSENT, "", headline, note, help);
}

/// The reason when only the operator can be at fault.
fn operator_reason(stored: &StoredState, out: &mut Findings<'_>) -> AbsenceReason<'static> {
    match stored.operator {
        OperatorHealth::NotRunning => ("the operator is not running".to_owned(), "", "start the operator"),
        OperatorHealth::Stalled => {
            if stored.waiting > 1 {
                let headline = "the operator runs, but has written nothing since several networks changed";
                let note = "it stopped reconciling; this and other networks wait for their NADs";
                let help = "restart the operator's pod, and keep its log for a bug report";
                out.object(&OPERATOR_SILENT, "", headline, note, help);
            }
            (
                String::new(),
                "the operator runs, and has written nothing since the network was last written",
                "check the operator's log; restart the operator if the log does not mention this network",
            )
        }
        OperatorHealth::Active => (
            String::new(),
            "the operator has written other objects since, and not this NAD",
            "the operator's log says why: search it for the network's name",
        ),
        OperatorHealth::Unknown => {
            (String::new(), "the reason is not known", "check that the operator runs, and its log")
        }
    }
}

fn drifted(network: &Network<'_>, nad: &Nad<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    let prefix = scope.prefix(facts).filter(|prefix| !prefix.assumed).map(|prefix| prefix.value);
    let differences = drift::differences(network, nad, prefix, facts);
    let Some((first, more)) = differences.split_first() else { return };
    let (target, name) = (network.target_namespace(), &network.meta.name);
    let headline = format!("NAD {target}/{name} {first}");
    let more: String = more.iter().map(|difference| format!("; it also {difference}")).collect();
    let note = format!("pods use the NAD, not what the network renders{more}");
    let help = "check who writes the NAD (`kubectl get --show-managed-fields`), and write the network once more so that the operator renders it again";
    out.object(&NAD_DRIFT, "/spec", headline, note, help);
}

/// Folds all repairs that admission would make on a stored NAD into one finding: it is incomplete.
pub(in super::super) fn collapse_repairs(findings: &mut Vec<Finding>, scope: &NamespaceScope<'_>) {
    let Some(at) = findings.iter().position(|finding| finding.action == Action::Patch) else { return };
    let action = scope.action(&NAD_INCOMPLETE).unwrap_or(NAD_INCOMPLETE.default);
    let mut folded: Vec<Finding> = findings.extract_if(at.., |finding| finding.action == Action::Patch).collect();
    if action == Action::Off {
        return;
    }
    let note = folded.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ");
    let repairs = folded.iter_mut().flat_map(|finding| std::mem::take(&mut finding.repairs)).collect();
    let Some(first) = folded.into_iter().next() else { return };
    let message = "the NAD was stored without what admission would have added".to_owned();
    let help = "run `nadmit audit --fix`; the leader of `nadmit serve --register` completes the NAD too".to_owned();
    let mut incomplete = Finding { rule: &NAD_INCOMPLETE, action, message, note, help, repairs, ..first };
    incomplete.shorten();
    findings.insert(at, incomplete);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::NameVisibility;
    use crate::resources::NetworkKind;

    /// Who may not read the network does not learn whether it exists in another namespace.
    #[test]
    fn a_network_elsewhere_looks_like_a_missing_one() {
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"net","namespace":"apps"}}"#;
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { panic!("a NAD") };
        let owner = NetworkId { kind: NetworkKind::Sriov, namespace: "op".to_owned(), name: "net".to_owned() };
        let network = |target: &str, name: &str| {
            let id = NetworkId { name: name.to_owned(), ..owner.clone() };
            Lookup::Found(NetworkFact { id, target_namespace: target.to_owned(), resource_name: "cx7".to_owned() })
        };
        let or_another = Some("does not exist any more, or renders another NAD");
        for (named_owner, to_all, to_tenant) in [
            (Lookup::Absent, Some("does not exist any more"), or_another),
            (network("elsewhere", "net"), None, or_another),
            (network("apps", "other"), None, or_another),
            (network("apps", "net"), None, None),
            (Lookup::Unknown, None, None),
        ] {
            let mut facts = Facts { named_owner, ..Facts::default() };
            assert_eq!(missing_owner(&nad, &owner, &facts), to_all, "{:?}", facts.named_owner);
            facts.names = NameVisibility::Own(Vec::new());
            assert_eq!(missing_owner(&nad, &owner, &facts), to_tenant, "{:?}", facts.named_owner);
        }
    }
}
