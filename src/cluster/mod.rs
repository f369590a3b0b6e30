//! Everything that talks to an API server.
//!
//! A value that comes from the owning network is stored for good, so the network is read at the moment it is needed: a cache may
//! lag behind the very write that is being judged.

pub mod facts;
mod owner;
mod prefix;

use std::path::Path;
use std::time::Duration;

use http::{Request, StatusCode};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

/// How long a connection to the API server may take; requests have the deadline of the review they are made for.
const CONNECT: Duration = Duration::from_secs(5);

/// Why the API server cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig cannot be used.
    #[error("no usable kubeconfig: {0}")]
    Kubeconfig(Box<kube::config::KubeconfigError>),
    /// The pod has no service account.
    #[error("this pod's service account cannot be used")]
    Pod(#[source] Box<kube::config::InClusterError>),
    /// No client could be made.
    #[error("no client for the API server could be made")]
    Client(#[source] Box<kube::Error>),
}

/// What an API server says to a question.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the API server cannot be asked: {0}")]
    Request(#[source] Box<kube::Error>),
    #[error("the address of an object is none: {0}")]
    Address(#[from] http::Error),
    #[error("the API server answered with something that is no object of ours")]
    Unexpected,
}

/// An API server.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
}

impl Cluster {
    /// By a kubeconfig.
    pub async fn by_kubeconfig(path: &Path) -> Result<Self, ClusterError> {
        // Its words name the file, and every cause of theirs.
        let failed = |error| ClusterError::Kubeconfig(Box::new(error));
        let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Self::new(config.map_err(failed)?)
    }

    /// By the service account of the pod this runs in; `None` where it runs in none.
    pub fn by_pod() -> Result<Option<Self>, ClusterError> {
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
            return Ok(None);
        }
        let config = Config::incluster().map_err(|source| ClusterError::Pod(Box::new(source)))?;
        Self::new(config).map(Some)
    }

    fn new(mut config: Config) -> Result<Self, ClusterError> {
        config.connect_timeout = Some(CONNECT);
        let client = kube::Client::try_from(config).map_err(|source| ClusterError::Client(Box::new(source)))?;
        Ok(Self { client })
    }

    /// The text of an object or a list; `None` where it is not there, or its kind is not.
    async fn get(&self, path: &str) -> Result<Option<String>, Failed> {
        let request = Request::get(path).body(Vec::new())?;
        match self.client.request_text(request).await {
            Ok(text) => Ok(Some(text)),
            Err(kube::Error::Api(status)) if status.code == StatusCode::NOT_FOUND => Ok(None),
            Err(error) => Err(Failed::Request(Box::new(error))),
        }
    }
}
