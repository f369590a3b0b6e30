//! The body of a request: while it arrives it holds memory, but no review slot.

use std::future::ready;
use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use super::ServerState;
use super::capacity::Share;
use super::limits::Limits;
use super::reviews::ReviewFailure;
use crate::telemetry::gauges::GaugeGuard;

/// How often the transfer rate is checked.
const CHECK: Duration = Duration::from_millis(50);

/// A complete body, with its memory permit.
pub(super) struct CompleteBody {
    pub(super) bytes: Bytes,
    _memory: Share,
}

/// Reads the whole body. Waits for memory until `until`; nothing is read before.
pub(super) async fn read(
    state: &ServerState,
    from: IpAddr,
    body: Body,
    until: Instant,
) -> Result<CompleteBody, ReviewFailure> {
    let limit = state.limits.body;
    // Without a Content-Length the maximum is assumed.
    let length = body.size_hint().upper().map_or(limit, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if length > limit {
        return Err(ReviewFailure::TooLarge(limit));
    }
    let mut arrives = pin!(async {
        let pool = state.capacity.bodies(length);
        let memory = pool.acquire(length, until).await.ok_or(ReviewFailure::Busy)?;
        let bytes = arrive(body, &state.limits, || pool.is_contended()).await?;
        Ok(CompleteBody { bytes, _memory: memory })
    });
    // Most bodies have arrived by now; only the others are unfinished.
    tokio::select! {
        biased;
        arrived = arrives.as_mut() => return arrived,
        () = ready(()) => {}
    }
    let _counted = GaugeGuard::one(&state.metrics.unfinished);
    let entry = state.capacity.unfinished(from).ok_or(ReviewFailure::Busy)?;
    tokio::select! {
        biased;
        arrived = arrives => arrived,
        () = entry.displaced() => Err(ReviewFailure::Busy),
    }
}

async fn arrive(mut body: Body, limits: &Limits, is_contended: impl Fn() -> bool) -> Result<Bytes, ReviewFailure> {
    let began = Instant::now();
    let end = began + limits.body_arrives;
    let mut pace = TransferRate { limits, began, received: 0 };
    let mut parts: Vec<u8> = Vec::new();
    let mut first = Bytes::new();
    loop {
        let check = (Instant::now() + CHECK).min(end);
        let Ok(frame) = timeout_at(check, body.frame()).await else {
            if Instant::now() >= end || pace.is_too_slow(Instant::now(), is_contended()) {
                return Err(ReviewFailure::Slow);
            }
            continue;
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(ReviewFailure::Broken)?.into_data() else { continue };
        pace.received += data.len();
        if pace.received > limits.body {
            return Err(ReviewFailure::TooLarge(limits.body));
        }
        // A slow trickle would never reach the check above.
        if pace.is_too_slow(Instant::now(), is_contended()) && !body.is_end_stream() {
            return Err(ReviewFailure::Slow);
        }
        // Most bodies arrive in one piece and need no copy.
        if first.is_empty() && parts.is_empty() {
            first = data;
            continue;
        }
        if parts.is_empty() {
            // Allocate once, as the length is usually known: growing would need twice the memory.
            let rest = body.size_hint().lower().try_into().unwrap_or(0_usize).min(limits.body);
            parts.reserve_exact(first.len() + data.len() + rest);
            parts.extend_from_slice(&std::mem::take(&mut first));
        }
        parts.extend_from_slice(&data);
    }
    Ok(if parts.is_empty() { first } else { parts.into() })
}

/// How fast a body arrives.
struct TransferRate<'a> {
    limits: &'a Limits,
    began: Instant,
    received: usize,
}

impl TransferRate<'_> {
    /// Whether it has been too slow for longer than the grace period.
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
    fn slow_body_gets_a_shorter_grace_under_contention() {
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
            let pace = TransferRate { limits: &limits, began, received };
            let now = began + Duration::from_millis(millis);
            assert_eq!(pace.is_too_slow(now, is_contended), want, "{received} bytes in {millis} ms, {is_contended}");
        }
    }
}
