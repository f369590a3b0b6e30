//! The domain that the operator puts in front of resource names.

use serde::Deserialize;

use super::owner::segment;
use super::{Cluster, Failed};
use crate::policy::{Policy, Prefix};
use crate::resources::{NAD_GROUP, OWNER_REF, RESOURCE_NAME};

/// The operator's Deployment.
const DEPLOYMENT: &str = "sriov-network-operator";
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
        let deployment: Deployment = serde_json::from_str(&text).map_err(|_| Failed::Unexpected)?;
        let containers = deployment.spec.template.spec.containers.into_iter();
        let mut variables = containers.flat_map(|container| container.env);
        let prefix = variables.find(|variable| variable.name == "RESOURCE_PREFIX");
        Ok(prefix.and_then(|variable| variable.value).filter(|value| !value.is_empty()))
    }

    async fn written(&self) -> Result<Option<String>, Failed> {
        let path = format!("/apis/{NAD_GROUP}/v1/network-attachment-definitions?limit={LIMIT}");
        let Some(text) = self.get(&path).await? else { return Ok(None) };
        let list: Nads = serde_json::from_str(&text).map_err(|_| Failed::Unexpected)?;
        let rendered = list.items.iter().filter(|nad| nad.metadata.annotations.contains_key(OWNER_REF));
        let names = rendered.filter_map(|nad| nad.metadata.annotations.get(RESOURCE_NAME));
        let mut prefixes = names.filter_map(|name| Some(name.split_once('/')?.0));
        let first = prefixes.next();
        Ok(first.filter(|first| prefixes.all(|other| other == *first)).map(str::to_owned))
    }
}

#[derive(Deserialize)]
struct Deployment {
    spec: DeploymentSpec,
}

#[derive(Deserialize)]
struct DeploymentSpec {
    template: Template,
}

#[derive(Deserialize)]
struct Template {
    spec: PodSpec,
}

#[derive(Deserialize)]
struct PodSpec {
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    env: Vec<Variable>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    value: Option<String>,
}

#[derive(Deserialize)]
struct Nads {
    items: Vec<Nad>,
}

#[derive(Deserialize)]
struct Nad {
    metadata: Meta,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}
