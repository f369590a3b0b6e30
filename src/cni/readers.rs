//! The keys that Multus, libcni and the plugins we know decode.

use super::schema::{Field, INT, STRINGS, Type, UINT, UINT32, field};

/// What Multus and libcni decode in every plugin's config. `type` and `capabilities` have rules of their own.
pub const COMMON: &[Field] = &[
    field("cniVersion", Type::Str),
    field("name", Type::Str),
    field("type", Type::Any),
    field("capabilities", Type::Any),
    field("ipam", Type::Object(&[field("type", Type::Any)])),
    field("dns", DNS),
    field("args", Type::Any),
    field("runtimeConfig", Type::Any),
    field("prevResult", Type::Object(&[])),
    field("deviceID", Type::Any),
    field("pciBusID", Type::Any),
    field("resourceName", Type::Any),
];

/// What they decode besides at the top of a list.
pub const LIST: &[Field] = &[
    field("cniVersions", STRINGS),
    field("disableCheck", Type::Bool),
    field("disableGC", Type::Bool),
    // libcni takes a boolean or the words for it.
    field("loadOnlyInlinedPlugins", Type::Any),
    field("plugins", Type::Any),
];

const DNS: Type = Type::Object(&[
    field("nameservers", STRINGS),
    field("domain", Type::Str),
    field("search", STRINGS),
    field("options", STRINGS),
]);

const ROUTES: Type = Type::List(&Type::Object(&[
    field("dst", Type::Str),
    field("gw", Type::Str),
    field("mtu", INT),
    field("advmss", INT),
    field("priority", INT),
    field("table", INT),
    field("scope", INT),
]));

// `deviceID` and `pciBusID` are in none of these: Multus writes over them whatever they hold.

const SRIOV: &[Field] = &[
    field("vlan", INT),
    field("vlanQoS", INT),
    field("vlanProto", Type::Str),
    field("mac", Type::Str),
    field("mtu", INT),
    field("master", Type::Str),
    field("vfid", INT),
    field("min_tx_rate", INT),
    field("max_tx_rate", INT),
    field("spoofchk", Type::Str),
    field("trust", Type::Str),
    field("link_state", Type::Str),
    field("logLevel", Type::Str),
    field("logFile", Type::Str),
    field("runtimeConfig", Type::Object(&[field("mac", Type::Str)])),
];

const IB_SRIOV: &[Field] = &[
    field("master", Type::Str),
    field("vfid", INT),
    field("pkey", Type::Str),
    field("link_state", Type::Str),
    field("rdmaIsolation", Type::Bool),
    field("ibKubernetesEnabled", Type::Bool),
    field("vfioPciMode", Type::Bool),
    field("publishPfGuid", Type::Bool),
    field("kubeconfig", Type::Str),
    field("runtimeConfig", Type::Object(&[field("infinibandGUID", Type::Str)])),
    field("args", Type::Object(&[field("cni", Type::Map(&Type::Str))])),
];

const OVS: &[Field] = &[
    field("bridge", Type::Str),
    field("vlan", UINT),
    field("mtu", INT),
    field("trunk", Type::List(&Type::Object(&[field("minID", UINT), field("maxID", UINT), field("id", UINT)]))),
    field("ofport_request", UINT),
    field("interface_type", Type::Str),
    field("configuration_path", Type::Str),
    field("socket_file", Type::Str),
    field("link_state_check_retries", INT),
    field("link_state_check_interval", INT),
];

const TUNING: &[Field] = &[
    field("sysctl", Type::Map(&Type::Str)),
    field("mac", Type::Str),
    field("promisc", Type::Bool),
    field("mtu", INT),
    field("txQLen", INT),
    field("allmulti", Type::Bool),
    field("dataDir", Type::Str),
    field("runtimeConfig", Type::Object(&[field("mac", Type::Str)])),
    field(
        "args",
        Type::Object(&[field(
            "cni",
            Type::Object(&[
                field("sysctl", Type::Map(&Type::Str)),
                field("mac", Type::Str),
                field("promisc", Type::Bool),
                field("mtu", INT),
                field("txQLen", INT),
                field("allmulti", Type::Bool),
            ]),
        )]),
    ),
];

const RATES: &[Field] =
    &[field("ingressRate", UINT), field("ingressBurst", UINT), field("egressRate", UINT), field("egressBurst", UINT)];

const BANDWIDTH: &[Field] = &[
    field("ingressRate", UINT),
    field("ingressBurst", UINT),
    field("egressRate", UINT),
    field("egressBurst", UINT),
    field("runtimeConfig", Type::Object(&[field("bandwidth", Type::Object(RATES))])),
];

const VRF: &[Field] = &[field("vrfname", Type::Str), field("table", UINT32)];

const SBR: &[Field] = &[field("table", INT)];

const RDMA: &[Field] = &[field("args", Type::Object(&[field("cni", Type::Object(&[field("debug", Type::Bool)]))]))];

const PORTMAP: &[Field] = &[
    field("backend", Type::Str),
    field("snat", Type::Bool),
    field("conditionsV4", STRINGS),
    field("conditionsV6", STRINGS),
    field("masqAll", Type::Bool),
    field("markMasqBit", INT),
    field("externalSetMarkChain", Type::Str),
];

const FIREWALL: &[Field] = &[
    field("backend", Type::Str),
    field("iptablesAdminChainName", Type::Str),
    field("firewalldZone", Type::Str),
    field("ingressPolicy", Type::Str),
];

const BRIDGE: &[Field] = &[
    field("bridge", Type::Str),
    field("isGateway", Type::Bool),
    field("isDefaultGateway", Type::Bool),
    field("forceAddress", Type::Bool),
    field("ipMasq", Type::Bool),
    field("ipMasqBackend", Type::Str),
    field("mtu", INT),
    field("hairpinMode", Type::Bool),
    field("promiscMode", Type::Bool),
    field("vlan", INT),
    field("vlanTrunk", Type::List(&Type::Object(&[field("minID", INT), field("maxID", INT), field("id", INT)]))),
    field("preserveDefaultVlan", Type::Bool),
    field("macspoofchk", Type::Bool),
    field("enabledad", Type::Bool),
    field("disableContainerInterface", Type::Bool),
    field("portIsolation", Type::Bool),
    field("runtimeConfig", Type::Object(&[field("mac", Type::Str)])),
];

const MACVLAN: &[Field] = &[
    field("master", Type::Str),
    field("mode", Type::Str),
    field("mtu", INT),
    field("mac", Type::Str),
    field("linkInContainer", Type::Bool),
    field("bcqueuelen", UINT32),
    field("runtimeConfig", Type::Object(&[field("mac", Type::Str)])),
];

const IPVLAN: &[Field] =
    &[field("master", Type::Str), field("mode", Type::Str), field("mtu", INT), field("linkInContainer", Type::Bool)];

const VLAN: &[Field] =
    &[field("master", Type::Str), field("vlanId", INT), field("mtu", INT), field("linkInContainer", Type::Bool)];

const HOST_DEVICE: &[Field] = &[
    field("device", Type::Str),
    field("hwaddr", Type::Str),
    field("kernelpath", Type::Str),
    field("runtimeConfig", Type::Object(&[field("deviceID", Type::Str)])),
];

const BOND: &[Field] = &[
    field("ifname", Type::Str),
    field("mode", Type::Str),
    field("linksInContainer", Type::Bool),
    field("failOverMac", INT),
    field("miimon", Type::Str),
    field("links", Type::List(&Type::Map(&Type::Any))),
    field("mtu", INT),
];
/// What static and whereabouts have for `addresses`.
const ADDRESSES: Type =
    Type::List(&Type::Object(&[field("address", Type::Str), field("gateway", Type::Str), field("version", Type::Str)]));

const HOST_LOCAL: &[Field] = &[
    field("type", Type::Any),
    field("name", Type::Str),
    field("subnet", Type::Str),
    field("rangeStart", Type::Str),
    field("rangeEnd", Type::Str),
    field("gateway", Type::Str),
    field(
        "ranges",
        Type::List(&Type::List(&Type::Object(&[
            field("subnet", Type::Str),
            field("rangeStart", Type::Str),
            field("rangeEnd", Type::Str),
            field("gateway", Type::Str),
        ]))),
    ),
    field("routes", ROUTES),
    field("dataDir", Type::Str),
    field("resolvConf", Type::Str),
];

const STATIC: &[Field] = &[
    field("type", Type::Any),
    field("name", Type::Str),
    field("addresses", ADDRESSES),
    field("routes", ROUTES),
    field("dns", DNS),
];

const DHCP: &[Field] = &[
    field("type", Type::Any),
    field("daemonSocketPath", Type::Str),
    field("priority", INT),
    field("request", Type::List(&Type::Object(&[field("skipDefault", Type::Bool), field("option", Type::Str)]))),
    field(
        "provide",
        Type::List(&Type::Object(&[
            field("option", Type::Str),
            field("value", Type::Str),
            field("fromArg", Type::Str),
        ])),
    ),
];

/// What only some releases of whereabouts know is of any type: the others ignore it.
const WHEREABOUTS: &[Field] = &[
    field("type", Type::Any),
    field("name", Type::Str),
    field("routes", ROUTES),
    field("addresses", ADDRESSES),
    field(
        "ipRanges",
        Type::List(&Type::Object(&[
            field("range", Type::Str),
            field("range_start", Type::Str),
            field("range_end", Type::Str),
            field("exclude", STRINGS),
        ])),
    ),
    field("range", Type::Str),
    field("range_start", Type::Str),
    field("range_end", Type::Str),
    field("exclude", STRINGS),
    field("node_slice_size", Type::Str),
    field("gateway", Type::Str),
    field("dns", DNS),
    field("datastore", Type::Any),
    field("etcd_host", Type::Any),
    field("etcd_username", Type::Any),
    field("etcd_password", Type::Any),
    field("etcd_key_file", Type::Any),
    field("etcd_cert_file", Type::Any),
    field("etcd_ca_cert_file", Type::Any),
    field("log_file", Type::Str),
    field("log_level", Type::Str),
    field("enable_overlapping_ranges", Type::Bool),
    field("exclude_gateway", Type::Any),
    field("optimistic_ipam", Type::Any),
    field("enable_l3", Type::Any),
    field("sleep_for_race", INT),
    field("network_name", Type::Str),
    field("kubernetes", Type::Object(&[field("kubeconfig", Type::Str), field("k8s_api_root", Type::Str)])),
    field("configuration_path", Type::Str),
    field("reconciler_cron_expression", Type::Str),
    field("leader_lease_duration", INT),
    field("leader_renew_deadline", INT),
    field("leader_retry_period", INT),
    field("podName", Type::Str),
    field("podNamespace", Type::Str),
];

/// The IPAM plugins we know, and their keys.
pub const IPAM: &[(&str, &[Field])] =
    &[("host-local", HOST_LOCAL), ("static", STATIC), ("dhcp", DHCP), ("whereabouts", WHEREABOUTS)];

/// The keys of a plugin's own; `None` for plugins we know nothing of.
pub fn plugin(kind: &str) -> Option<&'static [Field]> {
    match kind {
        "sriov" => Some(SRIOV),
        "ib-sriov" => Some(IB_SRIOV),
        "ovs" => Some(OVS),
        "tuning" => Some(TUNING),
        "bandwidth" => Some(BANDWIDTH),
        "vrf" => Some(VRF),
        "sbr" => Some(SBR),
        "rdma" => Some(RDMA),
        "portmap" => Some(PORTMAP),
        "firewall" => Some(FIREWALL),
        "bridge" => Some(BRIDGE),
        "macvlan" => Some(MACVLAN),
        "ipvlan" => Some(IPVLAN),
        "vlan" => Some(VLAN),
        "host-device" => Some(HOST_DEVICE),
        "bond" => Some(BOND),
        _ => None,
    }
}

/// The keys of an IPAM section; `None` for IPAM plugins we know nothing of.
pub fn ipam(kind: &str) -> Option<&'static [Field]> {
    IPAM.iter().find(|(name, _)| *name == kind).map(|(_, table)| *table)
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::super::schema::first_misfit;
    use crate::json::Document;

    /// Each row was run through Go's decoder and the plugin's struct.
    #[test]
    fn decodes_what_the_plugins_decode() {
        for (kind, text, fits) in [
            // Multus writes the device over whatever stands there.
            ("sriov", r#"{"deviceID":5,"pciBusID":[]}"#, true),
            ("sriov", r#"{"vlan":100.0,"vlanQoS":1e0,"mac":null}"#, true),
            ("sriov", r#"{"vlan":"100"}"#, false),
            ("sriov", r#"{"mtu":"9000"}"#, false),
            ("sriov", r#"{"VFID":"1"}"#, false),
            ("sriov", r#"{"runtimeConfig":[]}"#, false),
            ("ib-sriov", r#"{"publishPfGuid":"yes"}"#, false),
            ("ib-sriov", r#"{"args":{"cni":{"guid":5}}}"#, false),
            ("ib-sriov", r#"{"mtu":"x"}"#, true),
            ("ovs", r#"{"trunk":[null,{"id":5}],"ovnPort":5}"#, true),
            ("ovs", r#"{"trunk":[{"id":"5"}]}"#, false),
            ("ovs", r#"{"vlan":-1}"#, false),
            ("tuning", r#"{"args":{"cni":{"mtu":"x"}}}"#, false),
            ("tuning", r#"{"sysctl":{"net.x":1}}"#, false),
            ("bandwidth", r#"{"ingressRate":-1}"#, false),
            ("vrf", r#"{"table":4294967296}"#, false),
            ("sbr", r#"{"table":"x"}"#, false),
        ] {
            let document = Document::parse(text).unwrap();
            let misfit = first_misfit(super::plugin(kind).unwrap(), Object::of(&document.root).unwrap());
            assert_eq!(misfit.is_none(), fits, "{kind} {text}");
        }
    }
}
