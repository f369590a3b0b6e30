//! The response if judging panics; the panic's own log line has the location. An HTTP error would leave the decision to
//! failurePolicy, which accepts most objects unjudged, so anyone who finds a panicking input could store anything.

use tracing::error;

use super::ServerState;
use super::reviews::{ReviewFailure, labels, record_denial, short};
use crate::policy::{Mode, Policy};
use crate::review::{AdmissionRequest, AllowReason, Decision, Endpoint, INTERNAL, Operation, Review};
use crate::supervise::{Panicked, contained};

/// Answers a review that panicked.
pub(super) fn answer(
    state: &ServerState,
    endpoint: Endpoint,
    body: &[u8],
    panicked: &Panicked,
) -> Result<Vec<u8>, ReviewFailure> {
    state.metrics.panicked(endpoint.name());
    // Our own parser may have panicked.
    let own = contained(|| Review::read(body).ok()).ok().flatten();
    let review = own.or_else(|| Review::read_fallback(body));
    error!(
        endpoint = endpoint.name(),
        cause = short(&panicked.to_string()),
        uid = review.as_ref().map(|review| short(&review.request.uid)),
        namespace = review.as_ref().map(|review| short(&review.request.namespace)),
        name = review.as_ref().map(|review| short(&review.request.name)),
        "panic while judging"
    );
    let review = review.ok_or(ReviewFailure::Panicked)?;
    let request = &review.request;
    let policy = state.policy.load_full();
    let mode = policy.mode_in(&request.namespace);
    let allow_reason = allow_reason(state, &policy, endpoint, mode, request);
    let (body, decision) = review.answer_unjudged(endpoint, mode, allow_reason);
    state.metrics.answered(&labels(endpoint, request, decision), 0.0);
    if decision == Decision::Deny && !request.is_dry_run {
        record_denial(state, request, vec![INTERNAL]);
    }
    Ok(body)
}

/// Why the write is allowed anyway. /mutate denies nothing: it reviews every write, also one that only removes a finalizer, and
/// validation reviews all that change something judged.
fn allow_reason(
    state: &ServerState,
    policy: &Policy,
    endpoint: Endpoint,
    mode: Mode,
    request: &AdmissionRequest<'_>,
) -> Option<AllowReason> {
    let is_operator = || contained(|| policy.is_operator(&request.user, &state.facts.common())).unwrap_or(false);
    match endpoint {
        Endpoint::Mutate => Some(AllowReason::ValidatedLater),
        Endpoint::Pods => Some(AllowReason::Pod),
        Endpoint::InUse => Some(AllowReason::Deleted),
        _ if matches!(request.operation, Operation::Delete | Operation::Connect) => Some(AllowReason::Deleted),
        _ if mode == Mode::Audit => Some(AllowReason::AuditMode),
        _ if policy.is_exempt(&request.user, &request.namespace) => Some(AllowReason::Exempt),
        _ if is_operator() => Some(AllowReason::Operator),
        _ => None,
    }
}
