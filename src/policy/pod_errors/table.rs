//! The errors, in the order of the programs that report them.

use super::{ErrorEvidence, PodError};

/// Shorthand for the table.
const fn error(words: &'static str, rules: &'static [&'static str]) -> PodError {
    PodError { words, rules, evidence: ErrorEvidence::Pod, cause: None }
}

impl PodError {
    /// With a cause that is not in the NAD.
    const fn or_because(self, cause: &'static str) -> Self {
        Self { cause: Some(cause), ..self }
    }

    /// Of a plugin that needs hardware: its answer was recorded.
    const fn recorded(self) -> Self {
        Self { evidence: ErrorEvidence::Recorded, ..self }
    }

    /// Known from the source alone.
    const fn in_source(self) -> Self {
        Self { evidence: ErrorEvidence::Source, ..self }
    }
}

/// The cause where a plugin gets no device.
const NO_DEVICE: &str = "Multus gave the plugin no device: the pod requests fewer devices of the NAD's resource than it selects networks \
    of it, or none";

/// All of them. An error that has the words of another one in it comes first.
pub static POD_ERRORS: &[PodError] = &[
    // Multus: the selection of a pod
    error("failed to parse pod Network Attachment Selection Annotation JSON format: ", &["pod/selection"]),
    error("one or more items did not match comma-delimited format", &["pod/selection"]),
    error("Invalid network object (failed at '/')", &["pod/selection"]),
    error("Invalid network object (failed at '@')", &["pod/selection"]),
    error("Failed to parse interface name: ", &["pod/selection"]),
    error("failed to mac: ", &["pod/selection"]),
    error("failed to validate infiniband GUID: ", &["pod/selection"]),
    error("failed to parse CIDR \"", &["pod/selection"]),
    error("failed to parse IP address \"", &["pod/selection"]),
    error("pod annotation does not have \"network\" as key", &["pod/selection"]),
    error("more than one default network is specified", &["pod/selection"]),
    error("invalid memory address or nil pointer dereference…parsePodNetworkAnnotation", &["pod/selection"]),
    error("index out of range [0] with length 0…tryLoadK8sPodDefaultNetwork", &["pod/selection"]),
    error("cannot find a network-attachment-definition (", &["pod/nad-absent", "pod/selection"]),
    error("namespace isolation enabled, annotation violates permission", &["pod/namespace"]).in_source(),
    error("validateIfName: interface name …already exists", &["pod/interface"]),
    // Multus: the NAD
    error("failed to unmarshal Spec.Config: ", &["nad/config-not-json"]),
    error("delegate must have the 'type' or 'plugin' field", &["nad/no-plugin"]),
    error("index out of range [0] with length 0…LoadDelegateNetConfList", &["nad/no-plugin"]),
    // libcni
    error("invalid plugin name: ", &["nad/plugin-type"]),
    error("interface name is too long", &["pod/interface"]),
    error("interface name contains / or : or whitespace characters", &["pod/interface"]),
    error("failed to find plugin \"", &["nad/unknown-plugin"]).or_because(
        "the plugin is not installed on the node: put the program into the CNI directory of every node that runs such pods",
    ),
    error("missing network name", &["nad/network-name"]),
    error("invalid characters found in network name", &["nad/network-name"]),
    error("plugin type=\"firewall\" failed (add): incompatible CNI versions; config is ", &["plugin/firewall-version"]),
    error("incompatible CNI versions; config is ", &["nad/cni-version", "meta/vrf", "meta/bandwidth"]),
    error("json: cannot unmarshal …capabilities of type bool", &["nad/capabilities"]),
    error("json: cannot unmarshal …into Go ", &["nad/field-type"]),
    // The plugins that make an interface
    error("unknown macvlan mode: ", &["plugin/macvlan-mode"]),
    error("unknown ipvlan mode: ", &["plugin/ipvlan-mode"]),
    error("invalid MTU …, must be [0, master MTU(", &["plugin/mtu"]),
    error("invalid VLAN ID …(must be between 0 and 4095 inclusive)", &["plugin/vlan-id"]),
    error("invalid VLAN ID ", &["plugin/bridge-vlan"]),
    error("incorrect trunk id parameter", &["plugin/bridge-vlan"]),
    error("cannot set hairpin mode and promiscuous mode at the same time", &["plugin/bridge-options"]),
    error("failed to create bridge \"…invalid argument", &["plugin/mtu"]),
    error("failed to create bridge \"…numerical result out of range", &["plugin/bridge-options"]),
    error(
        "\"master\" field is required. It specifies the host interface name to create the VLAN for",
        &["plugin/vlan-master"],
    ),
    error("specify either \"device\", \"hwaddr\", \"kernelpath\" or \"pciBusID\"", &["plugin/host-device"]),
    error("already has an IP address different from ", &["plugin/bridge-options"]),
    error("Link not found", &[]).or_because(
        "the node does not have an interface that the config names, such as `master`: correct the name, or use nodes that have it",
    ),
    // The plugins behind them
    error("Required prevResult missing", &["meta/chain-order"]),
    error("This plugin must be called as chained plugin", &["meta/chain-order"]),
    error("container veth name (\"…already exists", &["meta/chain-order"]),
    error("unknown ingress policy: ", &["plugin/firewall-policy"]),
    error("MasqMarkBit must be between 0 and 31", &["plugin/portmap"]),
    error("configuration is expected to have a valid vrf name", &["meta/vrf"]),
    error("has no veth peer: ", &["meta/bandwidth"]),
    error("create qdisc: file exists", &["meta/bandwidth"]),
    error("adding link: file exists", &["meta/bandwidth"]),
    error("if rate is set, burst must also be set", &["meta/bandwidth"]),
    error("invalid net sysctl key: ", &["meta/tuning"]),
    error("plugin type=\"tuning\" failed (add): invalid args …for MAC addr", &["meta/tuning"]),
    error("invalid args …for MAC addr", &["plugin/mac"]),
    error("No IP addresses supplied on interface: ", &["meta/sbr"]),
    error("Failed to add default route to ", &["meta/sbr"]),
    // Plugins that need hardware
    error("VF pci addr is required", &["nad/resource-name-missing", "nad/resource-name-malformed", "pod/too-few-devices"])
        .in_source()
        .or_because(NO_DEVICE),
    error("deviceID is required", &["nad/resource-name-missing", "nad/resource-name-malformed", "pod/too-few-devices"])
        .in_source()
        .or_because(NO_DEVICE),
    error("vlan id …invalid: value must be in the range 0-4094", &["sriov/vlan"]).recorded(),
    error("vlan QoS PCP …invalid: value must be in the range 0-7", &["sriov/vlan-qos"]).recorded(),
    error("vlan id must be configured to set vlan QoS to a non-", &["sriov/vlan-qos"]).recorded(),
    error("vlan Proto …invalid: value must be '802.1Q' or '802.1ad'", &["sriov/vlan-proto"]).recorded(),
    error("vlan id must be configured to set vlan proto ", &["sriov/vlan-proto"]).recorded(),
    error("invalid link_state value: ", &["sriov/link-state", "ib-sriov/link-state"]).recorded(),
    error("failed to parse MAC address", &["sriov/mac"]).in_source(),
    error("ipam type dhcp is not supported", &["ib-sriov/dhcp"]).in_source(),
    error("failed to get bridge name", &["ovs/bridge"]).in_source(),
    // A plugin that is called with an old version
    error("no valid IP addresses", &["nad/cni-version"]).in_source(),
    // IPAM
    error("Network has host bits set. For a subnet mask of length ", &["ipam/host-local-range"]),
    error("RangeStart …not in network ", &["ipam/host-local-range"]),
    error("RangeEnd …not in network ", &["ipam/host-local-range"]),
    error("too small to allocate from", &["ipam/host-local-range"]),
    error("no IP ranges specified", &["ipam/host-local-range", "ipam/wrong-dialect"]),
    error("IPAM plugin returned missing IP config", &["ipam/no-address", "ipam/wrong-dialect"]),
    error("the 'address' field is expected to be in CIDR notation, got: ", &["ipam/static-address"]),
    error("failed to add IP addr …file exists", &["ipam/static-address", "ipam/whereabouts-range"]),
    error("failed to add route '…network is unreachable", &["ipam/route"]),
    error("failed to add route '…file exists", &["ipam/route"]),
    error("error dialing DHCP daemon: ", &[])
        .or_because("the `dhcp` plugin needs a daemon on each node, which does not run on this one: start `dhcp daemon` there"),
    error("invalid CIDR address: ", &["ipam/host-local-range", "ipam/route", "ipam/whereabouts-range"]),
    error("invalid IP address: ", &["ipam/static-address", "ipam/host-local-range", "ipam/route"]),
];
