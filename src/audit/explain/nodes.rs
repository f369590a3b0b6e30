//! Which nodes can run a pod, and why the others cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::audit::chain::{ClusterNode, LinkHealth, NodePolicy, Read};
use crate::resources::NodeConstraints;

/// What is known about the nodes of a cluster. What could not be read says why.
#[derive(Clone, Debug)]
pub struct KnownNodes {
    /// The nodes, and their devices.
    pub nodes: Read<Vec<ClusterNode>>,
    /// The node policies.
    pub policies: Read<Vec<NodePolicy>>,
    /// The extended resources that DeviceClasses serve.
    pub served: Arc<[String]>,
    /// The domain of the resources that node policies offer, if it is known.
    pub prefix: Option<String>,
    /// Whether these are the nodes of a cluster, and not some that manifests describe.
    pub is_cluster: bool,
}

/// The nodes of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesPlan {
    /// What the pod needs of them.
    pub needs: Vec<ResourceNeed>,
    /// The labels that its node must have.
    pub labels: BTreeMap<String, String>,
    /// The node that it is for, or that it runs on.
    pub node: Option<String>,
    /// Each node, and what keeps the pod from it.
    pub nodes: Read<Vec<NodeFit>>,
    /// Whether the pod has conditions that are not compared.
    pub has_others: bool,
    /// Whether one of them can run it.
    pub state: LinkHealth,
}

/// How many devices of a resource a pod needs, and who offers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceNeed {
    /// The resource.
    pub resource: String,
    /// How many; `None` if that cannot be read.
    pub count: Option<u64>,
    /// Whether a DeviceClass serves it (DRA): nodes do not count it then.
    pub is_served: bool,
    /// The node policies that offer it.
    pub policies: Read<Vec<OfferingPolicy>>,
}

/// A node policy that offers a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferingPolicy {
    /// Its name.
    pub name: String,
    /// The labels of the nodes that it is for.
    pub nodes: BTreeMap<String, String>,
    /// How many VFs of each device it makes.
    pub vfs: Option<i64>,
}

/// A node, and what keeps a pod from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFit {
    /// Its name.
    pub name: String,
    /// What keeps the pod from it; empty where it can run there.
    pub reasons: Vec<String>,
    /// Whether it is not known what it offers.
    pub is_unknown: bool,
}

impl NodesPlan {
    /// Compares a pod with the nodes. `needs` has the resources, with the number of devices of each.
    pub(super) fn of(known: &KnownNodes, constraints: NodeConstraints, needs: BTreeMap<String, Option<u64>>) -> Self {
        let needs: Vec<ResourceNeed> =
            needs.into_iter().map(|(resource, count)| ResourceNeed::of(known, resource, count)).collect();
        let NodeConstraints { node, labels, has_others } = constraints;
        let nodes = known.nodes.as_ref().map_err(Clone::clone).map(|nodes| {
            let fit = |one: &ClusterNode| fit(one, node.as_deref(), &labels, &needs, known.is_cluster);
            nodes.iter().map(fit).collect()
        });
        let mut plan = Self { needs, labels, node, nodes, has_others, state: LinkHealth::Unknown };
        plan.state = plan.health(known);
        plan
    }

    fn health(&self, known: &KnownNodes) -> LinkHealth {
        // Any node can run it, as far as its networks matter.
        if self.needs.is_empty() && self.labels.is_empty() && self.node.is_none() && !self.has_others {
            return LinkHealth::Good;
        }
        let Ok(nodes) = &self.nodes else { return LinkHealth::Unknown };
        let can = nodes.iter().any(|node| node.reasons.is_empty() && !node.is_unknown);
        let may = nodes.iter().any(|node| node.reasons.is_empty());
        match (can, may) {
            (true, _) if !self.has_others => LinkHealth::Good,
            (true, _) | (_, true) => LinkHealth::Unknown,
            // A cluster has other nodes than those in a few manifests.
            (false, false) if !known.is_cluster => LinkHealth::Unknown,
            (false, false) => LinkHealth::Broken,
        }
    }

    /// The nodes that can run it, as far as that is known.
    pub fn fitting(&self) -> Vec<&str> {
        let nodes = self.nodes.iter().flatten().filter(|node| node.reasons.is_empty() && !node.is_unknown);
        nodes.map(|node| node.name.as_str()).collect()
    }
}

impl ResourceNeed {
    fn of(known: &KnownNodes, resource: String, count: Option<u64>) -> Self {
        let (domain, name) = resource.split_once('/').unwrap_or(("", &resource));
        let is_of_policies = known.prefix.as_deref().is_none_or(|prefix| prefix == domain);
        let offers = |policy: &&NodePolicy| is_of_policies && policy.resource_name == name;
        let policies = known.policies.as_ref().map_err(Clone::clone).map(|policies| {
            let offering = policies.iter().filter(offers);
            offering
                .map(|policy| OfferingPolicy {
                    name: policy.name.clone(),
                    nodes: policy.nodes.clone(),
                    vfs: policy.vfs,
                })
                .collect()
        });
        Self { is_served: known.served.contains(&resource), count, policies, resource }
    }
}

fn fit(
    node: &ClusterNode,
    wanted: Option<&str>,
    labels: &BTreeMap<String, String>,
    needs: &[ResourceNeed],
    is_cluster: bool,
) -> NodeFit {
    let mut reasons = Vec::new();
    let mut is_unknown = false;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != node.name) {
        reasons.push(format!("the pod is for node {wanted}"));
    }
    // The scheduler does not place a pod that names its node.
    if wanted.is_none() && node.is_unschedulable {
        reasons.push("it is cordoned".to_owned());
    }
    for (key, value) in labels {
        match node.labels.get(key) {
            Some(found) if found == value => {}
            Some(found) => reasons.push(format!("its label {key} is {found}, not {value}")),
            None => reasons.push(format!("it has no label {key}={value}")),
        }
    }
    for need in needs.iter().filter(|need| !need.is_served) {
        let (resource, count) = (&need.resource, need.count.unwrap_or(1));
        match node.allocatable.get(resource).copied() {
            Some(has) if has >= count => {}
            // A manifest of a node rarely says what device plugins will report.
            None if !is_cluster => match offer(need, node) {
                Some(true) => is_unknown = true,
                Some(false) => reasons.push(format!("no node policy that is for it offers {resource}")),
                None => is_unknown = true,
            },
            None | Some(0) => reasons.push(format!("it has no {resource}")),
            Some(has) => reasons.push(format!("it has {has} of {resource}, and the pod needs {count}")),
        }
    }
    NodeFit { name: node.name.clone(), reasons, is_unknown }
}

/// Whether a node policy offers a resource on a node; `None` if that is not known.
fn offer(need: &ResourceNeed, node: &ClusterNode) -> Option<bool> {
    let policies = need.policies.as_ref().ok()?;
    let is_for = |policy: &OfferingPolicy| policy.nodes.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    (!policies.is_empty()).then(|| policies.iter().any(is_for))
}
