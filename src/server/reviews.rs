//! One review: read, judged, answered, and told about.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{error, info, warn};

use super::State;
use crate::audit::log::running::BatchError;
use crate::cluster::facts::{Unavailable, about_everything, judged};
use crate::output::denied::Denied;
use crate::policy::{Action, judge_status};
use crate::review::{self, Answer, Decision, Endpoint, NoSubject, Outcome, Review, ReviewError, answer};
use crate::telemetry::metrics::{Answered, Counted};

/// The most of a caller's text that a log line or an HTTP error repeats, in bytes: names are shorter, and a line that is too long
/// for the log is lost.
const MOST_REPEATED: usize = 300;

/// A text that a caller chose, or as much of it as is repeated.
fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MOST_REPEATED)).unwrap_or_default()
}

/// The deadline where the API server names none: its own default.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why a review gets an HTTP error, which leaves the decision to failurePolicy; or why a batch of audit events does.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("{0}")]
    Unreadable(#[from] ReviewError),
    #[error("{0}")]
    NoBatch(#[from] BatchError),
    #[error("the body is larger than {} MiB", .0 >> 20)]
    TooLarge(usize),
    #[error("the body did not arrive in time")]
    Slow,
    #[error("the body could not be read: {0}")]
    Broken(axum::Error),
    #[error("too many requests at once")]
    Busy,
    #[error("a fact that the repair needs cannot be had: {0}")]
    Unavailable(#[from] Unavailable),
    #[error("nadmit failed on this request")]
    Panicked,
}

impl Unanswered {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::NoBatch(_) => "unreadable",
            Self::TooLarge(_) => "too_large",
            Self::Slow => "slow",
            Self::Broken(_) => "broken",
            Self::Busy => "busy",
            Self::Unavailable(_) => "unavailable",
            Self::Panicked => "panicked",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Unreadable(_) | Self::NoBatch(_) | Self::Broken(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Answers a request that carries a review.
pub(super) async fn respond(state: &State, endpoint: Endpoint, request: Request<Body>) -> Response<Body> {
    let _counted = Counted::one(&state.metrics.in_flight);
    match review(state, endpoint, request).await {
        Ok(body) => {
            let mut response = Response::new(Body::from(body));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(reason) => {
            state.metrics.unanswered(reason.reason());
            let (words, response) = refusal(&reason);
            // As a field, which every format of the log escapes: a caller must not be able to write lines of its own.
            warn!(endpoint = endpoint.name(), reason = reason.reason(), error = words, "review not answered");
            response
        }
    }
}

/// The answer to a request that gets none, and its words.
pub(super) fn refusal(reason: &Unanswered) -> (String, Response<Body>) {
    let words = reason.to_string();
    let words = short(&words).to_owned();
    let mut response = Response::new(Body::from(format!("{words}\n")));
    *response.status_mut() = reason.status();
    // Measured with API servers of 1.34 and 1.37: with this header they ask again a second later, within the webhook's
    // timeout, and the writer notices nothing of a short overload. Without it, and for a connection that is closed, the
    // write fails at once (or passes unjudged, where failurePolicy says so); with a zero they ask eleven times in 10 ms.
    if matches!(reason, Unanswered::Busy) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    (words, response)
}

async fn review(state: &State, endpoint: Endpoint, request: Request<Body>) -> Result<Vec<u8>, Unanswered> {
    let _room = state.room.review().ok_or(Unanswered::Busy)?;
    let (arrived, within) = (Instant::now(), deadline(request.uri().query()));
    let (body, _held) = body(state, request.into_body()).await?;
    let started = Instant::now();
    let within = within.saturating_sub(started - arrived);
    let review = Review::read(&body)?;
    let policy = state.policy.load_full();
    let nothing = |why| Outcome::Nothing(why, policy.mode_in(&review.request.namespace));
    let outcome = match endpoint {
        Endpoint::Status => match review.request.status_write() {
            Err(why) => nothing(why),
            // The policy may have changed a moment ago, and the registration not yet.
            Ok(write) => {
                let judged = judge_status(&write, &about_everything(&*state.facts), &policy);
                judged.map_or_else(|| nothing(NoSubject::NotJudged), Outcome::Status)
            }
        },
        Endpoint::Mutate | Endpoint::Validate => match review.request.subject(endpoint) {
            Err(why) => nothing(why),
            Ok(subject) => Outcome::Judged(judged(&*state.facts, &subject, &policy, within).await?),
        },
    };
    let answer = answer(&review, endpoint, &outcome);
    tell(state, &review, endpoint, &outcome, &answer, started.elapsed());
    Ok(answer.body)
}

/// The whole body, and the room it takes until it is answered.
pub(super) async fn body(state: &State, mut body: Body) -> Result<(Bytes, Vec<OwnedSemaphorePermit>), Unanswered> {
    let read = async {
        let mut held = Vec::new();
        let mut parts: Vec<u8> = Vec::new();
        let mut first = Bytes::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(Unanswered::Broken)?.into_data() else { continue };
            if first.len() + parts.len() + data.len() > state.limits.body {
                return Err(Unanswered::TooLarge(state.limits.body));
            }
            held.push(state.room.body(data.len()).ok_or(Unanswered::Busy)?);
            // Most bodies come in one piece, and need no copy.
            if first.is_empty() && parts.is_empty() {
                first = data;
                continue;
            }
            if parts.is_empty() {
                parts.extend_from_slice(&std::mem::take(&mut first));
            }
            parts.extend_from_slice(&data);
        }
        Ok((if parts.is_empty() { first } else { parts.into() }, held))
    };
    tokio::time::timeout(state.limits.body_arrives, read).await.map_err(|_| Unanswered::Slow)?
}

/// The time there is, from the `timeout` the API server puts into the address, less a little for the way back.
fn deadline(query: Option<&str>) -> Duration {
    let value = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("timeout=")));
    let named = value.and_then(|text| text.parse::<jiff::SignedDuration>().ok());
    let named = named.and_then(|duration| Duration::try_from(duration).ok()).filter(|named| !named.is_zero());
    named.unwrap_or(DEADLINE).mul_f32(0.9).min(Duration::from_secs(30))
}

/// The log line and the metrics of a review that was answered.
fn tell(state: &State, review: &Review<'_>, endpoint: Endpoint, outcome: &Outcome, answer: &Answer, took: Duration) {
    let request = &review.request;
    let kind = match request.kind.as_ref() {
        "NetworkAttachmentDefinition" => "NetworkAttachmentDefinition",
        "SriovNetwork" => "SriovNetwork",
        "SriovIBNetwork" => "SriovIBNetwork",
        "OVSNetwork" => "OVSNetwork",
        "SriovNetworkNodeState" => "SriovNetworkNodeState",
        "SriovNetworkNodePolicy" => "SriovNetworkNodePolicy",
        "SriovNetworkPoolConfig" => "SriovNetworkPoolConfig",
        "SriovOperatorConfig" => "SriovOperatorConfig",
        _ => "other",
    };
    let answered = Answered {
        endpoint: endpoint.name(),
        kind,
        operation: request.operation.name(),
        decision: answer.decision.name(),
        dry_run: if request.is_dry_run { "true" } else { "false" },
    };
    state.metrics.answered(&answered, took.as_secs_f64());
    for finding in outcome.findings(endpoint) {
        state.metrics.found(finding.rule.id, finding.action.name());
    }
    if answer.decision == Decision::Deny && !request.is_dry_run {
        remember(state, request, endpoint, outcome);
    }
    let status = outcome.status();
    if let Some((class, writer)) = status {
        state.metrics.status_written(class.name(), writer.kind().name());
    }
    if matches!(outcome, Outcome::Nothing(NoSubject::Unreadable, _)) {
        error!(uid = short(&request.uid), "the review has no object that can be read");
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

/// Who was refused what is told to others later: here nothing is waited for, and nothing written.
fn remember(state: &State, request: &review::Request<'_>, endpoint: Endpoint, outcome: &Outcome) {
    let refusing = outcome.findings(endpoint).filter(|finding| finding.action == Action::Deny);
    let mut rules: Vec<_> = refusing.map(|finding| finding.rule.id).collect();
    rules.dedup();
    let owned = |text: &str| short(text).to_owned();
    state.denials.add(Denied {
        user: owned(&request.user),
        kind: owned(&request.kind),
        namespace: owned(&request.namespace),
        name: owned(&request.name),
        operation: request.operation.name(),
        rules,
        count: 1,
        last: jiff::Timestamp::now().as_second(),
    });
}

/// What is answered when judging went wrong in a way nobody thought of.
pub(super) fn panicked(state: &State, endpoint: Endpoint) -> Response<Body> {
    state.metrics.unanswered(Unanswered::Panicked.reason());
    error!(endpoint = endpoint.name(), "a review made nadmit panic");
    let mut response = Response::new(Body::from(format!("{}\n", Unanswered::Panicked)));
    *response.status_mut() = Unanswered::Panicked.status();
    response
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
            assert!((deadline(query).as_secs_f64() - want).abs() < 0.001, "{query:?}: {:?}", deadline(query));
        }
    }
}
