//! Sources of facts about the rest of the cluster.

use std::mem::discriminant;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};
use tracing::warn;

use crate::cluster::client::ApiError;
use crate::policy::{
    FactLookup, Facts, MissingFact, NadUsers, NameVisibility, Operators, Policy, Subject, Verdict, judge,
};
use crate::resources::{Object, ObjectKey};

/// A fact that could not be fetched before the deadline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

impl From<ApiError> for Unavailable {
    fn from(failed: ApiError) -> Self {
        Self(failed.to_string())
    }
}

/// A source of facts.
pub trait FactSource: Send + Sync {
    /// The facts that hold for every object.
    fn common(&self) -> Facts {
        Facts {
            is_cluster: true,
            today: Some(today()),
            operators: self.operators(),
            names: self.names(),
            ..Facts::default()
        }
    }

    /// The facts about an object that are available without a request.
    fn known(&self, object: &Object<'_>, policy: &Policy) -> Facts {
        self.common().gather(object, self.lookup(), policy)
    }

    /// Where those are looked up.
    fn lookup(&self) -> &dyn FactLookup {
        &()
    }

    /// The pods that use a NAD; `None` where no pods are watched.
    fn users_of(&self, _: &ObjectKey) -> Option<NadUsers> {
        None
    }

    /// What may be named to the writer before a permission check.
    fn names(&self) -> NameVisibility {
        NameVisibility::All
    }

    /// The discovered operators.
    fn operators(&self) -> Operators {
        Operators::Unasked
    }

    /// Whether a user may be an operator that was not discovered yet.
    fn may_be_operator(&self, _: &str) -> bool {
        false
    }

    /// Checks whether a user is an operator, and caches the answer; `info` is the user info of the request.
    fn identify<'a>(&'a self, _: &'a str, _: &'a str) -> ApiFuture<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether the writer of a NAD has the permissions of an operator and the NAD is what a live network renders.
    fn is_unknown_operator<'a>(
        &'a self,
        _: &'a Facts,
        _: &'a Subject<'a>,
        _: &'a str,
        _: &'a Policy,
    ) -> ApiFuture<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Fetches a missing fact within that time.
    fn find<'a>(&'a self, facts: Facts, question: FactsQuery<'a>, within: Duration) -> FactsFuture<'a>;
}

/// A query for a missing fact.
#[derive(Clone, Copy, Debug)]
pub struct FactsQuery<'a> {
    /// What is judged.
    pub subject: &'a Subject<'a>,
    /// The missing fact.
    pub missing: &'a MissingFact,
    /// The policy in force.
    pub policy: &'a Policy,
    /// The user info of the writer, as JSON; `None` without a writer.
    pub user: Option<&'a str>,
}

/// A request to the API server.
pub type ApiFuture<'a, T> = BoxFuture<'a, Result<T, Unavailable>>;

/// The result of a fetch. `Unavailable` only if the source could not be reached before the deadline; `None` if there is no
/// source.
pub type FactsFuture<'a> = BoxFuture<'a, Result<Option<Facts>, Unavailable>>;

/// Judges a write with the cached facts, and again after fetching a missing one. A value from the owning network is stored
/// permanently, so it is read live. `user` is the user info of the writer.
pub async fn judge_with_facts(
    source: &dyn FactSource,
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
            Ok(Err(error)) => warn!(writer, %error, "failed to check whether the writer is an operator"),
            Err(_) => warn!(writer, "timed out checking whether the writer is an operator"),
        }
    }
    let mut facts = source.known(subject.object, policy);
    let mut verdict = judge(subject, &facts, policy);
    let mut asked = Vec::new();
    while let Some(missing) = verdict.missing_fact.as_ref().filter(|missing| should_fetch(missing, subject)) {
        // Never fetch the same fact twice.
        if asked.contains(&discriminant(missing)) {
            break;
        }
        asked.push(discriminant(missing));
        let question = FactsQuery { subject, missing, policy, user };
        match source.find(facts.clone(), question, left()).await {
            Ok(Some(found)) => facts = found,
            Ok(None) => break,
            Err(unavailable) if missing.is_required() => return Err(unavailable),
            // If the permission check fails, names stay hidden.
            Err(_) if matches!(missing, MissingFact::NameVisibility(_)) => break,
            Err(unavailable) => {
                warn!(%unavailable, "judged without a missing fact; not changing the object");
                facts.unreachable.push(unavailable.to_string());
            }
        }
        verdict = judge(subject, &facts, policy);
    }
    // No known operator wrote it, but an unknown one may have.
    if let Some(user) = user
        && subject.is_final
        && verdict.denies()
        && !verdict.written_by_operator
        && facts.claimants.is_some()
        && let Ok(Ok(true)) = timeout(left(), source.is_unknown_operator(&facts, subject, user, policy)).await
    {
        return Ok(judge(subject, &Facts { written_by_unknown_operator: true, ..facts }, policy));
    }
    Ok(verdict)
}

/// Judges the deletion of a NAD, which is never denied. Where the writer's permission to list pods cannot be checked before the deadline,
/// no pod is named.
pub async fn judge_deletion(
    source: &dyn FactSource,
    subject: &Subject<'_>,
    users: NadUsers,
    user: Option<&str>,
    policy: &Policy,
    within: Duration,
) -> Verdict {
    let facts = Facts { users_at_deletion: Some(users), ..source.common() };
    let verdict = judge(subject, &facts, policy);
    let Some(missing) = &verdict.missing_fact else { return verdict };
    let question = FactsQuery { subject, missing, policy, user };
    match source.find(facts.clone(), question, within).await {
        Ok(Some(facts)) => judge(subject, &facts, policy),
        Ok(None) | Err(_) => verdict,
    }
}

/// Whether this fact is fetched now: facts for findings when the object is final, all others before.
fn should_fetch(missing: &MissingFact, subject: &Subject<'_>) -> bool {
    missing.is_for_final() == subject.is_final && (subject.is_final || !subject.is_deletion_progress())
}

pub(in crate::cluster) fn today() -> jiff::civil::Date {
    Facts::date(jiff::Timestamp::now())
}

/// No facts: there is no cluster.
#[derive(Clone, Copy, Debug)]
pub struct NoCluster;

impl FactSource for NoCluster {
    fn find<'a>(&'a self, _: Facts, _: FactsQuery<'a>, _: Duration) -> FactsFuture<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}
