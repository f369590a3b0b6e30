//! What is answered when judging panics; where it happened is in the log line of the panic itself. An HTTP error would leave the decision to failurePolicy, which lets most objects be stored
//! unjudged, so that whoever finds an input that makes nadmit panic could store anything.

use tracing::error;

use super::State;
use super::reviews::{Unanswered, answered, short};
use crate::cluster::facts::about_everything;
use crate::output::denied::Denied;
use crate::policy::{Mode, Policy};
use crate::review::{Decision, Endpoint, Envelope, INTERNAL, Operation, Review, Spared};
use crate::supervise::{Panicked, contained};

/// Answers a review that made nadmit panic.
pub(super) fn answer(
    state: &State,
    endpoint: Endpoint,
    body: &[u8],
    panicked: &Panicked,
) -> Result<Vec<u8>, Unanswered> {
    state.metrics.panicked(endpoint.name());
    // Our own parser may be what panicked.
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
    let envelope = envelope.ok_or(Unanswered::Panicked)?;
    let policy = state.policy.load_full();
    let mode = policy.mode_in(&envelope.namespace);
    let spared = spared(state, &policy, endpoint, mode, &envelope);
    let (body, decision) = envelope.answer(endpoint, mode, spared);
    state.metrics.answered(&answered(endpoint, &envelope, decision), 0.0);
    if decision == Decision::Deny && !envelope.is_dry_run {
        state.denials.add(Denied {
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

/// Why the write is allowed nevertheless. /mutate denies nothing: it is asked about every write to an object, also about one that
/// only removes a finalizer, and validation is asked about all that change what is judged.
fn spared(state: &State, policy: &Policy, endpoint: Endpoint, mode: Mode, envelope: &Envelope<'_>) -> Option<Spared> {
    let is_operator =
        || contained(|| policy.is_operator(&envelope.user, &about_everything(&*state.facts))).unwrap_or(false);
    match endpoint {
        Endpoint::Mutate => Some(Spared::ValidatedLater),
        _ if matches!(envelope.operation, Some(Operation::Delete | Operation::Connect)) => Some(Spared::Deleted),
        _ if mode == Mode::Audit => Some(Spared::AuditMode),
        _ if policy.is_exempt(&envelope.user, &envelope.namespace) => Some(Spared::Exempt),
        _ if is_operator() => Some(Spared::Operator),
        _ => None,
    }
}
