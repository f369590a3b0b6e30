//! What pods show when a NAD is wrong: the words of Multus, libcni and the plugins, and the rules that explain them.
//!
//! Each row was seen in an Event of a real pod, for each of its rules. The node tests attach the bad examples of the rules and other
//! mistakes to pods, compare, and write docs/errors.md.

use super::Rule;
use super::rules::RULES;

/// An error, and the rules that find its cause before a pod does.
#[derive(Debug)]
pub struct PodError {
    /// The words, with `…` for everything that differs from case to case.
    pub words: &'static str,
    /// The ids of the rules, the most likely first.
    pub rules: &'static [&'static str],
}

/// Shorthand for the table.
const fn error(words: &'static str, rules: &'static [&'static str]) -> PodError {
    PodError { words, rules }
}

/// All of them. An error that has the words of another one in it comes first.
pub static POD_ERRORS: &[PodError] = &[
    // Multus
    error("failed to unmarshal Spec.Config: ", &["nad/config-not-json"]),
    error("delegate must have the 'type' or 'plugin' field", &["nad/no-plugin"]),
    error("index out of range [0] with length 0…LoadDelegateNetConfList", &["nad/no-plugin"]),
    // libcni
    error("invalid plugin name: ", &["nad/plugin-type"]),
    error("failed to find plugin \"", &["nad/unknown-plugin"]),
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
    // The plugins behind them
    error("Required prevResult missing", &["meta/chain-order"]),
    error("This plugin must be called as chained plugin", &["meta/chain-order"]),
    error("container veth name (\"…already exists", &["meta/chain-order"]),
    error("unknown ingress policy: ", &["plugin/firewall-policy"]),
    error("MasqMarkBit must be between 0 and 31", &["plugin/portmap"]),
    error("configuration is expected to have a valid vrf name", &["meta/vrf"]),
    error("has no veth peer: ", &["meta/bandwidth"]),
    error("if rate is set, burst must also be set", &["meta/bandwidth"]),
    error("invalid net sysctl key: ", &["meta/tuning"]),
    error("plugin type=\"tuning\" failed (add): invalid args …for MAC addr", &["meta/tuning"]),
    error("invalid args …for MAC addr", &["plugin/mac"]),
    error("No IP addresses supplied on interface: ", &["meta/sbr"]),
    error("Failed to add default route to ", &["meta/sbr"]),
    // IPAM
    error("Network has host bits set. For a subnet mask of length ", &["ipam/host-local-range"]),
    error("RangeStart …not in network ", &["ipam/host-local-range"]),
    error("RangeEnd …not in network ", &["ipam/host-local-range"]),
    error("too small to allocate from", &["ipam/host-local-range"]),
    error("no IP ranges specified", &["ipam/host-local-range", "ipam/wrong-dialect"]),
    error("IPAM plugin returned missing IP config", &["ipam/no-address", "ipam/wrong-dialect"]),
    error("the 'address' field is expected to be in CIDR notation, got: ", &["ipam/static-address"]),
    error("failed to add route '…network is unreachable", &["ipam/route"]),
    error("invalid CIDR address: ", &["ipam/host-local-range", "ipam/route", "ipam/whereabouts-range"]),
    error("invalid IP address: ", &["ipam/static-address", "ipam/host-local-range", "ipam/route"]),
];

impl PodError {
    /// Whether a message has these words, in this order.
    pub fn is_in(&self, message: &str) -> bool {
        let mut rest = message;
        self.words.split('…').all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    }

    /// The rules that explain a message; none if no row fits.
    pub fn explain(message: &str) -> impl Iterator<Item = &'static Rule> {
        let found = POD_ERRORS.iter().find(|error| error.is_in(message));
        let ids = found.map_or(&[] as &[&str], |error| error.rules);
        ids.iter().filter_map(|id| RULES.iter().find(|rule| rule.id == *id).copied())
    }
}

/// What differs from pod to pod is not part of an error: the sandbox, the pod's UID, and what the kubelet and Multus say in front.
pub fn without_preamble(message: &str) -> &str {
    let cut = |before: &str| message.split_once(before).map(|(_, rest)| rest);
    let rest = cut("name=\"multus-cni-network\" failed (add): ");
    let rest = rest.or_else(|| cut("name=\\\"multus-cni-network\\\" failed (delete): ")).unwrap_or(message);
    let rest = rest.split_once("failed getting the delegate: ").map_or(rest, |(_, rest)| rest);
    let named = rest.split_once("error adding container to network \"").and_then(|(_, rest)| rest.split_once("\": "));
    named.map_or(rest, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_rules_that_exist() {
        for error in POD_ERRORS {
            assert!(!error.rules.is_empty(), "{error:?}");
            for id in error.rules {
                assert!(RULES.iter().any(|rule| rule.id == *id), "{error:?}");
            }
            assert!(error.words.split('…').all(|part| part.len() > 5), "{error:?}");
        }
    }

    /// Of two rows that fit, the first is taken, so that a special one must not stand behind a general one.
    #[test]
    fn no_error_hides_a_later_one() {
        for (index, later) in POD_ERRORS.iter().enumerate() {
            let example = later.words.replace('…', " x ");
            let first = POD_ERRORS.iter().position(|error| error.is_in(&example));
            assert_eq!(first, Some(index), "{later:?}");
        }
    }

    #[test]
    fn messages_are_explained() {
        let ids = |message: &str| PodError::explain(message).map(|rule| rule.id).collect::<Vec<_>>();
        for (message, want) in [
            (
                "invalid range set 0: RangeStart 10.54.0.10 not in network 10.53.0.0/24",
                &["ipam/host-local-range"] as &[_],
            ),
            (
                "failed to load netconf: json: cannot unmarshal string into Go struct field NetConf.mtu of type int",
                &["nad/field-type"],
            ),
            (
                "plugin type=\"tuning\" failed (add): invalid args xx for MAC addr: address xx: invalid MAC address",
                &["meta/tuning"],
            ),
            ("invalid args 02:00:00:00:01 for MAC addr: address 02:00:00:00:01: invalid MAC address", &["plugin/mac"]),
            ("not in network RangeStart", &[]),
            ("Back-off pulling image", &[]),
            ("", &[]),
        ] {
            assert_eq!(ids(message), want, "{message}");
        }
    }

    #[test]
    fn the_preamble_is_cut_off() {
        let sandbox = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"1c4d\": ";
        let multus = "plugin type=\"multus\" name=\"multus-cni-network\" failed (add): ";
        for (rest, want) in [
            ("[default/p/b926:net]: error adding container to network \"net\": Link not found", "Link not found"),
            (
                "[default/p/b926:net]: error adding container to network \"net\": plugin type=\"vrf\" failed (add): x",
                "plugin type=\"vrf\" failed (add): x",
            ),
            (
                "Multus: [default/p/b926]: error loading k8s delegates k8s args: TryLoadPodDelegates: error in getting k8s network for pod: GetNetworkDelegates: failed getting the delegate: GetCNIConfig: x",
                "GetCNIConfig: x",
            ),
            ("netplugin failed: \"panic\"", "netplugin failed: \"panic\""),
        ] {
            assert_eq!(without_preamble(&format!("{sandbox}{multus}{rest}")), want);
        }
        assert_eq!(without_preamble("Back-off pulling image"), "Back-off pulling image");
    }
}
