//! What doctor reads for one network, and the facts it gives to the rules.

use std::sync::Arc;

use jiff::Timestamp;

use super::{ClusterNode, InstalledProgram, NodePolicy};
use crate::audit::context::AuditContext;
use crate::audit::stored_object::StoredObject;
use crate::policy::{
    ClaimFacts, ClaimIndex, FactLookup, Lookup, NadFact, NamespaceState, NetworkCoverage, NetworkFact, Operators,
    Prefix,
};
use crate::resources::{NetworkId, ObjectKey};

/// A value that was read, or the missing permission.
pub type Read<T> = Result<T, String>;

/// Everything read from the cluster for one network.
#[derive(Clone, Debug)]
pub struct NetworkSnapshot {
    /// The network as JSON; `None` if it does not exist.
    pub network: Option<String>,
    /// The target namespace.
    pub namespace: Read<Option<NamespaceState>>,
    /// The operators.
    pub operators: Operators,
    /// The Deployment of the responsible one.
    pub operator: Read<Option<OperatorDeployment>>,
    /// The NAD at the target, as JSON.
    pub nad: Read<Option<String>>,
    /// The NAD in `last-network-namespace`, if that is another namespace.
    pub last_nad: Lookup<()>,
    /// All networks that render this NAD, including this one.
    pub claims: Read<Vec<NetworkFact>>,
    /// The node policies.
    pub policies: Read<Vec<NodePolicy>>,
    /// The sync state of the nodes.
    pub states: Read<Vec<NodeState>>,
    /// The nodes and their resources.
    pub nodes: Read<Vec<ClusterNode>>,
    /// The operator's resource prefix.
    pub prefix: Option<Prefix>,
    /// The claims of devices (DRA).
    pub device_claims: Arc<ClaimIndex>,
    /// The programs that DaemonSets install.
    pub programs: Read<Vec<InstalledProgram>>,
}

/// The operator's Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorDeployment {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub deployment: String,
    /// How many of its pods are available.
    pub available: i64,
}

/// A SriovNetworkNodeState.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// The node.
    pub node: String,
    /// `status.syncStatus`
    pub sync: String,
    /// `status.lastSyncError`
    pub error: String,
}

/// Knows one network only, as if no other one rendered the same NAD.
pub(super) struct OnlyNetwork<'s>(pub(super) NetworkFact, pub(super) &'s ClaimIndex);

impl FactLookup for OnlyNetwork<'_> {
    fn coverage(&self) -> NetworkCoverage {
        NetworkCoverage::Complete
    }

    fn networks_at(&self, _: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        Some(&self.0).filter(|network| renders(network)).cloned().into_iter().collect()
    }

    fn network(&self, _: &NetworkId) -> Lookup<NetworkFact> {
        Lookup::Found(self.0.clone())
    }

    fn served_by_classes(&self) -> Arc<[String]> {
        self.1.served()
    }

    fn claims(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        self.1.facts(nad, resource_name)
    }
}

impl FactLookup for NetworkSnapshot {
    fn networks_at(&self, _: &ObjectKey, renders: &dyn Fn(&NetworkFact) -> bool) -> Vec<NetworkFact> {
        self.claims.iter().flatten().filter(|network| renders(network)).cloned().collect()
    }

    fn nad(&self, _: &ObjectKey) -> Lookup<NadFact> {
        let fact = |nad: &String| StoredObject::of(nad).map_or(NadFact::default(), |nad| nad.nad_fact());
        lookup(self.nad.as_ref().map(|nad| nad.as_ref().map(fact)))
    }

    fn last_nad(&self, _: &ObjectKey) -> Lookup<()> {
        self.last_nad.clone()
    }

    fn namespace(&self, _: &str) -> Lookup<NamespaceState> {
        lookup(self.namespace.as_ref().map(|namespace| *namespace))
    }

    fn offered(&self) -> Option<Arc<[String]>> {
        let policies = self.policies.as_ref().ok()?;
        let names = policies.iter().map(|policy| policy.resource_name.clone());
        Some(names.filter(|name| !name.is_empty()).collect())
    }

    fn served_by_classes(&self) -> Arc<[String]> {
        self.device_claims.served()
    }
}

/// A missing permission makes the answer unknown.
fn lookup<T>(read: Result<Option<T>, &String>) -> Lookup<T> {
    read.map_or(Lookup::Unknown, |found| found.map_or(Lookup::Absent, Lookup::Found))
}

impl NetworkSnapshot {
    /// What an audit would know of the cluster.
    pub(super) fn audit_context(&self, nad: Option<&StoredObject>, now: Timestamp) -> AuditContext {
        let operator = self.operator.as_ref().ok().and_then(Option::as_ref);
        let mut context = AuditContext {
            now,
            operators: self.operators.clone(),
            prefix: self.prefix.clone(),
            is_operator_running: operator.map(|operator| operator.available > 0),
            ..AuditContext::default()
        };
        if let Some(nad) = nad {
            context.writers.record_nad(&nad.object_meta);
        }
        context
    }
}
