//! Whether OVN-Kubernetes accepted a NAD, and so whether others must agree with it.
//!
//! Its cluster manager writes two annotations on each NAD that it accepted. Without them it may have rejected the NAD: what it checks
//! depends on its release and on the configuration of the cluster, which nobody else knows.

use std::str::FromStr;

use ipnet::IpNet;

use super::OvnNetwork;
use crate::cni::OVN_PLUGIN;
use crate::cni::{CniObject, Config};
use crate::json::Value;
use crate::resources::Nad;

/// The annotation with the number of the network.
const NETWORK_ID: &str = "k8s.ovn.org/network-id";
/// The annotation with its name, which older releases do not write.
const NETWORK_NAME: &str = "k8s.ovn.org/network-name";

/// The subnets that every cluster has for itself unless it is configured otherwise: those between its routers and for masquerading.
const OF_THE_CLUSTER: [&str; 6] =
    ["100.64.0.0/16", "fd98::/64", "100.88.0.0/16", "fd97::/64", "169.254.0.0/17", "fd69::/112"];
/// The same between the routers of one network, unless it has a `joinSubnet`.
const OF_THE_NETWORK: [&str; 2] = ["100.65.0.0/16", "fd99::/64"];

/// The keys whose values every release accepts, or that are compared: those of others depend on the release and on the cluster.
const PLAIN_KEYS: [&str; 12] = [
    "cniVersion",
    "name",
    "type",
    "netAttachDefName",
    "topology",
    "role",
    "subnets",
    "excludeSubnets",
    "mtu",
    "allowPersistentIPs",
    "vlanID",
    "physicalNetworkName",
];

/// What is known about whether OVN-Kubernetes accepts a NAD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OvnAcceptance {
    /// Nothing: it may reject the NAD.
    #[default]
    Unknown,
    /// It accepts the NAD in a cluster that is configured as usual.
    Expected,
    /// The cluster manager has accepted it.
    Annotated,
}

impl OvnAcceptance {
    /// That of a NAD with this network.
    pub(super) fn of(nad: &Nad<'_>, config: &Config<'_>, network: &OvnNetwork) -> Self {
        let annotation = |key: &str| nad.meta.annotation(key).filter(|value| !value.is_empty());
        let is_named = annotation(NETWORK_NAME).is_none_or(|name| name == *network.name());
        if annotation(NETWORK_ID).is_some() && is_named {
            return Self::Annotated;
        }
        let plugin = config.plugins.first().filter(|plugin| plugin.kind == OVN_PLUGIN);
        match plugin.is_some_and(|plugin| is_plain(plugin.object).unwrap_or_default()) {
            true => Self::Expected,
            false => Self::Unknown,
        }
    }
}

/// Whether no release and no usual configuration of a cluster rejects it; `None` if it cannot be read.
fn is_plain(object: CniObject<'_>) -> Option<bool> {
    if object.members.iter().any(|member| !PLAIN_KEYS.contains(&&*member.key)) {
        return Some(false);
    }
    let text = |key: &str| object.value_of(key).map_or(Some(""), Value::as_str);
    let (subnets, excluded) = (networks(text("subnets")?)?, networks(text("excludeSubnets")?)?);
    let is_inside = |net: &IpNet| subnets.iter().any(|subnet| subnet.contains(net));
    let reserved = OF_THE_CLUSTER.into_iter().chain(OF_THE_NETWORK).filter_map(|net| IpNet::from_str(net).ok());
    let reserved: Vec<IpNet> = reserved.collect();
    let is_free = |net: &IpNet| !reserved.iter().any(|other| other.contains(net) || net.contains(other));
    // A cluster of one family rejects a primary network with the other one.
    let is_for_any_cluster = text("role")? != "primary" || subnets.iter().all(|net| net.addr().is_ipv4());
    let is_localnet = text("topology")? == "localnet";
    Some(excluded.iter().all(is_inside) && (is_localnet || subnets.iter().all(is_free)) && is_for_any_cluster)
}

/// The networks in a list between commas. Those of layer3 have a second length, for the subnets of the nodes.
fn networks(list: &str) -> Option<Vec<IpNet>> {
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    let net = |part: &str| match part.match_indices('/').nth(1) {
        Some((end, _)) => IpNet::from_str(part.get(..end)?).ok(),
        None => IpNet::from_str(part).ok(),
    };
    parts.map(net).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;
    use crate::resources::Object;

    fn acceptance(annotations: &serde_json::Value, members: &str) -> OvnAcceptance {
        let json = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "n", "namespace": "apps", "annotations": annotations },
        })
        .to_string();
        let Ok(Some(Object::Nad(nad))) = Object::read(&json) else { panic!("{json}") };
        let text = format!(
            r#"{{"cniVersion":"1.0.0","name":"blue","type":"{OVN_PLUGIN}","netAttachDefName":"apps/n",{members}}}"#
        );
        let document = Document::parse(&text).unwrap();
        let config = Config::of(&document).unwrap();
        OvnAcceptance::of(&nad, &config, &OvnNetwork::of(&nad, &config).unwrap())
    }

    #[test]
    fn the_cluster_manager_says_what_it_has_accepted() {
        let plain = r#""topology":"layer2""#;
        for (annotations, want) in [
            (serde_json::json!({}), OvnAcceptance::Expected),
            (serde_json::json!({ NETWORK_ID: "" }), OvnAcceptance::Expected),
            (serde_json::json!({ NETWORK_ID: "5" }), OvnAcceptance::Annotated),
            (serde_json::json!({ NETWORK_ID: "5", NETWORK_NAME: "blue" }), OvnAcceptance::Annotated),
            // It was accepted with another name, and perhaps not since then.
            (serde_json::json!({ NETWORK_ID: "5", NETWORK_NAME: "red" }), OvnAcceptance::Expected),
        ] {
            assert_eq!(acceptance(&annotations, plain), want, "{annotations}");
        }
    }

    #[test]
    fn a_manifest_is_expected_to_be_accepted_if_no_usual_cluster_rejects_it() {
        use OvnAcceptance::{Expected, Unknown};
        for (members, want) in [
            (r#""topology":"layer2","subnets":"10.0.0.0/24","mtu":1300"#, Expected),
            (r#""topology":"layer2","subnets":"10.0.0.0/24","excludeSubnets":"10.0.0.0/30""#, Expected),
            (r#""topology":"layer2","subnets":"10.0.0.0/24","excludeSubnets":"10.9.0.0/30""#, Unknown),
            (r#""topology":"layer2","subnets":"10.0.0.0/24","transport":"bogus""#, Unknown),
            (r#""topology":"layer2","subnets":"10.0.0.0/24","newKey":1"#, Unknown),
            (r#""topology":"layer2","subnets":"100.65.0.0/24","role":"primary""#, Unknown),
            (r#""topology":"layer2","subnets":"100.0.0.0/8""#, Unknown),
            (r#""topology":"localnet","subnets":"100.65.0.0/24""#, Expected),
            (r#""topology":"layer3","subnets":"10.0.0.0/16/24""#, Expected),
            (r#""topology":"layer3","subnets":"100.88.0.0/16/24""#, Unknown),
            (r#""topology":"layer2","subnets":"10.0.0.0/24,fd00::/64""#, Expected),
            (r#""topology":"layer2","subnets":"10.0.0.0/24,fd00::/64","role":"primary""#, Unknown),
            (r#""topology":"layer2","joinSubnet":"100.70.0.0/16""#, Unknown),
        ] {
            assert_eq!(acceptance(&serde_json::json!({}), members), want, "{members}");
        }
    }
}
