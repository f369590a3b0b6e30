//! `nadmit serve`: reviews over HTTPS.
//!
//! ```text
//!  accept ─► connection (TLS, age, limits) ─► route ─► authorized? ─► whole body ─► capacity ─► judge ─► response
//! ```

mod audit_events;
mod body;
mod capacity;
mod connections;
mod limits;
mod panicked;
mod readiness;
pub mod reload;
mod reviews;
mod routes;
mod unfinished;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use audit_events::AuditEvents;
use capacity::Capacity;
use connections::{CallerRule, Connections};
pub use limits::Limits;
pub use readiness::Readiness;
use reload::{CertificateUpdater, PolicyUpdater, WatchedFiles};

use crate::cluster::cache::facts::FactSource;
use crate::denials::RecentDenials;
use crate::manifests::LoadedPolicy;
use crate::policy::Policy;
use crate::supervise::Supervisor;
use crate::telemetry::metrics::{AuditMetrics, Completions};
use crate::telemetry::registration::Registered;
use crate::telemetry::{Logs, Metrics};
use crate::tls::token::AcceptedTokens;
use crate::tls::{POLL_INTERVAL, Tls};

/// The startup condition of a policy that is not known at start.
const POLICY_CHECK: &str = "the policy";

/// The state shared by all requests.
pub struct ServerState {
    policy: Arc<ArcSwap<Policy>>,
    /// Whether there is a policy: reviews are not judged by the default one in place of the configured one.
    has_policy: watch::Sender<bool>,
    facts: Arc<dyn FactSource>,
    metrics: Metrics,
    denials: Arc<RecentDenials>,
    readiness: Arc<Readiness>,
    limits: Limits,
    capacity: Capacity,
    /// `None`: requests need no token.
    tokens: Option<Arc<AcceptedTokens>>,
    logs: Option<Logs>,
    /// `None`: audit events are disabled.
    audit_events: Option<AuditEvents>,
}

impl ServerState {
    fn take_policy(&self, loaded: LoadedPolicy) {
        let LoadedPolicy { policy, hash } = loaded;
        if let Some(logs) = &self.logs {
            logs.refilter(policy.log_level);
        }
        for warning in policy.warnings() {
            warn!(warning, "policy accepted with a warning");
        }
        self.policy.store(Arc::new(policy));
        self.metrics.policy.applied(&hash);
        self.has_policy.send_replace(true);
        self.readiness.fulfil(POLICY_CHECK);
    }
}

/// The parts of a server.
pub struct ServerParts {
    /// The initial policy; `None` if it is not known yet: until then the server is not ready and fails every review.
    pub policy: Option<LoadedPolicy>,
    /// The source of facts.
    pub facts: Arc<dyn FactSource>,
    /// The initial certificate.
    pub tls: Tls,
    /// The files that may change.
    pub watched: WatchedFiles,
    /// Whether client certificates are required.
    pub asks_callers: bool,
    /// The required client name.
    pub caller_name: Option<String>,
    /// The accepted tokens, if paths need one.
    pub tokens: Option<Arc<AcceptedTokens>>,
    /// The log, whose level follows the policy.
    pub logs: Option<Logs>,
    /// Whether the API server may send audit events.
    pub takes_audit_events: bool,
    /// The limits.
    pub limits: Limits,
    /// The startup conditions.
    pub readiness: Arc<Readiness>,
    /// The supervisor of background tasks.
    pub supervisor: Supervisor,
    /// The metrics.
    pub metrics: Metrics,
}

/// How to shut down.
#[derive(Clone, Copy, Debug)]
pub struct Shutdown {
    /// How long to keep serving while not ready, until clients use other replicas.
    pub grace: Duration,
}

/// A server with its sockets open.
pub struct Server {
    https: TcpListener,
    metrics: TcpListener,
    state: Arc<ServerState>,
    tls: Arc<Tls>,
    watched: WatchedFiles,
    caller: Option<Arc<CallerRule>>,
    reload: Arc<Notify>,
    supervisor: Supervisor,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The I/O error.
        source: std::io::Error,
    },
}

impl Server {
    /// Opens the sockets.
    pub async fn bind(https: SocketAddr, scrapes: SocketAddr, parts: ServerParts) -> Result<Self, ServeError> {
        let ServerParts {
            policy,
            facts,
            tls,
            watched,
            asks_callers,
            caller_name,
            logs,
            limits,
            readiness,
            metrics,
            ..
        } = parts;
        let audit_events = parts.takes_audit_events.then(|| AuditEvents::new(&limits));
        let (policy_in_force, denials, capacity) = (Arc::default(), Arc::default(), Capacity::new(&limits));
        let tokens = parts.tokens;
        let state = ServerState {
            policy: policy_in_force,
            has_policy: watch::Sender::new(false),
            facts,
            metrics,
            denials,
            readiness,
            limits,
            capacity,
            tokens,
            logs,
            audit_events,
        };
        match policy {
            Some(policy) => state.take_policy(policy),
            None => state.readiness.waits_for(POLICY_CHECK),
        }
        state.metrics.expires("serving", tls.expires());
        Ok(Self {
            https: listen(https)?,
            metrics: listen(scrapes)?,
            state: Arc::new(state),
            tls: Arc::new(tls),
            watched,
            caller: asks_callers.then(|| Arc::new(CallerRule { name: caller_name })),
            reload: Arc::default(),
            supervisor: parts.supervisor,
        })
    }

    /// The policy that is in force, now and later.
    pub fn policy(&self) -> Arc<ArcSwap<Policy>> {
        Arc::clone(&self.state.policy)
    }

    /// Whether there is a policy, now and later.
    pub fn has_policy(&self) -> watch::Receiver<bool> {
        self.state.has_policy.subscribe()
    }

    /// Updates a policy that does not come from a file.
    pub fn policy_updater(&self) -> PolicyUpdater {
        PolicyUpdater { state: Arc::clone(&self.state) }
    }

    /// The metrics of completions.
    pub fn completions(&self) -> Completions {
        self.state.metrics.completions.clone()
    }

    /// The recent denials.
    pub fn denials(&self) -> Arc<RecentDenials> {
        Arc::clone(&self.state.denials)
    }

    /// The audit metrics.
    pub fn audit(&self) -> AuditMetrics {
        self.state.metrics.audit.clone()
    }

    /// The registration metrics.
    pub fn registered(&self) -> Registered {
        self.state.metrics.registered.clone()
    }

    /// Its readiness.
    pub fn readiness(&self) -> Arc<Readiness> {
        Arc::clone(&self.state.readiness)
    }

    /// The supervisor of background tasks.
    pub fn supervisor(&self) -> Supervisor {
        self.supervisor.clone()
    }

    /// The address for reviews.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.https.local_addr()
    }

    /// The address for metrics.
    pub fn metrics_address(&self) -> std::io::Result<SocketAddr> {
        self.metrics.local_addr()
    }

    /// Triggers a reload of the files.
    pub fn reloader(&self) -> Arc<Notify> {
        Arc::clone(&self.reload)
    }

    /// Updates certificates that do not come from files.
    pub fn certificates(&self) -> CertificateUpdater {
        CertificateUpdater { state: Arc::clone(&self.state), tls: Arc::clone(&self.tls) }
    }

    /// Serves until that future resolves, and then shuts down: not ready → keep serving → no new connections → drain.
    pub async fn serve(self, shutdown: impl Future<Output = Shutdown>) {
        let (stop, closing, tasks) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        let connections = Connections {
            router: routes::https(Arc::clone(&self.state)),
            state: Arc::clone(&self.state),
            tls: Some(Arc::clone(&self.tls)),
            caller: self.caller,
            closing: closing.clone(),
            tasks: tasks.clone(),
        };
        let scrapes = Connections {
            router: routes::metrics(Arc::clone(&self.state)),
            tls: None,
            caller: None,
            ..connections.clone()
        };
        let files = watch_files(self.watched, Arc::clone(&self.state), self.tls, self.reload, stop.clone());
        tasks.spawn(self.supervisor.guarded("https", connections.accept(self.https, stop.clone())));
        tasks.spawn(self.supervisor.guarded("metrics", scrapes.accept(self.metrics, stop.clone())));
        tasks.spawn(self.supervisor.guarded("files", files));
        let Shutdown { grace } = shutdown.await;
        info!(seconds = grace.as_secs_f32(), "shutting down: not ready, still serving");
        self.state.readiness.waits_for("shutting down");
        // From here on every response asks its client to reconnect elsewhere.
        closing.cancel();
        sleep(grace).await;
        self.supervisor.stop();
        stop.cancel();
        tasks.close();
        if timeout(self.state.limits.drain, tasks.wait()).await.is_err() {
            warn!("drain timeout, closing remaining connections");
        }
        info!("server stopped");
    }
}

/// The listen backlog. A connection that does not fit is retried a second later, too late for a probe.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    open().map_err(|source| ServeError::Listen { address, source })
}

async fn watch_files(
    mut watched: WatchedFiles,
    state: Arc<ServerState>,
    tls: Arc<Tls>,
    reload: Arc<Notify>,
    stop: CancellationToken,
) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
            () = reload.notified() => {}
        }
        watched.check(&state, &tls);
    }
}
