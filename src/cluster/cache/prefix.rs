//! The resource prefix of the operator.

use futures_util::future::try_join_all;
use serde_json::Value;

use crate::cluster::cache::Caches;
use crate::cluster::cache::operators::find_operator_deployment;
use crate::cluster::client::pager::ListPager;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::policy::rules::drift::is_rendering;
use crate::policy::{DEFAULT_OPERATOR_NAME, Facts, OperatorFact, Operators, Policy, Prefix};
use crate::resources::{Nad, Network, NetworkKind, Object, RESOURCE_NAME, name_of};

/// How many networks of each kind are checked for the prefix on their NADs.
const MAX_NETWORKS: usize = 8;

impl Cluster {
    /// The prefix for a network in that namespace: from the policy, else from its operator's Deployment, else from the NADs that
    /// networks in its namespace actually render, if they agree. A wrong prefix would be stored, so otherwise there is none.
    pub(in crate::cluster) async fn prefix(
        &self,
        policy: &Policy,
        operators: &Operators,
        namespace: &str,
        caches: Option<&Caches>,
    ) -> Result<Option<Prefix>, ApiError> {
        if policy.resource_name.prefix.is_some() {
            return Ok(None);
        }
        let stated = match &policy.operator.namespace {
            Some(home) => match operators.in_namespace(home) {
                Some(operator) => self.stated_by(operator, caches).await?,
                // A prefix from the policy needs no check.
                None => self.stated_in(home).await?,
            },
            None => match operators.responsible_for(namespace) {
                Some(operator) => self.stated_by(operator, caches).await?,
                None => None,
            },
        };
        let known = match stated {
            Some(prefix) => Some(prefix),
            None => self.rendered(namespace).await?,
        };
        // An undiscovered operator may state it; without it the NAD would be stored incomplete.
        if known.is_none() && *operators == Operators::Unknown && policy.operator.namespace.is_none() {
            return Err(ApiError::NotDiscovered);
        }
        Ok(known.map(|value| Prefix { value, assumed: false }))
    }

    /// The prefix stated by an operator's Deployment. Fresh caches are trusted: an operator restart with another prefix takes far
    /// longer than a watch event.
    async fn stated_by(&self, operator: &OperatorFact, caches: Option<&Caches>) -> Result<Option<String>, ApiError> {
        if operator.deployment.as_deref() == Some(DEFAULT_OPERATOR_NAME)
            && let Some(known) = caches.and_then(|caches| caches.prefix(&operator.namespace))
        {
            return Ok(known);
        }
        Ok(self.operator_deployment(operator).await?.and_then(|deployment| deployment.prefix))
    }

    async fn stated_in(&self, namespace: &str) -> Result<Option<String>, ApiError> {
        let deployed = self.deployments_in(namespace).await?;
        Ok(find_operator_deployment(&deployed, &[]).and_then(|own| own.prefix.clone()))
    }

    /// Whether a pod of an operator is available; `None` without a known Deployment.
    pub(in crate::cluster) async fn is_operator_running(
        &self,
        operators: &[OperatorFact],
    ) -> Result<Option<bool>, ApiError> {
        let mut runs = None;
        for operator in operators {
            let deployment = self.operator_deployment(operator).await?;
            runs = runs.max(deployment.map(|deployment| deployment.available > 0));
        }
        Ok(runs)
    }

    /// The prefix on the NADs rendered by networks of that namespace, if it is unique. An owner-ref is untrusted text, so each
    /// NAD is compared with its network; networks elsewhere are ignored.
    async fn rendered(&self, namespace: &str) -> Result<Option<String>, ApiError> {
        let mut prefixes = Vec::new();
        // One list after the other, because objects may be large.
        for kind in NetworkKind::ALL {
            let Ok(path) = ApiPath::in_namespace(ApiResource::network(kind), namespace) else { return Ok(None) };
            let Some(text) = ListPager::of(&path).by(MAX_NETWORKS).next(self).await? else { continue };
            let networks = Object::read_list(&text).map_err(|_| ApiError::Unexpected)?;
            let networks = networks.iter().filter_map(|object| match object {
                Object::Network(network) => Some(network),
                Object::Nad(_) | Object::Claim(_) | Object::NodePolicy(_) | Object::Workload(_) => None,
            });
            let found = try_join_all(networks.map(|network| self.prefix_on_nad_of(network))).await?;
            prefixes.extend(found.into_iter().flatten());
        }
        prefixes.sort_unstable();
        prefixes.dedup();
        Ok(prefixes.pop().filter(|_| prefixes.is_empty()))
    }

    async fn prefix_on_nad_of(&self, network: &Network<'_>) -> Result<Option<String>, ApiError> {
        let Ok(path) = ApiPath::nad(&network.nad_key()) else { return Ok(None) };
        let Some(text) = self.get(&path).await? else { return Ok(None) };
        match Object::read(&text) {
            Ok(Some(Object::Nad(nad))) => Ok(prefix_on(&nad, network)),
            _ => Ok(None),
        }
    }
}

/// The prefix on a NAD, where it is what the network renders to.
fn prefix_on(nad: &Nad<'_>, network: &Network<'_>) -> Option<String> {
    let annotation = nad.meta.annotation(RESOURCE_NAME)?;
    let (prefix, name) = annotation.split_once('/')?;
    let is_its_own = nad.meta.owner().is_none_or(|owner| *owner == network.id())
        && name == network.text("resourceName")
        && is_rendering(network, nad, &Facts::default());
    is_its_own.then(|| prefix.to_owned())
}

/// The prefix in the environment that a Deployment gives its containers.
pub(in crate::cluster) fn stated(deployment: &Value) -> Option<String> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    let mut variables = containers.iter().filter_map(|container| container.get("env")?.as_array()).flatten();
    let prefix = variables.find(|variable| variable.get("name").and_then(Value::as_str) == Some("RESOURCE_PREFIX"))?;
    prefix.get("value").and_then(Value::as_str).filter(|value| !value.is_empty()).map(|value| name_of(value).to_owned())
}

/// How many pods of a Deployment are available.
pub(in crate::cluster) fn available(deployment: &Value) -> i64 {
    deployment.pointer("/status/availableReplicas").and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_read_only_from_rendered_nads() {
        let network = r#"{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{"name":"net","namespace":"op"},
            "spec":{"resourceName":"cx7","networkNamespace":"apps","vlan":5}}"#;
        let Ok(Some(Object::Network(network))) = Object::read(network) else { panic!("not a network") };
        let rendered = crate::resources::render(&network, "a.io").nad_json().unwrap();
        let read = |text: &str| match Object::read(text) {
            Ok(Some(Object::Nad(nad))) => prefix_on(&nad, &network),
            _ => panic!("{text}"),
        };
        assert_eq!(read(&rendered).as_deref(), Some("a.io"), "{rendered}");
        // Hand-written: another config, another resource, another owner.
        let poisoned = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "net", "namespace": "apps", "annotations": {
                RESOURCE_NAME: "evil.io/cx7", "sriovnetwork.openshift.io/owner-ref": network.id().owner_ref() } },
            "spec": { "config": r#"{"cniVersion":"1.0.0","type":"sriov"}"# },
        });
        assert_eq!(read(&poisoned.to_string()), None);
        assert_eq!(read(&rendered.replace("a.io/cx7", "a.io/other")), None);
        assert_eq!(read(&rendered.replace("/op/net", "/op/other")), None);
    }
}
