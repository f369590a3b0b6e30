//! The Secret that has the tokens of all replicas: see [`crate::tls::token`] for what is done with them.
//!
//! As with the certificate, every replica looks at it every few seconds and takes the step that is due; there is no leader.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::crypto::aws_lc_rs;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use super::paths::Paths;
use super::{Cluster, Failed, Written};
use crate::deploy::webhooks::Phase;
use crate::deploy::{NAME, TOKEN};
use crate::tls::TlsError;
use crate::tls::token::{Accepted, Found, Schedule, Situation, Token, Tokens};

/// How long the API server may take for one look.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a step is tried in one look.
const TRIES: usize = 10;

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Cluster(#[from] Failed),
    #[error("the API server did not answer in time")]
    Late,
    #[error("others keep writing the Secret, or its namespace does not exist")]
    Contended,
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// What is to be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registrable {
    /// The token of all paths.
    pub current: Token,
    /// Those that another replica may have registered already, because it saw them earlier or longer.
    pub others: Vec<Token>,
}

/// The tokens, for who registers their paths.
pub struct TokenPaths {
    /// What is to be registered.
    pub registrable: watch::Receiver<Registrable>,
    /// What is accepted: what is registered is reported here.
    pub accepted: Arc<Accepted>,
    /// The token that all webhooks carry.
    pub registered: watch::Sender<Option<Token>>,
    /// How long all replicas may take to follow.
    pub settle: Duration,
}

/// The tokens of this replica.
pub struct TokenKeeper {
    cluster: Cluster,
    namespace: String,
    schedule: Schedule,
    accepted: Arc<Accepted>,
    registrable: watch::Sender<Registrable>,
    registered: watch::Sender<Option<Token>>,
    looked: Looked,
    /// The tokens that were last seen in the Secret.
    known: Tokens,
    /// Tokens that are kept no longer, and since when.
    retired: Vec<(Token, Instant)>,
}

/// What was seen so far.
struct Looked {
    found: Option<Found>,
    registered: Option<Token>,
    since: Instant,
    held: Option<Tokens>,
}

impl TokenKeeper {
    /// Waits until there are tokens, and until it is known which one webhooks carry: a replica must never be asked by a path that it
    /// does not know.
    pub async fn start(cluster: Cluster, namespace: String, schedule: Schedule) -> Self {
        let secrets = Secrets { cluster: &cluster, namespace: &namespace, schedule };
        let mut pause = Duration::from_millis(200);
        let (tokens, paths, looked) = loop {
            match timeout(PATIENCE, secrets.first()).await.unwrap_or(Err(LookError::Late)) {
                Ok(first) => break first,
                Err(problem) => {
                    warn!(%problem, namespace, secret = TOKEN, "waiting for the Secret with the token");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(PATIENCE);
        };
        let registrable =
            Registrable { current: tokens.current.clone(), others: tokens.next.iter().cloned().collect() };
        let accepted = Accepted::new(tokens.clone());
        accepted.registered(paths.token.clone(), paths.is_plain);
        Self {
            accepted: Arc::new(accepted),
            registrable: watch::Sender::new(registrable),
            registered: watch::Sender::new(None),
            looked,
            known: tokens,
            retired: Vec::new(),
            cluster,
            namespace,
            schedule,
        }
    }

    /// What opens the paths.
    pub fn accepted(&self) -> Arc<Accepted> {
        Arc::clone(&self.accepted)
    }

    /// For the registration.
    pub fn paths(&self) -> TokenPaths {
        TokenPaths {
            registrable: self.registrable.subscribe(),
            accepted: self.accepted(),
            registered: self.registered.clone(),
            settle: self.schedule.settle,
        }
    }

    /// Keeps the tokens up to date, continuously.
    pub async fn keep(mut self) {
        let mut registered = self.registered.subscribe();
        let pause = self.schedule.settle / 12;
        let mut is_failing = false;
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = registered.changed() => {}
            }
            let now_registered = registered.borrow_and_update().clone();
            let secrets = Secrets { cluster: &self.cluster, namespace: &self.namespace, schedule: self.schedule };
            let look = secrets.look(&mut self.looked, now_registered);
            match timeout(PATIENCE, look).await.unwrap_or(Err(LookError::Late)) {
                Ok(tokens) => {
                    if std::mem::take(&mut is_failing) {
                        info!(secret = TOKEN, "the Secret with the token is available again");
                    }
                    self.accept(&tokens);
                    self.publish(tokens);
                }
                // Logged once; the tokens that are known stay.
                Err(_) if is_failing => {}
                Err(problem) => {
                    is_failing = true;
                    error!(%problem, secret = TOKEN, "failed to read or write the Secret with the token");
                }
            }
        }
    }

    /// What was accepted before stays so for a while: as long as another one may take to be registered, and to be seen by all.
    fn accept(&mut self, tokens: &Tokens) {
        let (now, lasting) = (Instant::now(), self.schedule.settle * 2);
        let gone = self.known.of_reviews().filter(|known| !tokens.has(known));
        let gone: Vec<_> = gone.map(|token| (token.clone(), now)).collect();
        self.retired.retain(|(_, since)| now.duration_since(*since) < lasting);
        self.retired.extend(gone);
        self.known = tokens.clone();
        self.accepted.replace(tokens.clone(), self.retired.iter().map(|(token, _)| token.clone()).collect());
    }

    /// A token that nobody announced as the next one is registered when all replicas have had the time to read it.
    fn publish(&mut self, tokens: Tokens) {
        let is_announced = self.looked.held.as_ref().is_none_or(|held| held.has(&tokens.current));
        let is_registrable = is_announced || self.looked.since.elapsed() >= self.schedule.settle;
        self.registrable.send_if_modified(|known| {
            let current = if is_registrable { &tokens.current } else { &known.current };
            let others = [Some(&tokens.current), tokens.next.as_ref()].into_iter().flatten();
            let others = others.filter(|other| *other != current).cloned().collect();
            let next = Registrable { current: current.clone(), others };
            let is_new = *known != next;
            *known = next;
            is_new
        });
        if is_registrable {
            self.looked.held = Some(tokens);
        }
    }
}

/// The Secret, and who reads and writes it.
struct Secrets<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
    schedule: Schedule,
}

impl Secrets<'_> {
    /// The first look of a replica.
    async fn first(&self) -> Result<(Tokens, Paths, Looked), LookError> {
        let mut stored = Vec::new();
        for phase in Phase::ALL {
            stored.push(self.cluster.read(&format!("{}/{NAME}", phase.collection())).await?);
        }
        let paths = Paths::of(&stored);
        let mut looked = Looked { found: None, registered: None, since: Instant::now(), held: None };
        let tokens = self.look(&mut looked, paths.token.clone()).await?;
        looked.held = Some(tokens.clone());
        Ok((tokens, paths, looked))
    }

    /// Takes steps until none is due.
    async fn look(&self, looked: &mut Looked, registered: Option<Token>) -> Result<Tokens, LookError> {
        let mut secret = self.read().await?;
        for _ in 0..TRIES {
            let found = secret.as_ref().map(found);
            if (&found, &registered) != (&looked.found, &looked.registered) {
                (looked.found, looked.registered, looked.since) = (found, registered.clone(), Instant::now());
            }
            let situation = Situation {
                found: looked.found.as_ref(),
                held: looked.held.as_ref(),
                registered: registered.as_ref(),
                steady: looked.since.elapsed(),
                now: jiff::Timestamp::now().as_second(),
            };
            let make = || Token::make(aws_lc_rs::default_provider().secure_random);
            match self.schedule.step(&situation, make)? {
                None => match looked.found.clone().and_then(Found::complete) {
                    Some(tokens) => return Ok(tokens),
                    None => return Err(LookError::Contended),
                },
                Some(next) => {
                    let is_new = secret.is_none();
                    secret = match self.write(secret, &next).await? {
                        Written::Stored(object) => {
                            self.record(is_new, looked.held.is_some(), &next);
                            Some(object)
                        }
                        Written::Changed => self.read().await?,
                    };
                }
            }
        }
        Err(LookError::Contended)
    }

    async fn read(&self) -> Result<Option<Value>, Failed> {
        self.cluster.read(&format!("{}/{TOKEN}", self.collection())).await
    }

    /// What else is in the Secret stays.
    async fn write(&self, secret: Option<Value>, tokens: &Tokens) -> Result<Written, Failed> {
        let is_new = secret.is_none();
        let mut object = secret.unwrap_or_else(|| {
            let metadata = json!({ "name": TOKEN, "namespace": self.namespace });
            json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata })
        });
        let mut data = object.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        let made = tokens.made.to_string();
        for (key, text) in [
            ("current", Some(tokens.current.text())),
            ("made", Some(made.as_str())),
            ("next", tokens.next.as_ref().map(Token::text)),
            ("previous", tokens.previous.as_ref().map(Token::text)),
            ("audit-events", Some(tokens.audit.text())),
        ] {
            match text {
                Some(text) => data.insert(key.to_owned(), BASE64_STANDARD.encode(text).into()),
                None => data.remove(key),
            };
        }
        if let Some(object) = object.as_object_mut() {
            object.insert("data".to_owned(), data.into());
        }
        if is_new {
            self.cluster.create(&self.collection(), &object).await
        } else {
            self.cluster.replace(&format!("{}/{TOKEN}", self.collection()), &object).await
        }
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    fn record(&self, is_new: bool, is_held: bool, tokens: &Tokens) {
        let done = match (&tokens.next, &tokens.previous) {
            (Some(_), _) => "a new token is in the Secret, and not registered yet",
            (None, Some(_)) => "the new token in the Secret is to be registered",
            (None, None) => "one token is in the Secret",
        };
        if is_new && is_held {
            warn!(namespace = self.namespace, secret = TOKEN, "the Secret was deleted: {done}");
        } else {
            info!(namespace = self.namespace, secret = TOKEN, "{done}");
        }
    }
}

/// What is in the Secret. What is missing or no token is as good as nothing.
fn found(secret: &Value) -> Found {
    let text = |key: &str| {
        let encoded = secret.get("data")?.get(key)?.as_str()?;
        String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
    };
    let token = |key: &str| Token::read(text(key)?.trim());
    Found {
        current: token("current"),
        made: text("made").and_then(|made| made.trim().parse().ok()),
        next: token("next"),
        previous: token("previous"),
        audit: token("audit-events"),
    }
}
