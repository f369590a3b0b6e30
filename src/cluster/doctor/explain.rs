//! Reads a pod, the NADs that it selects, and the nodes, for `nadmit explain pod`.

use crate::audit::chain::{ClusterNode, NodePolicy, Read};
use crate::audit::explain::{ExplainSnapshot, KnownNodes, selected_by};
use crate::cluster::cache::operators::OPERATOR_RIGHTS;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::policy::{Operators, Policy};
use crate::resources::{ObjectKey, Workload};

impl Cluster {
    /// Takes the snapshot of a pod; `None` if it does not exist.
    pub async fn explain_snapshot(
        &self,
        key: &ObjectKey,
        policy: &Policy,
    ) -> Result<Option<ExplainSnapshot>, ApiError> {
        let Some(pod) = self.pod_text(key).await? else { return Ok(None) };
        let selected = Workload::read_pod(&pod).map(|pod| selected_by(&pod)).unwrap_or_default();
        let nads = self.nad_texts(selected.iter()).await?;
        let operators = self.operators_read(policy).await?.unwrap_or(Operators::Unknown);
        let nodes = self.all(&ApiPath::all(ApiResource::NODES), "list nodes").await?;
        let device_claims = self.claim_index(Some(key.namespace())).await?;
        let prefix = match self.prefix(policy, &operators, key.namespace(), None).await {
            Err(ApiError::NotDiscovered) => None,
            Err(failed) if failed.is_forbidden() => None,
            prefix => prefix?.map(|prefix| prefix.value),
        };
        Ok(Some(ExplainSnapshot {
            key: key.clone(),
            pod,
            nads,
            nodes: KnownNodes {
                nodes: nodes.map(|all| all.iter().map(ClusterNode::of).collect()),
                policies: self.policies_for(&operators, key.namespace(), policy).await?,
                served: device_claims.served(),
                prefix: policy.resource_name.prefix.clone().or(prefix),
                is_cluster: true,
            },
            operators,
            device_claims: device_claims.into(),
        }))
    }

    /// The node policies of the operator that is responsible for a namespace.
    async fn policies_for(
        &self,
        operators: &Operators,
        namespace: &str,
        policy: &Policy,
    ) -> Result<Read<Vec<NodePolicy>>, ApiError> {
        let home = policy.operator.namespace.as_deref();
        let home = home.or_else(|| operators.responsible_for(namespace).map(|operator| operator.namespace.as_str()));
        match (home, operators) {
            (Some(home), _) => self.node_policies(home).await,
            (None, Operators::Unknown) => Ok(Err(missing(OPERATOR_RIGHTS))),
            (None, _) => Ok(Err("no operator was found; set operator.namespace in the policy".to_owned())),
        }
    }
}
