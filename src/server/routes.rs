//! The routes of both listeners.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::routing::{get, post};
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};

use super::audit_events::{self, AuditEvents};
use super::reviews::{ReviewFailure, error_response};
use super::{ServerState, reviews};
use crate::review::Endpoint;
use crate::server::unfinished::PendingEntry;

/// The client, by its TLS certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// No certificate is required.
    Anyone,
    /// A valid client certificate was presented.
    Known,
    /// No client certificate, or one with another name.
    Unknown,
}

/// The peer of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) caller: Caller,
    pub(super) address: IpAddr,
    pub(super) connection: Arc<PendingEntry>,
}

/// The routes of the HTTPS listener. With registration, expensive ones also exist with a token.
pub(super) fn https(state: Arc<ServerState>) -> Router {
    let ends: &[&str] = if state.tokens.is_some() { &["", "/{token}"] } else { &[""] };
    let mut router = Router::new();
    for end in ends {
        if state.audit_events.is_some() {
            let shown = get(|Shared(state), request| async { audit(state, AuditEventsRequest::Show, request).await });
            let both =
                shown.post(|Shared(state), request| async { audit(state, AuditEventsRequest::Take, request).await });
            router = router.route(&format!("/audit-events{end}"), both);
        }
        for endpoint in [Endpoint::Mutate, Endpoint::Validate, Endpoint::Status] {
            let reviews = post(move |Shared(state), request| async move { review(state, endpoint, request).await });
            router = router.route(&format!("/{}{end}", endpoint.name()), reviews);
        }
    }
    if state.tokens.is_some() {
        router = router.route("/healthz/{token}", get(token_known));
    }
    router.route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready)).with_state(state)
}

/// The paths of the listener for metrics.
pub(super) fn metrics(state: Arc<ServerState>) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(state)
}

async fn review(state: Arc<ServerState>, endpoint: Endpoint, request: Request<Body>) -> Response<Body> {
    let from = match authorize(&state, PathPurpose::Reviews, &request) {
        Ok(from) => from,
        Err(reason) => {
            state.metrics.unanswered(reason.reason());
            return error_response(&reason).1;
        }
    };
    reviews::respond(&state, endpoint, &from, request).await
}

/// A request to the audit-events endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AuditEventsRequest {
    Take,
    Show,
}

async fn audit(state: Arc<ServerState>, wanted: AuditEventsRequest, request: Request<Body>) -> Response<Body> {
    let from = match authorize(&state, PathPurpose::AuditEvents, &request) {
        Ok(from) => from,
        Err(reason) => {
            state.metrics.audit_events.batch(reason.reason());
            return error_response(&reason).1;
        }
    };
    let Some(events) = &state.audit_events else { return Response::default() };
    let answer = AssertUnwindSafe(audited(&state, events, &from, wanted, request)).catch_unwind().await;
    answer.unwrap_or_else(|_| audit_events::panicked(&state))
}

async fn audited(
    state: &ServerState,
    events: &AuditEvents,
    from: &Peer,
    wanted: AuditEventsRequest,
    request: Request<Body>,
) -> Response<Body> {
    match wanted {
        AuditEventsRequest::Take => audit_events::take(state, events, from, request).await,
        AuditEventsRequest::Show => audit_events::show(events, request.uri().query()).await,
    }
}

/// The purpose of a path, which decides the accepted token.
#[derive(Clone, Copy)]
enum PathPurpose {
    Reviews,
    AuditEvents,
}

/// Authorizes a request from its head only: nothing is read, counted or stored for others. A certificate is stronger than a
/// token, so clients with one need no token; if certificates are required, a token does not replace one.
fn authorize(state: &ServerState, wanted: PathPurpose, request: &Request<Body>) -> Result<Peer, ReviewFailure> {
    // Every connection sets it.
    let from = request.extensions().get::<Peer>().ok_or(ReviewFailure::UnknownCaller)?;
    let token = token(request.uri().path());
    match (from.caller, &state.tokens) {
        (Caller::Known, _) => {}
        (Caller::Unknown, _) => return Err(ReviewFailure::UnknownCaller),
        (Caller::Anyone, Some(tokens)) => {
            let is_known = match wanted {
                PathPurpose::Reviews => tokens.allows_reviews(token),
                PathPurpose::AuditEvents => tokens.allows_audit_events(token),
            };
            if !is_known {
                return Err(ReviewFailure::UnknownToken);
            }
            from.connection.mark_proven();
        }
        // Not registered by nadmit itself, or a local test.
        (Caller::Anyone, None) => {}
    }
    Ok(from.clone())
}

/// The token in a path: all behind the name of the endpoint.
fn token(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split_once('/').map(|(_, token)| token)
}

/// Whether this replica knows a token. Other replicas ask before registering it, through the Service.
async fn token_known(Shared(state): Shared<Arc<ServerState>>, request: Request<Body>) -> (StatusCode, &'static str) {
    let known = state.tokens.as_ref().zip(token(request.uri().path()));
    match known.is_some_and(|(tokens, token)| tokens.allows_reviews(Some(token))) {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::NOT_FOUND, "unknown token\n"),
    }
}

async fn ready(Shared(state): Shared<Arc<ServerState>>) -> (StatusCode, String) {
    match state.readiness.check() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing + "\n"),
    }
}

async fn scrape(Shared(state): Shared<Arc<ServerState>>) -> ([(http::HeaderName, &'static str); 1], String) {
    if let Some(events) = &state.audit_events {
        events.update_metrics(&state.metrics.audit_events);
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(http::header::CONTENT_TYPE, kind)], state.metrics.text())
}
