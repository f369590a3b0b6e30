//! The keys that Multus, libcni and the plugins we know decode, and the kinds of the Go fields they are decoded into.

mod chained;
mod devices;
mod ipam;

use chained::{BANDWIDTH, FIREWALL, MULTUS, PORTMAP, RDMA, SBR, TUNING, VRF};
use devices::{BOND, BRIDGE, HOST_DEVICE, IB_SRIOV, IPVLAN, MACVLAN, OVN, OVS, SRIOV, VLAN};
use ipam::{BESIDE_HOST_LOCAL, BESIDE_STATIC, DHCP, HOST_LOCAL, STATIC, WHEREABOUTS};

use super::same_key;
use super::schema::{FieldTable, INT, STRINGS, Type, field, table};

/// The keys that Multus and libcni decode in every plugin's config. Keys that are not decoded are listed too, so that they do not
/// count as misspellings.
pub const COMMON: &FieldTable = &table(&[
    field("cniVersion", Type::Str),
    field("name", Type::Str),
    field("type", Type::Str).quiet(),
    field("capabilities", CAPABILITIES).quiet(),
    field("ipam", SOME_IPAM),
    field("dns", DNS),
    field("args", Type::Any),
    field("runtimeConfig", Type::Any),
    field("prevResult", Type::Map(&Type::Any)),
    field(
        "cni.dev/valid-attachments",
        Type::List(&Type::Object(&table(&[field("containerID", Type::Str), field("ifname", Type::Str)]))),
    ),
    field("deviceID", Type::Any),
    field("pciBusID", Type::Any),
    field("resourceName", Type::Any),
]);

/// What a runtime may pass on to a plugin.
pub const CAPABILITIES: Type = Type::Map(&Type::Bool);

/// The part of an IPAM section that every reader decodes.
pub const SOME_IPAM: Type = Type::Object(&table(&[field("type", Type::Str).quiet()]));

/// The keys at the top of a list that they decode, too.
pub const LIST: &FieldTable = &table(&[
    field("cniVersions", STRINGS),
    field("disableCheck", Type::Bool),
    field("disableGC", Type::Bool),
    // libcni takes a boolean or the words for it.
    field("loadOnlyInlinedPlugins", Type::Any),
    field("plugins", PLUGINS).quiet(),
]);

/// The plugins of a list, as Multus decodes them.
pub const PLUGINS: Type = Type::List(&Type::Pointer(&Type::Object(COMMON)));

const DNS: Type = Type::Object(&table(&[
    field("nameservers", STRINGS),
    field("domain", Type::Str),
    field("search", STRINGS),
    field("options", STRINGS),
]));

const INT_POINTER: Type = Type::Pointer(&INT);
const STR_POINTER: Type = Type::Pointer(&Type::Str);
const BOOL_POINTER: Type = Type::Pointer(&Type::Bool);

/// The IPAM plugins we know, their keys, and how they decode their section.
pub const IPAM: &[(&str, &FieldTable, Type)] = &[
    ("host-local", HOST_LOCAL, Type::Pointer(&Type::Object(HOST_LOCAL))),
    ("static", STATIC, Type::Pointer(&Type::Object(STATIC))),
    ("dhcp", DHCP, Type::Pointer(&Type::Object(DHCP))),
    ("whereabouts", WHEREABOUTS, Type::Pointer(&Type::Fresh(&Type::Object(WHEREABOUTS)))),
];

/// The plugins we know, and their own keys.
pub const KNOWN: &[(&str, &FieldTable)] = &[
    ("sriov", SRIOV),
    ("ib-sriov", IB_SRIOV),
    ("ovs", OVS),
    ("ovn-k8s-cni-overlay", OVN),
    ("tuning", TUNING),
    ("bandwidth", BANDWIDTH),
    ("vrf", VRF),
    ("sbr", SBR),
    ("rdma", RDMA),
    ("portmap", PORTMAP),
    ("firewall", FIREWALL),
    ("bridge", BRIDGE),
    ("macvlan", MACVLAN),
    ("ipvlan", IPVLAN),
    ("vlan", VLAN),
    ("host-device", HOST_DEVICE),
    ("bond", BOND),
    ("multus", MULTUS),
    ("multus-shim", MULTUS),
];

/// The keys of a plugin's own; `None` for plugins we know nothing of.
pub fn plugin(kind: &str) -> Option<&'static FieldTable> {
    KNOWN.iter().find(|(name, _)| *name == kind).map(|(_, table)| *table)
}

/// The keys of an IPAM section; `None` for IPAM plugins we know nothing of.
pub fn ipam(kind: &str) -> Option<&'static FieldTable> {
    IPAM.iter().find(|(name, ..)| *name == kind).map(|(_, table, _)| *table)
}

/// A table without fields, for what is not decoded.
pub const NOTHING: &FieldTable = &table(&[]);

/// What an IPAM plugin decodes of the config around its section.
pub fn beside_ipam(kind: &str) -> &'static FieldTable {
    match kind {
        "host-local" => BESIDE_HOST_LOCAL,
        "static" => BESIDE_STATIC,
        _ => NOTHING,
    }
}

/// Whether some IPAM plugin knows that key.
pub fn is_ipam_key(key: &str) -> bool {
    IPAM.iter().any(|(_, table, _)| table.iter().any(|field| same_key(key, field.key)))
}

/// What the section is decoded into by the IPAM plugin of that name.
pub fn ipam_type(kind: &str) -> &'static Type {
    IPAM.iter().find(|(name, ..)| *name == kind).map_or(&SOME_IPAM, |(.., holds)| holds)
}

#[cfg(test)]
mod tests {
    use super::super::schema::{Reading, first_misfit};
    use crate::json::Document;

    /// Each row was run through Go's decoder and the plugin's struct.
    #[test]
    fn decodes_what_the_plugins_decode() {
        for (kind, text, fits) in [
            // Multus overwrites any value with the device.
            ("sriov", r#"{"deviceID":5,"pciBusID":[]}"#, true),
            ("sriov", r#"{"vlan":100.0,"vlanQoS":1e0,"mac":null}"#, true),
            ("sriov", r#"{"vlan":"100"}"#, false),
            ("sriov", r#"{"mtu":"9000"}"#, false),
            ("sriov", r#"{"VFID":"1"}"#, false),
            ("sriov", r#"{"runtimeConfig":[]}"#, false),
            ("ib-sriov", r#"{"ibKubernetesEnabled":"yes"}"#, false),
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
            let misfit = first_misfit(&[super::plugin(kind).unwrap()], document.root.members().unwrap(), Reading::Copy);
            assert_eq!(misfit.is_none(), fits, "{kind} {text}");
        }
    }

    /// An IPAM plugin gets the whole config, and some decode more of it than their section.
    #[test]
    fn ipam_plugins_decode_beside_their_section() {
        for (kind, text, fits) in [
            ("host-local", r#"{"args":{"cni":{"ips":["10.0.0.1"]}}}"#, true),
            ("host-local", r#"{"args":{"cni":{"ips":"10.0.0.1"}}}"#, false),
            ("host-local", r#"{"runtimeConfig":{"ipRanges":[{}]}}"#, false),
            ("static", r#"{"runtimeConfig":{"ips":5}}"#, false),
            ("static", r#"{"runtimeConfig":{"ipRanges":[{}]}}"#, true),
            ("whereabouts", r#"{"args":{"cni":{"ips":"10.0.0.1"}}}"#, true),
        ] {
            let document = Document::parse(text).unwrap();
            let misfit = first_misfit(&[super::beside_ipam(kind)], document.root.members().unwrap(), Reading::Copy);
            assert_eq!(misfit.is_none(), fits, "{kind} {text}");
        }
    }
}
