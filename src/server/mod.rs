//! `nadmit serve`: reviews over HTTPS.
//!
//! ```text
//!  accept ─► connection (TLS, age, limits) ─► route ─► expected? ─► whole body ─► capacity ─► judge ─► answer
//! ```

mod audit_events;
mod body;
mod capacity;
mod connections;
mod failed;
mod health;
mod limits;
mod pending;
pub mod reload;
mod reviews;
mod routes;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use audit_events::AuditEvents;
use capacity::Capacity;
use connections::{CallerRule, Connections};
pub use health::Readiness;
pub use limits::Limits;
use reload::{Certificates, Watched};

use crate::cluster::facts::Source;
use crate::policy::Policy;
use crate::supervise::Supervisor;
use crate::telemetry::denials::Denials;
use crate::telemetry::metrics::{AuditMetrics, Completions, Registered};
use crate::telemetry::{Logs, Metrics};
use crate::tls::Tls;
use crate::tls::token::Accepted;

/// What all requests share.
pub struct State {
    policy: Arc<ArcSwap<Policy>>,
    facts: Arc<dyn Source>,
    metrics: Metrics,
    denials: Arc<Denials>,
    readiness: Arc<Readiness>,
    limits: Limits,
    capacity: Capacity,
    /// `None`: requests need no token.
    tokens: Option<Arc<Accepted>>,
    logs: Option<Logs>,
    /// `None`: nobody is to send any.
    audit_events: Option<AuditEvents>,
}

impl State {
    fn take_policy(&self, policy: Policy) {
        if let Some(logs) = &self.logs {
            logs.refilter(policy.log_level);
        }
        for warning in policy.warnings() {
            warn!(warning, "the policy is in force, and may not do what was meant");
        }
        self.policy.store(Arc::new(policy));
    }
}

/// What a server is made of.
pub struct Parts {
    /// The policy to begin with.
    pub policy: Policy,
    /// Where facts come from.
    pub facts: Arc<dyn Source>,
    /// The certificate to begin with.
    pub tls: Tls,
    /// The files that may change.
    pub watched: Watched,
    /// Whether callers must show a certificate.
    pub asks_callers: bool,
    /// The name that must be in it.
    pub caller_name: Option<String>,
    /// The tokens that open the paths, where they must carry one.
    pub tokens: Option<Arc<Accepted>>,
    /// The log, whose level follows the policy.
    pub logs: Option<Logs>,
    /// Whether the API server may send audit events.
    pub takes_audit_events: bool,
    /// The bounds on what comes from a socket.
    pub limits: Limits,
    /// What has to be there before it is ready.
    pub readiness: Arc<Readiness>,
    /// Who watches over the background tasks.
    pub supervisor: Supervisor,
    /// The metrics, some of which others keep up to date too.
    pub metrics: Metrics,
}

/// How to end: whoever asks says how long to go on serving before.
#[derive(Clone, Copy, Debug)]
pub struct Farewell {
    /// How long to go on as before, not ready any more, until nobody sends requests here.
    pub grace: Duration,
}

/// A server with its sockets open.
pub struct Server {
    https: TcpListener,
    metrics: TcpListener,
    state: Arc<State>,
    tls: Arc<Tls>,
    watched: Watched,
    caller: Option<Arc<CallerRule>>,
    reload: Arc<Notify>,
    supervisor: Supervisor,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Server {
    /// Opens the sockets.
    pub async fn bind(https: SocketAddr, scrapes: SocketAddr, parts: Parts) -> Result<Self, ServeError> {
        let Parts { policy, facts, tls, watched, asks_callers, caller_name, logs, limits, readiness, metrics, .. } =
            parts;
        let audit_events = parts.takes_audit_events.then(|| AuditEvents::new(&limits));
        let (policy_in_force, denials, capacity) = (Arc::default(), Arc::default(), Capacity::new(&limits));
        let tokens = parts.tokens;
        let state = State {
            policy: policy_in_force,
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
        state.take_policy(policy);
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

    /// Where it is counted what became of NADs that were stored incomplete.
    pub fn completions(&self) -> Completions {
        self.state.metrics.completions.clone()
    }

    /// What is refused here.
    pub fn denials(&self) -> Arc<Denials> {
        Arc::clone(&self.state.denials)
    }

    /// Where it is told what the audit of the cluster finds.
    pub fn audit(&self) -> AuditMetrics {
        self.state.metrics.audit.clone()
    }

    /// Where it is told whether nadmit is registered.
    pub fn registered(&self) -> Registered {
        self.state.metrics.registered.clone()
    }

    /// Whether it can do its work.
    pub fn readiness(&self) -> Arc<Readiness> {
        Arc::clone(&self.state.readiness)
    }

    /// Who starts background tasks and handles their end.
    pub fn supervisor(&self) -> Supervisor {
        self.supervisor.clone()
    }

    /// Where reviews are answered.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.https.local_addr()
    }

    /// Where metrics are.
    pub fn metrics_address(&self) -> std::io::Result<SocketAddr> {
        self.metrics.local_addr()
    }

    /// To be told that files should be looked at now.
    pub fn reloader(&self) -> Arc<Notify> {
        Arc::clone(&self.reload)
    }

    /// Where to hand in certificates that do not come from files.
    pub fn certificates(&self) -> Certificates {
        Certificates { state: Arc::clone(&self.state), tls: Arc::clone(&self.tls) }
    }

    /// Serves until that future says how to end, and then to the end: not ready → serving on → no new connections → what is
    /// under way is finished.
    pub async fn serve(self, farewell: impl Future<Output = Farewell>) {
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
        let files = watch(self.watched, Arc::clone(&self.state), self.tls, self.reload, stop.clone());
        tasks.spawn(self.supervisor.guarded("https", connections.accept(self.https, stop.clone())));
        tasks.spawn(self.supervisor.guarded("metrics", scrapes.accept(self.metrics, stop.clone())));
        tasks.spawn(self.supervisor.guarded("files", files));
        let Farewell { grace } = farewell.await;
        info!(seconds = grace.as_secs_f32(), "asked to end: not ready any more, still serving");
        self.state.readiness.waits_for("this replica is shutting down");
        // From here on every answer asks its client to go elsewhere.
        closing.cancel();
        sleep(grace).await;
        self.supervisor.stop();
        stop.cancel();
        tasks.close();
        if timeout(self.state.limits.drain, tasks.wait()).await.is_err() {
            warn!("some connections did not end in time and are cut");
        }
        info!("ended");
    }
}

/// How many connections may wait to be accepted. One that finds no place there tries again a second later, which is too late for a probe.
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

async fn watch(mut watched: Watched, state: Arc<State>, tls: Arc<Tls>, reload: Arc<Notify>, stop: CancellationToken) {
    let mut ticks = interval(reload::INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
            () = reload.notified() => {}
        }
        watched.look(&state, &tls);
    }
}
