//! The body of a request: as long as it arrives it has memory of its own and nothing else.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use super::State;
use super::capacity::Share;
use super::limits::Limits;
use super::reviews::Unanswered;
use crate::telemetry::metrics::Counted;

/// How often it is looked at whether a body arrives fast enough.
const CHECK: Duration = Duration::from_millis(50);

/// A body that is complete, with the memory that it holds until it is answered.
pub(super) struct Complete {
    pub(super) bytes: Bytes,
    _memory: Share,
}

/// Waits for the whole body. Memory for it is waited for until `until`, and nothing of it is read before.
pub(super) async fn read(state: &State, from: IpAddr, body: Body, until: Instant) -> Result<Complete, Unanswered> {
    let limit = state.limits.body;
    // One that does not say how long it is may become as long as any.
    let length = body.size_hint().upper().map_or(limit, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if length > limit {
        return Err(Unanswered::TooLarge(limit));
    }
    let _counted = Counted::one(&state.metrics.unfinished);
    let entry = state.capacity.unfinished(from).ok_or(Unanswered::Busy)?;
    let arrives = async {
        let pool = state.capacity.bodies(length);
        let memory = pool.take(length, until).await.ok_or(Unanswered::Busy)?;
        let bytes = arrive(body, &state.limits, || pool.is_contended()).await?;
        Ok(Complete { bytes, _memory: memory })
    };
    tokio::select! {
        biased;
        arrived = arrives => arrived,
        () = entry.is_cut() => Err(Unanswered::Busy),
    }
}

async fn arrive(mut body: Body, limits: &Limits, is_contended: impl Fn() -> bool) -> Result<Bytes, Unanswered> {
    let began = Instant::now();
    let end = began + limits.body_arrives;
    let mut pace = Pace { limits, began, received: 0 };
    let mut parts: Vec<u8> = Vec::new();
    let mut first = Bytes::new();
    loop {
        let check = (Instant::now() + CHECK).min(end);
        let Ok(frame) = timeout_at(check, body.frame()).await else {
            if Instant::now() >= end || pace.is_too_slow(Instant::now(), is_contended()) {
                return Err(Unanswered::Slow);
            }
            continue;
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(Unanswered::Broken)?.into_data() else { continue };
        pace.received += data.len();
        if pace.received > limits.body {
            return Err(Unanswered::TooLarge(limits.body));
        }
        // A trickle never lets the check above come.
        if pace.is_too_slow(Instant::now(), is_contended()) && !body.is_end_stream() {
            return Err(Unanswered::Slow);
        }
        // Most bodies come in one piece, and need no copy.
        if first.is_empty() && parts.is_empty() {
            first = data;
            continue;
        }
        if parts.is_empty() {
            // All at once, as the length is usually known: a vector that grows holds twice as much for a moment.
            let rest = body.size_hint().lower().try_into().unwrap_or(0_usize).min(limits.body);
            parts.reserve_exact(first.len() + data.len() + rest);
            parts.extend_from_slice(&std::mem::take(&mut first));
        }
        parts.extend_from_slice(&data);
    }
    Ok(if parts.is_empty() { first } else { parts.into() })
}

/// How fast a body arrives.
struct Pace<'a> {
    limits: &'a Limits,
    began: Instant,
    received: usize,
}

impl Pace<'_> {
    /// Whether it is slower than bodies may be, and has been for long enough.
    fn is_too_slow(&self, now: Instant, is_contended: bool) -> bool {
        let Limits { body_grace, body_grace_contended, body_rate, .. } = *self.limits;
        let grace = if is_contended { body_grace_contended } else { body_grace };
        let elapsed = now.duration_since(self.began);
        elapsed > grace && (self.received as f64) < elapsed.as_secs_f64() * body_rate as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_be_slow_for_a_while_and_a_shorter_one_while_others_wait() {
        let limits = Limits::default();
        let began = Instant::now();
        for (received, millis, is_contended, want) in [
            (1, 900, false, false),
            (1, 1_100, false, true),
            (1, 200, true, false),
            (1, 300, true, true),
            (64 << 10, 900, true, false),
            (2 << 20, 9_000, true, false),
            (64 << 10, 9_000, false, true),
        ] {
            let pace = Pace { limits: &limits, began, received };
            let now = began + Duration::from_millis(millis);
            assert_eq!(pace.is_too_slow(now, is_contended), want, "{received} bytes in {millis} ms, {is_contended}");
        }
    }
}
