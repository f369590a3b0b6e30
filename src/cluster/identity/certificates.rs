//! The Secret with the CA and the certificate of all replicas.
//!
//! Every replica reads it every few seconds, takes the step that is due, and serves its content.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use crate::cluster::client::{ApiError, Cluster, ServiceRef, WriteResult};
use crate::cluster::identity::publish;
use crate::cluster::identity::secret::{MAX_ATTEMPTS, RECONCILE_TIMEOUT, SecretError, SharedSecret, text};
use crate::tls::authority::{CertificateState, Lifetimes, Rotation, RotationStep, StoredCertificates};
use crate::tls::{Material, Served};

/// The keys of the Secret.
const KEYS: [&str; 4] = ["ca.crt", "ca.key", "tls.crt", "tls.key"];

/// Where and how certificates are stored.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The Service they are for, and the namespace of the Secret.
    pub home: ServiceRef,
    /// The Secret's name.
    pub secret: String,
    /// Their lifetimes.
    pub lifetimes: Lifetimes,
    /// The client CA: a file, read at each reconcile.
    pub client_ca: Option<PathBuf>,
}

/// The certificates of this replica.
pub struct CertificateKeeper {
    cluster: Cluster,
    settings: Settings,
    rotation: Rotation,
    /// The bundle in all webhook configurations.
    registered: watch::Receiver<Option<String>>,
    bundle: watch::Sender<String>,
    /// The last observed state, and since when.
    seen: (Option<StoredCertificates>, Option<String>),
    since: Instant,
    served: Option<StoredCertificates>,
    material: Option<Material>,
}

impl CertificateKeeper {
    /// Waits for a certificate and returns the first one to serve. `registered` is the bundle in all webhook configurations,
    /// `None` while it is not known.
    pub async fn start(
        cluster: Cluster,
        settings: Settings,
        registered: watch::Receiver<Option<String>>,
    ) -> (Served, Self) {
        let ServiceRef { namespace, service } = &settings.home;
        let mut certificates = Self {
            rotation: Rotation::new(service, namespace, settings.lifetimes),
            cluster,
            settings,
            registered,
            bundle: watch::Sender::default(),
            seen: (None, None),
            since: Instant::now(),
            served: None,
            material: None,
        };
        let mut pause = Duration::from_millis(200);
        loop {
            match certificates.reconcile().await {
                Ok(Some(served)) => return (served, certificates),
                Ok(None) => {}
                Err(problem) => {
                    let Settings { home, secret, .. } = &certificates.settings;
                    let problem = error_chain(&problem);
                    warn!(problem, namespace = home.namespace, secret, "waiting for the certificate Secret");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(RECONCILE_TIMEOUT);
        }
    }

    /// The bundle that webhooks must carry, PEM.
    pub fn bundle(&self) -> watch::Receiver<String> {
        self.bundle.subscribe()
    }

    /// Renews and rotates the certificates continuously; `serve` receives each new one.
    pub async fn run(mut self, serve: impl Fn(Served) + Send) {
        let pause = self.settings.lifetimes.propagation / 12;
        let mut is_failing = false;
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = self.registered.changed() => {}
            }
            match self.reconcile().await {
                Ok(served) => {
                    if std::mem::take(&mut is_failing) {
                        info!("certificate Secret is available again");
                    }
                    if let Some(served) = served {
                        info!(expires = served.expires, "certificate in the Secret changed, serving it");
                        serve(served);
                    }
                }
                // Logged once; the served certificate stays.
                Err(_) if is_failing => {}
                Err(problem) => {
                    is_failing = true;
                    let problem = error_chain(&problem);
                    error!(problem, "failed to update the certificate Secret; serving the last good certificate");
                }
            }
        }
    }

    /// One reconcile: takes the step that is due, and returns the certificate to serve if it changed.
    async fn reconcile(&mut self) -> Result<Option<Served>, SecretError> {
        timeout(RECONCILE_TIMEOUT, self.apply_steps()).await.map_err(|_| SecretError::Late)??;
        let client_ca =
            self.settings.client_ca.as_ref().map(std::fs::read).transpose().map_err(SecretError::ClientCa)?;
        let state = self.state();
        let Some(stored) = self.rotation.serve(&state).cloned() else { return Ok(None) };
        if let Some(bundle) = self.rotation.bundle(&state) {
            publish(&self.bundle, bundle);
        }
        let material = stored.material(client_ca);
        if self.material.as_ref() == Some(&material) {
            self.served = Some(stored);
            return Ok(None);
        }
        let served = material.serve()?;
        (self.served, self.material) = (Some(stored), Some(material));
        Ok(Some(served))
    }

    /// Takes steps until none is due.
    async fn apply_steps(&mut self) -> Result<(), SecretError> {
        let mut found = self.secret().read().await?;
        for _ in 0..MAX_ATTEMPTS {
            self.observe(found.as_ref().map(stored));
            let state = self.state();
            let (step, flaws) = self.rotation.decide(&state);
            let Some(next) = self.rotation.execute(step, &state)? else { return Ok(()) };
            let is_new = found.is_none();
            found = match self.write(found, &next).await? {
                WriteResult::Stored(object) => {
                    self.log_step(step, is_new, &flaws);
                    Some(object)
                }
                WriteResult::Changed => self.secret().read().await?,
            };
        }
        Err(SecretError::Contended)
    }

    fn state(&self) -> CertificateState<'_> {
        let (stored, registered) = &self.seen;
        CertificateState {
            stored: stored.as_ref(),
            served: self.served.as_ref(),
            registered: registered.as_deref(),
            steady: self.since.elapsed(),
            now: jiff::Timestamp::now().as_second(),
        }
    }

    fn observe(&mut self, stored: Option<StoredCertificates>) {
        let seen = (stored, self.registered.borrow().clone());
        if seen != self.seen {
            (self.seen, self.since) = (seen, Instant::now());
        }
    }

    fn secret(&self) -> SharedSecret<'_> {
        let Settings { home: ServiceRef { namespace, .. }, secret: name, .. } = &self.settings;
        SharedSecret { cluster: &self.cluster, namespace, name, kind: "kubernetes.io/tls" }
    }

    async fn write(&self, found: Option<Value>, next: &StoredCertificates) -> Result<WriteResult, ApiError> {
        let texts = [&next.bundle, &next.ca_key, &next.chain, &next.key];
        self.secret().write(found, KEYS.into_iter().zip(texts.map(|text| Some(text.as_str())))).await
    }

    fn log_step(&self, step: RotationStep, is_new: bool, flaws: &[&str]) {
        let Settings { home: ServiceRef { namespace, .. }, secret, .. } = &self.settings;
        let done = match step {
            RotationStep::Keep => "no step taken",
            RotationStep::MakeAll => "created a new CA and certificate",
            RotationStep::AddAuthority(_) => "added a new CA; the certificate of the old one is still served",
            RotationStep::SwitchLeaf => "issued a certificate of the new CA",
            RotationStep::DropOld => "removed the old CA",
            RotationStep::RenewLeaf => "renewed the certificate",
        };
        if !is_new && !flaws.is_empty() {
            let flaws = flaws.join("; ");
            error!(flaws, namespace, secret, "replaced invalid Secret content: {done}");
        } else if is_new && self.served.is_some() {
            warn!(namespace, secret, "certificate Secret was deleted: {done}");
        } else {
            info!(namespace, secret, "{done}");
        }
    }
}

/// The content of the Secret. Missing or invalid values show up as empty when the chain is parsed.
fn stored(secret: &Value) -> StoredCertificates {
    let [bundle, ca_key, chain, key] = KEYS.map(|key| text(secret, key).unwrap_or_default());
    StoredCertificates { bundle, ca_key, chain, key }
}

/// An error with its causes.
fn error_chain(error: &SecretError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = next.source();
    }
    text
}
