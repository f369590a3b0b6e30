//! Plugins that change an interface created by another plugin: their position in the chain, and what they reject.

use std::cell::LazyCell;

use super::super::finding::Findings;
use super::super::rule::rule;
use super::called_version::{self, Version};
use super::meta_tuning;
use crate::cni::{Config, Plugin};
use crate::json::Value;

rule! { CHAIN_ORDER = "meta/chain-order", Deny;
    wrong: "The plugins of the list are in an order that does not work.";
    why: "`tuning`, `vrf`, `sbr`, `bandwidth`, `rdma`, `portmap` and `firewall` change an interface that an earlier plugin of the list \
        creates. First in the list, or alone, they fail the pod (\"Required prevResult missing\", \"must be called as chained \
        plugin\"), and `bandwidth` panics. A list can create only one interface, because all its plugins are called with the same \
        interface name: the second one of `bridge`, `macvlan`, `ipvlan` and `vlan` fails.";
    fix: "Put the plugin that creates the interface first, and only one such plugin into a list. A second interface needs a NAD of its \
        own.";
}

rule! { VRF = "meta/vrf", Deny;
    wrong: "A `vrf` plugin has no valid `vrfname`, or the `cniVersion` is too old for it.";
    why: "The plugin rejects an absent or empty `vrfname`. The name becomes the name of an interface, for which the kernel accepts 1 \
        to 15 bytes without spaces, `/` and `:`. The plugin supports CNI 0.3.1 and later; without `cniVersion`, the version is 0.1.0. \
        Every pod that uses the network fails to start.";
    fix: "Set `vrfname` to at most 15 letters, digits, `-` or `_`, and `cniVersion` to 0.3.1 or later.";
}

rule! { BANDWIDTH = "meta/bandwidth", Deny;
    wrong: "`bandwidth` cannot limit this interface, or its limits are incomplete.";
    why: "The plugin limits traffic at the host's end of a veth pair. A VF has no such end, nor has an interface of `macvlan`, \
        `ipvlan` or `vlan`, so every pod fails. A rate and its burst must both be set or both be 0, and a burst must be below 4 GiB. A \
        second `bandwidth` for the same direction is a warning. The plugin supports CNI 0.3.0 and later; without `cniVersion`, the \
        version is 0.1.0.";
    fix: "Set the burst of each rate. For a VF remove `bandwidth` and use `max_tx_rate` of `sriov`, in Mbit/s.";
}

rule! { SBR = "meta/sbr", Deny;
    wrong: "`sbr` finds no usable address or gateway, comes twice, or has a wrong `table`.";
    why: "`sbr` (source-based routing) adds routing rules for the addresses of the interface. If the earlier plugin has no `ipam` \
        there are none, and every pod fails (\"No IP addresses supplied\"). For each address it adds a default route to the gateway: a \
        gateway of the other IP family, or outside of all subnets, is a warning. A `table` below 1 or above 4294967295 is a warning: \
        the kernel rejects it for IPv6, and uses another table for IPv4. A second `sbr` in the list is a warning: it adds a default \
        route to a table without routes, and pods can fail to start.";
    fix: "Add `ipam` with a gateway inside its subnet to the plugin that creates the interface, or remove `sbr`.";
    releases: "The sbr plugin reads `table` from release 1.6 of cni-plugins on. A wrong value is not reported if the policy names an \
        older release (`versions`).";
}

rule! { FIREWALL_VERSION = "plugin/firewall-version", Deny;
    wrong: "The `cniVersion` is too old for the `firewall` plugin.";
    why: "The plugin supports CNI 0.4.0 and later, and fails every pod with an older version. Without `cniVersion`, the version is \
        0.1.0.";
    fix: "Set the `cniVersion` of the list to 0.4.0 or later.";
}

rule! { FIREWALL_POLICY = "plugin/firewall-policy", Warn;
    wrong: "`firewall` does not know this `ingressPolicy`.";
    why: "The plugin knows open, same-bridge and isolated, and rejects every other policy when a pod starts (\"unknown ingress \
        policy\").";
    fix: "Write open, same-bridge or isolated; or remove `ingressPolicy`.";
    releases: "The firewall plugin reads `ingressPolicy` from release 1.1 of cni-plugins on. A wrong value is not reported if the \
        policy names an older release (`versions`).";
}

rule! { PORTMAP = "plugin/portmap", Deny;
    wrong: "`portmap` has an option that it rejects, or two that exclude each other.";
    why: "`markMasqBit` is a number from 0 to 31, and cannot be combined with `externalSetMarkChain`. `backend` is iptables or \
        nftables. The plugin rejects everything else, and every pod that uses the network fails to start. It also rejects conditions, or \
        an `externalSetMarkChain`, that are written for the other backend; this is a warning, because older releases do not compare \
        them. Without `backend` it is iptables, unless a node has only nftables.";
    fix: "Correct the option that the message names, or remove one of the two.";
    releases: "The portmap plugin reads `backend` from release 1.6 of cni-plugins on: a wrong one is denied if the policy names such a \
        release (`versions`), and a warning if it names none.";
}

const FAILS: &str = "every pod that uses this network fails to start";
const REJECTED: &str = "the plugin rejects the config; every pod that uses this network fails to start";

/// The rules on every plugin of the chain.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    chain_order(config, out);
    let version = LazyCell::new(|| Version::of(config));
    // The device plugin whose interface is handed on, as long as nothing in between can have added another.
    let mut device = None;
    // The plugin that made the interface, and whether a plugin before this one limits what it receives, or sends.
    let (mut maker, mut limited) = (None, [false; 2]);
    let mut has_sbr = false;
    for (index, plugin) in config.plugins.iter().enumerate() {
        called_version::check(plugin, &version, out);
        match plugin.kind {
            "vrf" => vrf(plugin, &version, out),
            "bandwidth" => bandwidth(plugin, device, &mut limited, &version, out),
            "tuning" => meta_tuning::check(plugin, out),
            "sbr" => sbr(plugin, device, std::mem::replace(&mut has_sbr, true), out),
            "firewall" => firewall(plugin, &version, out),
            "portmap" => portmap(plugin, out),
            _ => {}
        }
        if makes_interface(plugin.kind) {
            match maker {
                None => maker = Some(plugin.kind),
                Some(first) => second_interface(plugin, first, out),
            }
        }
        if index == 0 && (is_without_peer(plugin.kind) || matches!(plugin.kind, "bridge" | "host-device")) {
            device = Some(plugin);
        } else if !is_meta(plugin.kind) {
            device = None;
        }
    }
}

/// Whether a plugin certainly makes an interface for the pod. A VF without a kernel driver has none.
fn makes_interface(kind: &str) -> bool {
    matches!(kind, "bridge" | "macvlan" | "ipvlan" | "vlan")
}

fn second_interface(plugin: &Plugin<'_>, first: &str, out: &mut Findings<'_>) {
    let headline = format!("`{}` makes the interface that `{first}` has already made", plugin.kind);
    let note = "all plugins of a chain are called with the same interface name; every pod that uses this network fails to start";
    out.config(&CHAIN_ORDER, plugin.type_member.value.span, headline, note, "put it into a NAD of its own");
}

/// Whether a plugin makes an interface that is not one end of a veth pair.
fn is_without_peer(kind: &str) -> bool {
    matches!(kind, "sriov" | "ib-sriov" | "macvlan" | "ipvlan" | "vlan")
}

/// Whether a plugin works on the result of another one without adding an interface or an address.
fn is_meta(kind: &str) -> bool {
    matches!(kind, "tuning" | "vrf" | "sbr" | "bandwidth" | "rdma" | "portmap" | "firewall")
}

fn chain_order(config: &Config<'_>, out: &mut Findings<'_>) {
    let Some(first) = config.plugins.first().filter(|first| is_meta(first.kind)) else { return };
    // An element without a type may precede it; another rule reports that.
    let elements = config.root.get_exact("plugins").and_then(|list| list.value.elements()).unwrap_or_default();
    let is_first = !config.is_list || elements.first().is_some_and(|element| element.span == first.object.value.span);
    // A `prevResult` in the config is used as well.
    if !is_first || first.object.value_of("prevResult").is_some() {
        return;
    }
    let kind = first.kind;
    let (headline, help) = if config.is_list {
        (
            format!("`{kind}` is the first plugin of the chain, but needs the interface of an earlier one"),
            "put the plugin that creates the interface before it",
        )
    } else {
        (
            format!("`{kind}` is the only plugin, but needs the interface of an earlier one"),
            "write a list of `plugins`, the first of which creates the interface",
        )
    };
    out.config(&CHAIN_ORDER, first.type_member.value.span, headline, FAILS, help);
}

fn vrf(plugin: &Plugin<'_>, version: &Version<'_>, out: &mut Findings<'_>) {
    let help = "set `vrfname`, at most 15 letters, digits, `-` or `_`";
    match plugin.object.value_of("vrfname") {
        None => {
            let headline = "`vrf` has no `vrfname`";
            out.config(&VRF, plugin.type_member.value.span, headline, REJECTED, help);
        }
        Some(value) => {
            if let Some(name) = value.as_str().filter(|name| !is_interface_name(name)) {
                let headline = format!("`vrfname` is {name:?}, which is not a valid interface name");
                out.config(&VRF, value.span, headline, FAILS, help);
            }
        }
    }
    if let Some((version, span)) = version.if_one_of(&["", "0.1.0", "0.2.0", "0.3.0"], plugin) {
        let headline = format!("`vrf` does not support CNI version {version}");
        out.config(&VRF, span, headline, FAILS, "set the `cniVersion` of the list to 0.3.1 or later");
    }
}

/// Whether the kernel takes this for the name of an interface.
pub(super) fn is_interface_name(name: &str) -> bool {
    let good = |character: char| !matches!(character, '/' | ':') && !character.is_ascii_whitespace();
    (1..=15).contains(&name.len()) && !matches!(name, "." | "..") && name.chars().all(good)
}

fn bandwidth(
    plugin: &Plugin<'_>,
    device: Option<&Plugin<'_>>,
    limited: &mut [bool; 2],
    version: &Version<'_>,
    out: &mut Findings<'_>,
) {
    let (mut limits, mut limits_again) = (false, false);
    let keys = [("ingressRate", "ingressBurst"), ("egressRate", "egressBurst")];
    for ((rate_key, burst_key), is_limited) in keys.into_iter().zip(limited) {
        let (rate, burst) = (plugin.object.value_of(rate_key), plugin.object.value_of(burst_key));
        let number = |value: Option<&Value<'_>>| value.map_or(Some(0), |value| value.as_int());
        let (Some(rate_number), Some(burst_number)) = (number(rate), number(burst)) else { continue };
        if rate_number > 0 && burst_number > 0 {
            limits = true;
            limits_again |= std::mem::replace(is_limited, true);
        }
        match (rate, burst) {
            (Some(rate), _) if rate_number > 0 && burst_number == 0 => {
                let headline = format!("`{rate_key}` is {rate_number} without `{burst_key}`");
                out.config(&BANDWIDTH, rate.span, headline, REJECTED, format!("add `{burst_key}`, in bits"));
            }
            (_, Some(burst)) if rate_number == 0 && burst_number > 0 => {
                let headline = format!("`{burst_key}` is {burst_number} without `{rate_key}`");
                let help = format!("add `{rate_key}`, in bits per second");
                out.config(&BANDWIDTH, burst.span, headline, REJECTED, help);
            }
            (_, Some(burst)) if burst_number / 8 >= i64::from(u32::MAX) => {
                let headline = format!("`{burst_key}` is {burst_number} bits, which is 4 GiB or more");
                out.config(&BANDWIDTH, burst.span, headline, REJECTED, "write at most 34359738359");
            }
            _ => {}
        }
    }
    if limits && let Some(device) = device.filter(|device| is_without_peer(device.kind)) {
        let headline = format!("`bandwidth` cannot limit the interface of `{}`", device.kind);
        let note = "that interface has no veth peer on the host; every pod that uses this network fails to start";
        let help = if device.kind == "sriov" {
            "remove it, and set `max_tx_rate` of the `sriov` plugin, in Mbit/s"
        } else {
            "remove it"
        };
        out.config(&BANDWIDTH, plugin.type_member.value.span, headline, note, help);
    }
    if let Some((version, span)) = version.if_one_of(&["", "0.1.0", "0.2.0"], plugin) {
        let headline = format!("`bandwidth` does not support CNI version {version}");
        out.config(&BANDWIDTH, span, headline, FAILS, "set the `cniVersion` of the list to 0.3.0 or later");
    }
    if limits_again {
        let headline = "a second `bandwidth` limits the same direction";
        let note = "a limit cannot be set twice (\"file exists\"); pods fail to start";
        let help = "put all limits into one `bandwidth`";
        out.config(&BANDWIDTH, plugin.type_member.value.span, headline, note, help).at_most_warn();
    }
}

fn sbr(plugin: &Plugin<'_>, device: Option<&Plugin<'_>>, is_second: bool, out: &mut Findings<'_>) {
    if is_second {
        let headline = "a second `sbr` in the same list";
        let note = "the first one has moved the routes to a table of its own; the second one adds a default route to another table, for which pods can fail to start (\"network is unreachable\")";
        out.config(&SBR, plugin.type_member.value.span, headline, note, "keep one `sbr`").at_most_warn();
    }
    if let Some(value) = plugin.object.value_of("table")
        && let Some(table) = value.as_int().filter(|table| !(1..=i64::from(u32::MAX)).contains(table))
    {
        let headline = format!("`table` is {table}, expected 1 to {}", u32::MAX);
        let note = "with an IPv6 address, pods fail to start; with an IPv4 address, another table is used";
        out.config(&SBR, value.span, headline, note, "write the number of a routing table, for example 100")
            .at_most_warn();
    }
    let Some(device) = device else { return };
    // Another rule reports a type that cannot be decoded.
    let is_typed = |kind: &Value<'_>| kind.as_str() != Some("");
    if !device.object.object_of("ipam").and_then(|ipam| ipam.value_of("type")).is_some_and(is_typed) {
        let headline = format!("`sbr` follows `{}` without `ipam`", device.kind);
        let note = "`sbr` finds no address; every pod that uses this network fails to start";
        let help = format!("add `ipam` to the `{}` plugin, or remove `sbr`", device.kind);
        out.config(&SBR, plugin.type_member.value.span, headline, note, help);
    }
}

fn firewall(plugin: &Plugin<'_>, version: &Version<'_>, out: &mut Findings<'_>) {
    if let Some((version, span)) = version.if_one_of(&["", "0.1.0", "0.2.0", "0.3.0", "0.3.1"], plugin) {
        let headline = format!("`firewall` does not support CNI version {version}");
        let help = "set the `cniVersion` of the list to 0.4.0 or later";
        out.config(&FIREWALL_VERSION, span, headline, FAILS, help);
    }
    let Some(value) = plugin.object.value_of("ingressPolicy") else { return };
    let known = ["", "open", "same-bridge", "isolated"];
    if let Some(policy) = value.as_str().filter(|policy| !known.contains(policy)) {
        let headline = format!("`ingressPolicy` is {policy:?}, which `firewall` does not know");
        out.config(&FIREWALL_POLICY, value.span, headline, REJECTED, "write open, same-bridge or isolated");
    }
}

fn portmap(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let (bit, chain) = (plugin.object.value_of("markMasqBit"), plugin.object.value_of("externalSetMarkChain"));
    if let Some(bit) = bit {
        if let Some(number) = bit.as_int().filter(|number| !(0..=31).contains(number)) {
            let headline = format!("`markMasqBit` is {number}, expected 0 to 31");
            out.config(&PORTMAP, bit.span, headline, REJECTED, "write the number of a bit, from 0 to 31");
        }
        if let Some(chain) = chain {
            let headline = "`externalSetMarkChain` and `markMasqBit` are both set";
            out.config(&PORTMAP, chain.span, headline, REJECTED, "keep one of the two");
        }
    }
    wrong_backend(plugin, out);
    let Some(backend) = plugin.object.value_of("backend") else { return };
    if let Some(name) = backend.as_str().filter(|name| !matches!(*name, "iptables" | "nftables")) {
        let headline = format!("`backend` is {name:?}, which `portmap` does not know");
        out.config(&PORTMAP, backend.span, headline, REJECTED, "write iptables or nftables");
    }
}

/// Options that are written for another backend than the one in use.
fn wrong_backend(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    // The plugin looks at the first character: an option of iptables begins with a hyphen or an exclamation mark.
    let written_for = |key: &str| {
        let first = plugin.object.list_of(key).first()?.as_str()?.chars().next()?;
        Some(if matches!(first, '-' | '!') { "iptables" } else { "nftables" })
    };
    let backend = match plugin.object.value_of("backend").map(Value::as_str) {
        None => "iptables",
        Some(Some(name @ ("iptables" | "nftables"))) => name,
        Some(_) => return,
    };
    for (key, other) in [
        ("conditionsV4", written_for("conditionsV4")),
        ("conditionsV6", written_for("conditionsV6")),
        ("externalSetMarkChain", Some("iptables")),
    ] {
        if let (Some(value), Some(other)) = (plugin.object.value_of(key), other.filter(|other| *other != backend)) {
            let headline = format!("`{key}` is written for {other}, but the backend is {backend}");
            out.config(&PORTMAP, value.span, headline, REJECTED, "write both for the same backend").at_most_warn();
        }
    }
}

#[cfg(test)]
mod tests;
