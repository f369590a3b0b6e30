//! What a plugin attaches pods to, and with which VLAN, as its part of the config states it.

use super::Plugin;

/// The plugin of OVN-Kubernetes.
pub const OVN_PLUGIN: &str = "ovn-k8s-cni-overlay";

/// What a plugin attaches pods to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment<'d> {
    /// An interface of the node.
    Master(&'d str),
    /// A bridge of the node.
    Bridge(&'d str),
    /// An interface of the node that is moved into the pod.
    Device(&'d str),
    /// A VRF in the pod.
    Vrf(&'d str),
    /// A network of OVN-Kubernetes.
    OvnNetwork {
        /// Its topology.
        topology: Option<&'d str>,
        /// The network of the nodes that it continues.
        physical_network: Option<&'d str>,
    },
}

impl<'d> Plugin<'d> {
    /// What it attaches pods to, if its config states it.
    pub fn attachment(&self) -> Option<Attachment<'d>> {
        let text = |key| self.object.text_of(key);
        match self.kind {
            "macvlan" | "ipvlan" | "vlan" => text("master").map(Attachment::Master),
            "bridge" => Some(Attachment::Bridge(text("bridge").unwrap_or("cni0"))),
            "ovs" => text("bridge").map(Attachment::Bridge),
            "host-device" => text("device").map(Attachment::Device),
            "vrf" => text("vrfname").map(Attachment::Vrf),
            OVN_PLUGIN => Some(Attachment::OvnNetwork {
                topology: text("topology"),
                physical_network: text("physicalNetworkName"),
            }),
            _ => None,
        }
    }

    /// The VLAN of its pods' frames. Zero is none, and plugins reject a negative one.
    pub fn vlan(&self) -> Option<i64> {
        let key = match self.kind {
            "sriov" | "bridge" | "ovs" => "vlan",
            "vlan" => "vlanId",
            OVN_PLUGIN => "vlanID",
            _ => return None,
        };
        self.object.int_of(key).filter(|vlan| *vlan > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use crate::json::Document;

    #[test]
    fn attachment_and_vlan_are_read_from_the_keys_of_each_plugin() {
        let ovn = Attachment::OvnNetwork { topology: Some("localnet"), physical_network: Some("tenant") };
        for (members, attachment, vlan) in [
            (r#""type":"macvlan","master":"eth1","vlan":5"#, Some(Attachment::Master("eth1")), None),
            (r#""type":"vlan","master":"eth1","vlanId":5"#, Some(Attachment::Master("eth1")), Some(5)),
            (r#""type":"ipvlan","master":"""#, None, None),
            (r#""type":"bridge","vlan":7"#, Some(Attachment::Bridge("cni0")), Some(7)),
            (r#""type":"bridge","bridge":"br1","vlan":-7"#, Some(Attachment::Bridge("br1")), None),
            (r#""type":"ovs","vlan":0"#, None, None),
            (r#""type":"host-device","device":"eth2""#, Some(Attachment::Device("eth2")), None),
            (r#""type":"vrf","vrfname":"blue""#, Some(Attachment::Vrf("blue")), None),
            (
                r#""type":"ovn-k8s-cni-overlay","topology":"localnet","physicalNetworkName":"tenant","vlanID":9"#,
                Some(ovn),
                Some(9),
            ),
            (r#""type":"sriov","vlan":100"#, None, Some(100)),
            (r#""type":"sriov","vlan":-1"#, None, None),
            (r#""type":"tuning","vlan":1"#, None, None),
        ] {
            let text = format!("{{{members}}}");
            let document = Document::parse(&text).unwrap();
            let config = Config::of(&document).unwrap();
            assert_eq!((config.plugins[0].attachment(), config.plugins[0].vlan()), (attachment, vlan), "{members}");
        }
    }
}
