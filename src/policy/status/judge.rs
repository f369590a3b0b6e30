//! Classifies a status write and judges it.

use std::cmp::Ordering;

use json_patch::Patch;

use super::PRECONDITION_PREFIX;
use super::changed::{FieldChange, changes};
use super::fields::Owners;
use super::generation::{self, GenerationIssue};
use super::managers::{ManagedFieldsEntry, Managers};
use super::object::StatusObject;
use super::version::compare;
use super::writer::StatusWriter;
use crate::cni::releases::NO_VERSIONS;
use crate::policy::finding::Findings;
use crate::policy::judge::{ExcuseContext, apply_audit_mode, excuse};
use crate::policy::ratchet::{JudgedObject, Ratchet};
use crate::policy::rules::status as rules;
use crate::policy::{Action, Facts, Policy, Rule, Verdict};

/// A write to the status of an object.
#[derive(Clone, Copy, Debug)]
pub struct StatusWrite<'a> {
    /// The API group of the resource.
    pub group: &'a str,
    /// The resource, in the plural.
    pub resource: &'a str,
    /// The object's kind.
    pub kind: &'a str,
    /// The object's namespace.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The user that writes it.
    pub user: &'a str,
    /// The field manager that the request names; empty where it names none.
    pub manager: &'a str,
    /// The object as it would be stored, as JSON.
    pub object: &'a str,
    /// The object as it is stored, as JSON.
    pub old: &'a str,
}

/// What a write proves about what it was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It was computed from an older version.
    Stale,
    /// It was computed from a newer version than the API server has cached: the server will read again.
    ServerLag,
    /// A PUT without a resourceVersion.
    Unversioned,
    /// It was computed from an older spec, by its observedGeneration.
    Regressed,
    /// It states the stored version.
    Guarded,
    /// It states another version.
    Contradicted,
    /// It changes nothing.
    Unchanged,
    /// A server-side apply of fields owned by the writer or by no manager.
    OwnedApply,
    /// A server-side apply of fields of another manager.
    Takeover,
    /// It proves nothing.
    Unproven,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Stale,
        Self::ServerLag,
        Self::Unversioned,
        Self::Regressed,
        Self::Guarded,
        Self::Contradicted,
        Self::Unchanged,
        Self::OwnedApply,
        Self::Takeover,
        Self::Unproven,
    ];

    /// The name in annotations, metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::ServerLag => "server_lag",
            Self::Unversioned => "unversioned",
            Self::Regressed => "regressed",
            Self::Guarded => "guarded",
            Self::Contradicted => "contradicted",
            Self::Unchanged => "unchanged",
            Self::OwnedApply => "owned_apply",
            Self::Takeover => "takeover",
            Self::Unproven => "unproven",
        }
    }
}

/// The result of judging a status write.
#[derive(Clone, Debug)]
pub struct StatusVerdict {
    /// What was found; nothing is ever repaired.
    pub verdict: Verdict,
    /// The class of the write.
    pub class: Class,
    /// Who writes.
    pub writer: StatusWriter,
}

/// The evidence for a class, for the messages of the rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The version that was sent.
    pub(crate) sent: String,
    /// The version that is stored.
    pub(crate) stored: String,
    /// The annotation that states another version, and that version.
    pub(crate) stated: Option<(String, String)>,
    /// Generations that go back.
    pub(crate) back: Vec<GenerationIssue>,
    /// Generations that are too high.
    pub(crate) ahead: Vec<GenerationIssue>,
    /// The first field that counts, and how many more there are.
    pub(crate) field: Option<ChangedField>,
    /// Whether it is a server-side apply.
    pub(crate) is_apply: bool,
    /// The writer's field manager, where it is known.
    pub(crate) manager: String,
}

/// A field that a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedField {
    /// Where, as a JSON pointer.
    pub(crate) pointer: String,
    /// Its path as readable text.
    pub(crate) words: String,
    /// Another manager that owned it.
    pub(crate) owner: Option<String>,
    /// How many others there are like it.
    pub(crate) more: usize,
}

/// Judges a status write; `None` if the policy does not guard that resource, or nothing can be read.
pub fn judge_status(write: &StatusWrite<'_>, facts: &Facts, policy: &Policy) -> Option<StatusVerdict> {
    let guarded = policy.status.of(write.group, write.resource)?;
    let (new, old) = (StatusObject::read(write.object).ok()?, StatusObject::read(write.old).ok()?);
    let (class, evidence) = classify(write, &new, &old, guarded.strict);
    let mut out = Findings::new(JudgedObject::Status, None, Ratchet::Off, &NO_VERSIONS);
    rules::check(class, &evidence, &mut out);
    let (mut findings, missing_fact, _) = out.into_parts();
    let scope = policy.scope(write.namespace);
    let written_by_operator = policy.is_operator(write.user, facts);
    for finding in &mut findings {
        let is_denied = is_denied_where_strict(finding.rule)
            && guarded.strict
            && !(class == Class::Takeover && guarded.is_owner(write.user, written_by_operator, &evidence.manager));
        let default = if is_denied { Action::Deny } else { finding.rule.default };
        finding.action = scope.action(finding.rule).unwrap_or(default).min(finding.ceiling);
    }
    findings.retain(|finding| finding.action != Action::Off);
    let about = ExcuseContext {
        kind: write.kind,
        namespace: write.namespace,
        name: write.name,
        // Metadata in a status write is not stored and proves nothing.
        is_deleting: old.deleting,
        writer: Some(write.user),
        // The operator can retry, but it cannot change how it writes, and a denial can block it.
        exempts_operator: &|finding| written_by_operator && !is_fixed_by_retry(finding.rule),
    };
    excuse(&mut findings, &about, facts, policy);
    let mode = scope.mode();
    apply_audit_mode(mode, &mut findings);
    let (patch, would_patch) = (Patch::default(), Patch::default());
    let verdict =
        Verdict { mode, findings, patch, would_patch, missing_fact, written_by_operator, is_incomplete: false };
    Some(StatusVerdict { verdict, class, writer: StatusWriter { manager: evidence.manager } })
}

/// Whether a retry after reading again is enough.
pub(crate) fn is_fixed_by_retry(rule: &Rule) -> bool {
    [&rules::STALE, &rules::CONTRADICTED, &rules::REGRESSED].contains(&rule)
}

fn is_denied_where_strict(rule: &Rule) -> bool {
    [&rules::TAKEOVER, &rules::UNPROVEN].contains(&rule)
}

fn classify(
    write: &StatusWrite<'_>,
    new: &StatusObject<'_>,
    old: &StatusObject<'_>,
    is_strict: bool,
) -> (Class, Evidence) {
    let mut evidence = Evidence {
        sent: new.version.to_string(),
        stored: old.version.to_string(),
        manager: write.manager.to_owned(),
        ..Evidence::default()
    };
    if new.version.is_empty() {
        return (Class::Unversioned, evidence);
    }
    match compare(&new.version, &old.version) {
        Some(Ordering::Equal) => {}
        Some(Ordering::Less) => return (Class::Stale, evidence),
        // The API server itself compares a resourceVersion that was sent.
        Some(Ordering::Greater) | None => return (Class::ServerLag, evidence),
    }
    // Metadata in a status write is never stored, so a stored annotation was not stated by this write.
    let mut stated = new.stated.iter().filter(|statement| !old.stated.contains(statement)).peekable();
    let is_stated = stated.peek().is_some();
    let wrong = stated.find(|(_, value)| compare(value, &old.version) != Some(Ordering::Equal));
    if evidence.manager.is_empty()
        && let Some((key, _)) = new.stated.first()
    {
        evidence.manager = key.strip_prefix(PRECONDITION_PREFIX).unwrap_or_default().to_owned();
    }
    if let Some((key, value)) = wrong {
        evidence.stated = Some((key.to_string(), value.to_string()));
        return (Class::Contradicted, evidence);
    }
    [evidence.back, evidence.ahead] = generation::compare(old.status, new.status, old.generation);
    if is_stated {
        return (Class::Guarded, evidence);
    }
    let class = by_ownership(new, old, is_strict, &mut evidence);
    (if evidence.back.is_empty() { class } else { Class::Regressed }, evidence)
}

/// Classifies by the owners of the changed fields before and after.
fn by_ownership(new: &StatusObject<'_>, old: &StatusObject<'_>, is_strict: bool, evidence: &mut Evidence) -> Class {
    if new.status == old.status {
        return Class::Unchanged;
    }
    // managedFields that cannot be parsed prove nothing.
    let Ok(managers) = Managers::read(old.managed, new.managed) else { return Class::Unproven };
    let changes = changes(&managers.owned, old.status, new.status);
    let (applied, updated) = writers(&managers, &changes);
    if let Some(entry) = applied.or(updated) {
        evidence.manager = entry.manager.to_string();
    }
    let others = |change: &FieldChange| {
        let entries =
            owners(&managers, change).flat_map(|owners| &owners.old).filter_map(|entry| managers.entry(*entry));
        entries.map(|entry| entry.manager.as_ref()).find(|manager| *manager != evidence.manager).map(str::to_owned)
    };
    let field = |change: &FieldChange, more: usize| ChangedField {
        pointer: managers.owned.pointer(change.node),
        words: managers.owned.words(change.node),
        owner: others(change),
        more,
    };
    let first = |counts: &dyn Fn(&FieldChange) -> bool| {
        let mut those = changes.iter().filter(|change| counts(change));
        those.next().map(|change| field(change, those.count()))
    };
    // A patch or a PUT makes the writer the owner of every changed field, with an `Update` entry.
    let is_apply = applied.is_some() && updated.is_none();
    let taken = first(&|change| is_apply && others(change).is_some());
    let changed = first(&|change| change.was_there && owners(&managers, change).next().is_some());
    let (class, field) = match (taken, changed) {
        (Some(taken), _) => (Class::Takeover, Some(taken)),
        // Two reconciles of one controller are one manager: the value it changes may have just been written by the other one.
        (None, Some(changed)) if is_apply && is_strict => (Class::Unproven, Some(changed)),
        (None, _) if is_apply => (Class::OwnedApply, None),
        (None, changed) => (Class::Unproven, changed.or_else(|| first(&|_| true))),
    };
    (evidence.field, evidence.is_apply) = (field, is_apply);
    class
}

/// The entries that own, after the write, what it changed: one by server-side apply, and one by anything else.
fn writers<'m, 'a>(
    managers: &'m Managers<'a>,
    changes: &[FieldChange],
) -> (Option<&'m ManagedFieldsEntry<'a>>, Option<&'m ManagedFieldsEntry<'a>>) {
    let (mut applied, mut updated) = (None, None);
    for change in changes.iter().filter(|change| change.is_there) {
        for entry in owners(managers, change).flat_map(|owners| &owners.new).filter_map(|entry| managers.entry(*entry))
        {
            if entry.is_apply { &mut applied } else { &mut updated }.get_or_insert(entry);
        }
    }
    (applied, updated)
}

/// Owners of a changed field. Its existence changes only when it is added or removed.
fn owners<'m>(managers: &'m Managers<'_>, change: &FieldChange) -> impl Iterator<Item = &'m Owners> {
    let comes_or_goes = change.was_there != change.is_there;
    let node = managers.owned.node(change.node);
    let of = move |node: &'m super::fields::FieldNode<'_>| [Some(&node.whole), comes_or_goes.then_some(&node.itself)];
    node.into_iter().flat_map(of).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand managers own every field, and one of them takes a field over.
    #[test]
    fn many_managers_are_judged_in_bounded_size() {
        let managers: String = (0..10_000)
            .map(|number| {
                format!(
                    r#"{{"manager":"m{number}","operation":"Update","subresource":"status","fieldsV1":{{"f:status":{{"f:plan":{{}},"f:note":{{}}}}}}}},"#
                )
            })
            .collect();
        let taker =
            r#"{"manager":"taker","operation":"Apply","subresource":"status","fieldsV1":{"f:status":{"f:plan":{}}}}"#;
        let object = |plan: &str, managers: &str| {
            format!(
                r#"{{"metadata":{{"name":"pool","resourceVersion":"7","managedFields":[{managers}]}},"status":{{"plan":"{plan}","note":"n"}}}}"#
            )
        };
        let old = object("a", managers.trim_end_matches(','));
        let new = object("b", taker);
        let policy = Policy::parse("status: {resources: {example.com/plans: {strict: true}}}").unwrap();
        let write = StatusWrite {
            group: "example.com",
            resource: "plans",
            kind: "Plan",
            namespace: "apps",
            name: "pool",
            user: "jane",
            manager: "taker",
            object: &new,
            old: &old,
        };
        let judged = judge_status(&write, &Facts::default(), &policy).unwrap();
        assert_eq!(judged.class, Class::Takeover);
        let message = &judged.verdict.findings[0].message;
        assert!(message.len() < 500, "not every manager is named: {message}");
    }

    #[test]
    fn every_class_has_a_name_of_its_own() {
        let names = Class::ALL.map(Class::name);
        assert_eq!(
            names,
            [
                "stale",
                "server_lag",
                "unversioned",
                "regressed",
                "guarded",
                "contradicted",
                "unchanged",
                "owned_apply",
                "takeover",
                "unproven"
            ]
        );
    }
}
