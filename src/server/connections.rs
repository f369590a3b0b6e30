//! Connections: accepting them, how long they live, how they end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use futures_util::future::Either;
use http::{HeaderValue, Request, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;
use tracing::{debug, warn};

use super::ServerState;
use super::limits::Limits;
use super::routes::{Caller, Peer, review, review_endpoint};
use crate::server::unfinished::{Pending, PendingEntry, PendingLimits};
use crate::telemetry::gauges::GaugeGuard;
use crate::tls::{Tls, is_named};

/// The pause after an accept error such as a file limit.
const BACKOFF: Duration = Duration::from_millis(100);

/// The buffer size of a connection. A request head must fit; those of API servers have a few hundred bytes.
const BUFFER: usize = 16 << 10;
/// The maximum size of request headers.
const HEADERS: u32 = 16 << 10;
/// The HTTP/2 flow-control window, per stream and connection.
const WINDOW: u32 = 64 << 10;

/// The context of all connections of a listener.
#[derive(Clone)]
pub(super) struct Connections {
    pub(super) router: Router,
    pub(super) state: Arc<ServerState>,
    /// `None`: plain HTTP.
    pub(super) tls: Option<Arc<Tls>>,
    /// The required client name; not checked without a client CA.
    pub(super) caller: Option<Arc<CallerRule>>,
    /// Asks every connection to close when idle.
    pub(super) closing: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// Who may send reviews.
#[derive(Debug)]
pub(super) struct CallerRule {
    pub(super) name: Option<String>,
}

impl Connections {
    /// Accepts connections until stopped.
    pub(super) async fn accept(self, listener: TcpListener, stop: CancellationToken) {
        let Limits { connections, scrapes, unproven_connections: per_address, .. } = self.state.limits;
        let total = if self.tls.is_some() { connections } else { scrapes };
        let open = Pending::new(PendingLimits { total, per_address: per_address.min(total) });
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            self.admit_connection(accepted, &open).await;
        }
        // Connections already in the backlog are served too, within the limits.
        for _ in 0..self.state.limits.connections {
            match listener.accept().now_or_never() {
                Some(accepted) => self.admit_connection(accepted, &open).await,
                None => return,
            }
        }
    }

    async fn admit_connection(&self, accepted: io::Result<(TcpStream, SocketAddr)>, open: &Arc<Pending>) {
        match accepted {
            Ok((stream, peer)) => match open.admit(peer.ip()) {
                Some(entry) => drop(self.tasks.spawn(self.clone().connection(stream, peer, Arc::new(entry)))),
                // All existing connections are proven. Closed at once, so that the client notices now and not after its timeout.
                None => self.state.metrics.refused("too_many"),
            },
            Err(error) => {
                self.state.metrics.refused("accept");
                // A client that disconnected is ignored; other errors would repeat at once.
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    warn!(%error, "failed to accept a connection");
                    sleep(BACKOFF).await;
                }
            }
        }
    }

    /// One connection, until it ends or is displaced because it never carried a valid request.
    async fn connection(self, stream: TcpStream, peer: SocketAddr, entry: Arc<PendingEntry>) {
        let _counted = GaugeGuard::one(&self.state.metrics.connections);
        let _ = stream.set_nodelay(true);
        tokio::select! {
            biased;
            () = entry.displaced() => self.state.metrics.refused("displaced"),
            () = self.open(stream, peer, &entry) => {}
        }
    }

    async fn open(&self, stream: TcpStream, peer: SocketAddr, entry: &Arc<PendingEntry>) {
        let with = |caller| Peer { caller, address: peer.ip(), connection: Arc::clone(entry) };
        match &self.tls {
            None => self.serve(stream, peer, with(Caller::Anyone)).await,
            Some(tls) => {
                let handshake = TlsAcceptor::from(tls.config()).accept(stream);
                match timeout(self.state.limits.handshake, handshake).await {
                    Ok(Ok(stream)) => {
                        let caller = self.caller(stream.get_ref().1);
                        if caller == Caller::Known {
                            entry.mark_proven();
                        }
                        self.serve(stream, peer, with(caller)).await;
                    }
                    Ok(Err(error)) => {
                        self.state.metrics.refused("handshake");
                        debug!(%peer, %error, "TLS handshake failed");
                    }
                    Err(_) => self.state.metrics.refused("handshake_timeout"),
                }
            }
        }
    }

    fn caller(&self, session: &rustls::ServerConnection) -> Caller {
        let Some(rule) = &self.caller else { return Caller::Anyone };
        let leaf = session.peer_certificates().and_then(|chain| chain.first());
        match (leaf, &rule.name) {
            (None, _) => Caller::Unknown,
            (Some(leaf), Some(name)) if !is_named(leaf, name) => Caller::Unknown,
            (Some(_), _) => Caller::Known,
        }
    }

    async fn serve<S>(&self, stream: S, peer: SocketAddr, from: Peer)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        // Set when the connection should close. HTTP/1 can only say so with the next response: closing an idle connection could
        // lose a request in flight.
        let ending = Arc::new(AtomicBool::new(false));
        let service = service_fn(|mut request: Request<Incoming>| {
            let is_http1 = request.version() < Version::HTTP_2;
            let working = from.connection.working();
            let endpoint = review_endpoint(request.method(), request.uri().path(), self.state.tokens.is_some());
            let answer = match endpoint {
                // Plain HTTP is for metrics.
                Some(endpoint) if self.tls.is_some() => {
                    let (state, from) = (Arc::clone(&self.state), from.clone());
                    // Boxed: an idle connection takes as much memory as the largest future that it may hold.
                    Either::Left(Box::pin(review(state, endpoint, from, request.map(Body::new))))
                }
                _ => {
                    request.extensions_mut().insert(from.clone());
                    Either::Right(self.router.clone().call(request.map(Body::new)))
                }
            };
            let ending = Arc::clone(&ending);
            async move {
                let _working = working;
                let mut response = match answer {
                    Either::Left(review) => review.await,
                    Either::Right(routed) => routed.await?,
                };
                if is_http1 && ending.load(Ordering::Relaxed) {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let limits = &self.state.limits;
        let builder = builder(limits, self.tls.is_some());
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        // Jitter, so that clients do not reconnect all at once.
        let age = limits.age + limits.age / 300 * u32::from(peer.port() % 60);
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = sleep(age) => None,
            () = self.closing.cancelled() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                ending.store(true, Ordering::Relaxed);
                match timeout(limits.linger, connection.as_mut()).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        connection.as_mut().graceful_shutdown();
                        // A client that has not read the response by then never will.
                        timeout(limits.head, connection).await.unwrap_or(Ok(()))
                    }
                }
            }
        };
        if let Err(error) = ended {
            debug!(%peer, %error, "connection error");
        }
    }
}

/// Plain HTTP is for metrics and needs no HTTP/2.
fn builder(limits: &Limits, has_streams: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if !has_streams {
        builder = builder.http1_only();
    }
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HEADERS)
        // Limits what a client sends ahead of the reader, and what is written ahead of the client.
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(BUFFER)
        .keep_alive_interval(limits.head)
        .keep_alive_timeout(limits.handshake);
    builder
}
