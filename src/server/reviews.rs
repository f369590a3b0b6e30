//! One review: read, judged, answered and recorded.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::routes::Peer;
use super::{ServerState, body, panicked};
use crate::audit_log::running::BatchError;
use crate::cluster::cache::facts::{Unavailable, judge_deletion, judge_with_facts};
use crate::denials::Denial;
use crate::policy::{Action, judge_status};
use crate::review::{
    AdmissionRequest, AdmissionResponse, Decision, Endpoint, Review, ReviewError, ReviewOutcome, SkipReason, answer,
};
use crate::supervise::contained_async;
use crate::telemetry::gauges::GaugeGuard;
use crate::telemetry::metrics::ReviewLabels;
use crate::visible::at_most;

/// The maximum length of client text in a log line or HTTP error: names are shorter, and an overlong log line is lost.
const MAX_REPEATED: usize = 300;

/// Truncated client text.
pub(super) fn short(text: &str) -> &str {
    at_most(text, MAX_REPEATED)
}

/// The API server's default timeout.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why a review or a batch gets an HTTP error; for a review failurePolicy then decides.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewFailure {
    #[error("{0}")]
    Unreadable(#[from] ReviewError),
    #[error("{0}")]
    NoBatch(#[from] BatchError),
    #[error("the body is larger than {} MiB", .0 >> 20)]
    TooLarge(usize),
    #[error("the body did not arrive before the deadline")]
    Slow,
    #[error("the body could not be read: {0}")]
    Broken(axum::Error),
    #[error("too many requests at once")]
    Busy,
    #[error("cannot fetch a fact that the repair needs: {0}")]
    Unavailable(#[from] Unavailable),
    #[error("the policy has not been read yet")]
    NoPolicy,
    #[error("a client certificate is required")]
    UnknownCaller,
    #[error("the path has no valid token")]
    UnknownToken,
    #[error("nadmit failed on this request")]
    Panicked,
}

impl ReviewFailure {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::NoBatch(_) => "unreadable",
            Self::TooLarge(_) => "too_large",
            Self::Slow => "slow",
            Self::Broken(_) => "broken",
            Self::Busy => "busy",
            Self::Unavailable(_) | Self::NoPolicy => "unavailable",
            Self::UnknownCaller => "unknown_caller",
            Self::UnknownToken => "unknown_token",
            Self::Panicked => "panicked",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Unreadable(_) | Self::NoBatch(_) | Self::Broken(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::UnknownCaller => StatusCode::FORBIDDEN,
            // An API server may see a new token before this replica; it retries a second later, as for `Busy`.
            Self::Unavailable(_) | Self::NoPolicy | Self::UnknownToken => StatusCode::SERVICE_UNAVAILABLE,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Answers a request that carries a review.
pub(super) async fn respond(
    state: &ServerState,
    endpoint: Endpoint,
    from: &Peer,
    deadline: Deadline,
    body: Body,
) -> Response<Body> {
    match review(state, endpoint, from, deadline, body).await {
        Ok(body) => {
            let mut response = Response::new(Body::from(body));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(reason) => {
            state.metrics.unanswered(reason.reason());
            let (words, response) = error_response(&reason);
            // As a field, which every log format escapes: a client must not be able to forge log lines.
            warn!(endpoint = endpoint.name(), reason = reason.reason(), error = words, "review failed");
            response
        }
    }
}

/// The HTTP error response, and its message.
pub(super) fn error_response(reason: &ReviewFailure) -> (String, Response<Body>) {
    let words = reason.to_string();
    let words = short(&words).to_owned();
    let mut response = Response::new(Body::from(format!("{words}\n")));
    *response.status_mut() = reason.status();
    // Measured with API servers 1.34 and 1.37: with this header they retry a second later, within the webhook's timeout, and the
    // client does not notice a short overload. Without it, and for a closed connection, the write fails at once (or passes
    // unjudged, depending on failurePolicy); with zero they retry eleven times in 10 ms.
    if matches!(reason, ReviewFailure::Busy | ReviewFailure::UnknownToken) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    (words, response)
}

/// Reads the body and judges it. A panic while judging must not lead to an unjudged object.
async fn review(
    state: &ServerState,
    endpoint: Endpoint,
    from: &Peer,
    deadline: Deadline,
    body: Body,
) -> Result<Vec<u8>, ReviewFailure> {
    let until = deadline.waits_until();
    let body = body::read(state, from.address, body, until).await?;
    from.connection.mark_proven();
    let _counted = GaugeGuard::one(&state.metrics.in_flight);
    let _memory = state.capacity.judging(&body.bytes, until).await.ok_or(ReviewFailure::Busy)?;
    let _slot = state.capacity.review(until).await.ok_or(ReviewFailure::Busy)?;
    match contained_async(judge(state, endpoint, &body.bytes, deadline)).await {
        Ok(answer) => answer,
        Err(panicked) => panicked::answer(state, endpoint, &body.bytes, &panicked),
    }
}

async fn judge(
    state: &ServerState,
    endpoint: Endpoint,
    body: &[u8],
    deadline: Deadline,
) -> Result<Vec<u8>, ReviewFailure> {
    let started = Instant::now();
    let review = Review::read(body)?;
    let policy = state.policy.load_full();
    let nothing = |why| ReviewOutcome::Nothing(why, policy.mode_in(&review.request.namespace));
    let outcome = match endpoint {
        Endpoint::Status => match review.request.status_write() {
            Err(why) => nothing(why),
            // The policy no longer guards this resource, but the webhook is still registered.
            Ok(write) => {
                let judged = judge_status(&write, &state.facts.common(), &policy);
                judged.map_or_else(|| nothing(SkipReason::NotJudged), ReviewOutcome::Status)
            }
        },
        Endpoint::InUse => match review.request.deleted() {
            Err(why) => nothing(why),
            Ok(subject) => match state.facts.users_of(&subject.object.key()) {
                // No pods are watched.
                None => nothing(SkipReason::NotJudged),
                Some(users) => {
                    let user = Some(review.request.user_info);
                    ReviewOutcome::Judged(
                        judge_deletion(&*state.facts, &subject, users, user, &policy, deadline.left()).await,
                    )
                }
            },
        },
        Endpoint::Mutate | Endpoint::Validate | Endpoint::Pods => match review.request.subject(endpoint) {
            Err(why) => nothing(why),
            Ok(subject) => ReviewOutcome::Judged(
                judge_with_facts(&*state.facts, &subject, Some(review.request.user_info), &policy, deadline.left())
                    .await?,
            ),
        },
    };
    let answer = answer(&review, endpoint, &outcome);
    record(state, &review, endpoint, &outcome, &answer, started.elapsed());
    Ok(answer.body)
}

/// The deadline of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    arrived: Instant,
    within: Duration,
}

impl Deadline {
    /// From the `timeout` query parameter of the API server, minus a margin for the response.
    pub(super) fn of(query: Option<&str>) -> Self {
        let value = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("timeout=")));
        let named = value.and_then(|text| text.parse::<jiff::SignedDuration>().ok());
        let named = named.and_then(|duration| Duration::try_from(duration).ok()).filter(|named| !named.is_zero());
        let within = named.unwrap_or(DEADLINE).mul_f32(0.9).min(Duration::from_secs(30));
        Self { arrived: Instant::now(), within }
    }

    /// The time that is left.
    fn left(self) -> Duration {
        self.within.saturating_sub(self.arrived.elapsed())
    }

    /// How long to wait for capacity, leaving time for the API server's retry.
    pub(super) fn waits_until(self) -> Instant {
        self.arrived + self.within / 2
    }
}

/// Writes the log line and metrics of a review.
fn record(
    state: &ServerState,
    review: &Review<'_>,
    endpoint: Endpoint,
    outcome: &ReviewOutcome,
    answer: &AdmissionResponse,
    took: Duration,
) {
    let request = &review.request;
    state.metrics.answered(&labels(endpoint, request, answer.decision), took.as_secs_f64());
    for finding in outcome.findings(endpoint) {
        state.metrics.found(finding.rule.id, finding.action.name());
    }
    if answer.decision == Decision::Deny && !request.is_dry_run {
        let denying = outcome.findings(endpoint).filter(|finding| finding.action == Action::Deny);
        let mut rules: Vec<_> = denying.map(|finding| finding.rule.id).collect();
        let mut seen = BTreeSet::new();
        rules.retain(|rule| seen.insert(*rule));
        record_denial(state, request, rules);
    }
    let status = outcome.status();
    if let Some((class, writer)) = status {
        state.metrics.status_written(class.name(), writer.kind().name());
    }
    if matches!(outcome, ReviewOutcome::Nothing(SkipReason::Unreadable, _)) {
        error!(uid = short(&request.uid), "cannot read the object of the review");
    }
    info!(
        endpoint = endpoint.name(),
        decision = answer.decision.name(),
        kind = short(&request.kind),
        namespace = short(&request.namespace),
        name = short(&request.name),
        operation = request.operation.name(),
        dry_run = request.is_dry_run,
        user = short(&request.user),
        rules = answer.rules.as_str(),
        would = answer.would.as_str(),
        class = status.map(|(class, _)| class.name()),
        manager = status.map(|(_, writer)| short(&writer.manager)),
        uid = short(&request.uid),
        micros = took.as_micros() as u64,
        "reviewed"
    );
}

/// The labels of a review.
pub(super) fn labels(endpoint: Endpoint, request: &AdmissionRequest<'_>, decision: Decision) -> ReviewLabels {
    ReviewLabels {
        endpoint: endpoint.name(),
        kind: kind(&request.kind),
        operation: request.operation.name(),
        decision: decision.name(),
        dry_run: if request.is_dry_run { "true" } else { "false" },
    }
}

/// The kind label of metrics.
fn kind(kind: &str) -> &'static str {
    match kind {
        "NetworkAttachmentDefinition" => "NetworkAttachmentDefinition",
        "SriovNetwork" => "SriovNetwork",
        "SriovIBNetwork" => "SriovIBNetwork",
        "OVSNetwork" => "OVSNetwork",
        "SriovNetworkNodeState" => "SriovNetworkNodeState",
        "SriovNetworkNodePolicy" => "SriovNetworkNodePolicy",
        "SriovNetworkPoolConfig" => "SriovNetworkPoolConfig",
        "SriovOperatorConfig" => "SriovOperatorConfig",
        "Pod" => "Pod",
        "Deployment" => "Deployment",
        "StatefulSet" => "StatefulSet",
        "DaemonSet" => "DaemonSet",
        "Job" => "Job",
        "CronJob" => "CronJob",
        "VirtualMachine" => "VirtualMachine",
        _ => "other",
    }
}

/// Records a denial in memory; it is reported later, so that reviews do not wait or write.
pub(super) fn record_denial(state: &ServerState, request: &AdmissionRequest<'_>, rules: Vec<&'static str>) {
    state.denials.add(Denial::of(request, rules, jiff::Timestamp::now().as_second()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_the_api_servers() {
        for (query, want) in [
            (None, 9.0),
            (Some("timeout=10s"), 9.0),
            (Some("timeout=1s"), 0.9),
            (Some("a=b&timeout=5s"), 4.5),
            (Some("timeout=1m30s"), 30.0),
            (Some("timeout=0s"), 9.0),
            (Some("timeout=-3s"), 9.0),
            (Some("timeout=soon"), 9.0),
            (Some(""), 9.0),
        ] {
            let Deadline { within, .. } = Deadline::of(query);
            assert!((within.as_secs_f64() - want).abs() < 0.001, "{query:?}: {within:?}");
        }
    }
}
