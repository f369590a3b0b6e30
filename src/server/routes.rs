//! The routes of both listeners.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::routing::{any, get};
use futures_util::FutureExt;
use http::{HeaderName, Method, Request, Response, StatusCode, header};

use super::audit_events::{self, AuditEvents};
use super::reviews::{Deadline, ReviewFailure, error_response};
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
                shown.post(|Shared(state), request| async { audit(state, AuditEventsRequest::Receive, request).await });
            router = router.route(&format!("/audit-events{end}"), both);
        }
        // Reviews themselves go past the router, see [`review_endpoint`].
        for endpoint in Endpoint::ALL {
            router = router.route(&format!("/{}{end}", endpoint.name()), any(post_only));
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

/// The endpoint of a request that carries a review: a POST to its path, with a token behind it where tokens are used. Nearly
/// all requests do, and the router takes some 3,500 instructions for each.
pub(super) fn review_endpoint(method: &Method, path: &str, has_tokens: bool) -> Option<Endpoint> {
    let path = path.strip_prefix('/')?;
    let (name, token) = path.split_once('/').map_or((path, None), |(name, token)| (name, Some(token)));
    let has_route = token.is_none_or(|token| has_tokens && !token.is_empty() && !token.contains('/'));
    Endpoint::ALL.into_iter().find(|endpoint| endpoint.name() == name && method == Method::POST && has_route)
}

/// Answers a review.
pub(super) async fn review(
    state: Arc<ServerState>,
    endpoint: Endpoint,
    from: Peer,
    request: Request<Body>,
) -> Response<Body> {
    if let Err(reason) = authorize(&state, PathPurpose::Reviews, &from, request.uri().path()) {
        state.metrics.unanswered(reason.reason());
        return error_response(&reason).1;
    }
    if !*state.has_policy.borrow() {
        state.metrics.unanswered(ReviewFailure::NoPolicy.reason());
        return error_response(&ReviewFailure::NoPolicy).1;
    }
    let deadline = Deadline::of(request.uri().query());
    reviews::respond(&state, endpoint, &from, deadline, request.into_body()).await
}

/// The answer to other methods than the one that reviews have.
async fn post_only() -> (StatusCode, [(HeaderName, &'static str); 1]) {
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")])
}

/// A request to the audit-events endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AuditEventsRequest {
    Receive,
    Show,
}

async fn audit(state: Arc<ServerState>, requested: AuditEventsRequest, request: Request<Body>) -> Response<Body> {
    // Every connection sets it.
    let from = request.extensions().get::<Peer>().cloned().ok_or(ReviewFailure::UnknownCaller);
    let authorized =
        from.and_then(|from| authorize(&state, PathPurpose::AuditEvents, &from, request.uri().path()).map(|()| from));
    let from = match authorized {
        Ok(from) => from,
        Err(reason) => {
            state.metrics.audit_events.batch(reason.reason());
            return error_response(&reason).1;
        }
    };
    let Some(events) = &state.audit_events else { return Response::default() };
    let answer = AssertUnwindSafe(audited(&state, events, &from, requested, request)).catch_unwind().await;
    answer.unwrap_or_else(|_| audit_events::panicked(&state))
}

async fn audited(
    state: &ServerState,
    events: &AuditEvents,
    from: &Peer,
    requested: AuditEventsRequest,
    request: Request<Body>,
) -> Response<Body> {
    match requested {
        AuditEventsRequest::Receive => audit_events::receive(state, events, from, request).await,
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
fn authorize(state: &ServerState, requested: PathPurpose, from: &Peer, path: &str) -> Result<(), ReviewFailure> {
    let token = token(path);
    match (from.caller, &state.tokens) {
        (Caller::Known, _) => {}
        (Caller::Unknown, _) => return Err(ReviewFailure::UnknownCaller),
        (Caller::Anyone, Some(tokens)) => {
            let is_known = match requested {
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
    Ok(())
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

async fn ready(Shared(state): Shared<Arc<ServerState>>, request: Request<Body>) -> (StatusCode, String) {
    let (status, answer) = match state.readiness.check() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing + "\n"),
    };
    let is_verbose = request.uri().query().is_some_and(|query| query.split('&').any(is_verbose));
    (status, if is_verbose { checks(&state) + &answer } else { answer })
}

/// One line for each check. Policy and registration are shown, but readiness does not depend on them: a rejected policy leaves the last
/// one in force, and the probe before the registration goes through the Service, which needs a ready replica.
fn checks(state: &ServerState) -> String {
    const APART: &str = "(readiness does not depend on it)";
    let policy = &state.metrics.policy;
    let policy = match policy.hash() {
        None => String::new(),
        Some(hash) if policy.is_current() => format!("[+]policy ok: {hash}\n"),
        Some(hash) => {
            format!("[-]policy failed: the configured one is missing or invalid, {hash} is in force {APART}\n")
        }
    };
    let registration = match state.metrics.registered.state() {
        None => String::new(),
        Some(Ok(())) => "[+]registration ok\n".to_owned(),
        Some(Err(problem)) => format!("[-]registration failed: {} {APART}\n", problem.sentence()),
    };
    state.readiness.lines() + &policy + &registration
}

fn is_verbose(parameter: &str) -> bool {
    matches!(parameter, "verbose" | "verbose=" | "verbose=true" | "verbose=1")
}

async fn scrape(Shared(state): Shared<Arc<ServerState>>) -> ([(http::HeaderName, &'static str); 1], String) {
    if let Some(events) = &state.audit_events {
        events.update_metrics(&state.metrics.audit_events);
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(http::header::CONTENT_TYPE, kind)], state.metrics.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_posts_to_their_paths() {
        for (method, path, has_tokens, want) in [
            (Method::POST, "/mutate", false, Some(Endpoint::Mutate)),
            (Method::POST, "/validate", true, Some(Endpoint::Validate)),
            (Method::POST, "/status/abc", true, Some(Endpoint::Status)),
            (Method::POST, "/status/abc", false, None),
            (Method::POST, "/pods/abc", true, Some(Endpoint::Pods)),
            (Method::POST, "/in-use", false, Some(Endpoint::InUse)),
            (Method::POST, "/mutate/", true, None),
            (Method::POST, "/mutate/a/b", true, None),
            (Method::POST, "//mutate", true, None),
            (Method::POST, "/mutated", true, None),
            (Method::POST, "mutate", true, None),
            (Method::POST, "/audit-events", true, None),
            (Method::GET, "/mutate", true, None),
        ] {
            assert_eq!(review_endpoint(&method, path, has_tokens), want, "{method} {path} {has_tokens}");
        }
    }
}
