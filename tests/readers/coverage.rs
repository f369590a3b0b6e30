//! Whether the networks that are generated have every key that nadmit knows.

use nadmit::cni::readers as tables;

use crate::ipam_keys::IPAM;
use crate::keys::{CHAINED, PLUGINS};

/// Plugins that do not run here, whose keys are compared in other ways.
const NOT_RUN: &[(&str, &str)] = &[
    ("sriov", "recorded"),
    ("ib-sriov", "recorded"),
    ("ovs", "recorded"),
    ("ovn-k8s-cni-overlay", "needs OVN-Kubernetes; only the decoder compares it"),
    ("rdma", "needs hardware; only the decoder compares it"),
    ("bond", "is not a Go module that can be imported; only the decoder compares it"),
    ("multus", "calls the plugins of another config; only the decoder compares it"),
    ("multus-shim", "calls a daemon; only the decoder compares it"),
];

/// Keys that are not generated, and why.
const NOT_GENERATED: &[(&str, &[&str], &str)] = &[
    ("", &["type"], "it chooses the reader"),
    (
        "whereabouts",
        &[
            "datastore",
            "etcd_host",
            "etcd_username",
            "etcd_password",
            "etcd_key_file",
            "etcd_cert_file",
            "etcd_ca_cert_file",
        ],
        "releases differ in whether they decode it, so nadmit accepts any type",
    ),
    ("whereabouts", &["exclude_gateway", "optimistic_ipam", "enable_l3"], "as above"),
    ("whereabouts", &["node_slice_size"], "the release that runs here does not read it"),
    ("sbr", &["gateways"], "no release reads it yet"),
    ("sbr", &["addSourceHints"], "no release reads it yet"),
];

#[test]
fn networks_have_every_key_of_their_plugins() {
    let generated: Vec<_> = PLUGINS.iter().chain(CHAINED).chain(IPAM).collect();
    let known = tables::KNOWN.iter().map(|(name, table)| (*name, *table));
    let ipam = tables::IPAM.iter().map(|(name, table, _)| (*name, *table));
    let mut missing = Vec::new();
    for (reader, table) in known.chain(ipam) {
        if NOT_RUN.iter().any(|(name, _)| *name == reader) {
            continue;
        }
        let (_, keys) = generated.iter().find(|(name, _)| *name == reader).unwrap_or_else(|| panic!("{reader}"));
        let is_left_out = |key: &str| {
            NOT_GENERATED.iter().any(|(of, keys, _)| (of.is_empty() || *of == reader) && keys.contains(&key))
        };
        let absent = table.iter().filter(|field| keys.iter().all(|(key, ..)| *key != field.key));
        missing.extend(absent.filter(|field| !is_left_out(field.key)).map(|field| format!("{reader}: {}", field.key)));
    }
    assert!(missing.is_empty(), "keys that no generated network has: {missing:?}; see keys.rs and ipam_keys.rs");
}
