//! The server inside this process, for what the binary cannot be told: a source of facts of the test's own, and limits that need
//! no patience.

use std::net::SocketAddr;
use std::sync::Arc;

use nadmit::cluster::facts::{Nowhere, Source};
use nadmit::policy::Policy;
use nadmit::server::reload::Watched;
use nadmit::server::{Limits, Parts, Server};
use nadmit::telemetry::Metrics;
use nadmit::tls::{Development, Tls};

use super::client::{Client, Http, Trust, plain_get};

const ANYWHERE: &str = "127.0.0.1:0";

/// A server in this process; it runs until the process ends.
pub struct InProcess {
    pub https: SocketAddr,
    metrics: SocketAddr,
    pub trust: Trust,
}

impl InProcess {
    /// With somebody to ask.
    pub async fn start(facts: Arc<dyn Source>, policy: Policy) -> Self {
        Self::serve(facts, policy, Limits::default()).await
    }

    /// With other limits.
    pub async fn within(limits: Limits) -> Self {
        Self::serve(Arc::new(Nowhere), Policy::default(), limits).await
    }

    async fn serve(facts: Arc<dyn Source>, policy: Policy, limits: Limits) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let made = Development::make(&[]).unwrap();
        let parts = Parts {
            policy,
            facts,
            tls: Tls::new(made.material.serve().unwrap()),
            watched: Watched::default(),
            asks_callers: false,
            caller_name: None,
            logs: None,
            takes_audit_events: true,
            limits,
            readiness: Arc::default(),
            metrics: Metrics::default(),
        };
        let server = Server::bind(ANYWHERE.parse().unwrap(), ANYWHERE.parse().unwrap(), parts).await.unwrap();
        let (https, metrics) = (server.address().unwrap(), server.metrics_address().unwrap());
        tokio::spawn(server.serve(std::future::pending()));
        Self { https, metrics, trust: Trust::in_ca(made.ca.as_bytes()) }
    }

    pub async fn connect(&self) -> Client {
        Client::connect(self.https, &self.trust, Http::One).await.unwrap()
    }

    pub async fn metrics(&self) -> String {
        plain_get(self.metrics, "/metrics").await.text()
    }
}
