//! One interface of a pod.

use std::ops::Range;

use super::devices::{DevicePlan, PodDevices};
use super::nad::NadPlan;
use super::{MAX_INTERFACES, MULTUS_NAMESPACE, PodPlan, PodQuestion};
use crate::audit::chain::{LinkHealth, Read};
use crate::cni::arguments::Arguments;
use crate::policy::{Finding, ResourceInjector};
use crate::resources::{ObjectKey, RequestedValues, SelectedNetwork, Selection, Workload, WorkloadKind};

/// The name of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceName {
    /// The default network's, which is `eth0`.
    Default,
    /// `net` and its place among the selected networks.
    Counted(usize),
    /// The one that the pod asks for.
    Requested(String),
    /// One that KubeVirt makes, which is not known.
    Machine(usize),
}

impl InterfaceName {
    /// As it is called; of a virtual machine, the number of the network.
    pub fn text(&self) -> String {
        match self {
            Self::Default => "eth0".to_owned(),
            Self::Counted(place) => format!("net{place}"),
            Self::Requested(name) => name.clone(),
            Self::Machine(place) => format!("network {place}"),
        }
    }
}

/// By which rule the NAD of an interface is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The selection names no namespace: it is the pod's.
    PodNamespace,
    /// The selection names the namespace.
    NamedNamespace,
    /// The annotation of the default network names no namespace: it is that of Multus.
    MultusNamespace,
}

impl FoundBy {
    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PodNamespace => "pod-namespace",
            Self::NamedNamespace => "named-namespace",
            Self::MultusNamespace => "multus-namespace",
        }
    }
}

/// What an interface will be.
#[derive(Clone, Debug)]
pub struct InterfacePlan {
    /// Its name.
    pub name: InterfaceName,
    /// The NAD; `None` if the selection names none.
    pub nad: Option<ObjectKey>,
    /// How it is found.
    pub found_by: FoundBy,
    /// What it is; `Ok(None)` if it does not exist, `Err` says why it is not known.
    pub plan: Read<Option<NadPlan>>,
    /// Its device.
    pub device: DevicePlan,
    /// What the pod asks for.
    pub requested: RequestedValues,
    /// The requested values that no plugin reads.
    pub unread: Arguments,
    /// The findings about its selection; those about the NAD are in the plan.
    pub findings: Vec<Finding>,
    /// Whether it would work.
    pub state: LinkHealth,
    /// Where its selection is: the bytes in the annotation, or the JSON pointer in a virtual machine.
    pub(super) span: Range<usize>,
    pub(super) pointer: String,
}

impl InterfacePlan {
    /// Its NAD, if it is known.
    pub fn nad_plan(&self) -> Option<&NadPlan> {
        self.plan.as_ref().ok()?.as_ref()
    }

    /// All findings: those about the selection, and those about the NAD.
    pub fn all_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().chain(self.nad_plan().into_iter().flat_map(|nad| &nad.findings))
    }
}

/// The NAD that replaces the default network, if the annotation names exactly one.
pub(super) fn default_network(workload: &Workload<'_>) -> Option<SelectedNetwork> {
    match Selection::read(workload.default_network.as_deref()?, MULTUS_NAMESPACE) {
        Selection::Read(mut networks) if networks.len() == 1 => networks.pop(),
        _ => None,
    }
}

/// All interfaces, in the order in which Multus makes them.
pub(super) fn all(
    workload: &Workload<'_>,
    question: &PodQuestion<'_>,
    devices: &mut PodDevices<'_>,
) -> Vec<InterfacePlan> {
    let mut all = Vec::new();
    if let Some(text) = workload.default_network.as_deref() {
        // Multus counts the devices of the default network by themselves: the first selected network gets the same one.
        all.push(default(workload, text, question, &mut devices.untaken()));
    }
    let annotation = workload.networks.as_deref().unwrap_or_default();
    let listed = workload.selection.networks().len();
    for (number, network) in workload.selected().take(MAX_INTERFACES).enumerate() {
        let machine = number.checked_sub(listed).and_then(|number| workload.machine_networks.get(number));
        let name = match &network.interface {
            _ if workload.kind == WorkloadKind::VirtualMachine => InterfaceName::Machine(number + 1),
            requested if !requested.is_empty() => InterfaceName::Requested(requested.clone()),
            _ => InterfaceName::Counted(number + 1),
        };
        let found_by = if network.is_qualified { FoundBy::NamedNamespace } else { FoundBy::PodNamespace };
        let requested = if machine.is_some() { RequestedValues::default() } else { network.requested(annotation) };
        let pointer = machine.map(|(pointer, _)| pointer.clone()).unwrap_or_default();
        all.push(one((name, found_by, pointer), network, requested, question, devices));
    }
    all
}

fn default(
    workload: &Workload<'_>,
    text: &str,
    question: &PodQuestion<'_>,
    devices: &mut PodDevices<'_>,
) -> InterfacePlan {
    let Some(network) = default_network(workload) else {
        return InterfacePlan {
            name: InterfaceName::Default,
            nad: None,
            found_by: FoundBy::MultusNamespace,
            plan: Ok(None),
            device: DevicePlan::Unknown,
            requested: RequestedValues::default(),
            unread: Arguments::NONE,
            findings: Vec::new(),
            state: match Selection::read(text, MULTUS_NAMESPACE) {
                Selection::Unknown => LinkHealth::Unknown,
                _ => LinkHealth::Broken,
            },
            span: 0..0,
            pointer: String::new(),
        };
    };
    let found_by = if network.is_qualified { FoundBy::NamedNamespace } else { FoundBy::MultusNamespace };
    let requested = network.requested(text);
    one((InterfaceName::Default, found_by, String::new()), &network, requested, question, devices)
}

fn one(
    (name, found_by, pointer): (InterfaceName, FoundBy, String),
    network: &SelectedNetwork,
    requested: RequestedValues,
    question: &PodQuestion<'_>,
    devices: &mut PodDevices<'_>,
) -> InterfacePlan {
    let nad = network.nad();
    let unknown = || Err("it was not looked up".to_owned());
    let mut plan = nad.as_ref().map_or(Ok(None), |key| question.nads.get(key).cloned().unwrap_or_else(unknown));
    if found_by == FoundBy::MultusNamespace && matches!(plan, Ok(None)) {
        plan = Err(format!("it is not in {MULTUS_NAMESPACE}, but Multus may be configured with another namespace"));
    }
    let (device, unread, state) = match &plan {
        Ok(Some(found)) => {
            let device = devices.next(found);
            let state = state(found, &device, question.injector == Some(ResourceInjector::None));
            (device, PodPlan::unread(network.arguments, found.config.chain()), state)
        }
        Ok(None) => (DevicePlan::Unknown, Arguments::NONE, LinkHealth::Broken),
        Err(_) => (DevicePlan::Unknown, Arguments::NONE, LinkHealth::Unknown),
    };
    let span = network.span.clone();
    InterfacePlan { name, nad, found_by, plan, device, requested, unread, findings: Vec::new(), state, span, pointer }
}

/// Whether an interface with that NAD and that device would work.
fn state(nad: &NadPlan, device: &DevicePlan, is_final: bool) -> LinkHealth {
    let of_device = match device {
        DevicePlan::Missing => LinkHealth::Broken,
        DevicePlan::Short { .. } if is_final => LinkHealth::Broken,
        DevicePlan::Short { .. } | DevicePlan::Unknown | DevicePlan::PerhapsClaim => LinkHealth::Unknown,
        DevicePlan::None | DevicePlan::Pool { .. } | DevicePlan::Fixed(_) | DevicePlan::Claim => LinkHealth::Good,
    };
    let of_nad = if nad.is_broken() { LinkHealth::Broken } else { LinkHealth::Good };
    of_device.max(of_nad)
}
