//! Classifies a write: how it was sent, what it proved, and its outcome.

use crate::audit_log::event::{AuditEvent, DeniedBy, RequestBody, WriteVerb};
use crate::audit_log::objects::WriteEffect;

/// How a write was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteMethod {
    /// POST
    Create,
    /// PUT
    Put,
    /// A merge patch, or a strategic one.
    MergePatch,
    /// A JSON patch.
    JsonPatch,
    /// Server-side apply.
    Apply,
    /// Server-side apply that takes fields from other managers.
    ForcedApply,
    /// A patch whose body the log does not have.
    Patch,
}

impl WriteMethod {
    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Put => "put",
            Self::MergePatch => "merge_patch",
            Self::JsonPatch => "json_patch",
            Self::Apply => "apply",
            Self::ForcedApply => "forced_apply",
            Self::Patch => "patch",
        }
    }
}

/// What a write proved about the object it was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It stated the resourceVersion, which the server or nadmit compared.
    Version,
    /// It tested values, but not the version.
    Values,
    /// Nothing: certainly blind.
    Nothing,
    /// The log does not have it.
    Unknown,
    /// Not needed: a create.
    NotNeeded,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Accepted.
    Taken,
    /// Stale: the object had changed since the client read it.
    Stale,
    /// Another manager owns a field, or the name was taken.
    Conflict,
    /// Denied by an admission webhook.
    Denied,
    /// Rejected for another reason.
    Refused,
}

/// A write, classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassifiedWrite {
    /// How it was sent.
    pub way: WriteMethod,
    /// What it proved.
    pub proof: Proof,
    /// Its outcome.
    pub outcome: WriteOutcome,
    /// Whether it is a status write.
    pub is_status: bool,
}

impl ClassifiedWrite {
    /// Classifies; `None` for a dry run, which stores nothing.
    pub fn of(event: &AuditEvent<'_>) -> Option<Self> {
        if event.parameter("dryRun").is_some() {
            return None;
        }
        let proof = proof(event);
        Some(Self {
            way: way(event),
            proof,
            outcome: outcome(event, proof),
            is_status: event.object.subresource == "status",
        })
    }

    /// A failed `test` of a JSON patch gives 422 without saying which operation failed. If the object is known to have a newer
    /// version, it was the version test.
    pub(super) fn was_older_than(&mut self, known: Option<&str>, event: &AuditEvent<'_>) {
        let number = |text: &str| text.parse::<u64>().ok();
        let (stated, known) = (event.stated().and_then(number), known.and_then(number));
        if self.way == WriteMethod::JsonPatch && event.code == 422 && stated.is_some() && stated < known {
            self.outcome = WriteOutcome::Stale;
        }
    }

    /// Whether it certainly overwrote a status blindly.
    pub fn is_blind(&self) -> bool {
        self.is_status && self.outcome == WriteOutcome::Taken && self.proof == Proof::Nothing
    }

    /// The outcome label of metrics; each write has exactly one.
    pub fn outcome_name(&self, change: WriteEffect) -> &'static str {
        match (self.outcome, change) {
            (WriteOutcome::Taken, WriteEffect::Nothing) => "unchanged",
            (WriteOutcome::Taken, WriteEffect::Unknown) => "taken",
            (WriteOutcome::Taken, WriteEffect::Something | WriteEffect::NotStored) => "changed",
            (WriteOutcome::Stale, _) => "stale",
            (WriteOutcome::Conflict, _) => "conflict",
            (WriteOutcome::Denied, _) => "denied",
            (WriteOutcome::Refused, _) => "refused",
        }
    }

    /// Whether it may have been blind, but the log does not show it.
    pub fn may_be_blind(&self) -> bool {
        self.is_status && self.outcome == WriteOutcome::Taken && self.proof == Proof::Unknown
    }
}

fn way(event: &AuditEvent<'_>) -> WriteMethod {
    match (event.verb, &event.body) {
        (WriteVerb::Create, _) => WriteMethod::Create,
        (WriteVerb::Update, _) => WriteMethod::Put,
        (WriteVerb::Patch, _) if event.parameter("force").is_some() => {
            if event.parameter("force") == Some("true") {
                WriteMethod::ForcedApply
            } else {
                WriteMethod::Apply
            }
        }
        (WriteVerb::Patch, RequestBody::Operations { .. }) => WriteMethod::JsonPatch,
        (WriteVerb::Patch, RequestBody::Object { names_kind: true, .. })
            if event.parameter("fieldManager").is_some() =>
        {
            WriteMethod::Apply
        }
        (WriteVerb::Patch, RequestBody::Object { .. }) => WriteMethod::MergePatch,
        (WriteVerb::Patch, RequestBody::Unknown) => WriteMethod::Patch,
    }
}

fn proof(event: &AuditEvent<'_>) -> Proof {
    match (event.verb, &event.body) {
        (WriteVerb::Create, _) => Proof::NotNeeded,
        (_, RequestBody::Object { version: Some(_), .. } | RequestBody::Operations { version: Some(_), .. }) => {
            Proof::Version
        }
        (WriteVerb::Update, _) if event.object.version.is_some() => Proof::Version,
        _ if event.is_guarded => Proof::Version,
        (_, RequestBody::Operations { tests: true, .. }) => Proof::Values,
        (_, RequestBody::Unknown) => Proof::Unknown,
        _ => Proof::Nothing,
    }
}

fn outcome(event: &AuditEvent<'_>, proof: Proof) -> WriteOutcome {
    match event.code {
        200..=299 => WriteOutcome::Taken,
        _ if event.denied_by == DeniedBy::Webhook => WriteOutcome::Denied,
        409 if proof == Proof::Version && event.denied_by != DeniedBy::Ownership => WriteOutcome::Stale,
        409 => WriteOutcome::Conflict,
        _ => WriteOutcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_a_label_for_every_way() {
        use WriteMethod::*;
        let names = [Create, Put, MergePatch, JsonPatch, Apply, ForcedApply, Patch].map(WriteMethod::name);
        assert_eq!(names, ["create", "put", "merge_patch", "json_patch", "apply", "forced_apply", "patch"]);
    }

    #[test]
    fn metrics_have_a_label_for_every_outcome() {
        let name = |outcome, effect| {
            ClassifiedWrite { way: WriteMethod::Put, proof: Proof::Version, outcome, is_status: true }
                .outcome_name(effect)
        };
        use WriteEffect::*;
        let stored = [Nothing, Unknown, Something, NotStored].map(|effect| name(WriteOutcome::Taken, effect));
        assert_eq!(stored, ["unchanged", "taken", "changed", "changed"]);
        use WriteOutcome::*;
        let rejected = [Stale, Conflict, Denied, Refused].map(|outcome| name(outcome, WriteEffect::NotStored));
        assert_eq!(rejected, ["stale", "conflict", "denied", "refused"]);
    }

    /// A patch may replace the whole object, and with it the version.
    #[test]
    fn a_version_in_any_part_of_a_patch_is_a_proof() {
        for (path, value, want) in [
            ("", serde_json::json!({"metadata": {"resourceVersion": "7"}}), Proof::Version),
            ("", serde_json::json!({"metadata": {}}), Proof::Nothing),
            ("/metadata", serde_json::json!({"resourceVersion": "7"}), Proof::Version),
            ("/metadata/resourceVersion", serde_json::json!("7"), Proof::Version),
            ("/status", serde_json::json!({"resourceVersion": "7"}), Proof::Nothing),
        ] {
            let line = event(&serde_json::json!([{"op": "replace", "path": path, "value": value}]));
            let event = AuditEvent::read(&line, &super::super::LogScope::default()).unwrap().unwrap();
            assert_eq!(ClassifiedWrite::of(&event).unwrap().proof, want, "{path} {value}");
        }
    }

    /// Whoever is impersonated counts as the user, in whatever order an event names them.
    #[test]
    fn the_impersonated_user_counts() {
        let (user, other) = (r#""user":{"username":"u"}"#, r#""impersonatedUser":{"username":"v"}"#);
        let line = event(&serde_json::json!([]));
        for names in [format!("{user},{other}"), format!("{other},{user}")] {
            let line = line.replace(user, &names);
            let event = AuditEvent::read(&line, &super::super::LogScope::default()).unwrap().unwrap();
            assert_eq!(event.user, "v", "{names}");
        }
    }

    fn event(body: &serde_json::Value) -> String {
        serde_json::json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
            "requestURI": "/apis/sriovnetwork.openshift.io/v1/x", "verb": "patch", "user": {"username": "u"}, "userAgent": "a",
            "objectRef": {"resource": "sriovnetworks", "name": "n", "apiGroup": "sriovnetwork.openshift.io",
                "apiVersion": "v1", "subresource": "status"},
            "responseStatus": {"code": 200}, "requestObject": body,
            "requestReceivedTimestamp": "2026-11-16T20:00:00.000000Z", "stageTimestamp": "2026-11-16T20:00:00.001000Z",
        })
        .to_string()
    }
}
