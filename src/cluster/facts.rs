//! Where a door learns about the rest of the cluster.

use std::mem::discriminant;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::Failed;
use crate::policy::{Facts, Operators, Policy, Subject, Verdict, Wanted, judge};
use crate::resources::Object;

/// A fact that could not be had in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

impl From<Failed> for Unavailable {
    fn from(failed: Failed) -> Self {
        Self(failed.to_string())
    }
}

/// Someone who knows.
pub trait Source: Send + Sync {
    /// What is known without asking anybody: at once, and for every review.
    fn known(&self, object: &Object<'_>) -> Facts;

    /// The operators, where they were looked for.
    fn operators(&self) -> Operators {
        Operators::Unasked
    }

    /// Whether a user may be an operator that was not found yet.
    fn may_be_operator(&self, _: &str) -> bool {
        false
    }

    /// Finds out whether a user is an operator; `info` is how the API server describes the user. Whoever looks next knows it.
    fn identify<'a>(&'a self, _: &'a str, _: &'a str) -> Asked<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether the writer of a NAD has the right that an operator has, and the NAD is what a live network renders to.
    fn vouches<'a>(&'a self, _: &'a Facts, _: &'a Subject<'a>, _: &'a str, _: &'a Policy) -> Asked<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
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
    /// The writer as the API server describes it, in JSON; `None` where nobody writes.
    pub user: Option<&'a str>,
}

/// An answer of the API server.
pub type Asked<'a, T> = BoxFuture<'a, Result<T, Unavailable>>;

/// What comes of asking. Only a source that should have known and could not be reached in time is unavailable; `None`: there is
/// nobody to ask.
pub type Found<'a> = BoxFuture<'a, Result<Option<Facts>, Unavailable>>;

/// Judges a write with what is known, and once more where the first time showed that somebody must be asked. A value that comes
/// from the owning network is stored for good, so it is asked for at that moment. `user` is how the API server describes the writer.
pub async fn judged(
    source: &dyn Source,
    subject: &Subject<'_>,
    user: Option<&str>,
    policy: &Policy,
    within: Duration,
) -> Result<Verdict, Unavailable> {
    let ends = Instant::now() + within;
    let left = || ends.saturating_duration_since(Instant::now());
    if let (Some(writer), Some(user)) = (subject.writer, user)
        && source.may_be_operator(writer)
    {
        match timeout(left(), source.identify(writer, user)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(writer, %error, "cannot find out whether the writer is an operator"),
            Err(_) => warn!(writer, "cannot find out in time whether the writer is an operator"),
        }
    }
    let mut facts = known(source, subject, policy);
    let mut verdict = judge(subject, &facts, policy);
    let mut asked = Vec::new();
    while let Some(wanted) = verdict.wanted.as_ref().filter(|wanted| is_asked(wanted, subject)) {
        // Whatever the answer was, nothing is asked twice.
        if asked.contains(&discriminant(wanted)) {
            break;
        }
        asked.push(discriminant(wanted));
        let question = Question { subject, wanted, policy, user };
        match source.find(facts.clone(), question, left()).await {
            Ok(Some(found)) => facts = found,
            Ok(None) => break,
            Err(unavailable) if wanted.is_vital() => return Err(unavailable),
            // What cannot be found out stays unnamed.
            Err(_) if matches!(wanted, Wanted::Names(_)) => break,
            Err(unavailable) => {
                warn!(%unavailable, "judged without what the cluster would have said; what was written stays as it is");
                facts.unreachable.push(unavailable.to_string());
            }
        }
        verdict = judge(subject, &facts, policy);
    }
    // No operator that is known wrote it, but one that is not may have.
    if let Some(user) = user
        && subject.is_final
        && verdict.denies()
        && !verdict.is_operators
        && facts.claimants.is_some()
        && let Ok(Ok(true)) = timeout(left(), source.vouches(&facts, subject, user, policy)).await
    {
        return Ok(judge(subject, &Facts { vouched: true, ..facts }, policy));
    }
    Ok(verdict)
}

/// Whether the cluster is asked for this now: what a finding needs when the object is final, all else before.
fn is_asked(wanted: &Wanted, subject: &Subject<'_>) -> bool {
    wanted.is_for_final() == subject.is_final && (subject.is_final || !subject.is_let_go())
}

fn known(source: &dyn Source, subject: &Subject<'_>, policy: &Policy) -> Facts {
    let facts = Facts { today: Some(today()), ..source.known(subject.object) };
    match subject.object {
        Object::Network(network) if policy.has_foreign_target(network, &facts) => facts.without_place(),
        _ => facts,
    }
}

/// What is known whatever object is written.
pub fn about_everything(source: &dyn Source) -> Facts {
    Facts { today: Some(today()), operators: source.operators(), ..Facts::default() }
}

pub(super) fn today() -> jiff::civil::Date {
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
