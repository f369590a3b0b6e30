//! The domain that the operator puts in front of resource names.

use serde_json::Value;

use super::owner::segment;
use super::{Cluster, Failed};
use crate::policy::{Policy, Prefix};
use crate::resources::{NAD_GROUP, NADS, OWNER_REF, Object, RESOURCE_NAME};

/// The operator's Deployment.
pub(super) const DEPLOYMENT: &str = "sriov-network-operator";
/// How many NADs are looked at for the prefix on those the operator wrote.
const LIMIT: usize = 100;

impl Cluster {
    /// What the policy says; else what the operator's Deployment says; else what is on the NADs that the operator wrote, where
    /// they agree. A wrong one would be stored, so otherwise there is none.
    pub(super) async fn prefix(&self, policy: &Policy, namespace: &str) -> Result<Option<Prefix>, Failed> {
        if policy.resource_name.prefix.is_some() {
            return Ok(None);
        }
        let namespace = policy.operator.namespace.as_deref().unwrap_or(namespace);
        let known = match self.deployed(namespace).await? {
            Some(prefix) => Some(prefix),
            None => self.written().await?,
        };
        Ok(known.map(|value| Prefix { value, assumed: false }))
    }

    async fn deployed(&self, namespace: &str) -> Result<Option<String>, Failed> {
        let Some(namespace) = segment(namespace) else { return Ok(None) };
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{DEPLOYMENT}");
        let Some(text) = self.get(&path).await? else { return Ok(None) };
        let deployment: Value = serde_json::from_str(&text).map_err(|_| Failed::Unexpected)?;
        let list = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_array).cloned();
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let containers = list(&deployment, "/spec/template/spec/containers").unwrap_or_default();
        let mut variables = containers.iter().filter_map(|container| list(container, "/env")).flatten();
        let prefix = variables.find(|variable| text(variable, "name").as_deref() == Some("RESOURCE_PREFIX"));
        Ok(prefix.and_then(|variable| text(&variable, "value")).filter(|value| !value.is_empty()))
    }

    /// Whether a pod of the operator is available; `None` where it has no Deployment of the usual name there.
    pub(super) async fn operator_runs(&self, namespace: &str) -> Result<Option<bool>, Failed> {
        let Some(namespace) = segment(namespace) else { return Ok(None) };
        let deployment = self.read(&format!("/apis/apps/v1/namespaces/{namespace}/deployments/{DEPLOYMENT}")).await?;
        Ok(deployment.as_ref().map(|deployment| available(deployment) > 0))
    }

    async fn written(&self) -> Result<Option<String>, Failed> {
        let path = format!("/apis/{NAD_GROUP}/v1/{NADS}?limit={LIMIT}");
        let Some(text) = self.get(&path).await? else { return Ok(None) };
        let nads = Object::read_list(&text).map_err(|_| Failed::Unexpected)?;
        let rendered = nads.iter().map(Object::meta).filter(|meta| meta.annotation(OWNER_REF).is_some());
        let names: Vec<_> = rendered.filter_map(|meta| meta.annotation(RESOURCE_NAME)).collect();
        let mut prefixes = names.iter().filter_map(|name| Some(name.split_once('/')?.0));
        let first = prefixes.next();
        Ok(first.filter(|first| prefixes.all(|other| other == *first)).map(str::to_owned))
    }
}

/// How many pods of a Deployment are available.
pub(super) fn available(deployment: &Value) -> i64 {
    deployment.pointer("/status/availableReplicas").and_then(Value::as_i64).unwrap_or_default()
}
