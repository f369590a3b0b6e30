//! What rules need to know about node policies other than the judged one, and which two of them meet on one PF.

use std::sync::Arc;

use crate::resources::{NamedVfs, NetworkNodePolicy, NicSelector, ObjectKey, PhysicalFunction, name_of};

/// The link type that a policy states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// None: the device plugin then takes devices of either type.
    Unstated,
    /// Ethernet.
    Ethernet,
    /// InfiniBand.
    InfiniBand,
}

/// What rules need to know about a node policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePolicyFact {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its `spec.resourceName`.
    pub resource_name: Box<str>,
    /// How many VFs it requests for each PF.
    pub num_vfs: Option<i64>,
    /// The link type.
    pub link_type: LinkType,
    /// Whether its VFs are bound to vfio-pci.
    pub is_vfio: bool,
    /// What the device plugin takes from the first policy of a resource, and the webhook of the operator compares: the field, and
    /// its value where that is known.
    pub shared: [(&'static str, Option<Box<str>>); 4],
    /// Whether the VFs are created by someone else.
    pub is_externally_managed: Option<bool>,
    /// Which PFs it selects; `None` if unknown.
    pub nics: Option<NicSelector>,
    /// The labels of the nodes it selects, sorted; `None` if unknown.
    pub nodes: Option<Vec<(Box<str>, Box<str>)>>,
}

/// A range of VFs of one PF, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VfRange {
    /// The first.
    pub from: i64,
    /// The last.
    pub to: i64,
}

/// A PF that the judged policy and another one select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPf {
    /// The other policy.
    pub other: Arc<NodePolicyFact>,
    /// The PF, as text: `ens1`.
    pub pf: String,
    /// A node on which node states show that both mean this PF; `None` if the policies alone do.
    pub node: Option<Box<str>>,
    /// The place of the PF in `pfNames` of the judged policy, if it is there.
    pub entry: Option<usize>,
    /// The VFs that the judged policy configures, if known.
    pub own: Option<VfRange>,
    /// The VFs that the other one configures, if known.
    pub their: Option<VfRange>,
}

/// The node policies that meet the judged one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePolicyNeighbours {
    /// Those with a PF in common.
    pub pfs: Vec<SharedPf>,
    /// Those with the same resource name on a common node.
    pub same_resource: Vec<Arc<NodePolicyFact>>,
}

/// The link types of the policies that offer a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedLinkTypes {
    /// How many offer it.
    pub policies: usize,
    /// Those that state InfiniBand.
    pub infiniband: OfferingPolicies,
    /// Those that state Ethernet, and bind VFs to a kernel driver.
    pub ethernet: OfferingPolicies,
}

/// Some of the policies that offer a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferingPolicies {
    /// How many.
    pub count: usize,
    /// One of them.
    pub first: Option<ObjectKey>,
}

impl OfferingPolicies {
    pub(super) fn add(&mut self, key: &ObjectKey) {
        self.count += 1;
        self.first.get_or_insert_with(|| key.clone());
    }
}

impl VfRange {
    /// Whether both have a VF in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

impl NodePolicyFact {
    /// Summarizes a policy that was read.
    pub fn of(policy: &NetworkNodePolicy<'_>) -> Self {
        let link_type = match policy.text("linkType") {
            text if text.eq_ignore_ascii_case("ib") => LinkType::InfiniBand,
            text if text.eq_ignore_ascii_case("eth") => LinkType::Ethernet,
            _ => LinkType::Unstated,
        };
        let is_vfio = policy.text("deviceType") == "vfio-pci";
        let flag = |field| policy.flag(field).map(|flag| Box::from(if flag { "true" } else { "false" }));
        // The operator's webhook sets isRdma on InfiniBand, so a manifest without it may be stored with it.
        let sets_rdma = link_type == LinkType::InfiniBand && !is_vfio && policy.flag("isRdma") != Some(true);
        let vdpa_type = policy.spec.text("vdpaType").value();
        let knows_vdpa = vdpa_type.is_some() || policy.spec.raw("vdpaType").is_none();
        Self {
            key: ObjectKey::new(name_of(&policy.meta.namespace), name_of(&policy.meta.name)),
            resource_name: name_of(&policy.text("resourceName")).into(),
            num_vfs: policy.integer("numVfs"),
            link_type,
            is_vfio,
            shared: [
                ("isRdma", flag("isRdma").filter(|_| !sets_rdma)),
                ("needVhostNet", flag("needVhostNet")),
                ("vdpaType", knows_vdpa.then(|| name_of(&vdpa_type.unwrap_or_default()).into())),
                ("excludeTopology", flag("excludeTopology")),
            ],
            is_externally_managed: policy.flag("externallyManaged"),
            nics: policy.nic_selector(),
            nodes: policy.node_selector(),
        }
    }

    /// Whether every node that one of both selects is certainly selected by the other one, too: the labels of nodes are not known,
    /// so two selectors that only may match the same node do not count.
    pub fn shares_nodes(&self, other: &Self) -> bool {
        self.has_nodes_within(other) || other.has_nodes_within(self)
    }

    /// Whether the other one selects every node that this one selects.
    pub(super) fn has_nodes_within(&self, other: &Self) -> bool {
        let (Some(own), Some(their)) = (&self.nodes, &other.nodes) else { return false };
        their.iter().all(|label| own.binary_search(label).is_ok())
    }

    /// The VFs of a PF that it configures; `None` if unknown. `entry` is the PF's element of `pfNames`.
    fn vfs(&self, entry: Option<NamedVfs>) -> Option<VfRange> {
        match entry {
            Some(NamedVfs::Range(from, to)) if from <= to => Some(VfRange { from, to }),
            Some(NamedVfs::Range(..) | NamedVfs::Unreadable) => None,
            Some(NamedVfs::All) | None => {
                self.num_vfs.filter(|count| *count > 0).map(|count| VfRange { from: 0, to: count - 1 })
            }
        }
    }

    /// The PFs that both select, as far as the two policies alone show it: PFs of the same name or address, or one selector that is
    /// the other one with further conditions.
    pub(super) fn shared_by_selectors(&self, other: &Arc<Self>) -> Vec<SharedPf> {
        let (Some(own), Some(their)) = (&self.nics, &other.nics) else { return Vec::new() };
        let differs = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        let is_comparable = !own.is_empty() && !their.is_empty();
        let has_filter = !own.net_filter.is_empty() || !their.net_filter.is_empty();
        if !is_comparable
            || has_filter
            || differs(&own.vendor, &their.vendor)
            || differs(&own.device_id, &their.device_id)
        {
            return Vec::new();
        }
        let roots = |nics: &NicSelector| nics.root_devices.clone();
        let common_roots: Vec<_> = roots(own).into_iter().filter(|root| their.root_devices.contains(root)).collect();
        if !own.root_devices.is_empty() && !their.root_devices.is_empty() && common_roots.is_empty() {
            return Vec::new();
        }
        let pf = |pf: String, entry: Option<usize>, own: Option<NamedVfs>, their: Option<NamedVfs>| SharedPf {
            other: Arc::clone(other),
            pf,
            node: None,
            entry,
            own: self.vfs(own),
            their: other.vfs(their),
        };
        match (own.pf_names.is_empty(), their.pf_names.is_empty()) {
            (false, false) => {
                let mut found: Vec<SharedPf> = Vec::new();
                for name in own.pf_names.iter().map(|entry| &entry.name) {
                    let is_named = |other: &str| *other == **name;
                    if let (Some((at, entry)), Some((_, other))) = (own.entry(is_named), their.entry(is_named))
                        && found.iter().all(|known| known.entry != Some(at))
                    {
                        found.push(pf(name.to_string(), Some(at), Some(entry.vfs), Some(other.vfs)));
                    }
                }
                found
            }
            // The PF has an address in one of them and a name in the other one, or in both an address.
            _ if !common_roots.is_empty() => {
                let only = |nics: &NicSelector| match nics.pf_names.as_slice() {
                    [] => Some(None),
                    [one] => Some(Some(one.vfs)),
                    _ => None,
                };
                let (Some(own), Some(their)) = (only(own), only(their)) else { return Vec::new() };
                common_roots.into_iter().map(|root| pf(root.into(), None, own, their)).collect()
            }
            _ => shared_by_kind(own, their, &pf),
        }
    }

    /// The PF of a node, if both select it.
    pub(super) fn shared_on(&self, other: &Arc<Self>, node: &str, pf: &PhysicalFunction) -> Option<SharedPf> {
        let (own, their) = (self.nics.as_ref()?, other.nics.as_ref()?);
        if !self.selects(pf) || !other.selects(pf) {
            return None;
        }
        let entry = own.entry(|name| pf.is_named(name));
        let other_entry = their.entry(|name| pf.is_named(name));
        let name = if pf.name.is_empty() { &pf.pci_address } else { &pf.name };
        Some(SharedPf {
            other: Arc::clone(other),
            pf: name.to_string(),
            node: Some(node.into()),
            entry: entry.map(|(at, _)| at),
            own: self.vfs(entry.map(|(_, entry)| entry.vfs)),
            their: other.vfs(other_entry.map(|(_, entry)| entry.vfs)),
        })
    }

    /// Whether it selects a PF, as the operator decides it. What a `netFilter` means only the operator knows.
    pub(super) fn selects(&self, pf: &PhysicalFunction) -> bool {
        let is_any = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        self.nics.as_ref().is_some_and(|nics| {
            !nics.is_empty()
                && nics.net_filter.is_empty()
                && is_any(&nics.vendor, &pf.vendor)
                && is_any(&nics.device_id, &pf.device_id)
                && (nics.root_devices.is_empty() || nics.root_devices.contains(&pf.pci_address))
                && (nics.pf_names.is_empty() || nics.pf_names.iter().any(|entry| pf.is_named(&entry.name)))
        })
    }
}

/// The PFs that a selector of a vendor or model shares with one that has the same conditions and more.
fn shared_by_kind(
    own: &NicSelector,
    their: &NicSelector,
    pf: &dyn Fn(String, Option<usize>, Option<NamedVfs>, Option<NamedVfs>) -> SharedPf,
) -> Vec<SharedPf> {
    let is_condition_of = |condition: &str, narrow: &str| condition.is_empty() || condition == narrow;
    let covers = |wide: &NicSelector, narrow: &NicSelector| {
        wide.names_none()
            && is_condition_of(&wide.vendor, &narrow.vendor)
            && is_condition_of(&wide.device_id, &narrow.device_id)
    };
    let narrow = if covers(their, own) {
        own
    } else if covers(own, their) {
        their
    } else {
        return Vec::new();
    };
    let is_own = std::ptr::eq(narrow, own);
    let named = |(at, entry): (usize, &crate::resources::PfName)| {
        let (vfs, entry_at) = (Some(entry.vfs), is_own.then_some(at));
        pf(entry.name.to_string(), entry_at, vfs.filter(|_| is_own), vfs.filter(|_| !is_own))
    };
    if !narrow.pf_names.is_empty() {
        return narrow.pf_names.iter().enumerate().map(named).collect();
    }
    if !narrow.root_devices.is_empty() {
        return narrow.root_devices.iter().map(|root| pf(root.to_string(), None, None, None)).collect();
    }
    let kind = [&narrow.vendor, &narrow.device_id].into_iter().filter(|text| !text.is_empty());
    vec![pf(kind.map(|text| &**text).collect::<Vec<_>>().join(":"), None, None, None)]
}
