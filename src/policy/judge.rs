//! Turns findings into a verdict.

use std::sync::LazyLock;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};

use super::file::matches_any;
use super::finding::{Repair, limit_shown};
use super::ratchet::{Excused, Ratchet, Recorded};
use super::scope::NamespaceScope;
use super::{Action, ExcuseReason, Facts, Finding, MissingFact, Mode, Policy, Rule, pods, rules};
use crate::cni::edit;
use crate::json::escape;
use crate::resources::{Meta, Object, RESOURCE_NAME};

/// What is judged: an object that is about to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The object as it would be stored.
    pub object: &'a Object<'a>,
    /// The object as it is stored now, on an update.
    pub old: Option<&'a Object<'a>>,
    /// The user that writes it; `None` offline.
    pub writer: Option<&'a str>,
    /// Whether this is the final object: repairs are no longer possible, so what should have been repaired is denied.
    pub is_final: bool,
}

impl<'a> Subject<'a> {
    /// A manifest: no writer and no stored object.
    pub fn manifest(object: &'a Object<'a>) -> Self {
        Self { object, old: None, writer: None, is_final: false }
    }

    /// Whether the stored object is being deleted and this write changes nothing that is judged: finalizers and the garbage
    /// collector must always get through. Any other change is judged: a deletionTimestamp in the request proves nothing, a
    /// server-side apply can even create an object with one, and pods can attach to a NAD that is being deleted.
    pub fn is_deletion_progress(&self) -> bool {
        self.old.is_some_and(|old| old.meta().deleting && self.object.keeps_judged_fields(old))
    }
}

/// The result of judging an object.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The mode it was judged in.
    pub mode: Mode,
    /// All findings, in the order of the rules.
    pub findings: Vec<Finding>,
    /// The repair; empty if there is none.
    pub patch: Patch,
    /// In audit mode: the repair that would have been made.
    pub would_patch: Patch,
    /// A fact that was not known and would have mattered.
    pub missing_fact: Option<MissingFact>,
    /// Whether the operator is the writer.
    pub written_by_operator: bool,
    /// Whether admission would repair the object, whatever the policy reports about that.
    pub is_incomplete: bool,
}

impl Verdict {
    /// Whether the object is denied.
    pub fn denies(&self) -> bool {
        self.findings.iter().any(|finding| finding.action == Action::Deny)
    }
}

/// Judges an object.
pub fn judge(subject: &Subject<'_>, facts: &Facts, policy: &Policy) -> Verdict {
    let meta = subject.object.meta();
    let scope = policy.scope(&meta.namespace);
    let written_by_operator = subject.writer.is_some_and(|user| policy.is_operator(user, facts));
    let (mut findings, missing_fact, _) = run_rules(subject, written_by_operator, facts, &scope, Ratchet::Off);
    if let Some(old) = subject.old
        && findings.iter().any(|finding| finding.action == Action::Deny)
    {
        if subject.object.keeps_judged_fields(old) {
            ratchet(&mut findings, |_| true);
        } else {
            let before = Subject { object: old, old: None, ..*subject };
            let excused = denied_before(&before, written_by_operator, facts, &scope);
            (findings, ..) = run_rules(subject, written_by_operator, facts, &scope, Ratchet::Excusing(excused));
            ratchet(&mut findings, |finding| finding.is_excused);
            // The rendering depends only on the spec.
            let is_rendered_alike = subject.object.has_spec_of(old);
            ratchet(&mut findings, |finding| is_rendered_alike && finding.rule == &rules::rendering::RENDER_UNSAFE);
        }
    }
    let is_incomplete = findings.iter().any(|finding| finding.action == Action::Patch);
    if facts.stored.is_some() && matches!(subject.object, Object::Nad(_)) {
        rules::audit::collapse_repairs(&mut findings, &scope);
    }
    pods::limit(&mut findings, subject.object, facts, policy);
    limit_shown(&mut findings);
    let about = ExcuseContext {
        kind: subject.object.kind(),
        namespace: &meta.namespace,
        name: &meta.name,
        is_deleting: subject.is_deletion_progress(),
        writer: subject.writer,
        // The operator cannot fix what the author of the network wrote, and a denial can block it.
        exempts_operator: &|finding| written_by_operator && finding.action != Action::Patch,
    };
    excuse(&mut findings, &about, facts, policy);
    let mut patch = if about.is_deleting { Patch::default() } else { repair(subject.object, &findings) };
    let mut would_patch = Patch::default();
    if scope.mode() == Mode::Audit {
        would_patch = std::mem::take(&mut patch);
    }
    apply_audit_mode(scope.mode(), &mut findings);
    Verdict { mode: scope.mode(), findings, patch, would_patch, missing_fact, written_by_operator, is_incomplete }
}

/// Runs the rules and sets the action of each finding by the policy.
fn run_rules(
    subject: &Subject<'_>,
    written_by_operator: bool,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
    ratchet: Ratchet,
) -> rules::RuleRun {
    let (mut findings, missing_fact, ratchet) = rules::run(subject, written_by_operator, facts, scope, ratchet);
    for finding in &mut findings {
        let ceiling = finding.ceiling.min(ceiling(finding.rule, facts));
        finding.action = action(finding.rule, !finding.repairs.is_empty(), ceiling, subject.is_final, scope);
    }
    findings.retain(|finding| finding.action != Action::Off);
    (findings, missing_fact, ratchet)
}

/// The most severe action of a rule where the facts come from.
fn ceiling(rule: &Rule, facts: &Facts) -> Action {
    if facts.is_cluster && rule.warns_in_cluster { Action::Warn } else { Action::Deny }
}

/// The action for a finding by the policy.
fn action(rule: &Rule, has_repairs: bool, ceiling: Action, is_final: bool, scope: &NamespaceScope<'_>) -> Action {
    // In audit mode nothing is repaired before, so nothing was left out either.
    let is_too_late = is_final && scope.mode() == Mode::Enforce;
    // A finding with a repair is patched, unless the policy says otherwise or the object is final.
    let repairs = has_repairs && rule.repairs && !is_too_late;
    let wanted = scope.action(rule).unwrap_or(if repairs { Action::Patch } else { rule.default });
    let possible = if wanted == Action::Patch && !repairs { Action::Deny } else { wanted };
    match (possible, ceiling) {
        // It may be repaired, but it is never a reason to deny.
        (Action::Deny, Action::Patch) => Action::Warn,
        (possible, ceiling) => possible.min(ceiling),
    }
}

/// What the stored object would be denied for.
fn denied_before(
    before: &Subject<'_>,
    written_by_operator: bool,
    facts: &Facts,
    scope: &NamespaceScope<'_>,
) -> Excused {
    let (_, _, ratchet) =
        rules::run(before, written_by_operator, facts, scope, Ratchet::Recording(Recorded::default()));
    let recorded = if let Ratchet::Recording(recorded) = ratchet { recorded } else { Recorded::default() };
    let denies =
        |rule, has_repairs| action(rule, has_repairs, ceiling(rule, facts), before.is_final, scope) == Action::Deny;
    recorded.denied(denies)
}

/// Ratcheting: a mistake of the stored object does not deny the update, so nobody is locked out of objects that predate nadmit.
fn ratchet(findings: &mut [Finding], is_excused: impl Fn(&Finding) -> bool) {
    for finding in findings.iter_mut().filter(|finding| finding.action == Action::Deny && is_excused(finding)) {
        finding.action = Action::Warn;
        finding.because = Some(ExcuseReason::Ratchet);
    }
}

/// In audit mode findings have no consequences; they record the action that would have been taken.
pub(super) fn apply_audit_mode(mode: Mode, findings: &mut [Finding]) {
    for finding in findings.iter_mut().filter(|finding| mode == Mode::Audit && finding.action > Action::Warn) {
        finding.would = Some(finding.action);
        finding.action = Action::Warn;
    }
}

/// The context that decides which findings are excused.
pub(super) struct ExcuseContext<'a> {
    pub(super) kind: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) is_deleting: bool,
    pub(super) writer: Option<&'a str>,
    /// Whether the operator wrote it and is exempt from this finding.
    pub(super) exempts_operator: &'a dyn Fn(&Finding) -> bool,
}

/// Downgrades findings that must not have consequences here.
pub(super) fn excuse(findings: &mut [Finding], about: &ExcuseContext<'_>, facts: &Facts, policy: &Policy) {
    let exempt = about.writer.is_some_and(|user| matches_any(&policy.exempt.users, user))
        || matches_any(&policy.exempt.namespaces, about.namespace);
    for finding in findings.iter_mut() {
        let (action, because) = if about.is_deleting {
            (Action::Audit, ExcuseReason::Deleting)
        } else if let Some(reason) = exception(finding, about, facts, policy) {
            (Action::Audit, ExcuseReason::Exception(reason))
        } else if (about.exempts_operator)(finding) {
            (Action::Audit, ExcuseReason::Operator)
        } else if exempt && finding.action == Action::Deny {
            (Action::Warn, ExcuseReason::Exempt)
        } else {
            continue;
        };
        if finding.action > action {
            finding.action = action;
            finding.because = Some(because);
        }
    }
}

fn exception(finding: &Finding, about: &ExcuseContext<'_>, facts: &Facts, policy: &Policy) -> Option<String> {
    let holds = |exception: &&super::Exception| {
        exception.rule == finding.rule.id
            && exception.namespace == about.namespace
            && exception.name == about.name
            && exception.kind.as_deref().is_none_or(|kind| kind == about.kind)
            && facts.today.is_none_or(|today| today <= exception.expires)
    };
    policy.exceptions.iter().find(holds).map(|exception| exception.reason.clone())
}

/// The patch with all repairs of findings with action patch.
fn repair(object: &Object<'_>, findings: &[Finding]) -> Patch {
    let patched = findings.iter().filter(|finding| finding.action == Action::Patch);
    let mut operations = Vec::new();
    let mut edits: Vec<edit::Edit> = Vec::new();
    // Of annotations there are only a few to write, however many plugins ask for the same one.
    let mut done: Vec<&Repair> = Vec::new();
    for repair in patched.flat_map(|finding| &finding.repairs) {
        if let Repair::Config(edit) = repair {
            edits.push(edit.clone());
            continue;
        }
        if done.contains(&repair) {
            continue;
        }
        done.push(repair);
        match repair {
            Repair::Annotate(key, value) => operations.push(annotate(object.meta(), key, value)),
            Repair::RemoveAnnotation(key) => {
                operations.push(PatchOperation::Remove(RemoveOperation { path: annotation(key) }));
            }
            Repair::Config(_) => {}
        }
    }
    if let (Object::Nad(nad), false) = (object, edits.is_empty()) {
        let config = edit::apply(nad.config.as_deref().unwrap_or_default(), &edits);
        let path = pointer("/spec/config");
        operations.push(PatchOperation::Replace(ReplaceOperation { path, value: config.into() }));
    }
    Patch(operations)
}

fn annotate(meta: &Meta<'_>, key: &str, value: &str) -> PatchOperation {
    let (path, value) = if meta.has_annotations() {
        (annotation(key), value.into())
    } else if meta.is_there {
        (pointer("/metadata/annotations"), serde_json::json!({ key: value }))
    } else {
        (pointer("/metadata"), serde_json::json!({ "annotations": { key: value } }))
    };
    PatchOperation::Add(AddOperation { path, value })
}

fn annotation(key: &str) -> PointerBuf {
    static OF_RESOURCE_NAME: LazyLock<PointerBuf> = LazyLock::new(|| annotation_pointer(RESOURCE_NAME));
    if key == RESOURCE_NAME { OF_RESOURCE_NAME.clone() } else { annotation_pointer(key) }
}

fn annotation_pointer(key: &str) -> PointerBuf {
    pointer(["/metadata/annotations/", &escape(key)].concat())
}

/// Every pointer here is built from escaped tokens, so it parses; the root is the fallback.
fn pointer(text: impl Into<String>) -> PointerBuf {
    PointerBuf::parse(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One patch repairs any number of plugins, and judging its result yields no further patch.
    #[test]
    fn many_repairs_converge_at_once() {
        let plugins = vec![r#"{"type":"sriov"}"#; 40].join(",");
        let mut nad = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "net", "namespace": "apps" },
            "spec": { "config": format!(r#"{{"cniVersion":"1.0.0","name":"net","plugins":[{plugins}]}}"#) },
        });
        let policy =
            Policy::parse("{namespaces: [{names: [apps], defaultResourceName: a.io/b}], resourceName: {write: both}}")
                .unwrap();
        let patch_of = |nad: &serde_json::Value| {
            let text = nad.to_string();
            let object = Object::read(&text).unwrap().unwrap();
            judge(&Subject::manifest(&object), &Facts::default(), &policy).patch
        };
        let patch = patch_of(&nad);
        assert!(!patch.0.is_empty());
        json_patch::patch(&mut nad, &patch).unwrap();
        let config = nad["spec"]["config"].as_str().unwrap();
        assert_eq!(config.matches(r#""resourceName""#).count(), 40, "{config}");
        assert_eq!(patch_of(&nad), Patch::default());
    }

    fn judged(config: &str, policy: &str) -> Verdict {
        let nad = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "net", "namespace": "apps" },
            "spec": { "config": config },
        });
        let text = nad.to_string();
        let object = Object::read(&text).unwrap().unwrap();
        judge(&Subject::manifest(&object), &Facts::default(), &Policy::parse(policy).unwrap())
    }

    /// Only what a repair adds is missing: a mistake that nobody can repair is there.
    #[test]
    fn an_object_with_a_repair_is_incomplete() {
        const DEFAULT: &str = "namespaces: [{names: [apps], defaultResourceName: a.io/b}]";
        for (config, policy, want) in [
            (r#"{"cniVersion":"1.0.0","type":"sriov"}"#, DEFAULT, true),
            (r#"{"cniVersion":"1.0.0","type":"sriov"}"#, "{}", false),
            (r#"{"cniVersion":"1.0.0","type":"macvlan","name":5}"#, DEFAULT, false),
            (r#"{"cniVersion":"1.0.0","type":"macvlan"}"#, DEFAULT, false),
        ] {
            let verdict = judged(config, policy);
            assert_eq!(verdict.is_incomplete, want, "{config} {policy} {:?}", verdict.findings);
        }
    }

    /// A warning has no other consequence in mode enforce, so there is nothing to tell.
    #[test]
    fn audit_mode_tells_what_enforcing_would_do() {
        for (config, want) in [
            (r#"{"cniVersion":"1.0.0","type":"macvlan","name":5}"#, Some(Action::Deny)),
            (r#"{"cniVersion":"1.0.0","type":"macvlan","Name":"n"}"#, None),
        ] {
            let verdict = judged(config, "mode: audit");
            let actions: Vec<_> = verdict.findings.iter().map(|finding| (finding.action, finding.would)).collect();
            assert_eq!(actions, [(Action::Warn, want)], "{config}");
        }
    }

    /// Each part of an exception must hold.
    #[test]
    fn an_exception_is_for_one_rule_and_one_object() {
        let exception = |rule: &str, namespace: &str, name: &str, kind: &str| {
            format!(
                "exceptions: [{{rule: {rule}, namespace: {namespace}, name: {name}, {kind}reason: lab, expires: 2999-01-01}}]"
            )
        };
        for (policy, is_denied) in [
            (exception("nad/network-name", "apps", "net", ""), false),
            (exception("nad/network-name", "apps", "net", "kind: NetworkAttachmentDefinition, "), false),
            (exception("nad/network-name", "apps", "net", "kind: SriovNetwork, "), true),
            (exception("nad/plugin-type", "apps", "net", ""), true),
            (exception("nad/network-name", "other", "net", ""), true),
            (exception("nad/network-name", "apps", "other", ""), true),
        ] {
            let verdict = judged(r#"{"cniVersion":"1.0.0","type":"macvlan","name":"-a"}"#, &policy);
            assert_eq!(verdict.denies(), is_denied, "{policy} {:?}", verdict.findings);
        }
    }

    /// An exception is the reason only for what it changes.
    #[test]
    fn a_finding_that_is_only_recorded_needs_no_exception() {
        const EXCEPTION: &str =
            "exceptions: [{rule: nad/network-name, namespace: apps, name: net, reason: lab, expires: 2999-01-01}]";
        for (rules, is_reason) in [("", true), ("rules: {nad/network-name: audit}\n", false)] {
            let verdict =
                judged(r#"{"cniVersion":"1.0.0","type":"macvlan","name":"-a"}"#, &format!("{rules}{EXCEPTION}"));
            let [finding] = &*verdict.findings else { panic!("{:?}", verdict.findings) };
            assert_eq!((finding.action, finding.because.is_some()), (Action::Audit, is_reason), "{rules}");
        }
    }
}
