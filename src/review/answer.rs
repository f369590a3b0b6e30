//! A verdict as the API server wants it answered.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::words::{cause, denial, field, warnings};
use super::{Endpoint, NoSubject, Review};
use crate::json::write::push_quoted;
use crate::policy::{Action, Because, Class, Finding, Mode, StatusVerdict, Verdict, Writer, is_cured_by_retry};

/// What came of a request.
#[derive(Debug)]
pub enum Outcome {
    /// There was nothing to judge.
    Nothing(NoSubject, Mode),
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
    /// Refused.
    Deny,
}

impl Decision {
    /// As annotations, metrics and logs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Patch => "patch",
            Self::Deny => "deny",
        }
    }
}

impl Outcome {
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

    /// What a write to a status shows, and who makes it.
    pub fn status(&self) -> Option<(Class, &Writer)> {
        match self {
            Self::Status(status) => Some((status.class, &status.writer)),
            Self::Judged(_) | Self::Nothing(..) => None,
        }
    }

    /// What was found that is this endpoint's business: what is repaired at the first, everything else at the second, so that
    /// nothing is told twice about one write.
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

    /// Which rules found something, and what is done about it.
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
        let because = finding.because.as_ref().map(Because::name);
        // The findings of two rules may alternate.
        if !seen.insert((finding.rule.id, action, because)) {
            continue;
        }
        let comma = if list.is_empty() { "" } else { "," };
        let _ = write!(list, "{comma}{}={}", finding.rule.id, action.name());
        if let Some(because) = because {
            let _ = write!(list, "({because})");
        }
    }
    list
}

/// What a review is answered with.
#[derive(Debug)]
pub struct Answer {
    /// The body.
    pub body: Vec<u8>,
    /// What is decided.
    pub decision: Decision,
    /// Which rules found something, and what is done about it: `sriov/vlan=deny,sriov/on-off=warn(ratchet)`.
    pub rules: String,
    /// In audit mode: which rules would have done what.
    pub would: String,
}

/// Answers a review.
pub fn answer(review: &Review<'_>, endpoint: Endpoint, outcome: &Outcome) -> Answer {
    let decision = outcome.decision(endpoint);
    let (rules, would) = (outcome.rules(endpoint), outcome.would(endpoint));
    // Every review is answered, and nearly all that is written is known beforehand.
    let mut body = String::with_capacity(1024);
    body.push_str("{\"apiVersion\":\"");
    body.push_str(review.version.api_version());
    body.push_str("\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":");
    push_quoted(&mut body, &review.request.uid);
    body.push_str(if decision == Decision::Deny { ",\"allowed\":false" } else { ",\"allowed\":true" });
    match (outcome, decision) {
        (_, Decision::Deny) => push_member(&mut body, "status", &status(review, outcome)),
        // A patch without its type, or the other way round, is an error to the API server; so is either where nothing is repaired.
        (Outcome::Judged(verdict), Decision::Patch) => {
            body.push_str(",\"patch\":\"");
            STANDARD.encode_string(serde_json::to_vec(&verdict.patch).unwrap_or_default(), &mut body);
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
    let warnings = said(outcome, endpoint);
    if !warnings.is_empty() {
        push_member(&mut body, "warnings", &warnings);
    }
    body.push_str("}}");
    Answer { body: body.into_bytes(), decision, rules, would }
}

/// What is not written often enough to be written by hand.
fn push_member(body: &mut String, key: &str, value: &impl Serialize) {
    // Strings and numbers only: nothing in it can fail to be written.
    let value = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    body.extend([",\"", key, "\":", &value]);
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    name: &'a str,
    group: &'a str,
    kind: &'a str,
    causes: Vec<Cause>,
}

#[derive(Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

/// `Invalid` with one cause for each finding is what kubectl lists line by line. `Conflict` is what makes a client read again and
/// try again, so it is said where that helps.
fn status<'r>(review: &'r Review<'_>, outcome: &Outcome) -> Status<'r> {
    let denied: Vec<&Finding> =
        outcome.findings(Endpoint::Validate).filter(|finding| finding.action == Action::Deny).collect();
    let causes = denied.iter().map(|finding| Cause {
        reason: "FieldValueInvalid",
        message: cause(finding),
        field: field(finding),
    });
    let request = &review.request;
    let is_conflict = denied.iter().all(|finding| is_cured_by_retry(finding.rule));
    Status {
        status: "Failure",
        code: if is_conflict { 409 } else { 422 },
        reason: if is_conflict { "Conflict" } else { "Invalid" },
        message: denial(&denied),
        details: Details { name: &request.name, group: &request.group, kind: &request.kind, causes: causes.collect() },
    }
}

/// The warnings. Both webhooks see a write: the first tells what it repaired, the second whatever is wrong with the result.
fn said(outcome: &Outcome, endpoint: Endpoint) -> Vec<String> {
    match (outcome, endpoint) {
        // The operator reads no warnings; its log would only fill with them.
        _ if outcome.verdict().is_some_and(|verdict| verdict.is_operators) => Vec::new(),
        (Outcome::Judged(_), Endpoint::Mutate) => warnings(outcome.findings(endpoint)),
        (Outcome::Judged(_), Endpoint::Validate) | (Outcome::Status(_), _) => {
            warnings(outcome.findings(endpoint).filter(|finding| finding.action == Action::Warn))
        }
        (Outcome::Nothing(NoSubject::Unreadable, _), Endpoint::Validate) => {
            vec!["nadmit found no object in the request that it can read, and judged nothing".to_owned()]
        }
        (Outcome::Nothing(NoSubject::OtherKind, _), Endpoint::Validate) => {
            vec!["nadmit does not judge objects of this kind; its webhook need not be registered for them".to_owned()]
        }
        _ => Vec::new(),
    }
}
