//! The Secret with the CA and the certificate of all replicas.
//!
//! Every replica reads it every few seconds, takes the step that is due, and serves its content. There is no leader: the Secret
//! is created, or replaced with the resourceVersion that was read, and a replica that loses the race reads again and finds the
//! step done.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, ServiceRef, WriteResult};
use crate::tls::authority::{CertificateState, Lifetimes, Rotation, RotationStep, StoredCertificates};
use crate::tls::{Material, Served, TlsError};

/// The timeout of one reconcile.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a step is tried in one reconcile. More conflicts are not a race between replicas: the namespace does not exist.
const MAX_ATTEMPTS: usize = 10;
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
    /// Clock offset of this replica in seconds; for tests.
    pub clock_offset: i64,
}

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
enum CertificateError {
    #[error(transparent)]
    Cluster(#[from] ApiError),
    #[error("the API server did not respond before the deadline")]
    Late,
    #[error("conflicting writes of the Secret, or its namespace does not exist")]
    Contended,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot read the client CA")]
    ClientCa(#[source] std::io::Error),
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
    held: Option<StoredCertificates>,
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
            held: None,
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
            pause = (pause * 2).min(REQUEST_TIMEOUT);
        }
    }

    /// The bundle that webhooks must carry, PEM.
    pub fn bundle(&self) -> watch::Receiver<String> {
        self.bundle.subscribe()
    }

    /// Renews and rotates the certificates continuously; `serve` receives each new one.
    pub async fn run(mut self, serve: impl Fn(Served) + Send) {
        let pause = self.settings.lifetimes.settle / 12;
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
    async fn reconcile(&mut self) -> Result<Option<Served>, CertificateError> {
        timeout(REQUEST_TIMEOUT, self.apply_steps()).await.map_err(|_| CertificateError::Late)??;
        let client_ca =
            self.settings.client_ca.as_ref().map(std::fs::read).transpose().map_err(CertificateError::ClientCa)?;
        let state = self.state();
        let Some(stored) = self.rotation.serve(&state).cloned() else { return Ok(None) };
        if let Some(bundle) = self.rotation.bundle(&state) {
            self.bundle.send_if_modified(|known| {
                let is_new = *known != bundle;
                *known = bundle;
                is_new
            });
        }
        let material = stored.material(client_ca);
        if self.material.as_ref() == Some(&material) {
            self.held = Some(stored);
            return Ok(None);
        }
        let served = material.serve()?;
        (self.held, self.material) = (Some(stored), Some(material));
        Ok(Some(served))
    }

    /// Takes steps until none is due.
    async fn apply_steps(&mut self) -> Result<(), CertificateError> {
        let mut found = self.read().await?;
        for _ in 0..MAX_ATTEMPTS {
            self.observe(found.as_ref().map(stored));
            let state = self.state();
            let (step, flaws) = self.rotation.decide(&state);
            let Some(next) = self.rotation.take(step, &state)? else { return Ok(()) };
            let is_new = found.is_none();
            found = match self.write(found, &next).await? {
                WriteResult::Stored(object) => {
                    self.log_step(step, is_new, &flaws);
                    Some(object)
                }
                WriteResult::Changed => self.read().await?,
            };
        }
        Err(CertificateError::Contended)
    }

    fn state(&self) -> CertificateState<'_> {
        let (stored, registered) = &self.seen;
        CertificateState {
            stored: stored.as_ref(),
            held: self.held.as_ref(),
            registered: registered.as_deref(),
            steady: self.since.elapsed(),
            now: jiff::Timestamp::now().as_second().saturating_add(self.settings.clock_offset),
        }
    }

    fn observe(&mut self, stored: Option<StoredCertificates>) {
        let seen = (stored, self.registered.borrow().clone());
        if seen != self.seen {
            (self.seen, self.since) = (seen, Instant::now());
        }
    }

    async fn read(&self) -> Result<Option<Value>, ApiError> {
        self.cluster.read(&self.secrets()?.child(&self.settings.secret)?).await
    }

    /// Other keys of the Secret are kept, and so is its type, which is immutable.
    async fn write(&self, found: Option<Value>, next: &StoredCertificates) -> Result<WriteResult, ApiError> {
        let is_new = found.is_none();
        let mut object = found.unwrap_or_else(|| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": { "name": self.settings.secret, "namespace": self.settings.home.namespace },
            })
        });
        let mut data = object.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, text) in KEYS.into_iter().zip([&next.bundle, &next.ca_key, &next.chain, &next.key]) {
            data.insert(key.to_owned(), BASE64_STANDARD.encode(text).into());
        }
        if let Some(object) = object.as_object_mut() {
            object.insert("data".to_owned(), data.into());
        }
        if is_new {
            self.cluster.create(&self.secrets()?, &object).await
        } else {
            self.cluster.replace(&self.secrets()?.child(&self.settings.secret)?, &object).await
        }
    }

    fn secrets(&self) -> Result<ApiPath, ApiError> {
        ApiPath::in_namespace(ApiResource::SECRETS, &self.settings.home.namespace)
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
        } else if is_new && self.held.is_some() {
            warn!(namespace, secret, "certificate Secret was deleted: {done}");
        } else {
            info!(namespace, secret, "{done}");
        }
    }
}

/// The content of the Secret. Missing or invalid values show up as empty when the chain is parsed.
fn stored(secret: &Value) -> StoredCertificates {
    let text = |key: &str| {
        let encoded = secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str).unwrap_or_default();
        BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    };
    let [bundle, ca_key, chain, key] = KEYS.map(text);
    StoredCertificates { bundle, ca_key, chain, key }
}

/// An error with its causes.
fn error_chain(error: &CertificateError) -> String {
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
