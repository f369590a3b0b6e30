//! The keys that Multus, libcni and the plugins we know decode.

use super::schema::{Field, INT, STRINGS, Type, UINT, UINT32, field};

/// What Multus and libcni decode in every plugin's config. `type` and `capabilities` have rules of their own.
pub const COMMON: &[Field] = &[
    field("cniVersion", Type::Str),
    field("cniVersions", STRINGS),
    field("name", Type::Str),
    field("type", Type::Any),
    field("capabilities", Type::Any),
    field("ipam", Type::Object(&[field("type", Type::Any)])),
    field("dns", DNS),
    field("args", Type::Any),
    field("runtimeConfig", Type::Any),
    field("prevResult", Type::Any),
    field("deviceID", Type::Any),
    field("pciBusID", Type::Any),
    field("resourceName", Type::Any),
];

/// What they decode besides at the top of a list.
pub const LIST: &[Field] = &[
    field("disableCheck", Type::Bool),
    field("disableGC", Type::Bool),
    field("loadOnlyInlinedPlugins", Type::Bool),
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

const SRIOV: &[Field] = &[
    field("deviceID", Type::Str),
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
];

const IB_SRIOV: &[Field] = &[
    field("deviceID", Type::Str),
    field("master", Type::Str),
    field("pkey", Type::Str),
    field("link_state", Type::Str),
    field("rdmaIsolation", Type::Bool),
    field("ibKubernetesEnabled", Type::Bool),
    field("vfioPciMode", Type::Bool),
    field("args", Type::Object(&[field("cni", Type::Map(&Type::Str))])),
];

const OVS: &[Field] = &[
    field("deviceID", Type::Str),
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
    field("ovnPort", Type::Str),
];

const TUNING: &[Field] = &[
    field("sysctl", Type::Map(&Type::Str)),
    field("mac", Type::Str),
    field("promisc", Type::Bool),
    field("mtu", INT),
    field("txQLen", INT),
    field("allmulti", Type::Bool),
    field("dataDir", Type::Str),
];

const BANDWIDTH: &[Field] =
    &[field("ingressRate", UINT), field("ingressBurst", UINT), field("egressRate", UINT), field("egressBurst", UINT)];

const VRF: &[Field] = &[field("vrfname", Type::Str), field("table", UINT32)];

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
        _ => None,
    }
}

/// The keys of an IPAM section; `None` for IPAM plugins we know nothing of.
pub fn ipam(kind: &str) -> Option<&'static [Field]> {
    IPAM.iter().find(|(name, _)| *name == kind).map(|(_, table)| *table)
}
