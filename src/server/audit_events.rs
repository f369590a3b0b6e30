//! What the API server's audit backend sends: the events of the audit log in batches, as they come.
//!
//! Reviews come first. Few batches are read at once, within the memory that all requests share; the others wait, and are asked to come
//! again where that takes too long, which the API server does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{HeaderValue, Request, Response, header};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tracing::{debug, error, warn};

use super::reviews::{Deadline, Unanswered, refusal};
use super::routes::Peer;
use super::{Limits, State, body};
use crate::audit::log::Scope;
use crate::audit::log::running::{Batch, Running};
use crate::telemetry::metrics::EventMetrics;

/// An object that is written so often within a minute is in a loop, as `nadmit audit-log` has it.
const LOOP_RATE: u32 = 10;

/// What was sent so far.
#[derive(Debug)]
pub(super) struct AuditEvents {
    counted: Mutex<Counted>,
    room: Arc<Semaphore>,
    period: Duration,
}

#[derive(Debug)]
struct Counted {
    running: Running,
    /// When the period at hand began.
    began: Instant,
}

impl AuditEvents {
    pub(super) fn new(limits: &Limits) -> Self {
        let running = Running::new(Scope::default(), LOOP_RATE);
        Self {
            counted: Mutex::new(Counted { running, began: Instant::now() }),
            room: Arc::new(Semaphore::new(limits.audit_batches)),
            period: limits.audit_period,
        }
    }

    /// The counts of the present.
    fn now(&self) -> MutexGuard<'_, Counted> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let periods = counted.began.elapsed().as_nanos().checked_div(self.period.as_nanos()).unwrap_or_default();
        // After two of them nothing is left of what was before.
        for _ in 0..periods.min(2) {
            counted.running.turn();
        }
        if periods > 0 {
            counted.began = Instant::now();
        }
        counted
    }

    /// What there is to say, as JSON.
    pub(super) fn report(&self) -> String {
        let report = self.now().running.report();
        report.json()
    }

    /// Brings the metrics up to date that are not counted as events come.
    pub(super) fn tell(&self, metrics: &EventMetrics) {
        metrics.loops(self.now().running.loops());
    }
}

/// Takes a batch in.
pub(super) async fn take(state: &State, events: &AuditEvents, from: &Peer, request: Request<Body>) -> Response<Body> {
    match taken(state, events, from, request).await {
        Ok(()) => {
            state.metrics.audit_events.batch("taken");
            Response::new(Body::empty())
        }
        Err(reason) => {
            state.metrics.audit_events.batch(reason.reason());
            let (words, response) = refusal(&reason);
            warn!(reason = reason.reason(), error = words, "audit events not taken");
            response
        }
    }
}

async fn taken(state: &State, events: &AuditEvents, from: &Peer, request: Request<Body>) -> Result<(), Unanswered> {
    let until = Deadline::of(request.uri().query()).waits_until();
    // Taken before the body, unlike the slot of a review: a batch is as large as a hundred reviews, and nothing waits for it.
    let place = timeout_at(until, events.room.acquire()).await;
    let _place = place.ok().and_then(Result::ok).ok_or(Unanswered::Busy)?;
    let body = body::read(state, from.address, request.into_body(), until).await?;
    from.connection.prove();
    let _memory = state.capacity.judging(&body.bytes, until).await.ok_or(Unanswered::Busy)?;
    let _slot = state.capacity.review(until).await.ok_or(Unanswered::Busy)?;
    let batch = Batch::read(&body.bytes)?;
    let mut writes = 0;
    events.now().running.take(batch, |write, change| {
        writes += 1;
        state.metrics.audit_events.write(write.outcome_name(change), write.is_blind().then(|| write.way.name()));
    });
    debug!(writes, "audit events taken");
    Ok(())
}

/// Shows what came of all batches. That is work, so it takes the place of a batch.
pub(super) async fn show(events: &AuditEvents, query: Option<&str>) -> Response<Body> {
    let Ok(Ok(_place)) = timeout_at(Deadline::of(query).waits_until(), events.room.acquire()).await else {
        return refusal(&Unanswered::Busy).1;
    };
    let mut response = Response::new(Body::from(events.report()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What is answered when counting went wrong in a way nobody thought of.
pub(super) fn panicked(state: &State) -> Response<Body> {
    state.metrics.audit_events.batch(Unanswered::Panicked.reason());
    error!("audit events made nadmit panic");
    refusal(&Unanswered::Panicked).1
}
