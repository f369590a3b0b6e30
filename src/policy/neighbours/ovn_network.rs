//! What OVN-Kubernetes compares of NADs whose networks have one name. It takes the config of the first, and creates nothing from
//! another one that differs.
//!
//! Compared is what every release compares. The subnets of layer3 may grow, and newer releases compare `transport` and others that
//! older ones do not know. Texts that mean the same are equal here.

use std::str::FromStr;

use ipnet::IpNet;

use crate::cni::{Config, Plugin};
use crate::json::Value;
use crate::policy::rules::ovn::{ControllerView, is_rejected};
use crate::resources::{LONGEST_NAME, Nad};

/// A network of OVN-Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OvnNetwork {
    pub(super) name: Box<str>,
    topology: Topology,
    is_primary: bool,
    vlan: i64,
    has_persistent_addresses: bool,
    /// `None`: the default of the cluster.
    mtu: Option<i64>,
    /// Subnets, excluded subnets, the two join subnets and the physical network.
    texts: [Box<str>; 4],
    /// Whether it names its own NAD: otherwise OVN-Kubernetes rejects it before it compares anything.
    pub(super) is_accepted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topology {
    Layer2,
    Layer3,
    Localnet,
}

/// The keys of what is compared, in the order of [`OvnNetwork::differences`].
const KEYS: [&str; 8] = [
    "topology",
    "role",
    "vlanID",
    "allowPersistentIPs",
    "subnets",
    "excludeSubnets",
    "joinSubnet",
    "physicalNetworkName",
];

/// The defaults of the join subnets, which every release has.
const JOIN_SUBNETS: [&str; 2] = ["100.65.0.0/16", "fd99::/64"];

impl OvnNetwork {
    /// That of a NAD; `None` if OVN-Kubernetes creates none from it, or it cannot be compared.
    pub(super) fn of(nad: &Nad<'_>, config: &Config<'_>) -> Option<Self> {
        let view = ControllerView::of(config)?;
        let plugin = &view.plugin();
        if !config.others.is_empty() || is_rejected(nad, config) {
            return None;
        }
        let topology = match plugin.object.str_of("topology")? {
            "layer2" => Topology::Layer2,
            "layer3" => Topology::Layer3,
            "localnet" => Topology::Localnet,
            _ => return None,
        };
        let name = ControllerView::name(config, plugin).and_then(Value::as_str);
        let name = name.filter(|name| !matches!(*name, "" | "default" | "ovn-kubernetes"))?;
        let text = |key: &str| plugin.object.value_of(key).map_or(Some(""), Value::as_str);
        let (is_localnet, is_layer3) = (topology == Topology::Localnet, topology == Topology::Layer3);
        let subnets = if is_layer3 { String::new() } else { networks(text("subnets")?)? };
        let excluded = if is_layer3 { String::new() } else { networks(text("excludeSubnets")?)? };
        let join = if is_localnet { String::new() } else { join_subnets(text("joinSubnet")?)? };
        // Without one, the name of the network is that of the physical network.
        let physical = match text("physicalNetworkName")? {
            physical if is_localnet && physical != name => physical,
            _ => "",
        };
        let found = Self {
            name: name.into(),
            topology,
            is_primary: !is_localnet && text("role")? == "primary",
            vlan: if is_localnet { integer(plugin, "vlanID")?.unwrap_or_default() } else { 0 },
            has_persistent_addresses: !is_layer3 && plugin.object.is_true("allowPersistentIPs"),
            mtu: integer(plugin, "mtu")?,
            texts: [subnets.into(), excluded.into(), join.into(), physical.into()],
            is_accepted: names_itself(nad, text("netAttachDefName")?),
        };
        let length = found.name.len() + found.texts.iter().map(|text| text.len()).sum::<usize>();
        (length <= LONGEST_NAME).then_some(found)
    }

    /// The keys that certainly differ.
    pub(in crate::policy) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let mut differ = vec![
            self.topology != other.topology,
            self.is_primary != other.is_primary,
            self.vlan != other.vlan,
            self.has_persistent_addresses != other.has_persistent_addresses,
        ];
        let is_same_topology = self.topology == other.topology;
        differ.extend(self.texts.iter().zip(&other.texts).map(|(one, other)| is_same_topology && one != other));
        let found = KEYS.iter().zip(differ).filter(|(_, differs)| *differs).map(|(key, _)| *key);
        let mtu = matches!((self.mtu, other.mtu), (Some(one), Some(other)) if one != other).then_some("mtu");
        found.chain(mtu).collect()
    }

    /// Whether OVN-Kubernetes creates nothing from the later of the two.
    pub(in crate::policy) fn conflicts(&self, other: &Self) -> bool {
        self.name == other.name && other.is_accepted && !self.differences(other).is_empty()
    }

    /// Whether both say the same about one network.
    pub(in crate::policy) fn is_same_network(&self, other: &Self) -> bool {
        self.name == other.name && self.differences(other).is_empty()
    }

    /// All that is compared but the mtu, which is compared only where both have one, and the mtu.
    pub(super) fn without_mtu(&self) -> (Self, Option<i64>) {
        (Self { mtu: None, is_accepted: true, ..self.clone() }, self.mtu)
    }

    /// Its name.
    pub(in crate::policy) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the primary network of the pods in its namespace. There is one at most.
    pub(in crate::policy) fn is_primary(&self) -> bool {
        self.is_primary
    }
}

/// An integer that may be absent; `None` if it is something else.
fn integer(plugin: &Plugin<'_>, key: &str) -> Option<Option<i64>> {
    plugin.object.value_of(key).map_or(Some(None), |value| value.as_int().map(Some))
}

/// Networks between commas, in order.
fn networks(list: &str) -> Option<String> {
    if list.trim().is_empty() {
        return Some(String::new());
    }
    let nets: Option<Vec<IpNet>> = list.split(',').map(|net| IpNet::from_str(net.trim()).ok()).collect();
    let mut nets: Vec<String> = nets?.iter().map(|net| net.trunc().to_string()).collect();
    nets.sort_unstable();
    Some(nets.join(","))
}

/// The join subnet of each family, which has a default.
fn join_subnets(list: &str) -> Option<String> {
    let mut subnets = JOIN_SUBNETS.map(str::to_owned);
    for net in list.split(',').map(str::trim).filter(|net| !net.is_empty()) {
        let net = IpNet::from_str(net).ok()?.trunc();
        if let Some(of_family) = subnets.get_mut(usize::from(net.addr().is_ipv6())) {
            *of_family = net.to_string();
        }
    }
    Some(subnets.join(","))
}

/// Whether `netAttachDefName` is that of the NAD; a manifest may leave the namespace open.
fn names_itself(nad: &Nad<'_>, written: &str) -> bool {
    let Some((namespace, name)) = written.split_once('/') else { return false };
    name == nad.meta.name && (nad.meta.namespace.is_empty() || namespace == nad.meta.namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::OVN_PLUGIN;
    use crate::json::Document;
    use crate::resources::Object;

    fn network(members: &str) -> Option<OvnNetwork> {
        let json = r#"{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"n","namespace":"apps"}}"#;
        let Ok(Some(Object::Nad(nad))) = Object::read(json) else { panic!("{json}") };
        let text = format!(
            r#"{{"cniVersion":"1.0.0","name":"blue","type":"{OVN_PLUGIN}","netAttachDefName":"apps/n",{members}}}"#
        );
        let document = Document::parse(&text).unwrap();
        OvnNetwork::of(&nad, &Config::of(&document).unwrap())
    }

    #[test]
    fn what_every_release_compares_is_compared() {
        let table: &[(&str, &str, &[&str])] = &[
            (r#""topology":"layer2""#, r#""topology":"layer2""#, &[]),
            (r#""topology":"layer2""#, r#""topology":"layer3""#, &["topology"]),
            (r#""topology":"layer2""#, r#""topology":"layer2","role":"secondary""#, &[]),
            (
                r#""topology":"layer2","subnets":"10.0.0.0/24""#,
                r#""topology":"layer2","subnets":"10.0.0.0/24","role":"primary""#,
                &["role"],
            ),
            (
                r#""topology":"layer2","subnets":"10.0.0.0/24, fd00::/64""#,
                r#""topology":"layer2","subnets":"fd00::5/64,10.0.0.0/24""#,
                &[],
            ),
            (
                r#""topology":"layer2","subnets":"10.0.0.0/24""#,
                r#""topology":"layer2","subnets":"10.0.0.0/25""#,
                &["subnets"],
            ),
            (
                r#""topology":"layer3","subnets":"10.0.0.0/16/24""#,
                r#""topology":"layer3","subnets":"10.1.0.0/16/24""#,
                &[],
            ),
            (r#""topology":"layer2","joinSubnet":"100.65.0.0/16""#, r#""topology":"layer2""#, &[]),
            (r#""topology":"layer2","joinSubnet":"100.66.0.0/16""#, r#""topology":"layer2""#, &["joinSubnet"]),
            (r#""topology":"layer2","vlanID":5"#, r#""topology":"layer2","vlanID":6"#, &[]),
            (r#""topology":"localnet","vlanID":5"#, r#""topology":"localnet","vlanID":6"#, &["vlanID"]),
            (r#""topology":"localnet","physicalNetworkName":"blue""#, r#""topology":"localnet""#, &[]),
            (
                r#""topology":"localnet","physicalNetworkName":"red""#,
                r#""topology":"localnet""#,
                &["physicalNetworkName"],
            ),
            (r#""topology":"layer2","mtu":1300"#, r#""topology":"layer2","mtu":1400"#, &["mtu"]),
            (r#""topology":"layer2","mtu":1300"#, r#""topology":"layer2""#, &[]),
            (r#""topology":"layer2","allowPersistentIPs":true"#, r#""topology":"layer2""#, &["allowPersistentIPs"]),
            (r#""topology":"layer2","logFile":"/a""#, r#""topology":"layer2","logFile":"/b""#, &[]),
            (r#""topology":"layer2","transport":"evpn""#, r#""topology":"layer2""#, &[]),
        ];
        for (one, other, want) in table {
            let (one, other) = (network(one).unwrap(), network(other).unwrap());
            assert_eq!(one.differences(&other), *want, "{one:?} {other:?}");
            assert_eq!(other.conflicts(&one), !want.is_empty());
        }
    }

    /// In the order of the text, as the controllers decode it.
    #[test]
    fn of_a_repeated_key_the_last_is_compared() {
        let (plain, repeated) =
            (network(r#""topology":"layer2""#), network(r#""topology":"layer9","Topology":"layer2""#));
        assert_eq!(plain, repeated);
        let renamed = network(r#""topology":"layer2","Name":"red""#).unwrap();
        assert_eq!((renamed.name(), renamed.is_accepted), ("red", true));
        assert!(!network(r#""topology":"layer2","NetAttachDefName":"x/y""#).unwrap().is_accepted);
    }

    #[test]
    fn what_is_rejected_conflicts_with_nothing() {
        for members in [
            r#""role":"primary""#,
            r#""topology":"layer4""#,
            r#""topology":"layer2","subnets":"x""#,
            r#""topology":"layer2","mtu":"1500""#,
            r#""topology":"layer2","ipam":{"type":"dhcp"}"#,
        ] {
            assert_eq!(network(members), None, "{members}");
        }
        let (own, other) = (network(r#""topology":"layer2""#).unwrap(), network(r#""topology":"layer3""#).unwrap());
        assert!(own.conflicts(&other) && own.is_accepted);
        let unnamed = OvnNetwork { is_accepted: false, ..other.clone() };
        assert!(!own.conflicts(&unnamed) && unnamed.conflicts(&own));
        let red = OvnNetwork { name: "red".into(), ..other };
        assert!(!own.conflicts(&red));
    }
}
