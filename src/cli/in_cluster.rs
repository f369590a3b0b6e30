//! Arguments and wiring of `serve` in a cluster: caches, registration, leader tasks.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::secret::Secret;
use crate::cluster::cache::facts::FactSource;
use crate::cluster::cache::policy_config_map::ConfigMapName;
use crate::cluster::cache::{CachedCluster, Caches};
use crate::cluster::client::{Cluster, ServiceRef};
use crate::cluster::identity::certificates::Settings;
use crate::cluster::identity::lease::{Candidate, Claim, Timing};
use crate::cluster::identity::registration::{Registration, follow};
use crate::cluster::identity::token::TokenKeeper;
use crate::cluster::leader::audit::Auditor;
use crate::cluster::leader::completion::{Completer, IncompleteObjects};
use crate::cluster::leader::denial_reports::DenialReporter;
use crate::deploy::webhooks::Address;
use crate::resources::ObjectKey;
use crate::server::{Readiness, Server};
use crate::supervise::Supervisor;
use crate::telemetry::Metrics;

/// The Lease of the leader.
const LEASE: &str = "nadmit";
/// The timeout for releasing the Lease at shutdown.
const LEASE_RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The timeout of the initial lists, after which the replica becomes ready without them.
const FIRST_LISTS: Duration = Duration::from_secs(30);

/// Why `--register` cannot be done.
const NO_CLUSTER: &str = "--register needs a cluster: run in a pod, or pass --kubeconfig";
const NO_BUNDLE: &str = "--register needs a CA bundle: pass --ca-bundle or --tls-secret";

/// Whether to connect to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ClusterMode {
    /// With a kubeconfig or in a pod; otherwise without a cluster
    Auto,
    /// Always: without a cluster it does not start
    Require,
    /// Never, not even in a pod
    Off,
}

/// Arguments for running in a cluster.
#[derive(Debug, Args)]
pub(super) struct InCluster {
    /// Whether to read facts from a cluster
    #[arg(long, env = "NADMIT_CLUSTER", value_enum, default_value = "auto", value_name = "WHEN")]
    cluster: ClusterMode,
    /// The kubeconfig of the cluster [default: in a pod, its service account]
    #[arg(long, env = "NADMIT_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace that nadmit runs in [default: the pod's own]
    #[arg(long, env = "NADMIT_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,
    /// The Service of nadmit in that namespace
    #[arg(long, env = "NADMIT_SERVICE", default_value = "nadmit", value_name = "NAME")]
    service: String,
    #[command(flatten)]
    secret: Secret,
    /// Register with the API server and stay registered: fill in both webhook configurations, which the manifests create, once
    /// nadmit is ready and reachable through the Service, and restore them when they change. One replica also completes objects
    /// stored without nadmit, and audits the cluster. The registered paths contain a token, which the replicas keep in the Secret
    /// nadmit-token
    #[arg(long, env = "NADMIT_REGISTER")]
    register: bool,
    /// The CA certificates (PEM) that the API server trusts; reloaded on change [default: those of --tls-secret]
    #[arg(long, env = "NADMIT_CA_BUNDLE", value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// Where a replica outside the Service network reaches the Service, as IP:PORT, for example if the Service is an external name;
    /// before it registers, nadmit connects to itself there, and it registers this port [default: the Service's cluster IP, or its
    /// DNS name if it has none; port 443]
    #[arg(long, env = "NADMIT_SERVICE_ADDRESS", value_name = "ADDRESS")]
    service_address: Option<SocketAddr>,
}

impl InCluster {
    /// The cluster, if there is one.
    pub(super) async fn connect(&self) -> anyhow::Result<Option<Cluster>> {
        if self.cluster == ClusterMode::Off {
            return Ok(None);
        }
        let cluster = match &self.kubeconfig {
            Some(path) => Some(Cluster::by_kubeconfig(path).await?),
            None => Cluster::by_pod()?,
        };
        if cluster.is_none() && self.cluster == ClusterMode::Require {
            anyhow::bail!("--cluster require: not running in a pod, and no --kubeconfig");
        }
        Ok(cluster)
    }

    /// The Service of nadmit.
    fn home(&self) -> ServiceRef {
        ServiceRef {
            namespace: self.namespace.clone().unwrap_or_else(ServiceRef::pod_namespace),
            service: self.service.clone(),
        }
    }

    /// The ConfigMap of that name; without a namespace it is in nadmit's own.
    pub(super) fn config_map(&self, name: &ConfigMapName) -> ObjectKey {
        name.key(&self.home().namespace)
    }

    /// The settings of the certificate Secret, if any.
    pub(super) fn secret(&self, client_ca: Option<PathBuf>) -> anyhow::Result<Option<Settings>> {
        self.secret.settings(self.home(), client_ca)
    }

    /// The tokens of the registered paths, if any. Waits for the token Secret.
    pub(super) async fn tokens(&self, cluster: Option<&Cluster>) -> anyhow::Result<Option<TokenKeeper>> {
        if !self.register {
            return Ok(None);
        }
        let cluster = cluster.context(NO_CLUSTER)?;
        if self.ca_bundle.is_none() && !self.secret.is_named() {
            anyhow::bail!(NO_BUNDLE);
        }
        Ok(Some(TokenKeeper::start(cluster.clone(), self.home().namespace, self.secret.token_schedule()?).await))
    }

    /// Starts registration and leader election, if enabled. `bundle` is the CA bundle of a certificate Secret.
    pub(super) fn register(
        &self,
        cached: Option<Arc<CachedCluster>>,
        bundle: Option<watch::Receiver<String>>,
        tokens: Option<TokenKeeper>,
        registered: watch::Sender<Option<String>>,
        server: &Server,
    ) -> anyhow::Result<Option<LeaderHandle>> {
        let Some(token_keeper) = tokens else { return Ok(None) };
        let (readiness, supervisor) = (server.readiness(), server.supervisor());
        let cached = cached.context(NO_CLUSTER)?;
        let cluster = &cached.cluster;
        let bundle = match (&self.ca_bundle, bundle) {
            (Some(file), _) => {
                let (sender, bundle) = watch::channel(String::new());
                supervisor.serving("ca-bundle", follow(file.clone(), sender));
                bundle
            }
            (None, Some(bundle)) => bundle,
            (None, None) => anyhow::bail!(NO_BUNDLE),
        };
        let address = Address { home: self.home(), at: self.service_address, token: None };
        let (is_registered, policy) = (registered.subscribe(), server.policy());
        let metric = server.registered();
        let tokens = token_keeper.paths();
        let caches = Arc::clone(&cached.caches);
        let registration =
            Registration { cluster: cluster.clone(), address, bundle, registered, tokens, metric, caches };
        supervisor.serving("token", token_keeper.run());
        let in_force = Arc::clone(&policy);
        supervisor
            .serving("registration", registration.run(move || readiness.is_ready(), move || in_force.load_full()));

        let (watched, reached, in_force) = (Arc::clone(&cached), cluster.clone(), Arc::clone(&policy));
        supervisor.serving("pods", async move { watched.caches.follow_pods(&reached, &in_force).await });

        let stop = CancellationToken::new();
        let candidate = Candidate {
            cluster: cluster.clone(),
            namespace: self.home().namespace,
            name: LEASE.to_owned(),
            identity: identity(),
            timing: Timing::default(),
        };
        // The Lease is kept while a leader task restarts: a task that panics here would panic in any other leader too.
        let (claims_sender, claims) = watch::channel(Claim::default());
        let (stopped, has_policy) = (stop.clone(), server.has_policy());
        let ended = supervisor.restarted("lease", move || {
            let (mut has_policy, stopped) = (has_policy.clone(), stopped.clone());
            let lead = candidate.clone().run(claims_sender.clone(), stopped.clone());
            async move {
                // A leader without the configured policy would complete and audit by the default one.
                tokio::select! {
                    () = stopped.cancelled() => return,
                    _ = has_policy.wait_for(|has_policy| *has_policy) => {}
                }
                lead.await;
            }
        });
        let incomplete = Arc::<IncompleteObjects>::default();
        let auditor = Auditor {
            cached: Arc::clone(&cached),
            policy: Arc::clone(&policy),
            metrics: server.audit(),
            identity: identity(),
            supervisor: supervisor.clone(),
            incomplete: Arc::clone(&incomplete),
        };
        let led = claims.clone();
        supervisor.restarted("audit", move || auditor.clone().run(led.clone()));
        let (cluster, home, denials) = (cluster.clone(), self.home().namespace, server.denials());
        let (reports, in_force, led) = (server.audit().reports, server.policy(), claims.clone());
        supervisor.restarted("reports", move || {
            let (cluster, denials) = (cluster.clone(), Arc::clone(&denials));
            let reporter = DenialReporter::new(cluster, home.clone(), &identity(), denials, reports.clone());
            reporter.run(Arc::clone(&in_force), led.clone())
        });
        let source = Arc::clone(&cached) as Arc<dyn FactSource>;
        let (completions, supervised) = (server.completions(), supervisor.clone());
        let completer = Completer { cached, incomplete, source, policy, completions, supervisor: supervised };
        supervisor.restarted("completion", move || completer.clone().run(claims.clone(), is_registered.clone()));
        Ok(Some(LeaderHandle { stop, ended }))
    }
}

/// Starts the caches. The replica becomes ready when they are synced, or after a timeout: a review without them has fewer
/// warnings, a failed review has none.
pub(super) fn cached_cluster(
    cluster: Cluster,
    metrics: &Metrics,
    readiness: &Arc<Readiness>,
    supervisor: &Supervisor,
) -> CachedCluster {
    const READINESS_CHECK: &str = "the caches";
    readiness.waits_for(READINESS_CHECK);
    let caches = Caches::start(&cluster, &metrics.caches, supervisor);
    let (watched, readiness) = (Arc::clone(&caches), Arc::clone(readiness));
    // This task ends by itself. If it fails, the replica never becomes ready, which is noticed.
    tokio::spawn(async move {
        let unknown = watched.listed(FIRST_LISTS).await;
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            tracing::warn!(unknown, "caches not synced in time; becoming ready without them");
        }
        readiness.fulfil(READINESS_CHECK);
    });
    CachedCluster { cluster, caches }
}

/// The identity of this replica: a pod's host name is unique.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "nadmit".to_owned());
    format!("{host}_{}", std::process::id())
}

/// The running leader election.
pub(super) struct LeaderHandle {
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

impl LeaderHandle {
    /// Releases the Lease, so that another replica need not wait until it expires.
    pub(super) async fn release(self) {
        self.stop.cancel();
        let _ = timeout(LEASE_RELEASE_TIMEOUT, self.ended).await;
    }
}
