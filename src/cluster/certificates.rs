//! The Secret that has the CA and the certificate of all replicas.
//!
//! Every replica looks at it every few seconds, takes the step that is due, and serves what is in it. There is no leader: a Secret
//! is created, or replaced with the resourceVersion that was read, and whoever comes second reads again and finds it done.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use super::{Cluster, Failed, Home, Written};
use crate::tls::authority::{Lifetimes, Rotation, Situation, Step, Stored};
use crate::tls::{Material, Served, TlsError};

/// How long the API server may take for one look.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a step is tried in one look. Whoever loses that often is not racing with replicas: the namespace is not there.
const TRIES: usize = 10;
/// The keys of the Secret.
const KEYS: [&str; 4] = ["ca.crt", "ca.key", "tls.crt", "tls.key"];

/// Where certificates are kept, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose certificates they are, and the namespace of the Secret.
    pub home: Home,
    /// The Secret's name.
    pub secret: String,
    /// How long they last.
    pub lifetimes: Lifetimes,
    /// The CA that callers must have their certificate from: a file, read at each look.
    pub client_ca: Option<PathBuf>,
    /// How many seconds this replica's clock is to be wrong by; only tests want that.
    pub clock_offset: i64,
}

/// Why a look came to nothing.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Cluster(#[from] Failed),
    #[error("the API server did not answer in time")]
    Late,
    #[error("others keep writing the Secret, or its namespace is not there")]
    Contended,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the callers' CA cannot be read")]
    ClientCa(#[source] std::io::Error),
}

/// The certificates of this replica.
pub struct Certificates {
    cluster: Cluster,
    settings: Settings,
    rotation: Rotation,
    /// The bundle that all webhooks carry.
    registered: watch::Receiver<Option<String>>,
    bundle: watch::Sender<String>,
    /// What was last seen, and since when.
    seen: (Option<Stored>, Option<String>),
    since: Instant,
    held: Option<Stored>,
    material: Option<Material>,
}

impl Certificates {
    /// Waits until there is a certificate, and gives the first one to serve. `registered` tells the bundle that all webhooks carry
    /// now, and `None` as long as that is not known.
    pub async fn start(
        cluster: Cluster,
        settings: Settings,
        registered: watch::Receiver<Option<String>>,
    ) -> (Served, Self) {
        let Home { namespace, service } = &settings.home;
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
            match certificates.look().await {
                Ok(Some(served)) => return (served, certificates),
                Ok(None) => {}
                Err(problem) => {
                    let Settings { home, secret, .. } = &certificates.settings;
                    let problem = words(&problem);
                    warn!(problem, namespace = home.namespace, secret, "waiting for the Secret with the certificate");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(PATIENCE);
        }
    }

    /// The bundle that webhooks must carry, PEM.
    pub fn bundle(&self) -> watch::Receiver<String> {
        self.bundle.subscribe()
    }

    /// Keeps them good, for ever; what is to be served from then on is handed over.
    pub async fn keep(mut self, serve: impl Fn(Served) + Send) {
        let pause = self.settings.lifetimes.settle / 12;
        let mut is_failing = false;
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = self.registered.changed() => {}
            }
            match self.look().await {
                Ok(served) => {
                    if std::mem::take(&mut is_failing) {
                        info!("the Secret with the certificate can be read and written again");
                    }
                    if let Some(served) = served {
                        info!(expires = served.expires, "the certificate in the Secret changed, and is used");
                        serve(served);
                    }
                }
                // Told once; what is served stays.
                Err(_) if is_failing => {}
                Err(problem) => {
                    is_failing = true;
                    let problem = words(&problem);
                    error!(problem, "the Secret with the certificate cannot be kept; the last good one is served");
                }
            }
        }
    }

    /// One look: the step that is due is taken, and what is to be served is given if it is not what was served before.
    async fn look(&mut self) -> Result<Option<Served>, LookError> {
        timeout(PATIENCE, self.settle()).await.map_err(|_| LookError::Late)??;
        let client_ca = self.settings.client_ca.as_ref().map(std::fs::read).transpose().map_err(LookError::ClientCa)?;
        let situation = self.situation();
        let Some(stored) = self.rotation.serve(&situation).cloned() else { return Ok(None) };
        if let Some(bundle) = self.rotation.bundle(&situation) {
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
    async fn settle(&mut self) -> Result<(), LookError> {
        let mut found = self.read().await?;
        for _ in 0..TRIES {
            self.see(found.as_ref().map(stored));
            let situation = self.situation();
            let (step, flaws) = self.rotation.decide(&situation);
            let Some(next) = self.rotation.take(step, &situation)? else { return Ok(()) };
            let is_new = found.is_none();
            found = match self.write(found, &next).await? {
                Written::Stored(object) => {
                    self.tell(step, is_new, &flaws);
                    Some(object)
                }
                Written::Changed => self.read().await?,
            };
        }
        Err(LookError::Contended)
    }

    fn situation(&self) -> Situation<'_> {
        let (stored, registered) = &self.seen;
        Situation {
            stored: stored.as_ref(),
            held: self.held.as_ref(),
            registered: registered.as_deref(),
            steady: self.since.elapsed(),
            now: jiff::Timestamp::now().as_second().saturating_add(self.settings.clock_offset),
        }
    }

    fn see(&mut self, stored: Option<Stored>) {
        let seen = (stored, self.registered.borrow().clone());
        if seen != self.seen {
            (self.seen, self.since) = (seen, Instant::now());
        }
    }

    async fn read(&self) -> Result<Option<Value>, Failed> {
        self.cluster.read(&format!("{}/{}", self.collection(), self.settings.secret)).await
    }

    /// What else is in the Secret stays, and so does its type, which nobody may change.
    async fn write(&self, found: Option<Value>, next: &Stored) -> Result<Written, Failed> {
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
            self.cluster.create(&self.collection(), &object).await
        } else {
            self.cluster.replace(&format!("{}/{}", self.collection(), self.settings.secret), &object).await
        }
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.settings.home.namespace)
    }

    fn tell(&self, step: Step, is_new: bool, flaws: &[&str]) {
        let Settings { home: Home { namespace, .. }, secret, .. } = &self.settings;
        let done = match step {
            Step::Keep => "nothing was done",
            Step::MakeAll => "a new CA and a new certificate are in the Secret",
            Step::AddAuthority(_) => "a new CA is in the Secret beside the old one, whose certificate is still used",
            Step::SwitchLeaf => "a certificate of the new CA is in the Secret",
            Step::DropOld => "the old CA is gone from the Secret",
            Step::RenewLeaf => "a new certificate of the same CA is in the Secret",
        };
        if !is_new && !flaws.is_empty() {
            let flaws = flaws.join("; ");
            error!(flaws, namespace, secret, "what was in the Secret was of no use and is replaced: {done}");
        } else if is_new && self.held.is_some() {
            warn!(namespace, secret, "the Secret was deleted: {done}");
        } else {
            info!(namespace, secret, "{done}");
        }
    }
}

/// What is in a Secret of ours. What is missing or no text is as good as nothing, and shows when the chain is read.
fn stored(secret: &Value) -> Stored {
    let text = |key: &str| {
        let encoded = secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str).unwrap_or_default();
        BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    };
    let [bundle, ca_key, chain, key] = KEYS.map(text);
    Stored { bundle, ca_key, chain, key }
}

/// An error with its causes.
fn words(error: &LookError) -> String {
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
