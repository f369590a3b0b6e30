//! What answers at which path. Nothing else does.

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
use super::pending::Entry;
use super::reviews::{Unanswered, refusal};
use super::{State, reviews};
use crate::review::Endpoint;

/// Who calls, as far as the handshake showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Nobody asked for a certificate.
    Anyone,
    /// A certificate is asked for, and this caller showed the right one.
    Known,
    /// A certificate is asked for, and this caller has none, or one in another name.
    Unknown,
}

/// The other end of the connection that a request came on.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) caller: Caller,
    pub(super) address: IpAddr,
    pub(super) connection: Arc<Entry>,
}

/// The paths of the HTTPS listener. Where nadmit registers itself, those that cost something also have one with a token.
pub(super) fn https(state: Arc<State>) -> Router {
    let ends: &[&str] = if state.tokens.is_some() { &["", "/{token}"] } else { &[""] };
    let mut router = Router::new();
    for end in ends {
        if state.audit_events.is_some() {
            let shown = get(|Shared(state), request| async { audit(state, Audit::Show, request).await });
            let both = shown.post(|Shared(state), request| async { audit(state, Audit::Take, request).await });
            router = router.route(&format!("/audit-events{end}"), both);
        }
        for endpoint in [Endpoint::Mutate, Endpoint::Validate, Endpoint::Status] {
            let reviews = post(move |Shared(state), request| async move { review(state, endpoint, request).await });
            router = router.route(&format!("/{}{end}", endpoint.name()), reviews);
        }
    }
    if state.tokens.is_some() {
        router = router.route("/healthz/{token}", get(knows));
    }
    router.route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready)).with_state(state)
}

/// The paths of the listener for metrics.
pub(super) fn metrics(state: Arc<State>) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(state)
}

async fn review(state: Arc<State>, endpoint: Endpoint, request: Request<Body>) -> Response<Body> {
    let from = match expected(&state, For::Reviews, &request) {
        Ok(from) => from,
        Err(reason) => {
            state.metrics.unanswered(reason.reason());
            return refusal(&reason).1;
        }
    };
    reviews::respond(&state, endpoint, &from, request).await
}

/// What is asked of the audit events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audit {
    Take,
    Show,
}

async fn audit(state: Arc<State>, wanted: Audit, request: Request<Body>) -> Response<Body> {
    let from = match expected(&state, For::AuditEvents, &request) {
        Ok(from) => from,
        Err(reason) => {
            state.metrics.audit_events.batch(reason.reason());
            return refusal(&reason).1;
        }
    };
    let Some(events) = &state.audit_events else { return Response::default() };
    let answer = AssertUnwindSafe(audited(&state, events, &from, wanted, request)).catch_unwind().await;
    answer.unwrap_or_else(|_| audit_events::panicked(&state))
}

async fn audited(
    state: &State,
    events: &AuditEvents,
    from: &Peer,
    wanted: Audit,
    request: Request<Body>,
) -> Response<Body> {
    match wanted {
        Audit::Take => audit_events::take(state, events, from, request).await,
        Audit::Show => audit_events::show(events, request.uri().query()).await,
    }
}

/// What a path is for, and so which token opens it.
#[derive(Clone, Copy)]
enum For {
    Reviews,
    AuditEvents,
}

/// Whether a request is one that nadmit is there for, decided from its head alone: nothing is read, counted or kept for any other.
/// A certificate proves more than a token, so that who shows one needs no token; where certificates are asked for, a token is no
/// replacement for one.
fn expected(state: &State, wanted: For, request: &Request<Body>) -> Result<Peer, Unanswered> {
    // Every connection adds it.
    let from = request.extensions().get::<Peer>().ok_or(Unanswered::UnknownCaller)?;
    let token = token(request.uri().path());
    match (from.caller, &state.tokens) {
        (Caller::Known, _) => {}
        (Caller::Unknown, _) => return Err(Unanswered::UnknownCaller),
        (Caller::Anyone, Some(tokens)) => {
            let is_known = match wanted {
                For::Reviews => tokens.opens_reviews(token),
                For::AuditEvents => tokens.opens_audit_events(token),
            };
            if !is_known {
                return Err(Unanswered::UnknownToken);
            }
            from.connection.prove();
        }
        // Somebody else registered nadmit, or it is tried out.
        (Caller::Anyone, None) => {}
    }
    Ok(from.clone())
}

/// The token in a path: all behind the name of the endpoint.
fn token(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split_once('/').map(|(_, token)| token)
}

/// Whether this replica knows a token. Another one asks before it registers the token, through the Service.
async fn knows(Shared(state): Shared<Arc<State>>, request: Request<Body>) -> (StatusCode, &'static str) {
    let known = state.tokens.as_ref().zip(token(request.uri().path()));
    match known.is_some_and(|(tokens, token)| tokens.opens_reviews(Some(token))) {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::NOT_FOUND, "unknown token\n"),
    }
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
