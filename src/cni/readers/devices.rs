//! The plugins that make or move an interface.

use super::{INT_POINTER, STR_POINTER};
use crate::cni::schema::{Field, FieldTable, INT, Type, UINT, UINT32, field, table};

/// The device, which Multus overwrites in exactly this spelling.
pub(super) const DEVICE: Field = field("deviceID", Type::Str).quiet();

pub(super) const SRIOV: &FieldTable = &table(&[
    field("vlan", INT_POINTER),
    field("vlanQoS", INT_POINTER),
    field("vlanProto", STR_POINTER).since(2, 8, 0),
    field("mac", Type::Str),
    field("mtu", INT_POINTER).since(2, 8, 0),
    field("master", Type::Str),
    field("vfid", INT),
    field("min_tx_rate", INT_POINTER),
    field("max_tx_rate", INT_POINTER),
    field("spoofchk", Type::Str),
    field("trust", Type::Str),
    field("link_state", Type::Str),
    field("logLevel", Type::Str).since(2, 8, 0),
    field("logFile", Type::Str).since(2, 8, 0),
    field("runtimeConfig", Type::Object(&table(&[field("mac", Type::Str)]))),
    DEVICE,
    // What the plugin keeps of the VF between ADD and DEL.
    field("OrigVfState", VF_STATE),
]);

const VF_STATE: Type = Type::Object(&table(&[
    field("HostIFName", Type::Str),
    field("SpoofChk", Type::Bool),
    field("Trust", Type::Bool),
    field("AdminMAC", Type::Str),
    field("EffectiveMAC", Type::Str),
    field("Vlan", INT),
    field("VlanQoS", INT),
    field("VlanProto", INT),
    field("MinTxRate", INT),
    field("MaxTxRate", INT),
    field("LinkState", UINT32),
    field("MTU", INT),
]));

pub(super) const IB_SRIOV: &FieldTable = &table(&[
    field("master", Type::Str),
    field("vfid", INT),
    field("pkey", Type::Str),
    field("link_state", Type::Str),
    field("rdmaIsolation", Type::Bool),
    field("ibKubernetesEnabled", Type::Bool),
    field("vfioPciMode", Type::Bool).unreleased(),
    // In forks only.
    field("publishPfGuid", Type::Any),
    field("kubeconfig", Type::Any),
    field("runtimeConfig", Type::Object(&table(&[field("infinibandGUID", Type::Str)]))),
    field("args", Type::Object(&table(&[field("cni", Type::Map(&Type::Str))]))),
    DEVICE,
    // What the plugin keeps of the VF between ADD and DEL.
    field("HostIFNames", Type::Str),
    field("HostIFGUID", Type::Str),
    field("ContIFNames", Type::Str),
    field("RdmaNetState", Type::Object(RDMA_STATE)),
]);

const RDMA_STATE: &FieldTable = &table(&[
    field("version", Type::Str),
    field("deviceID", Type::Str),
    field("sandboxRdmaDevName", Type::Str),
    field("containerRdmaDevName", Type::Str),
]);

const UINT_POINTER: Type = Type::Pointer(&UINT);

pub(super) const OVS: &FieldTable = &table(&[
    field("bridge", Type::Str),
    field("vlan", UINT_POINTER),
    field("mtu", INT),
    field(
        "trunk",
        Type::List(&Type::Pointer(&Type::Object(&table(&[
            field("minID", UINT_POINTER),
            field("maxID", UINT_POINTER),
            field("id", UINT_POINTER),
        ])))),
    ),
    field("ofport_request", UINT).since(0, 29, 0),
    field("interface_type", Type::Str).since(0, 31, 0),
    field("configuration_path", Type::Str),
    field("socket_file", Type::Str),
    field("link_state_check_retries", INT),
    field("link_state_check_interval", INT),
    DEVICE,
    field("runtimeConfig", Type::Pointer(&Type::Object(&table(&[field("CNIDeviceInfoFile", Type::Str)])))).unreleased(),
    field("args", Type::Pointer(&Type::Object(&table(&[field("cni", Type::Map(&Type::Any))])))).unreleased(),
]);

/// OVN-Kubernetes. Its controllers decode the text of the NAD, its plugin a copy.
pub(super) const OVN: &FieldTable = &table(&[
    field("role", Type::Str).since(1, 1, 0),
    field("topology", Type::Str),
    field("netAttachDefName", Type::Str),
    field("mtu", INT),
    field("subnets", Type::Str),
    field("excludeSubnets", Type::Str),
    field("joinSubnet", Type::Str).since(1, 1, 0),
    field("vlanID", INT),
    field("allowPersistentIPs", Type::Bool),
    field("physicalNetworkName", Type::Str).since(1, 1, 0),
    DEVICE,
    field("logFile", Type::Str),
    field("logLevel", Type::Str),
    field("logfile-maxsize", INT),
    field("logfile-maxbackups", INT),
    field("logfile-maxage", INT),
    field("runtimeConfig", Type::Object(&table(&[field("CNIDeviceInfoFile", Type::Str)]))),
    field("reservedSubnets", Type::Str).since(1, 2, 0),
    field("infrastructureSubnets", Type::Str).since(1, 2, 0),
    field("transitSubnet", Type::Str).since(1, 2, 0),
    field("defaultGatewayIPs", Type::Str).since(1, 2, 0),
    field("transport", Type::Str).since(1, 3, 0),
    field("outboundSNAT", Type::Str).unreleased(),
    field("evpn", Type::Any).since(1, 3, 0),
    field("uplink", Type::Str).unreleased(),
]);

pub(super) const BRIDGE: &FieldTable = &table(&[
    field("bridge", Type::Str),
    field("isGateway", Type::Bool),
    field("isDefaultGateway", Type::Bool),
    field("forceAddress", Type::Bool),
    field("ipMasq", Type::Bool),
    field("ipMasqBackend", STR_POINTER).since(1, 6, 0),
    field("mtu", INT),
    field("hairpinMode", Type::Bool),
    field("promiscMode", Type::Bool),
    field("vlan", INT),
    field(
        "vlanTrunk",
        Type::List(&Type::Pointer(&Type::Object(&table(&[
            field("minID", INT_POINTER),
            field("maxID", INT_POINTER),
            field("id", INT_POINTER),
        ])))),
    )
    .since(1, 3, 0),
    field("preserveDefaultVlan", Type::Bool).since(1, 3, 0),
    field("macspoofchk", Type::Bool).since(1, 1, 0),
    field("enabledad", Type::Bool).since(1, 1, 0),
    field("disableContainerInterface", Type::Bool).since(1, 4, 1),
    field("portIsolation", Type::Bool).since(1, 7, 0),
    field("args", Type::Object(&table(&[field("cni", Type::Object(&table(&[field("mac", Type::Str)])))]))),
    field("runtimeConfig", Type::Object(&table(&[field("mac", Type::Str)]))),
]);

pub(super) const MACVLAN: &FieldTable = &table(&[
    field("master", Type::Str),
    field("mode", Type::Str),
    field("mtu", INT),
    field("mac", Type::Str),
    field("linkInContainer", Type::Bool).since(1, 3, 0),
    field("bcqueuelen", UINT32).since(1, 6, 0),
    field("runtimeConfig", Type::Object(&table(&[field("mac", Type::Str)]))),
]);

pub(super) const IPVLAN: &FieldTable = &table(&[
    field("master", Type::Str),
    field("mode", Type::Str),
    field("mtu", INT),
    field("linkInContainer", Type::Bool).since(1, 3, 0),
]);

pub(super) const VLAN: &FieldTable = &table(&[
    field("master", Type::Str),
    field("vlanId", INT),
    field("mtu", INT),
    field("linkInContainer", Type::Bool).since(1, 3, 0),
]);

pub(super) const HOST_DEVICE: &FieldTable = &table(&[
    field("device", Type::Str),
    field("hwaddr", Type::Str),
    field("kernelpath", Type::Str),
    field("pciBusID", Type::Str).quiet(),
    field("DPDKMode", Type::Bool),
    field("runtimeConfig", Type::Object(&table(&[field("deviceID", Type::Str)]))),
]);

pub(super) const BOND: &FieldTable = &table(&[
    field("ifname", Type::Any),
    field("mode", Type::Str),
    field("linksInContainer", Type::Bool),
    field("failOverMac", INT).unreleased(),
    field("miimon", Type::Str),
    field("links", Type::List(&Type::Map(&Type::Any))),
    field("mtu", INT).unreleased(),
    field("allSlavesActive", INT_POINTER).unreleased(),
    field("tlbDynamicLb", INT_POINTER).unreleased(),
    field("xmitHashPolicy", STR_POINTER).unreleased(),
]);
