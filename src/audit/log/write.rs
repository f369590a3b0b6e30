//! What kind of write an event was: how it was sent, what it proved, and what came of it.

use super::event::{Body, Event, Refusal, Verb};
use super::objects::Change;

/// How a write was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
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

impl Way {
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

/// What a write proved about the object that it was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It stated the resourceVersion, which the server or nadmit compared.
    Version,
    /// It tested values, but not the version: what it overwrites may have changed around them.
    Values,
    /// Nothing: it is blind, for certain.
    Nothing,
    /// The log does not have it.
    Unknown,
    /// There is nothing to prove: it creates.
    NotNeeded,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken.
    Taken,
    /// The object had changed since the client read it.
    Stale,
    /// Another manager owns a field, or the name was taken.
    Conflict,
    /// An admission webhook refused it.
    Denied,
    /// Something else was wrong with it.
    Refused,
}

/// A write, classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// How it was sent.
    pub way: Way,
    /// What it proved.
    pub proof: Proof,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether it went to the status.
    pub is_status: bool,
}

impl Write {
    /// Classifies; `None` for a dry run, which stores nothing.
    pub fn of(event: &Event<'_>) -> Option<Self> {
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

    /// A JSON patch whose `test` fails is answered with 422, and no word about which operation it was. If the object is known to have
    /// had a newer version, it was the test of that.
    pub(super) fn was_older_than(&mut self, known: Option<&str>, event: &Event<'_>) {
        let number = |text: &str| text.parse::<u64>().ok();
        let (stated, known) = (event.stated().and_then(number), known.and_then(number));
        if self.way == Way::JsonPatch && event.code == 422 && stated.is_some() && stated < known {
            self.outcome = Outcome::Stale;
        }
    }

    /// Whether it overwrote a status without having looked, for certain.
    pub fn is_blind(&self) -> bool {
        self.is_status && self.outcome == Outcome::Taken && self.proof == Proof::Nothing
    }

    /// What came of it, as metrics count it: each write is one of these.
    pub fn outcome_name(&self, change: Change) -> &'static str {
        match (self.outcome, change) {
            (Outcome::Taken, Change::Nothing) => "unchanged",
            (Outcome::Taken, Change::Unknown) => "taken",
            (Outcome::Taken, Change::Something | Change::NotStored) => "changed",
            (Outcome::Stale, _) => "stale",
            (Outcome::Conflict, _) => "conflict",
            (Outcome::Denied, _) => "denied",
            (Outcome::Refused, _) => "refused",
        }
    }

    /// Whether it may have been so, and the log cannot tell.
    pub fn may_be_blind(&self) -> bool {
        self.is_status && self.outcome == Outcome::Taken && self.proof == Proof::Unknown
    }
}

fn way(event: &Event<'_>) -> Way {
    match (event.verb, &event.body) {
        (Verb::Create, _) => Way::Create,
        (Verb::Update, _) => Way::Put,
        (Verb::Patch, _) if event.parameter("force").is_some() => {
            if event.parameter("force") == Some("true") {
                Way::ForcedApply
            } else {
                Way::Apply
            }
        }
        (Verb::Patch, Body::Operations { .. }) => Way::JsonPatch,
        (Verb::Patch, Body::Object { names_kind: true, .. }) if event.parameter("fieldManager").is_some() => Way::Apply,
        (Verb::Patch, Body::Object { .. }) => Way::MergePatch,
        (Verb::Patch, Body::Unknown) => Way::Patch,
    }
}

fn proof(event: &Event<'_>) -> Proof {
    match (event.verb, &event.body) {
        (Verb::Create, _) => Proof::NotNeeded,
        (_, Body::Object { version: Some(_), .. } | Body::Operations { version: Some(_), .. }) => Proof::Version,
        (Verb::Update, _) if event.object.version.is_some() => Proof::Version,
        _ if event.is_guarded => Proof::Version,
        (_, Body::Operations { tests: true, .. }) => Proof::Values,
        (_, Body::Unknown) => Proof::Unknown,
        _ => Proof::Nothing,
    }
}

fn outcome(event: &Event<'_>, proof: Proof) -> Outcome {
    match event.code {
        200..=299 => Outcome::Taken,
        _ if event.refusal == Refusal::Webhook => Outcome::Denied,
        409 if proof == Proof::Version && event.refusal != Refusal::Ownership => Outcome::Stale,
        409 => Outcome::Conflict,
        _ => Outcome::Refused,
    }
}
