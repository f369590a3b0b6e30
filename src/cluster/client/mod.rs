//! Requests to an API server: who is asked, what came of it, lists page by page.

pub(in crate::cluster) mod backoff;
pub(in crate::cluster) mod collection;
mod kubeconfig;
pub(in crate::cluster) mod pager;
pub(in crate::cluster) mod path;
pub(in crate::cluster) mod permissions;

use std::error::Error as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::AsyncReadExt;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use kube::config::Config;
use serde_json::Value;
use tokio::sync::Semaphore;

pub(in crate::cluster) use self::path::{ApiPath, ApiResource};

pub use self::kubeconfig::KubeconfigChoice;
pub use crate::deploy::ServiceRef;
use crate::visible::cause;

/// The connect timeout; requests have the deadline of the review they are made for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum response size. An object has less than half of this; lists are then fetched in smaller pages.
const MAX_RESPONSE_BYTES: usize = 4 << 20;
/// How many reviews may read from the API server at once. Each read takes a few milliseconds.
const MAX_LIVE_READS: usize = 4;

/// Why no client could be created.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig: {0}")]
    Kubeconfig(Box<kube::config::KubeconfigError>),
    /// The kubeconfig cannot be read.
    #[error("cannot read the kubeconfig \"{path}\": {}", cause(problem))]
    Unreadable {
        /// The file.
        path: String,
        /// The I/O error; part of the message, so not a source.
        problem: std::io::Error,
    },
    /// The kubeconfig does not have what was chosen: a context, a cluster, a user.
    #[error("the kubeconfig has no {what} {name:?}; {known}")]
    Missing {
        /// What was chosen.
        what: &'static str,
        /// Its name.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// The pod has no service account.
    #[error("cannot use the pod's service account")]
    Pod(#[source] Box<kube::config::InClusterError>),
    /// No client could be made.
    #[error("cannot create a client for the API server")]
    Client(#[source] Box<kube::Error>),
}

/// Why a request to the API server failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No response, or an error response.
    #[error("request to the API server failed: {0}")]
    Request(#[source] Box<kube::Error>),
    /// No response, because there is no connection.
    #[error("cannot reach {server}: {cause}")]
    Unreachable {
        /// The address, and the context.
        server: Arc<str>,
        /// The last cause.
        cause: String,
    },
    /// A required permission is missing.
    #[error("{0}")]
    Forbidden(String),
    /// A text is not the name of an object.
    #[error("{0:?} cannot be the name of an object")]
    Name(String),
    /// The request cannot be made.
    #[error("invalid request: {0}")]
    Invalid(#[from] http::Error),
    /// Unexpected response.
    #[error("unexpected response from the API server")]
    Unexpected,
    /// The resourceVersion is missing.
    #[error("refusing to replace an object without its resourceVersion")]
    NoResourceVersion,
    /// The response is too large.
    #[error("the API server's response is larger than {} MiB", MAX_RESPONSE_BYTES >> 20)]
    TooLarge,
    /// The response was interrupted.
    #[error("cannot read the API server's response: {0}")]
    Broken(#[source] std::io::Error),
    /// The operator is not discovered yet.
    #[error("the operator is not discovered yet")]
    NotDiscovered,
    /// Timeout.
    #[error("the API server did not respond before the deadline")]
    Timeout,
    /// The watch ended.
    #[error("the API server ended the watch")]
    Ended,
}

impl ApiError {
    /// Whether a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Forbidden(_) => true,
            Self::Request(error) => matches!(&**error, kube::Error::Api(status) if status.code == 403),
            _ => false,
        }
    }

    /// The same error; one about a missing permission names it, such as `list nodes`, instead of quoting the API server.
    pub(in crate::cluster) fn naming(self, right: &str) -> Self {
        if self.is_forbidden() { Self::Forbidden(missing(right)) } else { self }
    }
}

/// The words for a missing permission, such as `list nodes`.
pub(in crate::cluster) fn missing(right: &str) -> String {
    format!("missing permission: {right}")
}

impl ServiceRef {
    /// The pod's own namespace; the default one outside of a pod.
    pub fn pod_namespace() -> String {
        let of_account = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace");
        of_account.map_or_else(|_| "nadmit".to_owned(), |text| text.trim().to_owned())
    }
}

/// An API server.
#[derive(Clone)]
pub struct Cluster {
    pub(in crate::cluster) client: kube::Client,
    description: Arc<str>,
    server: Arc<str>,
    /// Limits concurrent reads for reviews: their size is controlled by the author of the object.
    pub(in crate::cluster) live_reads: Arc<Semaphore>,
}

impl Cluster {
    /// Connects with the pod's service account; `None` outside of a pod.
    pub fn by_pod() -> Result<Option<Self>, ClusterError> {
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
            return Ok(None);
        }
        let config = Config::incluster().map_err(|source| ClusterError::Pod(Box::new(source)))?;
        Self::new(config, "the cluster of this pod").map(Some)
    }

    fn new(mut config: Config, name: &str) -> Result<Self, ClusterError> {
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        let address = config.cluster_url.to_string();
        let address = address.trim_end_matches('/');
        let (description, server) = (format!("{name} ({address})").into(), format!("{address} ({name})").into());
        let client = kube::Client::try_from(config).map_err(|source| ClusterError::Client(Box::new(source)))?;
        Ok(Self { client, description, server, live_reads: Arc::new(Semaphore::new(MAX_LIVE_READS)) })
    }

    /// The context and the server, for people.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The namespace of the context, which kubectl uses without `--namespace`; in a pod its own.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The text of an object or a list; `None` if it or its kind does not exist.
    pub(in crate::cluster) async fn get(&self, path: &ApiPath) -> Result<Option<String>, ApiError> {
        match self.send(Request::get(path.to_string()).body(Vec::new())?).await? {
            ApiResponse::Yes(text) => Ok(Some(text)),
            ApiResponse::Not(StatusCode::NOT_FOUND, _) => Ok(None),
            ApiResponse::Not(_, error) => Err(ApiError::Request(error)),
        }
    }

    /// The object at a path; `None` if it does not exist.
    pub(in crate::cluster) async fn read(&self, path: &ApiPath) -> Result<Option<Value>, ApiError> {
        self.get(path).await?.map(|text| object(&text)).transpose()
    }

    /// Creates an object in a collection. It may already exist.
    pub(in crate::cluster) async fn create(&self, path: &ApiPath, object: &Value) -> Result<WriteResult, ApiError> {
        self.write(Request::post(path.to_string()), object).await
    }

    /// Replaces an object. It must carry the resourceVersion that was read: nothing is overwritten blindly.
    pub(in crate::cluster) async fn replace(&self, path: &ApiPath, object: &Value) -> Result<WriteResult, ApiError> {
        if object.pointer("/metadata/resourceVersion").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(ApiError::NoResourceVersion);
        }
        self.write(Request::put(path.to_string()), object).await
    }

    /// Deletes an object, if it exists.
    pub(in crate::cluster) async fn delete(&self, path: &ApiPath) -> Result<(), ApiError> {
        match self.send(Request::delete(path.to_string()).body(Vec::new())?).await? {
            ApiResponse::Yes(_) | ApiResponse::Not(StatusCode::NOT_FOUND, _) => Ok(()),
            ApiResponse::Not(_, error) => Err(ApiError::Request(error)),
        }
    }

    /// The message with which a dry run is denied, if it is: by an admission webhook (also an unreachable one), a policy, a quota
    /// or the schema. A missing permission does not count, nor a webhook that does not support dry runs.
    pub(in crate::cluster) async fn dry_run_error(&self, path: &ApiPath, object: String) -> Option<String> {
        let request =
            Request::post(path.to_string()).header(CONTENT_TYPE, "application/json").body(object.into_bytes()).ok()?;
        let ApiResponse::Not(code, error) = self.send(request).await.ok()? else { return None };
        let kube::Error::Api(status) = *error else { return None };
        let may_not = code == StatusCode::FORBIDDEN && status.message.contains(" cannot create resource ");
        if code == StatusCode::INTERNAL_SERVER_ERROR && status.message.contains("failed calling webhook") {
            return Some(status.message);
        }
        let is_denial = code.is_client_error()
            && !may_not
            && !status.message.contains("does not support dry run")
            && !matches!(
                code,
                StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS
            );
        is_denial.then_some(status.message)
    }

    /// Deletes an object if its resourceVersion is unchanged; returns whether it is deleted.
    pub(in crate::cluster) async fn delete_unchanged(&self, path: &ApiPath, version: &str) -> Result<bool, ApiError> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "resourceVersion": version },
        });
        let request = Request::delete(path.to_string()).header(CONTENT_TYPE, "application/json");
        match self.send(request.body(options.to_string().into_bytes())?).await? {
            ApiResponse::Yes(_) | ApiResponse::Not(StatusCode::NOT_FOUND, _) => Ok(true),
            ApiResponse::Not(StatusCode::CONFLICT, _) => Ok(false),
            ApiResponse::Not(_, error) => Err(ApiError::Request(error)),
        }
    }

    async fn write(&self, request: http::request::Builder, written: &Value) -> Result<WriteResult, ApiError> {
        let request = request.header(CONTENT_TYPE, "application/json").body(written.to_string().into_bytes())?;
        match self.send(request).await? {
            ApiResponse::Yes(text) => Ok(WriteResult::Stored(object(&text)?)),
            // A deleted object counts as changed.
            ApiResponse::Not(StatusCode::CONFLICT | StatusCode::NOT_FOUND, _) => Ok(WriteResult::Changed),
            ApiResponse::Not(_, error) => Err(ApiError::Request(error)),
        }
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<ApiResponse, ApiError> {
        match self.client.request_stream(request).await {
            Ok(answer) => {
                let mut text = String::new();
                let mut answer = pin!(answer.take(MAX_RESPONSE_BYTES as u64 + 1));
                answer.read_to_string(&mut text).await.map_err(ApiError::Broken)?;
                if text.len() > MAX_RESPONSE_BYTES { Err(ApiError::TooLarge) } else { Ok(ApiResponse::Yes(text)) }
            }
            Err(kube::Error::Api(status)) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Ok(ApiResponse::Not(code, Box::new(kube::Error::Api(status))))
            }
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Why a request had no response.
    pub(in crate::cluster) fn failure(&self, error: kube::Error) -> ApiError {
        let last = match &error {
            kube::Error::Service(_) | kube::Error::HyperError(_) => {
                std::iter::successors(error.source(), |&cause| cause.source()).last()
            }
            _ => None,
        };
        match last.map(|last| cause(&last)) {
            Some(cause) => ApiError::Unreachable { server: self.server.clone(), cause },
            None => ApiError::Request(Box::new(error)),
        }
    }
}

/// The response of the API server.
enum ApiResponse {
    Yes(String),
    Not(StatusCode, Box<kube::Error>),
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WriteResult {
    /// Stored, with the stored object.
    Stored(Value),
    /// Conflict: read again.
    Changed,
}

pub(in crate::cluster) fn object(text: &str) -> Result<Value, ApiError> {
    serde_json::from_str(text).map_err(|_| ApiError::Unexpected)
}

/// A metadata field as text; empty if absent.
pub(in crate::cluster) fn meta_text<'v>(stored: &'v Value, key: &str) -> &'v str {
    stored.get("metadata").and_then(|meta| meta.get(key)).and_then(Value::as_str).unwrap_or_default()
}
