//! The domain that the operator puts in front of resource names.

use serde_json::Value;

use super::cache::Caches;
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
    /// they agree. A wrong one would be stored, so otherwise there is none. Caches that have heard of the Deployment lately are trusted: an
    /// operator that starts anew with another prefix takes far longer than a watch takes to tell of it.
    pub(super) async fn prefix(
        &self,
        policy: &Policy,
        namespace: &str,
        caches: Option<&Caches>,
    ) -> Result<Option<Prefix>, Failed> {
        if policy.resource_name.prefix.is_some() {
            return Ok(None);
        }
        let namespace = policy.operator.namespace.as_deref().unwrap_or(namespace);
        let deployed = match caches.and_then(|caches| caches.prefix(namespace)) {
            Some(known) => known,
            None => self.deployed(namespace).await?,
        };
        let known = match deployed {
            Some(prefix) => Some(prefix),
            None => self.written().await?,
        };
        Ok(known.map(|value| Prefix { value, assumed: false }))
    }

    async fn deployed(&self, namespace: &str) -> Result<Option<String>, Failed> {
        let Some(namespace) = segment(namespace) else { return Ok(None) };
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{DEPLOYMENT}");
        let Some(text) = self.get(&path).await? else { return Ok(None) };
        let deployment = serde_json::from_str(&text).map_err(|_| Failed::Unexpected)?;
        Ok(stated(&deployment))
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

/// The prefix in the environment that a Deployment gives its containers.
pub(super) fn stated(deployment: &Value) -> Option<String> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    let mut variables = containers.iter().filter_map(|container| container.get("env")?.as_array()).flatten();
    let prefix = variables.find(|variable| variable.get("name").and_then(Value::as_str) == Some("RESOURCE_PREFIX"))?;
    prefix.get("value").and_then(Value::as_str).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// How many pods of a Deployment are available.
pub(super) fn available(deployment: &Value) -> i64 {
    deployment.pointer("/status/availableReplicas").and_then(Value::as_i64).unwrap_or_default()
}
