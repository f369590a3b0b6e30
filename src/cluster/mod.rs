//! Everything that talks to an API server.
//!
//! A value that comes from the owning network is stored for good, so the network is read at the moment it is needed: a cache may
//! lag behind the very write that is being judged. What only a warning needs is known at once, from [`Caches`].

pub mod auditor;
mod bundle;
mod cache;
mod canary;
pub mod certificates;
mod changes;
mod collection;
pub mod complete;
pub mod denied;
pub mod events;
pub mod facts;
pub mod fix;
mod held;
mod kept;
mod later;
pub mod lease;
mod look;
mod lookups;
mod networks;
pub mod observe;
mod operators;
mod owner;
mod pages;
mod paths;
mod pause;
mod prefix;
mod probe;
pub mod refusals;
pub mod registration;
pub mod reports;
mod rights;
mod surroundings;
pub mod survey;
pub mod token;
mod uninstall;
mod watch;
mod witness;

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

pub use cache::{Caches, Informed};
pub use canary::Canary;
use futures_util::AsyncReadExt;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::sync::Semaphore;

pub use crate::deploy::Home;
pub use look::Stirs;
pub use uninstall::UninstallError;
pub use witness::Witness;

/// How long a connection to the API server may take; requests have the deadline of the review they are made for.
const CONNECT: Duration = Duration::from_secs(5);

/// The most that is read of one answer. An object has less than half of this; of a list then fewer objects are asked for at a time.
const LARGEST_ANSWER: usize = 4 << 20;
/// How many reviews read from the API server at once. Each read takes a few milliseconds.
const LIVE_READS: usize = 4;

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

/// Why the API server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// No answer, or a refusal.
    #[error("the API server cannot be asked: {0}")]
    Request(#[source] Box<kube::Error>),
    /// What everything depends on may not be read.
    #[error("{0}")]
    Forbidden(String),
    /// The address is malformed.
    #[error("the address of an object is none: {0}")]
    Address(#[from] http::Error),
    /// It answered something else.
    #[error("the API server answered with something that is no object of ours")]
    Unexpected,
    /// The resourceVersion is missing.
    #[error("an object was to be replaced without the resourceVersion that was read")]
    Blind,
    /// The answer is longer than anybody reads.
    #[error("the API server's answer is larger than {} MiB", LARGEST_ANSWER >> 20)]
    TooLarge,
    /// The answer broke off.
    #[error("the API server's answer cannot be read: {0}")]
    Broken(#[source] std::io::Error),
    /// Who the operator is has still to be found out.
    #[error("it is not known yet who the operator is")]
    NotDiscovered,
    /// No answer in time.
    #[error("the API server did not answer in time")]
    Silent,
    /// No more events.
    #[error("the API server ended the watch")]
    Ended,
}

impl Failed {
    /// Whether it is only that this user may not.
    fn is_forbidden(&self) -> bool {
        let Self::Request(error) = self else { return false };
        matches!(&**error, kube::Error::Api(status) if status.code == 403)
    }
}

impl Home {
    /// The namespace of the pod this runs in; the usual one elsewhere.
    pub fn pods_namespace() -> String {
        let of_account = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace");
        of_account.map_or_else(|_| "nadmit".to_owned(), |text| text.trim().to_owned())
    }
}

/// An API server.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    /// Whoever reads for a review takes one of these: what is read is large if its author wants it to be.
    live_reads: Arc<Semaphore>,
}

impl Cluster {
    /// By a kubeconfig.
    pub async fn by_kubeconfig(path: &Path) -> Result<Self, ClusterError> {
        Self::by_context(Kubeconfig::read_from(path).map_err(unusable)?, None).await
    }

    /// By the kubeconfig that is named, or those that kubectl would take, and the context in it that is named, or its current one;
    /// `None` where there is no kubeconfig.
    pub async fn by_kubeconfigs(path: Option<&Path>, context: Option<&str>) -> Result<Option<Self>, ClusterError> {
        let usual = || std::env::home_dir().map(|home| home.join(".kube/config")).filter(|path| path.exists());
        let kubeconfig = match path {
            Some(path) => Some(Kubeconfig::read_from(path).map_err(unusable)?),
            None => match Kubeconfig::from_env().map_err(unusable)? {
                Some(kubeconfig) => Some(kubeconfig),
                None => usual().map(Kubeconfig::read_from).transpose().map_err(unusable)?,
            },
        };
        match kubeconfig {
            Some(kubeconfig) => Self::by_context(kubeconfig, context).await.map(Some),
            None => Ok(None),
        }
    }

    async fn by_context(kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Self, ClusterError> {
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        Self::new(Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(unusable)?)
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
        Ok(Self { client, live_reads: Arc::new(Semaphore::new(LIVE_READS)) })
    }

    /// The text of an object or a list; `None` where it is not there, or its kind is not.
    async fn get(&self, path: &str) -> Result<Option<String>, Failed> {
        match self.send(Request::get(path).body(Vec::new())?).await? {
            Answered::Yes(text) => Ok(Some(text)),
            Answered::Not(StatusCode::NOT_FOUND, _) => Ok(None),
            Answered::Not(_, error) => Err(Failed::Request(error)),
        }
    }

    /// The object at an address; `None` where there is none.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<Value>, Failed> {
        self.get(path).await?.map(|text| object(&text)).transpose()
    }

    /// Creates an object, at the address of its collection. Somebody else may have been faster.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Written, Failed> {
        self.write(Request::post(path), object).await
    }

    /// Replaces the object at its address. It must carry the resourceVersion that was read: nothing is overwritten blindly.
    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<Written, Failed> {
        if object.pointer("/metadata/resourceVersion").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(Failed::Blind);
        }
        self.write(Request::put(path), object).await
    }

    /// Deletes the object at an address, if there is one.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), Failed> {
        match self.send(Request::delete(path).body(Vec::new())?).await? {
            Answered::Yes(_) | Answered::Not(StatusCode::NOT_FOUND, _) => Ok(()),
            Answered::Not(_, error) => Err(Failed::Request(error)),
        }
    }

    /// In which words a write is refused, if it is: by an admission webhook, also by one that is away, a policy, a quota, the schema. A
    /// refusal because the writer may not write at all is none, nor is one because a webhook cannot be asked by a dry run.
    pub(super) async fn refusal(&self, path: &str, object: String) -> Option<String> {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json").body(object.into_bytes()).ok()?;
        let Answered::Not(code, error) = self.send(request).await.ok()? else { return None };
        let kube::Error::Api(status) = *error else { return None };
        let may_not = code == StatusCode::FORBIDDEN && status.message.contains(" cannot create resource ");
        if code == StatusCode::INTERNAL_SERVER_ERROR && status.message.contains("failed calling webhook") {
            return Some(status.message);
        }
        let is_refusal = code.is_client_error()
            && !may_not
            && !status.message.contains("does not support dry run")
            && !matches!(
                code,
                StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS
            );
        is_refusal.then_some(status.message)
    }

    /// Deletes the object at an address, unless somebody has written it since that version was read; whether it is gone.
    pub(crate) async fn delete_unchanged(&self, path: &str, version: &str) -> Result<bool, Failed> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "resourceVersion": version },
        });
        let request = Request::delete(path).header(CONTENT_TYPE, "application/json");
        match self.send(request.body(options.to_string().into_bytes())?).await? {
            Answered::Yes(_) | Answered::Not(StatusCode::NOT_FOUND, _) => Ok(true),
            Answered::Not(StatusCode::CONFLICT, _) => Ok(false),
            Answered::Not(_, error) => Err(Failed::Request(error)),
        }
    }

    async fn write(&self, request: http::request::Builder, written: &Value) -> Result<Written, Failed> {
        let request = request.header(CONTENT_TYPE, "application/json").body(written.to_string().into_bytes())?;
        match self.send(request).await? {
            Answered::Yes(text) => Ok(Written::Stored(object(&text)?)),
            // Not there any more is changed, too.
            Answered::Not(StatusCode::CONFLICT | StatusCode::NOT_FOUND, _) => Ok(Written::Changed),
            Answered::Not(_, error) => Err(Failed::Request(error)),
        }
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<Answered, Failed> {
        match self.client.request_stream(request).await {
            Ok(answer) => {
                let mut text = String::new();
                let mut answer = pin!(answer.take(LARGEST_ANSWER as u64 + 1));
                answer.read_to_string(&mut text).await.map_err(Failed::Broken)?;
                if text.len() > LARGEST_ANSWER { Err(Failed::TooLarge) } else { Ok(Answered::Yes(text)) }
            }
            Err(kube::Error::Api(status)) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Ok(Answered::Not(code, Box::new(kube::Error::Api(status))))
            }
            Err(error) => Err(Failed::Request(Box::new(error))),
        }
    }
}

/// What the API server answered.
enum Answered {
    Yes(String),
    Not(StatusCode, Box<kube::Error>),
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    /// It is stored, like this.
    Stored(Value),
    /// Somebody else wrote in between: read again.
    Changed,
}

/// Its words name the file, and every cause of theirs.
fn unusable(error: kube::config::KubeconfigError) -> ClusterError {
    ClusterError::Kubeconfig(Box::new(error))
}

fn object(text: &str) -> Result<Value, Failed> {
    serde_json::from_str(text).map_err(|_| Failed::Unexpected)
}

/// A text in an object's metadata; empty where there is none.
fn meta_text<'v>(stored: &'v Value, key: &str) -> &'v str {
    stored.get("metadata").and_then(|meta| meta.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The address of an object. Names that the API server has given need no care in it; others go through `segment` first.
fn address(group: &str, plural: &str, namespace: &str, name: &str) -> String {
    format!("/apis/{group}/v1/namespaces/{namespace}/{plural}/{name}")
}
