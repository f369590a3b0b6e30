//! What each interface of a pod will be: which NAD it is for, and by which rule that is found; the plugins, the device, VLAN, MAC
//! address, MTU and addresses; and on which nodes the pod can run.
//!
//! ```text
//!  pod ─► annotation ─► NADs ─► plugins, devices, addresses     (each interface)
//!   └───► requests, nodeSelector ─► nodes and node policies     (the pod)
//! ```
//!
//! It states what is written, as Multus and the plugins read it, and has no opinion of its own: what is wrong are the findings of the rules.

mod addresses;
mod config;
mod devices;
mod interface;
mod nad;
mod node_labels;
mod nodes;
mod snapshot;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use crate::audit::chain::LinkHealth;
use crate::cni::arguments::Arguments;
use crate::policy::{Action, Finding, ResourceInjector, SourcePlace};
use crate::resources::{DEFAULT_NETWORK, NETWORKS, NodeConstraints, ObjectKey, Selection, Workload, WorkloadKind};
use devices::PodDevices;

pub use addresses::{AddressPlan, FixedAddress, Listed, RangePlan, RoutePlan};
pub use config::{ChainPlan, ConfigPlan, PluginPlan, VlanPlan};
pub use devices::DevicePlan;
pub use interface::{FoundBy, InterfaceName, InterfacePlan};
pub use nad::{NadOrigin, NadPlan, NadPlans};
pub use node_labels::NadLabel;
pub use nodes::{KnownNodes, NodeFit, NodesPlan, OfferingPolicy, ResourceNeed};
pub use snapshot::ExplainSnapshot;
pub use words::{PlanLine, in_file};

/// How many interfaces of a pod are explained: its annotation is written by whoever creates it.
pub const MAX_INTERFACES: usize = 32;
/// The namespace in which Multus looks for a default network that names none, unless it is configured otherwise.
pub const MULTUS_NAMESPACE: &str = "kube-system";

/// A pod, or an object that makes pods, and what is known for it.
#[derive(Debug)]
pub struct PodQuestion<'q> {
    /// The object; `None` if it selects no network.
    pub workload: Option<&'q Workload<'q>>,
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace; empty where a manifest leaves it to the context.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where its manifest is.
    pub place: Option<SourcePlace>,
    /// What the rules find in it.
    pub findings: Vec<Finding>,
    /// What will be added to its requests when it is created; `None` if that is not known. To a pod of a cluster nothing is added any more.
    pub injector: Option<ResourceInjector>,
    /// The NADs.
    pub nads: &'q NadPlans,
    /// The nodes.
    pub nodes: &'q KnownNodes,
}

/// What a pod will be.
#[derive(Clone, Debug)]
pub struct PodPlan {
    /// The kind of the object.
    pub kind: &'static str,
    /// Its namespace; empty where a manifest leaves it to the context.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where its manifest is.
    pub place: Option<SourcePlace>,
    /// How its networks are selected.
    pub selection: SelectionForm,
    /// Its interfaces, in the order in which Multus makes them.
    pub interfaces: Vec<InterfacePlan>,
    /// How many more it selects.
    pub left_out: usize,
    /// The nodes; `None` where it selects no network.
    pub nodes: Option<NodesPlan>,
    /// The findings about it that are not about one of its interfaces.
    pub findings: Vec<Finding>,
}

/// How the networks of a pod are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionForm {
    /// Not at all.
    Absent,
    /// By names between commas.
    Names,
    /// By a JSON list.
    Json,
    /// By the networks of a virtual machine, from which KubeVirt writes the annotation.
    Machine,
    /// By an annotation that Multus cannot read.
    Unreadable,
    /// By one that is longer or deeper than what nadmit reads.
    TooLarge,
    /// By a text with variables, which are replaced before the manifest is applied.
    Variables,
    /// In vain: the pod uses the network of its node.
    HostNetwork,
}

impl SelectionForm {
    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Names => "names",
            Self::Json => "json",
            Self::Machine => "machine",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too-large",
            Self::Variables => "variables",
            Self::HostNetwork => "host-network",
        }
    }

    fn of(workload: &Workload<'_>) -> Self {
        if workload.is_on_host_network {
            return Self::HostNetwork;
        }
        match (&workload.selection, workload.networks.as_deref()) {
            (Selection::Wrong(_), _) => Self::Unreadable,
            (Selection::Unknown, _) => Self::TooLarge,
            (Selection::Read(_), Some(text)) if text.contains(['[', '{', '"']) => Self::Json,
            (Selection::Read(_), Some(_)) => Self::Names,
            (Selection::Read(_), None) if !workload.machine_networks.is_empty() => Self::Machine,
            (Selection::Read(_), None) => Self::Absent,
        }
    }
}

/// The NADs that a workload selects, each once, as far as its interfaces are explained.
pub fn selected_by(workload: &Workload<'_>) -> Vec<ObjectKey> {
    let mut all: Vec<ObjectKey> = Vec::new();
    let default = interface::default_network(workload);
    let selected = workload.selected().take(MAX_INTERFACES).chain(&default);
    for nad in selected.filter_map(|network| network.nad()) {
        if !all.contains(&nad) {
            all.push(nad);
        }
    }
    all
}

impl PodPlan {
    /// Explains a pod.
    pub fn of(question: PodQuestion<'_>) -> Self {
        let mut plan = Self {
            kind: question.kind,
            namespace: question.namespace.clone(),
            name: question.name.clone(),
            place: question.place.clone(),
            selection: SelectionForm::Absent,
            interfaces: Vec::new(),
            left_out: 0,
            nodes: None,
            findings: Vec::new(),
        };
        let Some(workload) = question.workload else { return plan };
        plan.selection = SelectionForm::of(workload);
        let has_variables = !question.nodes.is_cluster && workload.selects_by_variable();
        if has_variables && plan.selection != SelectionForm::HostNetwork {
            plan.selection = SelectionForm::Variables;
        }
        if matches!(plan.selection, SelectionForm::HostNetwork | SelectionForm::Variables) {
            plan.findings = question.findings;
            return plan;
        }
        let is_machine = workload.kind == WorkloadKind::VirtualMachine;
        let mut devices = PodDevices::new(&workload.requests, workload.has_claims, is_machine);
        plan.interfaces = interface::all(workload, &question, &mut devices);
        plan.left_out = workload.selected().count().saturating_sub(MAX_INTERFACES);
        let needs = plan.needs(&workload.requests);
        let constraints: NodeConstraints = workload.node_constraints();
        let nad_labels = NadLabel::of(&plan.interfaces, question.injector);
        plan.nodes = Some(NodesPlan::of(question.nodes, constraints, needs, nad_labels));
        plan.place_findings(workload, question.findings);
        plan
    }

    /// How many devices of each resource it needs: those that it requests, and those that its interfaces take.
    fn needs(&self, requests: &BTreeMap<String, u64>) -> BTreeMap<String, Option<u64>> {
        let known = |count: u64| Some(count).filter(|count| *count != u64::MAX);
        let mut needs: BTreeMap<_, _> = requests.iter().map(|(name, count)| (name.clone(), known(*count))).collect();
        for interface in &self.interfaces {
            if let DevicePlan::Pool { resource, place, requested: None } | DevicePlan::Short { resource, place, .. } =
                &interface.device
            {
                let need = needs.entry(resource.clone()).or_insert(Some(0));
                *need = need.map(|need| need.max(*place));
            }
        }
        needs
    }

    /// Puts each finding about an element of the annotation to the interface of that element.
    fn place_findings(&mut self, workload: &Workload<'_>, findings: Vec<Finding>) {
        let [networks, default] = [NETWORKS, DEFAULT_NETWORK].map(|key| workload.annotation_pointer(key));
        for finding in findings.into_iter().filter(|finding| finding.action > Action::Off) {
            let span = finding.config.as_ref().map(|place| &place.span);
            let is_it = |interface: &&mut InterfacePlan| match &interface.name {
                InterfaceName::Default => finding.pointer == default,
                _ if interface.pointer.is_empty() => finding.pointer == networks && span == Some(&interface.span),
                _ => finding.pointer == interface.pointer,
            };
            match self.interfaces.iter_mut().find(is_it) {
                Some(interface) => interface.findings.push(finding),
                None => self.findings.push(finding),
            }
        }
    }

    /// Its namespace and name.
    pub fn full_name(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }

    /// Whether it would start, as far as that is known.
    pub fn state(&self) -> LinkHealth {
        let own = match self.selection {
            SelectionForm::Unreadable => LinkHealth::Broken,
            SelectionForm::TooLarge | SelectionForm::Variables => LinkHealth::Unknown,
            _ if self.left_out > 0 => LinkHealth::Unknown,
            _ => LinkHealth::Good,
        };
        let denied = self.findings.iter().any(|finding| finding.would.unwrap_or(finding.action) == Action::Deny);
        let own = if denied { LinkHealth::Broken } else { own };
        let interfaces = self.interfaces.iter().map(|interface| interface.state);
        let nodes = self.nodes.iter().map(|nodes| nodes.state);
        interfaces.chain(nodes).fold(own, LinkHealth::max)
    }

    /// The arguments of an interface that no plugin reads.
    pub(super) fn unread(asked: Arguments, chain: Option<&ChainPlan>) -> Arguments {
        chain.map_or(Arguments::NONE, |chain| asked.without(chain.arguments))
    }
}
