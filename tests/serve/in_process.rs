//! The server inside this process, for what the binary has no argument for: a source of facts made by the test, tokens without a
//! cluster, and short time limits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nadmit::cluster::cache::facts::{FactSource, NoCluster};
use nadmit::denials::RecentDenials;
use nadmit::policy::Policy;
use nadmit::server::reload::WatchedFiles;
use nadmit::server::{Limits, Server, ServerParts, Shutdown};
use nadmit::supervise::{Pauses, Supervisor};
use nadmit::telemetry::Metrics;
use nadmit::tls::token::{AcceptedTokens, Token, Tokens};
use nadmit::tls::{Development, Tls};
use tokio::task::JoinHandle;

use super::client::{Client, Http, Trust, plain_get};

const ANYWHERE: &str = "127.0.0.1:0";

/// A server in this process; it runs until the process ends.
pub struct InProcess {
    pub https: SocketAddr,
    pub metrics: SocketAddr,
    pub trust: Trust,
    denials: Arc<RecentDenials>,
}

/// Tokens whose current one consists of that digit.
pub fn token(digit: char) -> Tokens {
    let token = |digit: char| Token::read(&digit.to_string().repeat(64)).unwrap();
    Tokens { current: token(digit), made: 0, next: None, previous: None, audit: token('e') }
}

impl InProcess {
    /// With a source of facts.
    pub async fn start(facts: Arc<dyn FactSource>, policy: Policy) -> Self {
        Self::build(facts, policy, Limits::default(), None).await
    }

    /// With other limits.
    pub async fn within(limits: Limits) -> Self {
        Self::build(Arc::new(NoCluster), Policy::default(), limits, None).await
    }

    /// As with `--register`: paths carry a token.
    pub async fn expecting(tokens: Tokens) -> Self {
        Self::build(Arc::new(NoCluster), Policy::default(), Limits::default(), Some(tokens)).await
    }

    /// With all of these.
    pub async fn build(facts: Arc<dyn FactSource>, policy: Policy, limits: Limits, tokens: Option<Tokens>) -> Self {
        let (this, server, _) = Self::bind(facts, policy, limits, tokens).await;
        tokio::spawn(server.serve(std::future::pending()));
        this
    }

    /// With tasks of the test; the server ends, after that time, when one of its tasks ends.
    pub async fn supervised(grace: Duration) -> (Self, Supervisor, JoinHandle<()>) {
        let (this, server, supervisor) =
            Self::bind(Arc::new(NoCluster), Policy::default(), Limits::default(), None).await;
        let supervised = supervisor.clone();
        let ended = tokio::spawn(server.serve(async move {
            supervised.failed().await;
            Shutdown { grace }
        }));
        (this, supervisor, ended)
    }

    async fn bind(
        facts: Arc<dyn FactSource>,
        policy: Policy,
        limits: Limits,
        tokens: Option<Tokens>,
    ) -> (Self, Server, Supervisor) {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let metrics = Metrics::default();
        let supervisor = Supervisor::new(&metrics.tasks, Pauses::default());
        let made = Development::make(&[]).unwrap();
        let parts = ServerParts {
            policy: Some(policy.into()),
            facts,
            tls: Tls::new(made.material.serve().unwrap()),
            watched: WatchedFiles::default(),
            asks_callers: false,
            caller_name: None,
            tokens: tokens.map(|tokens| Arc::new(AcceptedTokens::new(tokens))),
            logs: None,
            takes_audit_events: true,
            limits,
            readiness: Arc::default(),
            supervisor: supervisor.clone(),
            metrics,
        };
        let server = Server::bind(ANYWHERE.parse().unwrap(), ANYWHERE.parse().unwrap(), parts).await.unwrap();
        let (https, metrics) = (server.address().unwrap(), server.metrics_address().unwrap());
        let denials = server.denials();
        (Self { https, metrics, trust: Trust::in_ca(made.ca.as_bytes()), denials }, server, supervisor)
    }

    pub async fn connect(&self) -> Client {
        Client::connect(self.https, &self.trust, Http::One).await.unwrap()
    }

    pub async fn metrics(&self) -> String {
        plain_get(self.metrics, "/metrics").await.text()
    }

    /// How many denials are recorded for the report.
    pub fn denied(&self) -> usize {
        self.denials.of_last_hour(jiff::Timestamp::now().as_second()).0.len()
    }
}
