//! What the config of a NAD makes of an interface, as far as it states it.

use super::addresses::{AddressPlan, Listed};
use crate::cni::arguments::Arguments;
use crate::cni::{Attachment, CniObject, Config, Plugin};
use crate::json::{Document, Value};

/// The config of a NAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigPlan {
    /// It is a file on each node.
    OnNodes,
    /// It cannot be read.
    Unreadable,
    /// It is this.
    Read(Box<ChainPlan>),
}

/// A chain of plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainPlan {
    /// The plugins, in the order in which they run; those of delegates come after their `multus`.
    pub plugins: Listed<PluginPlan>,
    /// The VLAN.
    pub vlan: Option<VlanPlan>,
    /// The partition of an InfiniBand network.
    pub partition: Option<String>,
    /// The MAC address that every pod gets.
    pub mac: Option<String>,
    /// The MTU.
    pub mtu: Option<i64>,
    /// Where the addresses come from.
    pub addresses: Listed<AddressPlan>,
    /// What a pod can ask for that reaches a plugin, or may.
    pub arguments: Arguments,
    /// The device that the config names itself.
    pub(super) fixed_device: Option<String>,
    /// Whether a plugin needs a device that only Multus or a driver can name.
    pub(super) needs_device: bool,
}

/// A plugin, and what it attaches the pod to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginPlan {
    /// The type.
    pub kind: String,
    /// The interface, bridge or network of the node.
    pub on: Option<String>,
}

/// A VLAN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VlanPlan {
    /// Its number; `None` for a trunk without one.
    pub id: Option<i64>,
    /// The priority.
    pub qos: Option<i64>,
    /// The protocol.
    pub protocol: Option<String>,
    /// The numbers that may be tagged by the pod.
    pub trunk: Listed<String>,
}

impl ConfigPlan {
    /// Reads a config as Multus and the plugins read it.
    pub(super) fn of(text: Option<&str>, needs_device: &dyn Fn(&str) -> bool) -> Self {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Self::OnNodes };
        let Ok(document) = Document::parse(text) else { return Self::Unreadable };
        let Some(config) = Config::of(&document).filter(|config| !config.plugins.is_empty()) else {
            return Self::Unreadable;
        };
        Self::Read(Box::new(ChainPlan::of(&config, needs_device)))
    }

    /// The chain, if it can be read.
    pub fn chain(&self) -> Option<&ChainPlan> {
        match self {
            Self::Read(chain) => Some(chain),
            Self::OnNodes | Self::Unreadable => None,
        }
    }
}

impl ChainPlan {
    fn of<'d>(config: &Config<'d>, needs_device: &dyn Fn(&str) -> bool) -> Self {
        let delegates = config.others.iter().filter(|other| !other.is_same_text(config));
        let all: Vec<&Plugin<'d>> =
            config.plugins.iter().chain(delegates.flat_map(|delegate| &delegate.plugins)).collect();
        let last = |find: &dyn Fn(&Plugin<'_>) -> Option<String>| all.iter().rev().find_map(|plugin| find(plugin));
        Self {
            plugins: all.iter().map(|plugin| PluginPlan::of(plugin)).collect(),
            vlan: all.iter().find_map(|plugin| vlan(plugin)),
            partition: last(&|plugin| {
                plugin.object.text_of("pkey").filter(|_| plugin.kind == "ib-sriov").map(str::to_owned)
            }),
            mac: last(&mac),
            mtu: all.iter().rev().find_map(|plugin| mtu(plugin)),
            addresses: all.iter().filter_map(|plugin| AddressPlan::of(plugin)).collect(),
            arguments: config.arguments_read(),
            fixed_device: all.iter().find_map(|plugin| plugin.fixed_device()).map(str::to_owned),
            needs_device: all.iter().any(|plugin| {
                needs_device(plugin.kind) || (plugin.kind == "host-device" && plugin.fixed_device().is_none())
            }),
        }
    }
}

impl PluginPlan {
    fn of(plugin: &Plugin<'_>) -> Self {
        let on = plugin.attachment().and_then(|attachment| match attachment {
            Attachment::Master(name) | Attachment::Vrf(name) => Some(name.to_owned()),
            Attachment::Bridge(name) => Some(format!("bridge {name}")),
            Attachment::OvnNetwork { topology, .. } => topology.map(|topology| format!("{topology} network")),
            // The plan of the device names it.
            Attachment::Device(_) => None,
        });
        Self { kind: plugin.kind.to_owned(), on }
    }
}

/// The VLAN that a plugin sets.
fn vlan(plugin: &Plugin<'_>) -> Option<VlanPlan> {
    let object = plugin.object;
    let trunk = match plugin.kind {
        "bridge" => Some("vlanTrunk"),
        "ovs" => Some("trunk"),
        _ => None,
    };
    let trunk: Listed<String> =
        trunk.map(|key| object.list_of(key).iter().filter_map(tags).collect()).unwrap_or_default();
    let id = plugin.vlan();
    let is_sriov = plugin.kind == "sriov" && id.is_some();
    let plan = VlanPlan {
        id,
        qos: object.int_of("vlanQoS").filter(|qos| *qos > 0 && is_sriov),
        protocol: object.text_of("vlanProto").filter(|_| is_sriov).map(str::to_owned),
        trunk,
    };
    (plan.id.is_some() || !plan.trunk.first.is_empty()).then_some(plan)
}

/// An element of a trunk: one VLAN, or some.
fn tags(element: &Value<'_>) -> Option<String> {
    let element = CniObject::of(element)?;
    match (element.int_of("id"), element.int_of("minID"), element.int_of("maxID")) {
        (_, Some(from), Some(to)) => Some(format!("{from}-{to}")),
        (Some(id), ..) => Some(id.to_string()),
        _ => None,
    }
}

/// The MAC address that a plugin gives the interface of every pod.
fn mac(plugin: &Plugin<'_>) -> Option<String> {
    let reads = matches!(plugin.kind, "sriov" | "macvlan" | "tap" | "tuning");
    plugin.object.text_of("mac").filter(|_| reads).map(str::to_owned)
}

/// The MTU that a plugin sets. `sriov` reads one, and then overwrites it with that of the VF.
fn mtu(plugin: &Plugin<'_>) -> Option<i64> {
    plugin.object.int_of("mtu").filter(|mtu| *mtu > 0 && plugin.kind != "sriov")
}
