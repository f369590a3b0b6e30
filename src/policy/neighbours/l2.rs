//! Which layer 2 network a plugin attaches pods to, as far as its config says.
//!
//! | plugin | the same network, on a node | another one for sure |
//! |---|---|---|
//! | macvlan, ipvlan, vlan | equal `master` and VLAN | equal `master`, two VLANs |
//! | bridge, ovs | equal `bridge` and VLAN | equal `bridge`, two VLANs |
//! | sriov | equal resource and VLAN | equal resource, two VLANs |
//! | ib-sriov | equal resource and partition | equal resource, two partitions |
//!
//! Two masters, bridges or resources may be cabled to one switch, and untagged frames may belong to any VLAN there: nothing is known
//! about these pairs. A VRF separates routes and no addresses on the wire, so it does not count.

use std::fmt;

use crate::cni::{CniObject, Plugin};
use crate::resources::{LONGEST_NAME, Nad, RESOURCE_NAME};

/// The annotation that restricts a NAD to some nodes.
const NODE_SELECTOR: &str = "k8s.v1.cni.cncf.io/nodeSelector";

/// A layer 2 network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct L2 {
    /// The kind of what pods are attached through, its name, and the nodes for which the NAD is meant.
    base: Box<str>,
    tag: Tag,
}

/// What separates networks on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tag {
    None,
    Vlan { id: i64, is_service_tag: bool },
    Partition(u16),
}

/// Whether two attachments share a layer 2 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum L2Comparison {
    Same,
    Other,
    Unknown,
}

/// Whether a NAD is meant for some nodes only.
pub(in crate::policy) fn is_for_some_nodes(nad: &Nad<'_>) -> bool {
    nad.meta.annotation(NODE_SELECTOR).is_some_and(|selector| !selector.trim().is_empty())
}

impl L2 {
    /// The one that a plugin attaches pods to; `None` if its config does not say.
    pub(super) fn of(nad: &Nad<'_>, plugin: &Plugin<'_>) -> Option<Self> {
        let object = plugin.object;
        let (kind, name, tag) = match plugin.kind {
            "macvlan" => ("master", master(object)?, Tag::None),
            // In the other modes the host routes, and passes on no frames.
            "ipvlan" if matches!(object.str_of("mode").unwrap_or_default(), "" | "l2") => {
                ("master", master(object)?, Tag::None)
            }
            "vlan" => ("master", master(object)?, vlan(object.int_of("vlanId")?, false)?),
            "bridge" if object.list_of("vlanTrunk").is_empty() => {
                ("bridge", object.str_of("bridge").unwrap_or("cni0").to_owned(), optional_vlan(object)?)
            }
            "ovs" if object.list_of("trunk").is_empty() => {
                ("OVS bridge", object.str_of("bridge")?.to_owned(), optional_vlan(object)?)
            }
            "sriov" => ("resource", resource(nad, object)?, sriov_vlan(object)?),
            "ib-sriov" => ("resource", resource(nad, object)?, partition(object)?),
            _ => return None,
        };
        if name.is_empty() {
            return None;
        }
        let nodes = nad.meta.annotation(NODE_SELECTOR).filter(|selector| !selector.trim().is_empty());
        let base = nodes.map_or_else(|| format!("{kind} {name}"), |nodes| format!("{kind} {name} on nodes {nodes}"));
        (base.len() <= LONGEST_NAME).then(|| Self { base: base.into(), tag })
    }

    /// What all networks have in common that are certainly other ones than this, as a text, and what separates it from them; `None` if
    /// that is not known.
    pub(super) fn separated(&self) -> Option<(String, Tag)> {
        let kind = match self.tag {
            Tag::None => return None,
            Tag::Vlan { is_service_tag: false, .. } => "VLAN",
            Tag::Vlan { is_service_tag: true, .. } => "service VLAN",
            Tag::Partition(_) => "partition",
        };
        Some((format!("{kind} of {}", self.base), self.tag))
    }

    pub(super) fn compare(&self, other: &Self) -> L2Comparison {
        match (self.tag, other.tag) {
            _ if self.base != other.base => L2Comparison::Unknown,
            (one, two) if one == two => L2Comparison::Same,
            (Tag::Vlan { is_service_tag: one, .. }, Tag::Vlan { is_service_tag: two, .. }) if one == two => {
                L2Comparison::Other
            }
            (Tag::Partition(_), Tag::Partition(_)) => L2Comparison::Other,
            _ => L2Comparison::Unknown,
        }
    }
}

impl fmt::Display for L2 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            Tag::None => formatter.write_str(&self.base),
            Tag::Vlan { id, .. } => write!(formatter, "VLAN {id} of {}", self.base),
            Tag::Partition(key) => write!(formatter, "partition {key:#06x} of {}", self.base),
        }
    }
}

/// What can carry the frames of a plugin out of the node, in words; `None` if they stay there, or the config does not say.
pub(in crate::policy) fn uplink(plugin: &Plugin<'_>) -> Option<String> {
    let object = plugin.object;
    let tag = match plugin.kind {
        "macvlan" => return link(object).map(|master| format!("master {master}")),
        // In the other modes the host routes, and may translate addresses.
        "ipvlan" if matches!(object.str_of("mode").unwrap_or_default(), "" | "l2") => {
            return link(object).map(|master| format!("master {master}"));
        }
        "vlan" => vlan(object.int_of("vlanId")?, false).zip(link(object)).map(|(tag, _)| tag)?,
        "sriov" => sriov_vlan(object)?,
        "ib-sriov" => partition(object)?,
        _ => return None,
    };
    match tag {
        Tag::None => None,
        Tag::Vlan { id, .. } => Some(format!("VLAN {id}")),
        Tag::Partition(key) => Some(format!("partition {key:#06x}")),
    }
}

/// The interface of the node; an absent one is that of the default route, and one in the pod is of another network.
fn master(object: CniObject<'_>) -> Option<String> {
    let master = object.text_of("master")?;
    (!object.is_true("linkInContainer")).then(|| master.to_owned())
}

/// The interface of the node, unless its name says that it leads nowhere.
fn link(object: CniObject<'_>) -> Option<String> {
    master(object).filter(|master| master != "lo" && !master.starts_with("dummy"))
}

/// The resource that the devices come from, unless one device is fixed.
fn resource(nad: &Nad<'_>, object: CniObject<'_>) -> Option<String> {
    if object.text_of("deviceID").is_some() {
        return None;
    }
    let annotated = nad.meta.annotation(RESOURCE_NAME).filter(|name| !name.is_empty());
    let name = annotated.or_else(|| object.str_of("resourceName").map(Into::into))?;
    // The domain is the operator's, and may be only assumed.
    Some(name.rsplit('/').next().unwrap_or_default().to_owned())
}

fn vlan(id: i64, is_service_tag: bool) -> Option<Tag> {
    match id {
        0 => Some(Tag::None),
        1..=4094 => Some(Tag::Vlan { id, is_service_tag }),
        _ => None,
    }
}

/// `vlan`, which may be absent; `None` if it is not a number.
fn optional_vlan(object: CniObject<'_>) -> Option<Tag> {
    object.value_of("vlan").map_or(Some(Tag::None), |value| vlan(value.as_int()?, false))
}

fn sriov_vlan(object: CniObject<'_>) -> Option<Tag> {
    let is_service_tag = object.str_of("vlanProto").is_some_and(|proto| proto.eq_ignore_ascii_case("802.1ad"));
    object.value_of("vlan").map_or(Some(Tag::None), |value| vlan(value.as_int()?, is_service_tag))
}

/// The partition, without the bit that says how the device is a member of it.
fn partition(object: CniObject<'_>) -> Option<Tag> {
    let Some(text) = object.text_of("pkey") else { return Some(Tag::None) };
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u16::from_str_radix(digits, 16).ok().map(|key| Tag::Partition(key & 0x7fff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::Config;
    use crate::json::Document;
    use crate::resources::Object;

    /// The attachment of a plugin in a NAD with these annotations.
    fn l2(plugin: &str, annotations: &serde_json::Value) -> Option<L2> {
        let json = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "n", "namespace": "apps", "annotations": annotations },
        })
        .to_string();
        let Ok(Some(Object::Nad(nad))) = Object::read(&json) else { panic!("{json}") };
        let text = format!("{{{plugin}}}");
        let document = Document::parse(&text).unwrap();
        let config = Config::of(&document).unwrap();
        L2::of(&nad, &config.plugins[0])
    }

    fn compare(one: &str, other: &str) -> L2Comparison {
        let annotations = serde_json::json!({ RESOURCE_NAME: "a.io/cx7" });
        match (l2(one, &annotations), l2(other, &annotations)) {
            (Some(one), Some(other)) => one.compare(&other),
            _ => L2Comparison::Unknown,
        }
    }

    #[test]
    fn attachments_are_compared_only_where_the_config_decides() {
        use L2Comparison::{Other, Same, Unknown};
        for (one, other, want) in [
            (r#""type":"macvlan","master":"eth1""#, r#""type":"ipvlan","master":"eth1""#, Same),
            (r#""type":"macvlan","master":"eth1""#, r#""type":"ipvlan","master":"eth1","mode":"l3""#, Unknown),
            (r#""type":"macvlan","master":"eth1""#, r#""type":"macvlan","master":"eth2""#, Unknown),
            (r#""type":"macvlan""#, r#""type":"macvlan""#, Unknown),
            (
                r#""type":"macvlan","master":"eth1","linkInContainer":true"#,
                r#""type":"macvlan","master":"eth1""#,
                Unknown,
            ),
            (r#""type":"vlan","master":"eth1","vlanId":5"#, r#""type":"vlan","master":"eth1","vlanId":5"#, Same),
            (r#""type":"vlan","master":"eth1","vlanId":5"#, r#""type":"vlan","master":"eth1","vlanId":6"#, Other),
            (r#""type":"vlan","master":"eth1","vlanId":5"#, r#""type":"macvlan","master":"eth1""#, Unknown),
            (r#""type":"bridge""#, r#""type":"bridge","bridge":"cni0","vlan":0"#, Same),
            (r#""type":"bridge","vlan":5"#, r#""type":"bridge","vlan":6"#, Other),
            (r#""type":"bridge","vlan":5"#, r#""type":"bridge""#, Unknown),
            (r#""type":"bridge","vlan":5"#, r#""type":"bridge","vlanTrunk":[{"id":6}]"#, Unknown),
            (r#""type":"ovs","bridge":"br1","vlan":5"#, r#""type":"ovs","bridge":"br1","vlan":5"#, Same),
            (r#""type":"ovs","bridge":"br1""#, r#""type":"bridge","bridge":"br1""#, Unknown),
            (r#""type":"ovs","vlan":5"#, r#""type":"ovs","vlan":5"#, Unknown),
            (r#""type":"sriov","vlan":5"#, r#""type":"sriov","vlan":5"#, Same),
            (r#""type":"sriov","vlan":5"#, r#""type":"sriov","vlan":6"#, Other),
            (r#""type":"sriov","vlan":5"#, r#""type":"sriov","vlan":6,"vlanProto":"802.1ad""#, Unknown),
            (r#""type":"sriov""#, r#""type":"sriov","vlan":0"#, Same),
            (r#""type":"sriov","vlan":"5""#, r#""type":"sriov","vlan":"5""#, Unknown),
            (r#""type":"sriov","deviceID":"0000:00:01.0""#, r#""type":"sriov","deviceID":"0000:00:01.0""#, Unknown),
            (r#""type":"ib-sriov","pkey":"0x8005""#, r#""type":"ib-sriov","pkey":"0x0005""#, Same),
            (r#""type":"ib-sriov","pkey":"0x8005""#, r#""type":"ib-sriov","pkey":"0x8006""#, Other),
            (r#""type":"ib-sriov","pkey":"5""#, r#""type":"ib-sriov","pkey":"5""#, Unknown),
            (r#""type":"ptp""#, r#""type":"ptp""#, Unknown),
            (r#""type":"host-device","device":"eth1""#, r#""type":"host-device","device":"eth1""#, Unknown),
        ] {
            assert_eq!(compare(one, other), want, "{one} | {other}");
            assert_eq!(compare(other, one), want, "{other} | {one}");
        }
    }

    #[test]
    fn a_nad_for_some_nodes_is_compared_with_those_for_the_same() {
        let of = |selector: &str| {
            l2(r#""type":"macvlan","master":"eth1""#, &serde_json::json!({ NODE_SELECTOR: selector })).unwrap()
        };
        let rack = of("rack=1");
        assert_eq!(rack.compare(&of("rack=1")), L2Comparison::Same);
        assert_eq!(
            (rack.compare(&of("rack=2")), rack.compare(&of(""))),
            (L2Comparison::Unknown, L2Comparison::Unknown)
        );
        assert_eq!(of(" ").to_string(), "master eth1");
        let long = "x".repeat(LONGEST_NAME);
        assert_eq!(l2(&format!(r#""type":"macvlan","master":"{long}""#), &serde_json::json!({})), None);
    }

    #[test]
    fn only_some_plugins_can_leave_the_node() {
        let of = |plugin: &str| {
            let text = format!("{{{plugin}}}");
            let document = Document::parse(&text).unwrap();
            uplink(&Config::of(&document).unwrap().plugins[0])
        };
        for (plugin, want) in [
            (r#""type":"macvlan","master":"eth1""#, Some("master eth1")),
            (r#""type":"macvlan""#, None),
            (r#""type":"ipvlan","master":"eth1""#, Some("master eth1")),
            (r#""type":"ipvlan","master":"eth1","mode":"l3""#, None),
            (r#""type":"macvlan","master":"lo""#, None),
            (r#""type":"vlan","master":"dummy0","vlanId":5"#, None),
            (r#""type":"ipvlan","master":"eth1","linkInContainer":true"#, None),
            (r#""type":"vlan","master":"eth1","vlanId":5"#, Some("VLAN 5")),
            (r#""type":"vlan","vlanId":5"#, None),
            (r#""type":"sriov","vlan":100"#, Some("VLAN 100")),
            (r#""type":"sriov""#, None),
            (r#""type":"ib-sriov","pkey":"0x8005""#, Some("partition 0x0005")),
            (r#""type":"bridge","bridge":"br1","vlan":5"#, None),
            (r#""type":"ptp""#, None),
        ] {
            assert_eq!(of(plugin).as_deref(), want, "{plugin}");
        }
    }
}
