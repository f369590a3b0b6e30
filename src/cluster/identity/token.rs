//! The Secret with the tokens of all replicas; [`crate::tls::token`] describes their use.
//!
//! As with the certificate, every replica reads it every few seconds and takes the step that is due; there is no leader.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use crate::cluster::client::{ApiError, ApiPath, Cluster, WriteResult};
use crate::cluster::identity::secret::{MAX_ATTEMPTS, RECONCILE_TIMEOUT, SecretError, SharedSecret, text};
use crate::cluster::identity::webhook_paths::RegisteredPaths;
use crate::deploy::TOKEN;
use crate::deploy::webhooks::Phase;

use crate::tls::token::{AcceptedTokens, Schedule, StoredTokens, Token, TokenState, Tokens};

/// What is to be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registrable {
    /// The token of all paths.
    pub current: Token,
    /// Whether it may replace another one. Not as long as some replica may not have read it.
    pub may_replace: bool,
    /// Newer tokens, which another replica may register before this one does; the newest first.
    pub others: Vec<Token>,
}

/// The tokens for the registration.
pub struct TokenPaths {
    /// What is to be registered.
    pub registrable: watch::Receiver<Registrable>,
    /// The accepted tokens; the registration reports here.
    pub accepted: Arc<AcceptedTokens>,
    /// The token in all webhook entries.
    pub registered: watch::Sender<Option<Token>>,
    /// How long all replicas may take to see a change.
    pub propagation: Duration,
}

/// The tokens of this replica.
pub struct TokenKeeper {
    cluster: Cluster,
    namespace: String,
    schedule: Schedule,
    accepted: Arc<AcceptedTokens>,
    registrable: watch::Sender<Registrable>,
    registered: watch::Sender<Option<Token>>,
    observation: SecretObservation,
    /// The tokens that were last seen in the Secret.
    known: Tokens,
    /// Retired tokens, and since when.
    retired: Vec<(Token, Instant)>,
}

/// The last observed Secret.
struct SecretObservation {
    found: Option<StoredTokens>,
    registered: Option<Token>,
    since: Instant,
    known: Option<Tokens>,
}

impl TokenKeeper {
    /// Waits for the tokens and the registered one: a replica must never get a request with a token it does not know.
    pub async fn start(cluster: Cluster, namespace: String, schedule: Schedule) -> Self {
        let secrets = TokenSecret { cluster: &cluster, namespace: &namespace, schedule };
        let mut pause = Duration::from_millis(200);
        let (tokens, paths, observation) = loop {
            match timeout(RECONCILE_TIMEOUT, secrets.first()).await.unwrap_or(Err(SecretError::Late)) {
                Ok(first) => break first,
                Err(problem) => {
                    warn!(%problem, namespace, secret = TOKEN, "waiting for the token Secret");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(RECONCILE_TIMEOUT);
        };
        let registrable = Registrable {
            current: tokens.current.clone(),
            may_replace: true,
            others: tokens.next.iter().cloned().collect(),
        };
        let accepted = AcceptedTokens::new(tokens.clone());
        accepted.registered(paths.tokens.clone(), paths.is_plain);
        Self {
            accepted: Arc::new(accepted),
            registrable: watch::Sender::new(registrable),
            registered: watch::Sender::new(None),
            observation,
            known: tokens,
            retired: Vec::new(),
            cluster,
            namespace,
            schedule,
        }
    }

    /// The accepted tokens.
    pub fn accepted(&self) -> Arc<AcceptedTokens> {
        Arc::clone(&self.accepted)
    }

    /// For the registration.
    pub fn paths(&self) -> TokenPaths {
        TokenPaths {
            registrable: self.registrable.subscribe(),
            accepted: self.accepted(),
            registered: self.registered.clone(),
            propagation: self.schedule.propagation,
        }
    }

    /// Keeps the tokens up to date, continuously.
    pub async fn run(mut self) {
        let mut registered = self.registered.subscribe();
        let pause = self.schedule.propagation / 12;
        let mut is_failing = false;
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = registered.changed() => {}
            }
            let now_registered = registered.borrow_and_update().clone();
            let secrets = TokenSecret { cluster: &self.cluster, namespace: &self.namespace, schedule: self.schedule };
            let reconciled = secrets.reconcile(&mut self.observation, now_registered);
            match timeout(RECONCILE_TIMEOUT, reconciled).await.unwrap_or(Err(SecretError::Late)) {
                Ok(tokens) => {
                    if std::mem::take(&mut is_failing) {
                        info!(secret = TOKEN, "token Secret is available again");
                    }
                    self.accept(&tokens);
                    self.publish(tokens);
                }
                // Logged once; the tokens that are known stay.
                Err(_) if is_failing => {}
                Err(problem) => {
                    is_failing = true;
                    error!(%problem, secret = TOKEN, "failed to read or write the token Secret");
                }
            }
        }
    }

    /// Previously accepted tokens stay accepted for a while: until another one is registered and seen by all API servers.
    fn accept(&mut self, tokens: &Tokens) {
        let (now, lasting) = (Instant::now(), self.schedule.propagation * 2);
        let gone = self.known.of_reviews().filter(|known| !tokens.has(known));
        let gone: Vec<_> = gone.map(|token| (token.clone(), now)).collect();
        self.retired.retain(|(_, since)| now.duration_since(*since) < lasting);
        self.retired.extend(gone);
        self.known = tokens.clone();
        self.accepted.replace(tokens.clone(), self.retired.iter().map(|(token, _)| token.clone()).collect());
    }

    /// A token that was not announced as the next one is registered after all replicas had time to read it.
    fn publish(&mut self, tokens: Tokens) {
        let is_announced = self.observation.known.as_ref().is_none_or(|known| known.has(&tokens.current));
        let is_registrable = is_announced || self.observation.since.elapsed() >= self.schedule.propagation;
        self.registrable.send_if_modified(|known| {
            let current = if is_registrable { &tokens.current } else { &known.current };
            let others = [tokens.next.as_ref(), Some(&tokens.current)].into_iter().flatten();
            let others = others.filter(|other| *other != current).cloned().collect();
            let next = Registrable { current: current.clone(), may_replace: is_registrable, others };
            let is_new = *known != next;
            *known = next;
            is_new
        });
        if is_registrable {
            self.observation.known = Some(tokens);
        }
    }
}

/// The Secret, and who reads and writes it.
struct TokenSecret<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
    schedule: Schedule,
}

impl TokenSecret<'_> {
    /// The first reconcile of a replica.
    async fn first(&self) -> Result<(Tokens, RegisteredPaths, SecretObservation), SecretError> {
        let paths = self.registered_paths().await?;
        let mut observation = SecretObservation { found: None, registered: None, since: Instant::now(), known: None };
        let tokens = self.reconcile(&mut observation, paths.token.clone()).await?;
        observation.known = Some(tokens.clone());
        Ok((tokens, paths, observation))
    }

    /// The paths of the webhook configurations as they are stored now.
    async fn registered_paths(&self) -> Result<RegisteredPaths, ApiError> {
        let mut stored = Vec::new();
        for phase in Phase::ALL {
            stored.push(self.cluster.read(&ApiPath::webhook(phase)).await?);
        }
        Ok(RegisteredPaths::of(&stored))
    }

    /// Takes steps until none is due.
    async fn reconcile(
        &self,
        observation: &mut SecretObservation,
        mut registered: Option<Token>,
    ) -> Result<Tokens, SecretError> {
        let mut secret = self.secret().read().await?;
        for _ in 0..MAX_ATTEMPTS {
            let found = secret.as_ref().map(read_tokens);
            // Without a token in the Secret the registered one stays in use, and another replica may have registered it a moment ago.
            if found.as_ref().is_none_or(|found| found.current.is_none()) {
                registered = self.registered_paths().await?.token.or(registered);
            }
            if (&found, &registered) != (&observation.found, &observation.registered) {
                (observation.found, observation.registered, observation.since) =
                    (found, registered.clone(), Instant::now());
            }
            let state = TokenState {
                found: observation.found.as_ref(),
                known: observation.known.as_ref(),
                registered: registered.as_ref(),
                steady: observation.since.elapsed(),
                now: jiff::Timestamp::now().as_second(),
            };
            let make = || Token::make(aws_lc_rs::default_provider().secure_random);
            match self.schedule.step(&state, make)? {
                None => match observation.found.clone().and_then(StoredTokens::complete) {
                    Some(tokens) => return Ok(tokens),
                    None => return Err(SecretError::Contended),
                },
                Some(next) => {
                    let is_new = secret.is_none();
                    secret = match self.write(secret, &next).await? {
                        WriteResult::Stored(object) => {
                            self.record(is_new, observation.known.is_some(), &next);
                            Some(object)
                        }
                        WriteResult::Changed => self.secret().read().await?,
                    };
                }
            }
        }
        Err(SecretError::Contended)
    }

    fn secret(&self) -> SharedSecret<'_> {
        SharedSecret { cluster: self.cluster, namespace: self.namespace, name: TOKEN, kind: "Opaque" }
    }

    async fn write(&self, found: Option<Value>, tokens: &Tokens) -> Result<WriteResult, ApiError> {
        let made = tokens.made.to_string();
        let texts = [
            ("current", Some(tokens.current.text())),
            ("made", Some(made.as_str())),
            ("next", tokens.next.as_ref().map(Token::text)),
            ("previous", tokens.previous.as_ref().map(Token::text)),
            ("audit-events", Some(tokens.audit.text())),
        ];
        self.secret().write(found, texts).await
    }

    fn record(&self, is_new: bool, was_known: bool, tokens: &Tokens) {
        let done = match (&tokens.next, &tokens.previous) {
            (Some(_), _) => "added the next token, not registered yet",
            (None, Some(_)) => "switched to the next token",
            (None, None) => "removed the previous token",
        };
        if is_new && was_known {
            warn!(namespace = self.namespace, secret = TOKEN, "token Secret was deleted: {done}");
        } else {
            info!(namespace = self.namespace, secret = TOKEN, "{done}");
        }
    }
}

/// The content of the Secret. Missing or invalid tokens are `None`.
fn read_tokens(secret: &Value) -> StoredTokens {
    let text = |key: &str| text(secret, key);
    let token = |key: &str| Token::read(text(key)?.trim());
    StoredTokens {
        current: token("current"),
        made: text("made").and_then(|made| made.trim().parse().ok()),
        next: token("next"),
        previous: token("previous"),
        audit: token("audit-events"),
    }
}
