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
use crate::cluster::lease::{Candidate, Timing};
use crate::cluster::registration::{Registration, follow};
use crate::cluster::{Caches, Cluster, Home, Informed};
use crate::deploy::webhooks::Address;
use crate::server::{Readiness, Server};
use crate::telemetry::Metrics;

/// The Lease of the replica that does what only one may do.
const LEASE: &str = "nadmit";
/// How long giving up the lead may take at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the first lists of the cluster may take before it is ready without them.
const FIRST_LISTS: Duration = Duration::from_secs(30);

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
    /// Register with the API server, and stay registered: both webhook configurations are made when nadmit is ready and can be
    /// reached through the Service, and mended when somebody changes them. One replica also completes what was stored without
    /// nadmit, and audits the cluster
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

    /// Registers, if that is wanted, and stands for the lead. `bundle` vouches for the certificate, where it is kept in a Secret.
    pub(super) fn register(
        &self,
        informed: Option<Arc<Informed>>,
        bundle: Option<watch::Receiver<String>>,
        registered: watch::Sender<Option<String>>,
        server: &Server,
        readiness: Arc<Readiness>,
    ) -> anyhow::Result<Option<Lead>> {
        if !self.register {
            return Ok(None);
        }
        let informed = informed.context("--register: there is no cluster; --kubeconfig names one outside of a pod")?;
        let cluster = &informed.cluster;
        let bundle = match (&self.ca_bundle, bundle) {
            (Some(file), _) => {
                let (sender, bundle) = watch::channel(String::new());
                tokio::spawn(follow(file.clone(), sender));
                bundle
            }
            (None, Some(bundle)) => bundle,
            (None, None) => {
                anyhow::bail!("--register: --ca-bundle or --tls-secret says which CA the API server is to trust")
            }
        };
        let address = Address { home: self.home(), at: self.service_address };
        let (is_registered, policy) = (registered.subscribe(), server.policy());
        let metric = server.registered();
        let registration = Registration { cluster: cluster.clone(), address, bundle, registered, metric };
        let in_force = Arc::clone(&policy);
        tokio::spawn(registration.keep(move || readiness.is_ready(), move || in_force.load_full()));

        let stop = CancellationToken::new();
        let candidate = Candidate {
            cluster: cluster.clone(),
            namespace: self.home().namespace,
            name: LEASE.to_owned(),
            identity: identity(),
            timing: Timing::default(),
        };
        let (claims, ended) = candidate.start(stop.clone());
        let metrics = server.audit();
        let auditor =
            Auditor { informed: Arc::clone(&informed), policy: Arc::clone(&policy), metrics, identity: identity() };
        tokio::spawn(auditor.run(claims.clone()));
        let reports = server.audit().reports;
        let denials = DenialKeeper::new(cluster.clone(), self.home().namespace, &identity(), server.denials(), reports);
        tokio::spawn(denials.run(server.policy(), claims.clone()));
        let completer = Completer { informed, policy, completions: server.completions() };
        tokio::spawn(completer.run(claims, is_registered));
        Ok(Some(Lead { stop, ended }))
    }
}

/// A cluster of which some things are known at once. It is ready when they are, but does not wait for ever: a review without them
/// has fewer warnings, a review that nobody answers has none.
pub(super) fn informed(cluster: Cluster, metrics: &Metrics, readiness: &Arc<Readiness>) -> Informed {
    const WHAT: &str = "the caches";
    readiness.waits_for(WHAT);
    let caches = Caches::start(&cluster, &metrics.caches);
    let (watched, readiness) = (Arc::clone(&caches), Arc::clone(readiness));
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
