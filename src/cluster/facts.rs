//! Where a door learns about the rest of the cluster.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tracing::warn;

use crate::policy::{Facts, Policy, Subject, Verdict, Wanted, judge};
use crate::resources::Object;

/// A fact that could not be had in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// Someone who knows.
pub trait Source: Send + Sync {
    /// What is known without asking anybody: at once, and for every review.
    fn known(&self, object: &Object<'_>) -> Facts;

    /// The operator's namespace, where it was discovered.
    fn operator_namespace(&self) -> Option<String> {
        None
    }

    /// Adds what the judgement wants to know and has to be asked for, within that time.
    fn find<'a>(&'a self, facts: Facts, question: Question<'a>, within: Duration) -> Found<'a>;
}

/// What has to be asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What is judged.
    pub subject: &'a Subject<'a>,
    /// What the judgement wants to know.
    pub wanted: &'a Wanted,
    /// The policy in force.
    pub policy: &'a Policy,
}

/// What comes of asking. Only a source that should have known and could not be reached in time is unavailable; `None`: there is
/// nobody to ask.
pub type Found<'a> = BoxFuture<'a, Result<Option<Facts>, Unavailable>>;

/// Judges a write with what is known, and once more where the first time showed that somebody must be asked. A value that comes
/// from the owning network is stored for good, so it is asked for at that moment.
pub async fn judged(
    source: &dyn Source,
    subject: &Subject<'_>,
    policy: &Policy,
    within: Duration,
) -> Result<Verdict, Unavailable> {
    let facts = known(source, subject);
    let verdict = judge(subject, &facts, policy);
    let is_asked = !subject.is_final && !subject.object.meta().deleting;
    let Some(wanted) = verdict.wanted.as_ref().filter(|_| is_asked) else { return Ok(verdict) };
    let question = Question { subject, wanted, policy };
    match source.find(facts.clone(), question, within).await {
        Ok(Some(facts)) => Ok(judge(subject, &facts, policy)),
        Ok(None) => Ok(verdict),
        Err(unavailable) if wanted.is_vital() => Err(unavailable),
        Err(unavailable) => {
            warn!(%unavailable, "judged without what the cluster would have said; what was written stays as it is");
            let mut facts = facts;
            facts.unreachable.push(unavailable.to_string());
            Ok(judge(subject, &facts, policy))
        }
    }
}

fn known(source: &dyn Source, subject: &Subject<'_>) -> Facts {
    Facts { today: Some(today()), ..source.known(subject.object) }
}

/// What is known whatever object is written.
pub fn about_everything(source: &dyn Source) -> Facts {
    Facts { today: Some(today()), operator_namespace: source.operator_namespace(), ..Facts::default() }
}

fn today() -> jiff::civil::Date {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// Nobody knows anything: there is no cluster.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Source for Nowhere {
    fn known(&self, _: &Object<'_>) -> Facts {
        Facts::default()
    }

    fn find<'a>(&'a self, _: Facts, _: Question<'a>, _: Duration) -> Found<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}
