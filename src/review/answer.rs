//! A verdict as an AdmissionReview response.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};
use serde::Serialize;

use super::messages::{cause, denial, field, warnings};
use super::{Endpoint, Review, SkipReason};
use crate::json::write::{push_quoted, to_json};
use crate::policy::{
    Action, Class, ExcuseReason, Finding, Mode, StatusVerdict, StatusWriter, Verdict, is_fixed_by_retry,
};

/// The outcome of a request.
#[derive(Debug)]
pub enum ReviewOutcome {
    /// There was nothing to judge.
    Nothing(SkipReason, Mode),
    /// It was judged.
    Judged(Verdict),
    /// A write to a status was judged.
    Status(StatusVerdict),
}

/// The decision, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Stored as it is.
    Allow,
    /// Stored with the repair.
    Patch,
    /// Denied.
    Deny,
}

impl Decision {
    /// The name in annotations, metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Patch => "patch",
            Self::Deny => "deny",
        }
    }
}

impl ReviewOutcome {
    /// What is decided at an endpoint.
    fn decision(&self, endpoint: Endpoint) -> Decision {
        match (self.verdict(), endpoint) {
            (Some(verdict), Endpoint::Mutate) if !verdict.patch.0.is_empty() => Decision::Patch,
            (Some(verdict), Endpoint::Validate | Endpoint::Status) if verdict.denies() => Decision::Deny,
            _ => Decision::Allow,
        }
    }

    fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Judged(verdict) | Self::Status(StatusVerdict { verdict, .. }) => Some(verdict),
            Self::Nothing(..) => None,
        }
    }

    /// The class and writer of a status write.
    pub fn status(&self) -> Option<(Class, &StatusWriter)> {
        match self {
            Self::Status(status) => Some((status.class, &status.writer)),
            Self::Judged(_) | Self::Nothing(..) => None,
        }
    }

    /// The findings for this endpoint: repairs at /mutate, everything else at /validate, so that nothing is reported twice for
    /// one write.
    pub fn findings(&self, endpoint: Endpoint) -> impl Iterator<Item = &Finding> {
        let all = self.verdict().map(|verdict| verdict.findings.as_slice()).unwrap_or_default();
        all.iter().filter(move |finding| endpoint != Endpoint::Mutate || finding.action == Action::Patch)
    }

    /// The mode it was judged in.
    fn mode(&self) -> Mode {
        match self {
            Self::Judged(verdict) | Self::Status(StatusVerdict { verdict, .. }) => verdict.mode,
            Self::Nothing(_, mode) => *mode,
        }
    }

    /// The rules with findings, and their actions.
    fn rules(&self, endpoint: Endpoint) -> String {
        listed(self.findings(endpoint).map(|finding| (finding, finding.action)))
    }

    /// In audit mode: which rules would have done what.
    fn would(&self, endpoint: Endpoint) -> String {
        listed(self.findings(endpoint).filter_map(|finding| Some((finding, finding.would?))))
    }
}

fn listed<'f>(findings: impl Iterator<Item = (&'f Finding, Action)>) -> String {
    let mut list = String::new();
    let mut seen = BTreeSet::new();
    for (finding, action) in findings {
        let because = finding.because.as_ref().map(ExcuseReason::name);
        // The findings of two rules may alternate.
        if !seen.insert((finding.rule.id, action, because)) {
            continue;
        }
        let comma = if list.is_empty() { "" } else { "," };
        list.extend([comma, finding.rule.id, "=", action.name()]);
        if let Some(because) = because {
            list.extend(["(", because, ")"]);
        }
    }
    list
}

/// The response to a review.
#[derive(Debug)]
pub struct AdmissionResponse {
    /// The body.
    pub body: Vec<u8>,
    /// What is decided.
    pub decision: Decision,
    /// The rules with findings and their actions: `sriov/vlan=deny,sriov/on-off=warn(ratchet)`.
    pub rules: String,
    /// In audit mode: which rules would have done what.
    pub would: String,
}

/// Answers a review.
pub fn answer(review: &Review<'_>, endpoint: Endpoint, outcome: &ReviewOutcome) -> AdmissionResponse {
    let decision = outcome.decision(endpoint);
    let (rules, would) = (outcome.rules(endpoint), outcome.would(endpoint));
    // Written by hand: every review has a response, and most of it is constant.
    let mut body = String::with_capacity(1024);
    body.push_str("{\"apiVersion\":\"");
    body.push_str(review.version.api_version());
    body.push_str("\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":");
    push_quoted(&mut body, &review.request.uid);
    body.push_str(if decision == Decision::Deny { ",\"allowed\":false" } else { ",\"allowed\":true" });
    match (outcome, decision) {
        (_, Decision::Deny) => push_member(&mut body, "status", &status(review, outcome)),
        // The API server requires patch and patchType together, and neither without a repair.
        (ReviewOutcome::Judged(verdict), Decision::Patch) => {
            body.push_str(",\"patch\":\"");
            STANDARD.encode_string(patch_text(&verdict.patch), &mut body);
            body.push_str("\",\"patchType\":\"JSONPatch\"");
        }
        _ => {}
    }
    // The API server puts the webhook's name and a slash in front of each.
    let annotations = [
        (",\"auditAnnotations\":{\"mode\":", outcome.mode().name()),
        (",\"decision\":", decision.name()),
        (",\"rules\":", &rules),
        (",\"would\":", &would),
    ];
    for (key, value) in annotations {
        body.push_str(key);
        push_quoted(&mut body, value);
    }
    if let Some((class, writer)) = outcome.status() {
        for (key, value) in [(",\"class\":", class.name()), (",\"manager\":", &writer.manager)] {
            body.push_str(key);
            push_quoted(&mut body, value);
        }
    }
    body.push('}');
    let warnings = warnings_for(outcome, endpoint);
    if !warnings.is_empty() {
        push_member(&mut body, "warnings", &warnings);
    }
    body.push_str("}}");
    AdmissionResponse { body: body.into_bytes(), decision, rules, would }
}

/// A patch as JSON, put together by hand: serde takes most of its time for the names of the members.
fn patch_text(patch: &Patch) -> String {
    let mut text = String::with_capacity(256);
    text.push('[');
    for (number, operation) in patch.0.iter().enumerate() {
        let (name, path, value) = match operation {
            PatchOperation::Add(AddOperation { path, value }) => ("add", path, Some(value)),
            PatchOperation::Replace(ReplaceOperation { path, value }) => ("replace", path, Some(value)),
            PatchOperation::Remove(RemoveOperation { path }) => ("remove", path, None),
            // No repair needs them.
            PatchOperation::Move(_) | PatchOperation::Copy(_) | PatchOperation::Test(_) => return to_json(patch),
        };
        let comma = if number == 0 { "" } else { "," };
        text.extend([comma, "{\"op\":\"", name, "\",\"path\":"]);
        push_quoted(&mut text, path.as_str());
        if let Some(value) = value {
            text.extend([",\"value\":", &to_json(value)]);
        }
        text.push('}');
    }
    text.push(']');
    text
}

/// Serializes rare members with serde.
fn push_member(body: &mut String, key: &str, value: &impl Serialize) {
    body.extend([",\"", key, "\":", &to_json(value)]);
}

#[derive(Serialize)]
struct ApiStatus<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: StatusDetails<'a>,
}

#[derive(Serialize)]
struct StatusDetails<'a> {
    name: &'a str,
    group: &'a str,
    kind: &'a str,
    causes: Vec<StatusCause>,
}

#[derive(Serialize)]
struct StatusCause {
    reason: &'static str,
    message: String,
    field: String,
}

/// `Invalid` with one cause per finding is listed line by line by kubectl. `Conflict` makes clients read again and retry, so it
/// is used where that helps.
fn status<'r>(review: &'r Review<'_>, outcome: &ReviewOutcome) -> ApiStatus<'r> {
    let denied: Vec<&Finding> =
        outcome.findings(Endpoint::Validate).filter(|finding| finding.action == Action::Deny).collect();
    let causes = denied.iter().map(|finding| StatusCause {
        reason: "FieldValueInvalid",
        message: cause(finding),
        field: field(finding),
    });
    let request = &review.request;
    let is_conflict = denied.iter().all(|finding| is_fixed_by_retry(finding.rule));
    ApiStatus {
        status: "Failure",
        code: if is_conflict { 409 } else { 422 },
        reason: if is_conflict { "Conflict" } else { "Invalid" },
        message: denial(&denied),
        details: StatusDetails {
            name: &request.name,
            group: &request.group,
            kind: &request.kind,
            causes: causes.collect(),
        },
    }
}

/// The warnings. Both webhooks review a write: /mutate reports repairs, /validate everything else.
fn warnings_for(outcome: &ReviewOutcome, endpoint: Endpoint) -> Vec<String> {
    match (outcome, endpoint) {
        // The operator does not read warnings; they would only fill its log.
        _ if outcome.verdict().is_some_and(|verdict| verdict.written_by_operator) => Vec::new(),
        (ReviewOutcome::Judged(_), Endpoint::Mutate) => warnings(outcome.findings(endpoint)),
        (ReviewOutcome::Judged(_), Endpoint::Validate | Endpoint::Pods | Endpoint::InUse)
        | (ReviewOutcome::Status(_), _) => {
            warnings(outcome.findings(endpoint).filter(|finding| finding.action == Action::Warn))
        }
        (ReviewOutcome::Nothing(SkipReason::Unreadable, _), Endpoint::Validate) => {
            vec!["nadmit could not read the object in the request and judged nothing".to_owned()]
        }
        (ReviewOutcome::Nothing(SkipReason::OtherKind, _), Endpoint::Validate) => {
            vec!["nadmit does not judge objects of this kind; its webhook need not be registered for them".to_owned()]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
