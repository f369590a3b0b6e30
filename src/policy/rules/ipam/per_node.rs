//! host-local on a network that may span nodes.

use super::super::super::finding::Findings;
use super::super::super::neighbours::{is_for_some_nodes, uplink};
use super::super::super::rule::rule;
use super::pools::handed_out;
use crate::cni::Config;
use crate::resources::Nad;

rule! { PER_NODE = "ipam/per-node", Warn;
    wrong: "host-local hands out addresses on a network that may span nodes.";
    why: "host-local keeps its leases in files on each node, and knows nothing of other nodes. Where the interfaces of pods on several \
        nodes are on one layer 2 network, two nodes give the same address to two pods, and their connections break now and then. \
        This is reported where the config names something through which frames can leave the node: a `master` of macvlan, ipvlan (in \
        its mode l2) or vlan, a VLAN of sriov, a partition of ib-sriov. Whether it is connected to other nodes nadmit cannot know: a \
        link that ends at its node, a cluster with one node, and pods that only run on one, are fine.";
    fix: "Use whereabouts, which allocates for the whole cluster. Or write one NAD for each node, with its own part of the range and the \
        annotation `k8s.v1.cni.cncf.io/nodeSelector`. Where there is only one node, switch the rule off in the policy.";
}

/// Reports the section once, where its ranges are.
pub(in crate::policy::rules) fn check(nad: &Nad<'_>, config: &Config<'_>, out: &mut Findings<'_>) {
    if is_for_some_nodes(nad) {
        return;
    }
    let Some(found) = handed_out(config).filter(|found| found.kind == "host-local") else { return };
    // A single address is meant for a single pod.
    if matches!(found.ranges.as_slice(), [range] if range.is_single()) {
        return;
    }
    let Some(uplink) = uplink(&found.plugin) else { return };
    let headline = format!("host-local hands out addresses on each node by itself, and {uplink} may span nodes");
    let note = "if it connects pods of several nodes, two of them get the same address in one layer 2 network";
    let help = "use whereabouts, or write a NAD for each node, with its own part of the range and the annotation \
        k8s.v1.cni.cncf.io/nodeSelector";
    out.config(&PER_NODE, found.span, headline, note, help);
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    #[test]
    fn only_ranges_that_two_nodes_hand_out_are_reported() {
        let of =
            |plugin: &str, ipam: &str| found(&format!(r#"{{"cniVersion":"1.0.0",{plugin},"ipam":{{"type":{ipam}}}}}"#));
        let (local, macvlan) = (r#""host-local","subnet":"10.0.0.0/24""#, r#""type":"macvlan","master":"eth1""#);
        let subnet = ["ipam/per-node warn /ipam/subnet"];
        for (plugin, ipam, want) in [
            (macvlan, local, &subnet[..]),
            (r#""type":"ipvlan","master":"eth1""#, local, &subnet),
            (r#""type":"ipvlan","master":"eth1","mode":"l3""#, local, &[]),
            (r#""type":"macvlan","master":"dummy0""#, local, &[]),
            (r#""type":"vlan","master":"eth1","vlanId":5"#, local, &subnet),
            (r#""type":"sriov","vlan":100"#, local, &subnet),
            (macvlan, r#""host-local","ranges":[[{"subnet":"10.0.0.0/24"}]]"#, &["ipam/per-node warn /ipam/ranges"]),
            (r#""type":"sriov""#, local, &[]),
            (r#""type":"macvlan""#, local, &[]),
            (r#""type":"bridge","bridge":"br1""#, local, &[]),
            (r#""type":"ptp""#, local, &[]),
            (macvlan, r#""whereabouts","range":"10.0.0.0/24""#, &[]),
            (macvlan, r#""static","addresses":[{"address":"10.0.0.5/24"}]"#, &[]),
            (macvlan, r#""host-local","subnet":"10.0.0.0/24","rangeStart":"10.0.0.5","rangeEnd":"10.0.0.5""#, &[]),
            (macvlan, r#""host-local","subnet":"10.0.0.5/24""#, &["ipam/host-local-range deny /ipam/subnet"]),
            (r#""type":"macvlan","master":"eth1","capabilities":{"ipRanges":true}"#, local, &[]),
        ] {
            assert_eq!(of(plugin, ipam), *want, "{plugin} {ipam}");
        }
    }
}
