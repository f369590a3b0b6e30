//! What `serve` does in a cluster besides answering: arguments and wiring.

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
use crate::cluster::auditor::Auditor;
use crate::cluster::certificates::Settings;
use crate::cluster::complete::Completer;
use crate::cluster::denied::DenialKeeper;
use crate::cluster::facts::Source;
use crate::cluster::lease::{Candidate, Claim, Timing};
use crate::cluster::registration::{Registration, follow};
use crate::cluster::token::TokenKeeper;
use crate::cluster::{Caches, Cluster, Home, Informed};
use crate::deploy::webhooks::Address;
use crate::server::{Readiness, Server};
use crate::supervise::Supervisor;
use crate::telemetry::Metrics;

/// The Lease of the replica that does what only one may do.
const LEASE: &str = "nadmit";
/// How long giving up the lead may take at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the first lists of the cluster may take before it is ready without them.
const FIRST_LISTS: Duration = Duration::from_secs(30);

/// Why `--register` cannot be done.
const NO_CLUSTER: &str = "--register: there is no cluster; --kubeconfig names one outside of a pod";
const NO_BUNDLE: &str = "--register: --ca-bundle or --tls-secret says which CA the API server is to trust";

/// Whether there is a cluster to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum WhenAsked {
    /// With a kubeconfig or in a pod; elsewhere nobody is asked
    Auto,
    /// Always: without one it does not start
    Require,
    /// Never, not even in a pod
    Off,
}

/// Where nadmit is, and what it keeps there.
#[derive(Debug, Args)]
pub(super) struct InCluster {
    /// Whether a cluster is asked for what the object itself does not say
    #[arg(long, env = "NADMIT_CLUSTER", value_enum, default_value = "auto", value_name = "WHEN")]
    cluster: WhenAsked,
    /// The kubeconfig of the cluster that is asked [default: in a pod, its service account]
    #[arg(long, env = "NADMIT_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace that nadmit runs in [default: the pod's own]
    #[arg(long, env = "NADMIT_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,
    /// The Service in that namespace that leads to nadmit
    #[arg(long, env = "NADMIT_SERVICE", default_value = "nadmit", value_name = "NAME")]
    service: String,
    #[command(flatten)]
    secret: Secret,
    /// Register with the API server, and stay registered: both webhook configurations, which come with the manifests, are filled when
    /// nadmit is ready and can be reached through the Service, and restored when somebody changes them. One replica also completes
    /// what was stored without nadmit, and audits the cluster. The registered paths carry a token, which the replicas keep in the
    /// Secret nadmit-token
    #[arg(long, env = "NADMIT_REGISTER")]
    register: bool,
    /// The CA certificates, PEM, that the API server is to trust; read again when they change [default: those of --tls-secret]
    #[arg(long, env = "NADMIT_CA_BUNDLE", value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// Where the Service leads: the tests have no Service network
    #[arg(long, hide = true, value_name = "ADDRESS")]
    service_address: Option<SocketAddr>,
}

impl InCluster {
    /// The cluster, if there is one.
    pub(super) async fn connect(&self) -> anyhow::Result<Option<Cluster>> {
        if self.cluster == WhenAsked::Off {
            return Ok(None);
        }
        let cluster = match &self.kubeconfig {
            Some(path) => Some(Cluster::by_kubeconfig(path).await?),
            None => Cluster::by_pod()?,
        };
        if cluster.is_none() && self.cluster == WhenAsked::Require {
            anyhow::bail!("--cluster require: this is no pod, and --kubeconfig names no cluster");
        }
        Ok(cluster)
    }

    /// Where the API server finds nadmit.
    fn home(&self) -> Home {
        Home { namespace: self.namespace.clone().unwrap_or_else(Home::pods_namespace), service: self.service.clone() }
    }

    /// How the certificate is kept in a Secret, if it is.
    pub(super) fn secret(&self, client_ca: Option<PathBuf>) -> Option<Settings> {
        self.secret.settings(self.home(), client_ca)
    }

    /// The tokens of the paths that are registered, if any are. Waits until the Secret with them is there.
    pub(super) async fn tokens(&self, cluster: Option<&Cluster>) -> anyhow::Result<Option<TokenKeeper>> {
        if !self.register {
            return Ok(None);
        }
        let cluster = cluster.context(NO_CLUSTER)?;
        if self.ca_bundle.is_none() && !self.secret.is_named() {
            anyhow::bail!(NO_BUNDLE);
        }
        Ok(Some(TokenKeeper::start(cluster.clone(), self.home().namespace, self.secret.token_schedule()).await))
    }

    /// Registers, if that is wanted, and stands for the lead. `bundle` vouches for the certificate, where it is kept in a Secret.
    pub(super) fn register(
        &self,
        informed: Option<Arc<Informed>>,
        bundle: Option<watch::Receiver<String>>,
        tokens: Option<TokenKeeper>,
        registered: watch::Sender<Option<String>>,
        server: &Server,
    ) -> anyhow::Result<Option<Lead>> {
        let Some(keeper) = tokens else { return Ok(None) };
        let (readiness, supervisor) = (server.readiness(), server.supervisor());
        let informed = informed.context(NO_CLUSTER)?;
        let cluster = &informed.cluster;
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
        let tokens = keeper.paths();
        let caches = Arc::clone(&informed.caches);
        let registration =
            Registration { cluster: cluster.clone(), address, bundle, registered, tokens, metric, caches };
        supervisor.serving("token", keeper.keep());
        let in_force = Arc::clone(&policy);
        supervisor
            .serving("registration", registration.keep(move || readiness.is_ready(), move || in_force.load_full()));

        let stop = CancellationToken::new();
        let candidate = Candidate {
            cluster: cluster.clone(),
            namespace: self.home().namespace,
            name: LEASE.to_owned(),
            identity: identity(),
            timing: Timing::default(),
        };
        // The Lease is kept while a leader task is restarted: what stops it here would stop it in any other replica.
        let (standing, claims) = watch::channel(Claim::default());
        let stopped = stop.clone();
        let ended = supervisor.restarted("lease", move || candidate.clone().stand(standing.clone(), stopped.clone()));
        let auditor = Auditor {
            informed: Arc::clone(&informed),
            policy: Arc::clone(&policy),
            metrics: server.audit(),
            identity: identity(),
            supervisor: supervisor.clone(),
        };
        let led = claims.clone();
        supervisor.restarted("audit", move || auditor.clone().run(led.clone()));
        let (cluster, home, denials) = (cluster.clone(), self.home().namespace, server.denials());
        let (reports, in_force, led) = (server.audit().reports, server.policy(), claims.clone());
        supervisor.restarted("reports", move || {
            let (cluster, denials) = (cluster.clone(), Arc::clone(&denials));
            let keeper = DenialKeeper::new(cluster, home.clone(), &identity(), denials, reports.clone());
            keeper.run(Arc::clone(&in_force), led.clone())
        });
        let source = Arc::clone(&informed) as Arc<dyn Source>;
        let (completions, supervised) = (server.completions(), supervisor.clone());
        let completer = Completer { informed, source, policy, completions, supervisor: supervised };
        supervisor.restarted("completion", move || completer.clone().run(claims.clone(), is_registered.clone()));
        Ok(Some(Lead { stop, ended }))
    }
}

/// A cluster of which some things are known at once. It is ready when they are, but does not wait for ever: a review without them
/// has fewer warnings, a review that nobody answers has none.
pub(super) fn informed(
    cluster: Cluster,
    metrics: &Metrics,
    readiness: &Arc<Readiness>,
    supervisor: &Supervisor,
) -> Informed {
    const WHAT: &str = "the caches";
    readiness.waits_for(WHAT);
    let caches = Caches::start(&cluster, &metrics.caches, supervisor);
    let (watched, readiness) = (Arc::clone(&caches), Arc::clone(readiness));
    // It ends by itself. Should it fail, this replica never becomes ready, which is seen.
    tokio::spawn(async move {
        let unknown = watched.listed(FIRST_LISTS).await;
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            tracing::warn!(
                unknown,
                "ready without all that should be known of the cluster: it is unknown until it comes"
            );
        }
        readiness.has(WHAT);
    });
    Informed { cluster, caches }
}

/// Who this replica is among the others: a pod's host name is its own.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "nadmit".to_owned());
    format!("{host}_{}", std::process::id())
}

/// The lead, or the hope for it.
pub(super) struct Lead {
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

impl Lead {
    /// Gives it up, so that another replica need not wait until it lapses.
    pub(super) async fn give_up(self) {
        self.stop.cancel();
        let _ = timeout(FAREWELL, self.ended).await;
    }
}
