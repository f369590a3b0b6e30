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

use super::CLEAN;
use super::in_cluster::{InCluster, informed};
use crate::cluster::certificates::Certificates;
use crate::cluster::facts::{Nowhere, Source};
use crate::cluster::token::TokenKeeper;
use crate::policy::Policy;
use crate::server::reload::{PolicyFile, Watched};
use crate::server::{Farewell, Limits, Parts, Server};
use crate::supervise::{Pauses, Supervisor};
use crate::telemetry::{Filter, LogFormat, Logs, Metrics};
use crate::tls::{Development, Files, Tls};

/// The threads that answer, whatever the node has: each that judges takes memory, and the pod's limit is the same on all nodes.
const WORKERS: usize = 4;

/// Answer AdmissionReviews over HTTPS
///
/// With no arguments it makes a certificate of its own, listens on 127.0.0.1:8443, and prints a line to try it with. POST /mutate
/// repairs, POST /validate refuses and warns; /healthz and /readyz tell how it is. Metrics are on a listener of their own.
///
/// SIGTERM ends it after --shutdown-grace, with what is under way finished; SIGHUP makes it look at its files at once, which it
/// otherwise does every second.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Where to answer reviews
    #[arg(long, env = "NADMIT_LISTEN", default_value = "127.0.0.1:8443", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where to show metrics, over plain HTTP
    #[arg(long, env = "NADMIT_METRICS_LISTEN", default_value = "127.0.0.1:9443", value_name = "ADDRESS")]
    metrics_listen: SocketAddr,
    /// The certificate, PEM, with its chain; read again when it changes
    #[arg(long, env = "NADMIT_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, PEM
    #[arg(long, env = "NADMIT_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Without a certificate: the directory that gets the CA's certificate, as ca.crt [default: certs, where there is one, or a
    /// temporary directory]
    #[arg(long, env = "NADMIT_CERT_DIR", value_name = "DIR", conflicts_with_all = ["tls_cert", "tls_key"])]
    cert_dir: Option<PathBuf>,
    /// The CA, PEM, that callers must have their certificate from; health needs none
    #[arg(long, env = "NADMIT_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// The name that must be in the callers' certificate
    #[arg(long, env = "NADMIT_CLIENT_NAME", value_name = "NAME", requires = "client_ca")]
    client_name: Option<String>,
    /// The policy file; read again when it changes
    #[arg(long, env = "NADMIT_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    in_cluster: InCluster,
    /// Also take the API server's audit events, at POST /audit-events: its audit webhook backend sends them (docs/audit-log.md)
    #[arg(long, env = "NADMIT_AUDIT_EVENTS")]
    audit_events: bool,
    /// How log lines look [default: text on a terminal, else json]
    #[arg(long, env = "NADMIT_LOG_FORMAT", value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// What is logged: error, warn, info, debug, trace, or directives such as info,hyper=debug
    #[arg(long, env = "NADMIT_LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    log_level: Filter,
    /// How long to go on serving after SIGTERM, until nobody sends reviews here any more
    #[arg(long, env = "NADMIT_SHUTDOWN_GRACE", default_value = "5s", value_name = "TIME", value_parser = duration)]
    shutdown_grace: Duration,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let time = parsed.map_err(|error| format!("{error}; write 5s or 500ms"))?;
    Duration::try_from(time).map_err(|_| "a time that has passed".to_owned())
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        // The only provider there is, and nobody has set one before.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
        let runtime = runtime.context("no threads")?;
        runtime.block_on(self.serve())?;
        Ok(CLEAN)
    }

    async fn serve(self) -> anyhow::Result<()> {
        let (policy_file, policy) = match self.policy.clone().map(PolicyFile::open).transpose()? {
            Some((file, policy)) => (Some(file), policy),
            None => (None, Policy::default()),
        };
        let format =
            self.log_format.unwrap_or(if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json });
        let logs = Logs::start(format, self.log_level.clone())?;
        let cluster = self.in_cluster.connect().await?;
        let tokens = self.in_cluster.tokens(cluster.as_ref()).await?;
        let (registered, is_registered) = watch::channel(None);
        let (tls, files, published, kept) = match self.in_cluster.secret(self.client_ca.clone()) {
            Some(settings) => {
                let cluster = cluster.clone().context("--tls-secret needs a cluster: a pod, or --kubeconfig")?;
                let (served, kept) = Certificates::start(cluster, settings, is_registered).await;
                (Tls::new(served), None, None, Some(kept))
            }
            None => {
                let (tls, files, published) = self.tls()?;
                (tls, files, published, None)
            }
        };
        let (metrics, readiness) = (Metrics::default(), Arc::default());
        let supervisor = Supervisor::new(&metrics.tasks, Pauses::default());
        let informed = cluster.map(|cluster| Arc::new(informed(cluster, &metrics, &readiness, &supervisor)));
        let facts: Arc<dyn Source> = match &informed {
            Some(informed) => Arc::clone(informed) as _,
            None => Arc::new(Nowhere),
        };
        let parts = Parts {
            policy,
            facts,
            tls,
            watched: Watched { policy: policy_file, certificates: files },
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
        let bundle = kept.as_ref().map(Certificates::bundle);
        let lead = self.in_cluster.register(informed, bundle, tokens, registered, &server)?;
        if let Some(kept) = kept {
            let taken = server.certificates();
            supervisor.serving("certificates", kept.keep(move |served| taken.take(served)));
        }
        announce(&server, published.as_ref().map(|published| published.ca.as_path()))?;
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
                    _ = terminate.recv() => Farewell { grace },
                    // Whoever presses Ctrl-C does not want to wait.
                    _ = interrupt.recv() => Farewell { grace: Duration::ZERO },
                    // What it can still answer is answered until nobody asks this replica any more.
                    () = supervised.failed() => Farewell { grace },
                }
            })
            .await;
        if let Some(lead) = lead {
            lead.give_up().await;
        }
        supervisor.failure().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// The certificate from its files, or one of our own; then also where its CA is.
    fn tls(&self) -> anyhow::Result<(Tls, Option<Files>, Option<Published>)> {
        if let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let (files, served) = Files::open(cert.clone(), key.clone(), self.client_ca.clone())
                .with_context(|| format!("{} and {}", cert.display(), key.display()))?;
            return Ok((Tls::new(served), Some(files), None));
        }
        let ip = self.listen.ip();
        let names = if ip.is_unspecified() { Vec::new() } else { vec![ip.to_string()] };
        let mut made = Development::make(&names)?;
        if let Some(ca) = &self.client_ca {
            made.material.client_ca = Some(fs::read(ca).with_context(|| ca.display().to_string())?);
        }
        let hint = "--cert-dir names a directory that can be written to";
        let place = match &self.cert_dir {
            Some(directory) => Place::Kept(directory.clone()),
            None if Path::new("certs").is_dir() => Place::Kept(PathBuf::from("certs")),
            None => Place::Temporary(tempfile::Builder::new().prefix("nadmit-").tempdir().context(hint)?),
        };
        let ca = made.publish(place.path()).context(hint)?;
        Ok((Tls::new(made.material.serve()?), None, Some(Published { ca, _place: place })))
    }
}

/// Where the CA of a certificate of our own is.
struct Published {
    ca: PathBuf,
    /// One that is temporary goes with the server.
    _place: Place,
}

enum Place {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

/// One line on the standard output: what to paste to see it work.
fn announce(server: &Server, ca: Option<&Path>) -> anyhow::Result<()> {
    let mut address = server.address()?;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let mut out = io::stdout().lock();
    match ca {
        Some(ca) => writeln!(out, "curl --cacert {} -d @examples/review.json https://{address}/mutate", quoted(ca))?,
        None => writeln!(out, "serving https://{address}")?,
    }
    Ok(out.flush()?)
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%".contains(character);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
