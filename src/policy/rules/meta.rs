//! Plugins that work on the interface another one made: where they may stand, and what they refuse.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::meta_tuning;
use crate::cni::{Config, Plugin};
use crate::json::Value;

rule! { CHAIN_ORDER = "meta/chain-order", Deny;
"a plugin that needs the result of an earlier one, first in the chain or alone";
"`tuning`, `vrf`, `sbr`, `bandwidth`, `rdma`, `portmap` and `firewall` change an interface that is already there. Without the result of \
an earlier plugin they fail the pod (\"Required prevResult missing\", \"must be called as chained plugin\"), and `bandwidth` panics." }

rule! { VRF = "meta/vrf", Deny;
"a `vrf` plugin without a name that an interface can have, or under a CNI version it does not speak";
"The plugin refuses an absent or empty `vrfname`. The name becomes an interface, for which the kernel takes 1 to 15 bytes without \
blanks, `/` and `:`. It speaks CNI 0.3.1 and later; an absent `cniVersion` means 0.1.0." }

rule! { BANDWIDTH = "meta/bandwidth", Deny;
"a `bandwidth` plugin that cannot work: a rate without a burst, behind a VF, or under a CNI version it does not speak";
"Rate and burst must both be set or both be 0, and a burst must stay below 4 GiB. Traffic is shaped on the host's end of a veth pair; a \
VF has none, so behind `sriov` and `ib-sriov` every limit fails the pod. It speaks CNI 0.3.0 and later; an absent `cniVersion` means \
0.1.0." }

rule! { SBR = "meta/sbr", Deny;
"an `sbr` plugin behind a VF without IPAM";
"Routing by source needs the addresses of the interface, and the plugin fails the pod where the earlier result has none (\"No IP \
addresses supplied\")." }

/// The rules on every plugin of the chain.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    chain_order(config, out);
    for (index, plugin) in config.plugins.iter().enumerate() {
        let before = config.plugins.get(..index).unwrap_or_default();
        match plugin.kind {
            "vrf" => vrf(plugin, config, out),
            "bandwidth" => bandwidth(plugin, before, config, out),
            "tuning" => meta_tuning::check(plugin, out),
            "sbr" => sbr(plugin, before, out),
            _ => {}
        }
    }
}

/// What works on the result of another plugin, and adds neither interface nor address to it.
fn is_meta(kind: &str) -> bool {
    matches!(kind, "tuning" | "vrf" | "sbr" | "bandwidth" | "rdma" | "portmap" | "firewall")
}

fn chain_order(config: &Config<'_>, out: &mut Findings<'_>) {
    let Some(first) = config.plugins.first().filter(|first| is_meta(first.kind)) else { return };
    // Something without a type may stand before it, which is another rule's business.
    let elements = config.root.get_exact("plugins").and_then(|list| list.value.elements()).unwrap_or_default();
    let is_first = !config.is_list || elements.first().is_some_and(|element| element.span == first.object.value.span);
    // A result that is written into the config serves as well.
    if !is_first || first.object.value_of("prevResult").is_some() {
        return;
    }
    let kind = first.kind;
    let (message, help) = if config.is_list {
        (
            format!("`{kind}` is the first plugin of the chain and finds no interface to work on: every pod fails"),
            "put the plugin that makes the interface before it",
        )
    } else {
        (
            format!("`{kind}` stands alone and finds no interface to work on: every pod that uses it fails"),
            "write a list of `plugins`, the first of which makes the interface",
        )
    };
    out.config(&CHAIN_ORDER, first.type_member.value.span, message, help);
}

fn vrf(plugin: &Plugin<'_>, config: &Config<'_>, out: &mut Findings<'_>) {
    let help = "name the VRF in `vrfname`, with at most 15 letters, digits, `-` or `_`";
    match plugin.object.value_of("vrfname") {
        None => {
            let message = "`vrf` has no `vrfname`: the plugin refuses that and fails every pod";
            out.config(&VRF, plugin.type_member.value.span, message, help);
        }
        Some(value) => {
            if let Some(name) = value.as_str().filter(|name| !is_interface_name(name)) {
                let message = format!("`vrfname` is {name:?}, which no interface can be called: every pod fails");
                out.config(&VRF, value.span, message, help);
            }
        }
    }
    if let Some(version) = before_version(plugin, config, &["", "0.1.0", "0.2.0", "0.3.0"]) {
        let span = config.root.value_of("cniVersion").unwrap_or(&plugin.type_member.value).span;
        let message = format!("`vrf` does not speak CNI version {version}: every pod that uses it fails");
        out.config(&VRF, span, message, "set the `cniVersion` of the list to 0.3.1 or later");
    }
}

/// Whether the kernel takes this for the name of an interface.
fn is_interface_name(name: &str) -> bool {
    let good = |character: char| !matches!(character, '/' | ':') && !character.is_ascii_whitespace();
    (1..=15).contains(&name.len()) && !matches!(name, "." | "..") && name.chars().all(good)
}

/// The version the plugin is called with, where it is one of those given and nothing else can decide it.
fn before_version<'d>(plugin: &Plugin<'d>, config: &Config<'d>, old: &[&str]) -> Option<&'d str> {
    // libcni chooses among these where a list has them.
    let chooses = config.is_list && !config.root.list_of("cniVersions").is_empty();
    // A key that sorts after the one libcni writes is the one the plugin reads.
    let overrides = |key: &str| key > "cniVersion";
    let own = config.is_list && plugin.written.get("cniVersion").is_some_and(|member| overrides(&member.key));
    let readable = config.root.value_of("cniVersion").is_none_or(|value| value.as_str().is_some());
    let version = config.cni_version();
    let is_old = !chooses && !own && readable && old.contains(&version);
    is_old.then_some(if version.is_empty() { "0.1.0" } else { version })
}

fn bandwidth(plugin: &Plugin<'_>, before: &[Plugin<'_>], config: &Config<'_>, out: &mut Findings<'_>) {
    let mut limits = false;
    for (rate_key, burst_key) in [("ingressRate", "ingressBurst"), ("egressRate", "egressBurst")] {
        let (rate, burst) = (plugin.object.value_of(rate_key), plugin.object.value_of(burst_key));
        let number = |value: Option<&Value<'_>>| value.map_or(Some(0), |value| value.as_int());
        let (Some(rate_number), Some(burst_number)) = (number(rate), number(burst)) else { continue };
        limits |= rate_number > 0 && burst_number > 0;
        match (rate, burst) {
            (Some(rate), _) if rate_number > 0 && burst_number == 0 => {
                let message = format!("`{rate_key}` is {rate_number} without a `{burst_key}`: every pod fails");
                out.config(&BANDWIDTH, rate.span, message, format!("add `{burst_key}`, in bits"));
            }
            (_, Some(burst)) if rate_number == 0 && burst_number > 0 => {
                let message = format!("`{burst_key}` is {burst_number} without a `{rate_key}`: every pod fails");
                out.config(&BANDWIDTH, burst.span, message, format!("add `{rate_key}`, in bits per second"));
            }
            (_, Some(burst)) if burst_number / 8 >= i64::from(u32::MAX) => {
                let message = format!("`{burst_key}` is {burst_number} bits, 4 GiB or more: every pod fails");
                out.config(&BANDWIDTH, burst.span, message, "write at most 34359738359");
            }
            _ => {}
        }
    }
    if limits && let Some(device) = device_of(before) {
        let message =
            format!("`bandwidth` cannot limit what `{}` made: a VF has no veth peer, and every pod fails", device.kind);
        let help = if device.kind == "sriov" {
            "take it away, and set `max_tx_rate` of the `sriov` plugin, in Mbit/s"
        } else {
            "take it away"
        };
        out.config(&BANDWIDTH, plugin.type_member.value.span, message, help);
    }
    if let Some(version) = before_version(plugin, config, &["", "0.1.0", "0.2.0"]) {
        let span = config.root.value_of("cniVersion").unwrap_or(&plugin.type_member.value).span;
        let message = format!("`bandwidth` does not speak CNI version {version}: every pod that uses it fails");
        out.config(&BANDWIDTH, span, message, "set the `cniVersion` of the list to 0.3.0 or later");
    }
}

/// The device plugin whose interface is handed on, if nothing in between can have added another.
fn device_of<'a, 'd>(before: &'a [Plugin<'d>]) -> Option<&'a Plugin<'d>> {
    let (first, between) = before.split_first()?;
    let device = matches!(first.kind, "sriov" | "ib-sriov") && between.iter().all(|plugin| is_meta(plugin.kind));
    device.then_some(first)
}

fn sbr(plugin: &Plugin<'_>, before: &[Plugin<'_>], out: &mut Findings<'_>) {
    let Some(device) = device_of(before) else { return };
    // One whose type cannot be decoded is another rule's business.
    let is_typed = |kind: &Value<'_>| kind.as_str() != Some("");
    if !device.object.object_of("ipam").and_then(|ipam| ipam.value_of("type")).is_some_and(is_typed) {
        let message =
            format!("`sbr` stands behind `{}` without `ipam`: it finds no address, and every pod fails", device.kind);
        let help = format!("give the `{}` plugin an `ipam`, or take `sbr` away", device.kind);
        out.config(&SBR, plugin.type_member.value.span, message, help);
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    /// What is found in a chain of these plugins, under a version that all of them speak.
    fn chain(plugins: &str) -> Vec<String> {
        found(&format!(r#"{{"cniVersion":"1.0.0","name":"net","plugins":[{plugins}]}}"#))
    }

    #[test]
    fn order() {
        for kind in ["tuning", "sbr", "bandwidth", "rdma", "portmap", "firewall"] {
            let alone = format!(r#"{{"cniVersion":"1.0.0","type":"{kind}"}}"#);
            assert_eq!(found(&alone), ["meta/chain-order deny /type"], "{kind}");
            let plugin = format!(r#"{{"type":"{kind}"}}"#);
            assert_eq!(chain(&plugin), ["meta/chain-order deny /plugins/0/type"], "{kind}");
            assert_eq!(chain(&format!(r#"{{"type":"macvlan"}},{plugin}"#)), Vec::<String>::new(), "{kind}");
            let swapped = format!(r#"{plugin},{{"type":"sriov"}}"#);
            assert_eq!(chain(&swapped), ["meta/chain-order deny /plugins/0/type"], "{kind}");
        }
        assert_eq!(chain(r#"{"type":"tuning","prevResult":{"cniVersion":"1.0.0"}}"#), Vec::<String>::new());
        assert_eq!(chain(r#"{},{"type":"tuning"}"#), ["nad/no-plugin deny /plugins/0"]);
    }

    #[test]
    fn vrf() {
        for (members, want) in [
            (r#","vrfname":"blue""#, &[] as &[&str]),
            (r#","vrfname":"123456789012345""#, &[]),
            ("", &["meta/vrf deny /plugins/1/type"]),
            (r#","vrfname":null"#, &["meta/vrf deny /plugins/1/type"]),
            (r#","vrfname":"""#, &["meta/vrf deny /plugins/1/vrfname"]),
            (r#","vrfname":"1234567890123456""#, &["meta/vrf deny /plugins/1/vrfname"]),
            (r#","vrfname":"a/b""#, &["meta/vrf deny /plugins/1/vrfname"]),
            (r#","vrfname":"a b""#, &["meta/vrf deny /plugins/1/vrfname"]),
            (r#","vrfname":5"#, &["nad/field-type deny /plugins/1/vrfname"]),
        ] {
            assert_eq!(chain(&format!(r#"{{"type":"sriov"}},{{"type":"vrf"{members}}}"#)), want, "{members}");
        }
    }

    #[test]
    fn versions() {
        for (version, vrf, bandwidth) in [
            ("", true, true),
            (r#""cniVersion":"","#, true, true),
            (r#""cniVersion":"0.2.0","#, true, true),
            (r#""cniVersion":"0.3.0","#, true, false),
            (r#""cniVersion":"0.3.1","#, false, false),
            (r#""cniVersion":"0.2.0","cniVersions":["0.2.0","1.0.0"],"#, false, false),
        ] {
            for (plugin, rule, refused) in [
                (r#"{"type":"vrf","vrfname":"blue"}"#, "meta/vrf", vrf),
                (r#"{"type":"bandwidth"}"#, "meta/bandwidth", bandwidth),
            ] {
                let config = format!(r#"{{{version}"plugins":[{{"type":"sriov"}},{plugin}]}}"#);
                let place = if version.is_empty() { "/plugins/1/type" } else { "/cniVersion" };
                let want: Vec<_> = refused.then(|| format!("{rule} deny {place}")).into_iter().collect();
                assert_eq!(found(&config), want, "{config}");
            }
        }
    }

    #[test]
    fn bandwidth() {
        for (device, members, want) in [
            ("bridge", r#""ingressRate":1000,"ingressBurst":1000"#, &[] as &[&str]),
            ("bridge", r#""ingressRate":0,"ingressBurst":0"#, &[]),
            ("bridge", r#""ingressRate":1000"#, &["meta/bandwidth deny /plugins/1/ingressRate"]),
            ("bridge", r#""egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/egressBurst"]),
            ("bridge", r#""egressRate":0,"egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/egressBurst"]),
            ("bridge", r#""egressRate":1,"egressBurst":34359738359"#, &[]),
            ("bridge", r#""egressRate":1,"egressBurst":34359738360"#, &["meta/bandwidth deny /plugins/1/egressBurst"]),
            ("bridge", r#""egressRate":"1","egressBurst":5"#, &["nad/field-type deny /plugins/1/egressRate"]),
            ("sriov", r#""ingressRate":0,"ingressBurst":0"#, &[]),
            ("sriov", r#""ingressRate":1000,"ingressBurst":1000"#, &["meta/bandwidth deny /plugins/1/type"]),
            ("ib-sriov", r#""egressRate":1000,"egressBurst":1000"#, &["meta/bandwidth deny /plugins/1/type"]),
        ] {
            let got = chain(&format!(r#"{{"type":"{device}"}},{{"type":"bandwidth",{members}}}"#));
            assert_eq!(got, want, "{device} {members}");
        }
        let limits = r#"{"type":"bandwidth","egressRate":1000,"egressBurst":1000}"#;
        assert_eq!(
            chain(&format!(r#"{{"type":"sriov"}},{{"type":"tuning"}},{limits}"#)),
            ["meta/bandwidth deny /plugins/2/type"]
        );
        assert_eq!(chain(&format!(r#"{{"type":"sriov"}},{{"type":"other"}},{limits}"#)), Vec::<String>::new());
    }

    #[test]
    fn sbr() {
        for (device, want) in [
            (r#""type":"sriov""#, true),
            (r#""type":"sriov","ipam":{}"#, true),
            (r#""type":"sriov","ipam":null"#, true),
            (r#""type":"ib-sriov","ipam":{"type":""}"#, true),
            (r#""type":"sriov","ipam":{"type":"dhcp"}"#, false),
            (r#""type":"macvlan""#, false),
        ] {
            let want: Vec<_> = want.then(|| "meta/sbr deny /plugins/1/type".to_owned()).into_iter().collect();
            assert_eq!(chain(&format!(r#"{{{device}}},{{"type":"sbr"}}"#)), want, "{device}");
        }
    }
}
