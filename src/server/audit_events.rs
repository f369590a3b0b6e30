//! Receives audit events from the API server's audit webhook backend, in batches.
//!
//! Reviews take precedence. Few batches are processed at once, within the shared memory limits; others wait, and get a 429 if
//! that takes too long, which the API server retries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{HeaderValue, Request, Response, header};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tracing::{debug, error, warn};

use super::reviews::{Deadline, ReviewFailure, error_response};
use super::routes::Peer;
use super::{Limits, ServerState, body};
use crate::audit_log::running::{Batch, EventCounter};
use crate::audit_log::{DEFAULT_LOOP_RATE, LogScope};
use crate::telemetry::metrics::EventMetrics;

/// The received events.
#[derive(Debug)]
pub(super) struct AuditEvents {
    counted: Mutex<EventCounts>,
    slots: Arc<Semaphore>,
    period: Duration,
}

#[derive(Debug)]
struct EventCounts {
    running: EventCounter,
    /// The start of the current period.
    began: Instant,
}

impl AuditEvents {
    pub(super) fn new(limits: &Limits) -> Self {
        let running = EventCounter::new(LogScope::default(), DEFAULT_LOOP_RATE);
        Self {
            counted: Mutex::new(EventCounts { running, began: Instant::now() }),
            slots: Arc::new(Semaphore::new(limits.audit_batches)),
            period: limits.audit_period,
        }
    }

    /// The current counts, after rotating periods.
    fn now(&self) -> MutexGuard<'_, EventCounts> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let periods = counted.began.elapsed().as_nanos().checked_div(self.period.as_nanos()).unwrap_or_default();
        // After two rotations nothing of the old periods is left.
        for _ in 0..periods.min(2) {
            counted.running.rotate();
        }
        if periods > 0 {
            counted.began = Instant::now();
        }
        counted
    }

    /// The report as JSON.
    pub(super) fn report(&self) -> String {
        let report = self.now().running.report();
        report.json()
    }

    /// Updates the gauges.
    pub(super) fn update_metrics(&self, metrics: &EventMetrics) {
        metrics.loops(self.now().running.loops());
    }
}

/// Handles a batch.
pub(super) async fn receive(
    state: &ServerState,
    events: &AuditEvents,
    from: &Peer,
    request: Request<Body>,
) -> Response<Body> {
    match taken(state, events, from, request).await {
        Ok(()) => {
            state.metrics.audit_events.batch("taken");
            Response::new(Body::empty())
        }
        Err(reason) => {
            state.metrics.audit_events.batch(reason.reason());
            let (words, response) = error_response(&reason);
            warn!(reason = reason.reason(), error = words, "audit events rejected");
            response
        }
    }
}

async fn taken(
    state: &ServerState,
    events: &AuditEvents,
    from: &Peer,
    request: Request<Body>,
) -> Result<(), ReviewFailure> {
    let until = Deadline::of(request.uri().query()).waits_until();
    // Acquired before the body, unlike the slot of a review: a batch is as large as a hundred reviews, and nothing waits for it.
    let place = timeout_at(until, events.slots.acquire()).await;
    let _place = place.ok().and_then(Result::ok).ok_or(ReviewFailure::Busy)?;
    let body = body::read(state, from.address, request.into_body(), until).await?;
    from.connection.mark_proven();
    let _memory = state.capacity.judging(&body.bytes, until).await.ok_or(ReviewFailure::Busy)?;
    let _slot = state.capacity.review(until).await.ok_or(ReviewFailure::Busy)?;
    let batch = Batch::read(&body.bytes)?;
    let mut writes = 0;
    events.now().running.count(batch, |write, change| {
        writes += 1;
        state.metrics.audit_events.write(write.outcome_name(change), write.is_blind().then(|| write.way.name()));
    });
    debug!(writes, "audit events received");
    Ok(())
}

/// Returns the report. It uses the slot of a batch, because it is expensive.
pub(super) async fn show(events: &AuditEvents, query: Option<&str>) -> Response<Body> {
    let Ok(Ok(_place)) = timeout_at(Deadline::of(query).waits_until(), events.slots.acquire()).await else {
        return error_response(&ReviewFailure::Busy).1;
    };
    let mut response = Response::new(Body::from(events.report()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The response if counting panicked.
pub(super) fn panicked(state: &ServerState) -> Response<Body> {
    state.metrics.audit_events.batch(ReviewFailure::Panicked.reason());
    error!("panic while counting audit events");
    error_response(&ReviewFailure::Panicked).1
}
