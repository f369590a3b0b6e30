//! Which nodes can run a pod, and why the others cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::node_labels::NadLabel;
use crate::audit::chain::{ClusterNode, LinkHealth, NodePolicy, Read};
use crate::resources::{NodeConstraints, Taint, Toleration, UNSCHEDULABLE};

/// What is known about the nodes of a cluster. What could not be read says why.
#[derive(Clone, Debug)]
pub struct KnownNodes {
    /// The nodes, and their devices.
    pub nodes: Read<Arc<[ClusterNode]>>,
    /// The node policies.
    pub policies: Read<Vec<NodePolicy>>,
    /// The extended resources that DeviceClasses serve.
    pub served: Arc<[String]>,
    /// The domain of the resources that node policies offer, if it is known.
    pub prefix: Option<String>,
    /// Whether these are the nodes of a cluster, and not some that manifests describe.
    pub is_cluster: bool,
}

/// The nodes of one pod. They are compared when they are shown: there may be thousands of pods, and as many nodes.
#[derive(Clone, Debug)]
pub struct NodesPlan {
    /// What the pod needs of them.
    pub needs: Vec<ResourceNeed>,
    /// The labels that its node must have.
    pub labels: BTreeMap<String, String>,
    /// The labels that its NADs ask for.
    pub nad_labels: Vec<NadLabel>,
    /// The node that it is for, or that it runs on.
    pub node: Option<String>,
    /// Whether the pod has conditions that are not compared.
    pub has_others: bool,
    /// Whether one of them can run it.
    pub state: LinkHealth,
    tolerations: Vec<Toleration>,
    nodes: Read<Arc<[ClusterNode]>>,
    is_cluster: bool,
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
pub struct NodeFit<'n> {
    /// Its name.
    pub name: &'n str,
    /// What keeps the pod from it; empty where it can run there.
    pub reasons: Vec<String>,
    /// What may keep the pod from it.
    pub doubts: Vec<String>,
}

impl NodeFit<'_> {
    /// Whether the pod can run there; `None` if that is not known.
    pub fn fits(&self) -> Option<bool> {
        match (self.reasons.is_empty(), self.doubts.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }
}

impl NodesPlan {
    /// Compares a pod with the nodes. `needs` has the resources, with the number of devices of each.
    pub(super) fn of(
        known: &KnownNodes,
        constraints: NodeConstraints,
        needs: BTreeMap<String, Option<u64>>,
        nad_labels: Vec<NadLabel>,
    ) -> Self {
        let needs: Vec<ResourceNeed> =
            needs.into_iter().map(|(resource, count)| ResourceNeed::of(known, resource, count)).collect();
        let NodeConstraints { node, labels, tolerations, has_others } = constraints;
        let mut plan = Self {
            needs,
            labels,
            nad_labels,
            node,
            has_others,
            state: LinkHealth::Unknown,
            tolerations,
            nodes: known.nodes.clone(),
            is_cluster: known.is_cluster,
        };
        plan.state = plan.health();
        plan
    }

    fn health(&self) -> LinkHealth {
        // Any node can run it, as far as its networks matter.
        let is_free = self.needs.is_empty()
            && self.labels.is_empty()
            && self.node.is_none()
            && !self.has_others
            && self.nad_labels.is_empty();
        let nodes = match &self.nodes {
            Ok(nodes) if !nodes.is_empty() || !is_free => nodes,
            _ => return if is_free { LinkHealth::Good } else { LinkHealth::Unknown },
        };
        let mut may = false;
        for node in nodes.iter() {
            match self.fit(node).fits() {
                Some(true) => return LinkHealth::Good,
                Some(false) => {}
                None => may = true,
            }
        }
        // A cluster has other nodes than those in a few manifests.
        if may || !self.is_cluster { LinkHealth::Unknown } else { LinkHealth::Broken }
    }

    /// Each node, and what keeps the pod from it; the error says why the nodes are not known.
    pub fn fits(&self) -> Result<impl ExactSizeIterator<Item = NodeFit<'_>>, &str> {
        self.nodes.as_ref().map(|nodes| nodes.iter().map(|node| self.fit(node))).map_err(String::as_str)
    }

    fn fit<'n>(&self, node: &'n ClusterNode) -> NodeFit<'n> {
        let (mut reasons, mut doubts) = (Vec::new(), Vec::new());
        if let Some(wanted) = self.node.as_deref().filter(|wanted| *wanted != node.name) {
            reasons.push(format!("the pod is for node {wanted}"));
        }
        self.compare_taints(node, &mut reasons, &mut doubts);
        for (key, value) in &self.labels {
            match node.labels.get(key) {
                Some(found) if found == value => {}
                Some(found) => reasons.push(format!("its label {key} is {found}, not {value}")),
                None => reasons.push(format!("it has no label {key}={value}")),
            }
        }
        for label in self.nad_labels.iter().filter(|label| !label.is_on(node)) {
            match label.is_copied {
                Some(true) => reasons.push(label.reason()),
                Some(false) => {}
                None => doubts.push(label.reason()),
            }
        }
        for need in self.needs.iter().filter(|need| !need.is_served) {
            let (resource, count) = (&need.resource, need.count.unwrap_or(1));
            match node.allocatable.get(resource).copied() {
                Some(has) if has >= count => {}
                // A manifest of a node rarely says what device plugins will report.
                None if !self.is_cluster => match offer(need, node) {
                    Some(false) => reasons.push(format!("no node policy that is for it offers {resource}")),
                    Some(true) | None => doubts.push("its devices are not known".to_owned()),
                },
                None | Some(0) => reasons.push(format!("it has no {resource}")),
                Some(has) => reasons.push(format!("it has {has} of {resource}, and the pod needs {count}")),
            }
        }
        // A pod that runs has passed them.
        if self.has_others && !(self.is_cluster && self.node.is_some()) {
            doubts.push("the pod has conditions that are not compared, such as a node affinity".to_owned());
        }
        doubts.dedup();
        NodeFit { name: &node.name, reasons, doubts }
    }

    fn compare_taints(&self, node: &ClusterNode, reasons: &mut Vec<String>, doubts: &mut Vec<String>) {
        // The scheduler does not place a pod that names its node; the kubelet reads only `NoExecute`.
        let is_placed = self.node.is_some();
        let cordon = Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
        if node.is_unschedulable && !is_placed && self.tolerates(&cordon) != Some(true) {
            reasons.push("it is cordoned".to_owned());
        }
        let others = node.taints.iter().filter(|taint| !(node.is_unschedulable && taint.key == UNSCHEDULABLE));
        for taint in others.filter(|taint| !is_placed || taint.effect == "NoExecute") {
            match self.tolerates(taint) {
                Some(true) => {}
                Some(false) => reasons.push(format!("the pod does not tolerate its taint {taint}")),
                None => doubts.push(format!("it is not known whether the pod tolerates its taint {taint}")),
            }
        }
    }

    fn tolerates(&self, taint: &Taint) -> Option<bool> {
        let all = || self.tolerations.iter().map(|toleration| toleration.tolerates(taint));
        match all().any(|tolerates| tolerates == Some(true)) {
            true => Some(true),
            false if all().any(|tolerates| tolerates.is_none()) => None,
            false => Some(false),
        }
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

/// Whether a node policy offers a resource on a node; `None` if that is not known.
fn offer(need: &ResourceNeed, node: &ClusterNode) -> Option<bool> {
    let policies = need.policies.as_ref().ok()?;
    let is_for = |policy: &OfferingPolicy| policy.nodes.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    (!policies.is_empty()).then(|| policies.iter().any(is_for))
}
