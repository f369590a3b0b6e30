//! The response if judging panics; the panic's own log line has the location. An HTTP error would leave the decision to
//! failurePolicy, which accepts most objects unjudged, so anyone who finds a panicking input could store anything.

use tracing::error;

use super::ServerState;
use super::reviews::{ReviewFailure, answered, short};
use crate::cluster::cache::facts::global_facts;
use crate::output::report::denials::Denial;
use crate::policy::{Mode, Policy};
use crate::review::{AllowReason, Decision, Endpoint, Envelope, INTERNAL, Operation, Review};
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
    let own = contained(|| Review::read(body).ok().map(Envelope::of)).ok().flatten();
    let envelope = own.or_else(|| Envelope::read(body));
    error!(
        endpoint = endpoint.name(),
        cause = short(&panicked.to_string()),
        uid = envelope.as_ref().map(|envelope| short(&envelope.uid)),
        namespace = envelope.as_ref().map(|envelope| short(&envelope.namespace)),
        name = envelope.as_ref().map(|envelope| short(&envelope.name)),
        "panic while judging"
    );
    let envelope = envelope.ok_or(ReviewFailure::Panicked)?;
    let policy = state.policy.load_full();
    let mode = policy.mode_in(&envelope.namespace);
    let allow_reason = allow_reason(state, &policy, endpoint, mode, &envelope);
    let (body, decision) = envelope.answer(endpoint, mode, allow_reason);
    state.metrics.answered(&answered(endpoint, &envelope, decision), 0.0);
    if decision == Decision::Deny && !envelope.is_dry_run {
        state.denials.add(Denial {
            user: short(&envelope.user).to_owned(),
            kind: short(&envelope.kind).to_owned(),
            namespace: short(&envelope.namespace).to_owned(),
            name: short(&envelope.name).to_owned(),
            operation: envelope.operation.map_or("unknown", Operation::name),
            rules: vec![INTERNAL],
            count: 1,
            last: jiff::Timestamp::now().as_second(),
        });
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
    envelope: &Envelope<'_>,
) -> Option<AllowReason> {
    let is_operator =
        || contained(|| policy.is_operator(&envelope.user, &global_facts(&*state.facts))).unwrap_or(false);
    match endpoint {
        Endpoint::Mutate => Some(AllowReason::ValidatedLater),
        _ if matches!(envelope.operation, Some(Operation::Delete | Operation::Connect)) => Some(AllowReason::Deleted),
        _ if mode == Mode::Audit => Some(AllowReason::AuditMode),
        _ if policy.is_exempt(&envelope.user, &envelope.namespace) => Some(AllowReason::Exempt),
        _ if is_operator() => Some(AllowReason::Operator),
        _ => None,
    }
}
