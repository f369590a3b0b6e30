//! What answers at which path. Nothing else does.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::routing::{get, post};
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};

use super::audit_events::{self, AuditEvents};
use super::{State, reviews};
use crate::review::Endpoint;

/// Who calls, as far as the handshake told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Nobody asked for a certificate.
    Anyone,
    /// A certificate is asked for, and this caller showed the right one.
    Known,
    /// A certificate is asked for, and this caller has none, or one in another name.
    Unknown,
}

/// The paths of the HTTPS listener.
pub(super) fn https(state: Arc<State>) -> Router {
    let mut router = Router::new();
    if state.audit_events.is_some() {
        let shown = get(|Shared(state), request| async { audit(state, Audit::Show, request).await });
        let both = shown.post(|Shared(state), request| async { audit(state, Audit::Take, request).await });
        router = router.route("/audit-events", both);
    }
    router
        .route("/mutate", post(|Shared(state), request| async { review(state, Endpoint::Mutate, request).await }))
        .route("/validate", post(|Shared(state), request| async { review(state, Endpoint::Validate, request).await }))
        .route("/status", post(|Shared(state), request| async { review(state, Endpoint::Status, request).await }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(state)
}

/// The paths of the listener for metrics.
pub(super) fn metrics(state: Arc<State>) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(state)
}

async fn review(state: Arc<State>, endpoint: Endpoint, request: Request<Body>) -> Response<Body> {
    if is_unknown(&request) {
        state.metrics.unanswered(UNKNOWN_CALLER);
        return forbidden();
    }
    let answer = AssertUnwindSafe(reviews::respond(&state, endpoint, request)).catch_unwind().await;
    answer.unwrap_or_else(|_| reviews::panicked(&state, endpoint))
}

/// What is asked of the audit events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audit {
    Take,
    Show,
}

async fn audit(state: Arc<State>, wanted: Audit, request: Request<Body>) -> Response<Body> {
    if is_unknown(&request) {
        state.metrics.audit_events.batch(UNKNOWN_CALLER);
        return forbidden();
    }
    let Some(events) = &state.audit_events else { return Response::default() };
    let answer = AssertUnwindSafe(audited(&state, events, wanted, request)).catch_unwind().await;
    answer.unwrap_or_else(|_| audit_events::panicked(&state))
}

async fn audited(state: &State, events: &AuditEvents, wanted: Audit, request: Request<Body>) -> Response<Body> {
    match wanted {
        Audit::Take => audit_events::take(state, events, request).await,
        Audit::Show => audit_events::show(events),
    }
}

const UNKNOWN_CALLER: &str = "unknown_caller";

fn is_unknown(request: &Request<Body>) -> bool {
    request.extensions().get::<Caller>() == Some(&Caller::Unknown)
}

fn forbidden() -> Response<Body> {
    let mut response = Response::new(Body::from("a certificate of the API server is needed to ask this\n"));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

async fn ready(Shared(state): Shared<Arc<State>>) -> (StatusCode, String) {
    match state.readiness.check() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing + "\n"),
    }
}

async fn scrape(Shared(state): Shared<Arc<State>>) -> ([(http::HeaderName, &'static str); 1], String) {
    if let Some(events) = &state.audit_events {
        events.tell(&state.metrics.audit_events);
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(http::header::CONTENT_TYPE, kind)], state.metrics.text())
}
