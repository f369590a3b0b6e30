//! A verdict as the API server wants it answered.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::words::{cause, denial, field, warnings};
use super::{Endpoint, NoSubject, Review};
use crate::policy::{Action, Because, Finding, Mode, Verdict};

/// What came of a request.
#[derive(Debug)]
pub enum Outcome {
    /// There was nothing to judge.
    Nothing(NoSubject, Mode),
    /// It was judged.
    Judged(Verdict),
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
        match (self, endpoint) {
            (Self::Judged(verdict), Endpoint::Mutate) if !verdict.patch.0.is_empty() => Decision::Patch,
            (Self::Judged(verdict), Endpoint::Validate) if verdict.denies() => Decision::Deny,
            _ => Decision::Allow,
        }
    }

    /// What was found that is this endpoint's business: what is repaired at the first, everything else at the second, so that
    /// nothing is told twice about one write.
    pub fn findings(&self, endpoint: Endpoint) -> impl Iterator<Item = &Finding> {
        let all = match self {
            Self::Judged(verdict) => verdict.findings.as_slice(),
            Self::Nothing(..) => &[],
        };
        all.iter().filter(move |finding| endpoint == Endpoint::Validate || finding.action == Action::Patch)
    }

    /// The mode it was judged in.
    fn mode(&self) -> Mode {
        match self {
            Self::Judged(verdict) => verdict.mode,
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
    let mut last = None;
    for (finding, action) in findings {
        let because = finding.because.as_ref().map(Because::name);
        // Findings come in the order of their rules; one word for each rule is enough.
        if last.replace((finding.rule.id, action, because)) == last {
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    /// A patch without its type, or the other way round, is an error to the API server; so is either from a validating webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    audit_annotations: Annotations<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The API server puts the webhook's name and a slash in front of each.
#[derive(Serialize)]
struct Annotations<'a> {
    mode: Mode,
    decision: &'static str,
    rules: &'a str,
    would: &'a str,
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
    let patch = match (outcome, decision) {
        (Outcome::Judged(verdict), Decision::Patch) => serde_json::to_vec(&verdict.patch).ok(),
        _ => None,
    };
    let patch = patch.map(|json| STANDARD.encode(json));
    let envelope = Envelope {
        api_version: review.version.api_version(),
        kind: "AdmissionReview",
        response: Response {
            uid: &review.request.uid,
            allowed: decision != Decision::Deny,
            status: (decision == Decision::Deny).then(|| status(review, outcome)),
            patch_type: patch.as_ref().map(|_| "JSONPatch"),
            patch,
            audit_annotations: Annotations {
                mode: outcome.mode(),
                decision: decision.name(),
                rules: &rules,
                would: &would,
            },
            warnings: said(outcome, endpoint),
        },
    };
    let mut body = Vec::with_capacity(1024);
    // Strings and numbers only: nothing in it can fail to be written.
    let _ = serde_json::to_writer(&mut body, &envelope);
    Answer { body, decision, rules, would }
}

/// `Invalid` with one cause for each finding is what kubectl lists line by line.
fn status<'r>(review: &'r Review<'_>, outcome: &Outcome) -> Status<'r> {
    let denied: Vec<&Finding> =
        outcome.findings(Endpoint::Validate).filter(|finding| finding.action == Action::Deny).collect();
    let causes = denied.iter().map(|finding| Cause {
        reason: "FieldValueInvalid",
        message: cause(finding),
        field: field(finding),
    });
    let request = &review.request;
    Status {
        status: "Failure",
        code: 422,
        reason: "Invalid",
        message: denial(&denied),
        details: Details { name: &request.name, group: &request.group, kind: &request.kind, causes: causes.collect() },
    }
}

/// The warnings. Both webhooks see a write: the first tells what it repaired, the second whatever is wrong with the result.
fn said(outcome: &Outcome, endpoint: Endpoint) -> Vec<String> {
    match (outcome, endpoint) {
        // The operator reads no warnings; its log would only fill with them.
        (Outcome::Judged(verdict), _) if verdict.is_operators => Vec::new(),
        (Outcome::Judged(_), Endpoint::Mutate) => warnings(outcome.findings(endpoint)),
        (Outcome::Judged(_), Endpoint::Validate) => {
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
