//! A Secret that all replicas keep without a leader: it is created, or replaced with the resourceVersion that was read, and a
//! replica that loses the race reads again and finds the step done.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, WriteResult};
use crate::tls::TlsError;

/// The timeout of one reconcile.
pub(super) const RECONCILE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a step is tried in one reconcile. More conflicts are not a race between replicas: the namespace does not exist.
pub(super) const MAX_ATTEMPTS: usize = 10;

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecretError {
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

/// One Secret.
pub(super) struct SharedSecret<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    /// Its type, if it is created; the type of an existing one is immutable.
    pub(super) kind: &'static str,
}

impl SharedSecret<'_> {
    pub(super) async fn read(&self) -> Result<Option<Value>, ApiError> {
        self.cluster.read(&self.path()?).await
    }

    /// Sets these keys, or removes those without a text. Other keys are kept.
    pub(super) async fn write<'t>(
        &self,
        found: Option<Value>,
        texts: impl IntoIterator<Item = (&'t str, Option<&'t str>)>,
    ) -> Result<WriteResult, ApiError> {
        let is_new = found.is_none();
        let mut object = found.unwrap_or_else(|| {
            let metadata = json!({ "name": self.name, "namespace": self.namespace });
            json!({ "apiVersion": "v1", "kind": "Secret", "type": self.kind, "metadata": metadata })
        });
        let mut data = object.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, text) in texts {
            match text {
                Some(text) => data.insert(key.to_owned(), BASE64_STANDARD.encode(text).into()),
                None => data.remove(key),
            };
        }
        if let Some(object) = object.as_object_mut() {
            object.insert("data".to_owned(), data.into());
        }
        if is_new {
            self.cluster.create(&self.collection()?, &object).await
        } else {
            self.cluster.replace(&self.path()?, &object).await
        }
    }

    fn path(&self) -> Result<ApiPath, ApiError> {
        self.collection()?.child(self.name)
    }

    fn collection(&self) -> Result<ApiPath, ApiError> {
        ApiPath::in_namespace(ApiResource::SECRETS, self.namespace)
    }
}

/// The text of a key of a Secret; `None` if it is missing or not text.
pub(super) fn text(secret: &Value, key: &str) -> Option<String> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
}
