//! `nadmit serve`.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::in_cluster::{InCluster, cached_cluster};
use super::policy_args::PolicyArgs;
use super::{EXIT_CLEAN, unreadable};
use crate::cluster::cache::facts::{FactSource, NoCluster};
use crate::cluster::cache::policy_config_map::{ConfigMapName, PolicyConfigMap};
use crate::cluster::identity::certificates::CertificateKeeper;
use crate::cluster::identity::token::TokenKeeper;
use crate::server::reload::WatchedFiles;
use crate::server::{Limits, Server, ServerParts, Shutdown};
use crate::supervise::{Pauses, Supervisor};
use crate::telemetry::{Filter, LogFormat, Logs, Metrics};
use crate::tls::{Development, Files, Tls};

/// The number of worker threads, independent of the node: each needs memory while judging, and the pod's limit is the same on all
/// nodes.
const WORKER_THREADS: usize = 4;

/// Answer AdmissionReviews over HTTPS
///
/// Without arguments it creates a certificate, listens on 127.0.0.1:8443, and prints a command to try it. POST /mutate repairs,
/// POST /validate denies and warns; /healthz and /readyz report its health. Metrics have their own listener.
///
/// SIGTERM shuts it down after --shutdown-grace, finishing requests in progress; SIGHUP reloads its files at once, which it
/// otherwise checks every second.
#[derive(Debug, Args)]
#[command(mut_arg("policy", |policy| policy.help("The policy file; reloaded on change")))]
pub(super) struct Serve {
    /// The address for reviews
    #[arg(long, env = "NADMIT_LISTEN", default_value = "127.0.0.1:8443", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The address for metrics, over plain HTTP
    #[arg(long, env = "NADMIT_METRICS_LISTEN", default_value = "127.0.0.1:9443", value_name = "ADDRESS")]
    metrics_listen: SocketAddr,
    /// The certificate (PEM) with its chain; reloaded on change
    #[arg(long, env = "NADMIT_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, env = "NADMIT_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Without a certificate: the directory for the CA certificate, as ca.crt [default: certs if it exists, or a temporary
    /// directory]
    #[arg(long, env = "NADMIT_CERT_DIR", value_name = "DIR", conflicts_with_all = ["tls_cert", "tls_key"])]
    cert_dir: Option<PathBuf>,
    /// The CA (PEM) of required client certificates; health endpoints need none
    #[arg(long, env = "NADMIT_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// The name that client certificates must have
    #[arg(long, env = "NADMIT_CLIENT_NAME", value_name = "NAME", requires = "client_ca")]
    client_name: Option<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The ConfigMap with the policy, under its key policy.yaml, instead of a file; without a namespace it is in nadmit's own. It is
    /// watched, so that all replicas apply a change at once. Without a valid policy at start, nadmit is not ready and waits for one
    #[arg(long, env = "NADMIT_POLICY_CONFIGMAP", value_name = "[NAMESPACE/]NAME", conflicts_with = "policy")]
    policy_configmap: Option<ConfigMapName>,
    #[command(flatten)]
    in_cluster: InCluster,
    /// Also accept the API server's audit events at POST /audit-events, from its audit webhook backend (docs/audit-log.md)
    #[arg(long, env = "NADMIT_AUDIT_EVENTS")]
    audit_events: bool,
    /// The log format [default: text on a terminal, otherwise json]
    #[arg(long, env = "NADMIT_LOG_FORMAT", value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// The log level: error, warn, info, debug, trace, or directives such as info,hyper=debug
    #[arg(long, env = "NADMIT_LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    log_level: Filter,
    /// How long to keep serving after SIGTERM, until the API server uses other replicas
    #[arg(long, env = "NADMIT_SHUTDOWN_GRACE", default_value = "5s", value_name = "TIME", value_parser = duration)]
    shutdown_grace: Duration,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let time = parsed.map_err(|error| format!("{error}; write 5s or 500ms"))?;
    Duration::try_from(time).map_err(|_| "the time must not be negative".to_owned())
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        // Only one crypto provider is linked, and it is installed only here.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build();
        let runtime = runtime.context("no threads")?;
        runtime.block_on(self.serve())?;
        Ok(EXIT_CLEAN)
    }

    async fn serve(self) -> anyhow::Result<()> {
        let (policy_file, policy) = match &self.policy_configmap {
            Some(_) => (None, None),
            None => {
                let (file, policy) = self.policy.open()?;
                (file, Some(policy))
            }
        };
        let format =
            self.log_format.unwrap_or(if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json });
        let logs = Logs::start(format, self.log_level.clone())?;
        let cluster = self.in_cluster.connect().await?;
        let tokens = self.in_cluster.tokens(cluster.as_ref()).await?;
        let (registered, is_registered) = watch::channel(None);
        let (tls, files, published, kept) = match self.in_cluster.secret(self.client_ca.clone())? {
            Some(settings) => {
                let cluster =
                    cluster.clone().context("--tls-secret needs a cluster: run in a pod, or pass --kubeconfig")?;
                let (served, kept) = CertificateKeeper::start(cluster, settings, is_registered).await;
                (Tls::new(served), None, None, Some(kept))
            }
            None => {
                let (tls, files, published) = self.tls()?;
                (tls, files, published, None)
            }
        };
        let (metrics, readiness) = (Metrics::default(), Arc::default());
        let supervisor = Supervisor::new(&metrics.tasks, Pauses::default());
        let policy_config_map = match &self.policy_configmap {
            Some(name) => {
                let cluster = cluster
                    .clone()
                    .context("--policy-configmap needs a cluster: run in a pod, or pass --kubeconfig")?;
                Some((PolicyConfigMap::new(self.in_cluster.config_map(name), &metrics.caches)?, cluster))
            }
            None => None,
        };
        let informed = cluster.map(|cluster| Arc::new(cached_cluster(cluster, &metrics, &readiness, &supervisor)));
        let facts: Arc<dyn FactSource> = match &informed {
            Some(informed) => Arc::clone(informed) as _,
            None => Arc::new(NoCluster),
        };
        let parts = ServerParts {
            policy,
            facts,
            tls,
            watched: WatchedFiles { policy: policy_file, certificates: files },
            asks_callers: self.client_ca.is_some(),
            caller_name: self.client_name.clone(),
            tokens: tokens.as_ref().map(TokenKeeper::accepted),
            logs: Some(logs),
            takes_audit_events: self.audit_events,
            limits: Limits::default(),
            readiness: Arc::clone(&readiness),
            supervisor: supervisor.clone(),
            metrics,
        };
        let server = Server::bind(self.listen, self.metrics_listen, parts).await?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let reloader = server.reloader();
        supervisor.serving("signals", async move {
            while hangup.recv().await.is_some() {
                reloader.notify_one();
            }
        });
        if let Some((config_map, cluster)) = policy_config_map {
            let updater = server.policy_updater();
            supervisor.serving("policy", config_map.follow(cluster, move |policy| updater.replace(policy)));
        }
        let bundle = kept.as_ref().map(CertificateKeeper::bundle);
        let lead = self.in_cluster.register(informed, bundle, tokens, registered, &server)?;
        if let Some(kept) = kept {
            let updater = server.certificates();
            supervisor.serving("certificates", kept.run(move |served| updater.replace(served)));
        }
        print_curl_command(&server, published.as_ref().map(|published| published.ca.as_path()))?;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            https = %server.address()?,
            metrics = %server.metrics_address()?,
            "serving"
        );
        let grace = self.shutdown_grace;
        let supervised = supervisor.clone();
        server
            .serve(async move {
                tokio::select! {
                    _ = terminate.recv() => Shutdown { grace },
                    // Ctrl-C skips the grace period.
                    _ = interrupt.recv() => Shutdown { grace: Duration::ZERO },
                    // Requests are answered until the API server uses other replicas.
                    () = supervised.failed() => Shutdown { grace },
                }
            })
            .await;
        if let Some(lead) = lead {
            lead.release().await;
        }
        supervisor.failure().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// The certificate from files, or a development one with the location of its CA.
    fn tls(&self) -> anyhow::Result<(Tls, Option<Files>, Option<PublishedCa>)> {
        if let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let (files, served) = Files::open(cert.clone(), key.clone(), self.client_ca.clone())
                .with_context(|| format!("{} and {}", cert.display(), key.display()))?;
            return Ok((Tls::new(served), Some(files), None));
        }
        let ip = self.listen.ip();
        let names = if ip.is_unspecified() { Vec::new() } else { vec![ip.to_string()] };
        let mut made = Development::make(&names)?;
        if let Some(ca) = &self.client_ca {
            made.material.client_ca = Some(fs::read(ca).map_err(|error| unreadable("client CA", ca, &error))?);
        }
        let hint = "pass a writable directory with --cert-dir";
        let place = match &self.cert_dir {
            Some(directory) => CaDirectory::Permanent(directory.clone()),
            None if Path::new("certs").is_dir() => CaDirectory::Permanent(PathBuf::from("certs")),
            None => CaDirectory::Temporary(tempfile::Builder::new().prefix("nadmit-").tempdir().context(hint)?),
        };
        let ca = made.publish(place.path()).context(hint)?;
        Ok((Tls::new(made.material.serve()?), None, Some(PublishedCa { ca, _place: place })))
    }
}

/// The published CA of a development certificate.
struct PublishedCa {
    ca: PathBuf,
    /// A temporary directory is deleted with the server.
    _place: CaDirectory,
}

enum CaDirectory {
    Permanent(PathBuf),
    Temporary(tempfile::TempDir),
}

impl CaDirectory {
    fn path(&self) -> &Path {
        match self {
            Self::Permanent(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

/// Prints a command to try the server.
fn print_curl_command(server: &Server, ca: Option<&Path>) -> anyhow::Result<()> {
    let mut address = server.address()?;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let mut out = io::stdout().lock();
    match ca {
        Some(ca) => {
            writeln!(out, "curl --cacert {} -d @examples/review.json https://{address}/mutate", shell_quoted(ca))?;
        }
        None => writeln!(out, "serving https://{address}")?,
    }
    Ok(out.flush()?)
}

/// A path quoted for a shell.
fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%".contains(character);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
