//! Plugins that change an interface created by another plugin: their position in the chain, and what they reject.

use std::cell::LazyCell;

use super::super::finding::Findings;
use super::super::rule::rule;
use super::meta_tuning;
use crate::cni::{Config, Plugin};
use crate::json::{Span, Value};

rule! { CHAIN_ORDER = "meta/chain-order", Deny;
"a plugin that needs the result of an earlier one, first in the chain or alone";
"`tuning`, `vrf`, `sbr`, `bandwidth`, `rdma`, `portmap` and `firewall` change an interface that already exists. Without the result of an earlier plugin they fail the pod (\"Required prevResult missing\", \"must be called as chained plugin\"), and `bandwidth` panics." }

rule! { VRF = "meta/vrf", Deny;
"a `vrf` plugin without a valid interface name, or with an unsupported CNI version";
"The plugin rejects an absent or empty `vrfname`. The name becomes an interface name, for which the kernel accepts 1 to 15 bytes without spaces, `/` and `:`. The plugin supports CNI 0.3.1 and later; an absent `cniVersion` means 0.1.0." }

rule! { BANDWIDTH = "meta/bandwidth", Deny;
"a `bandwidth` plugin that cannot work: a rate without a burst, after a VF, or with an unsupported CNI version";
"Rate and burst must both be set or both be 0, and a burst must stay below 4 GiB. Traffic is shaped on the host's end of a veth pair; a \
VF has none, so after `sriov` and `ib-sriov` every limit fails the pod. The plugin supports CNI 0.3.0 and later; an absent `cniVersion` means 0.1.0." }

rule! { SBR = "meta/sbr", Deny;
"an `sbr` plugin after a VF without IPAM";
"Routing by source needs the addresses of the interface, and the plugin fails the pod where the earlier result has none (\"No IP \
addresses supplied\")." }

const FAILS: &str = "every pod that uses this network fails to start";
const REJECTED: &str = "the plugin rejects the config; every pod that uses this network fails to start";

/// The rules on every plugin of the chain.
pub(crate) fn check(config: &Config<'_>, out: &mut Findings<'_>) {
    chain_order(config, out);
    let version = LazyCell::new(|| Version::of(config));
    // The device plugin whose interface is handed on, as long as nothing in between can have added another.
    let mut device = None;
    for (index, plugin) in config.plugins.iter().enumerate() {
        match plugin.kind {
            "vrf" => vrf(plugin, &version, out),
            "bandwidth" => bandwidth(plugin, device, &version, out),
            "tuning" => meta_tuning::check(plugin, out),
            "sbr" => sbr(plugin, device, out),
            _ => {}
        }
        if index == 0 && matches!(plugin.kind, "sriov" | "ib-sriov") {
            device = Some(plugin);
        } else if !is_meta(plugin.kind) {
            device = None;
        }
    }
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
fn is_interface_name(name: &str) -> bool {
    let good = |character: char| !matches!(character, '/' | ':') && !character.is_ascii_whitespace();
    (1..=15).contains(&name.len()) && !matches!(name, "." | "..") && name.chars().all(good)
}

/// The CNI version that the plugins of a config are called with. It is looked up once: a config may have tens of thousands of plugins.
struct Version<'d> {
    /// `None` where something else than `cniVersion` can decide it.
    value: Option<&'d str>,
    /// Where it is written.
    span: Option<Span>,
    is_list: bool,
}

impl<'d> Version<'d> {
    fn of(config: &Config<'d>) -> Self {
        let written = config.root.value_of("cniVersion");
        // libcni chooses among these where a list has them.
        let chooses = config.is_list && !config.root.list_of("cniVersions").is_empty();
        let is_readable = written.is_none_or(|value| value.as_str().is_some());
        let value = (!chooses && is_readable).then(|| config.cni_version());
        Self { value, span: written.map(|value| value.span), is_list: config.is_list }
    }

    /// The version that this plugin is called with and where it is written, if it is one of those given.
    fn if_one_of(&self, versions: &[&str], plugin: &Plugin<'_>) -> Option<(&'d str, Span)> {
        // A key that sorts after the one libcni writes is the one the plugin reads.
        let overrides = |key: &str| key > "cniVersion";
        let own = self.is_list && plugin.written.get("cniVersion").is_some_and(|member| overrides(&member.key));
        let version = self.value.filter(|version| !own && versions.contains(version))?;
        let span = self.span.unwrap_or(plugin.type_member.value.span);
        Some((if version.is_empty() { "0.1.0" } else { version }, span))
    }
}

fn bandwidth(plugin: &Plugin<'_>, device: Option<&Plugin<'_>>, version: &Version<'_>, out: &mut Findings<'_>) {
    let mut limits = false;
    for (rate_key, burst_key) in [("ingressRate", "ingressBurst"), ("egressRate", "egressBurst")] {
        let (rate, burst) = (plugin.object.value_of(rate_key), plugin.object.value_of(burst_key));
        let number = |value: Option<&Value<'_>>| value.map_or(Some(0), |value| value.as_int());
        let (Some(rate_number), Some(burst_number)) = (number(rate), number(burst)) else { continue };
        limits |= rate_number > 0 && burst_number > 0;
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
    if limits && let Some(device) = device {
        let headline = format!("`bandwidth` cannot limit the VF of `{}`", device.kind);
        let note = "a VF has no veth peer on the host; every pod that uses this network fails to start";
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
}

fn sbr(plugin: &Plugin<'_>, device: Option<&Plugin<'_>>, out: &mut Findings<'_>) {
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

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    /// Findings for a chain of these plugins, with a CNI version that all of them support.
    fn chain(plugins: &str) -> Vec<String> {
        found(&format!(r#"{{"cniVersion":"1.0.0","name":"net","plugins":[{plugins}]}}"#))
    }

    /// If each plugin were compared with all others, this would take minutes.
    #[test]
    fn long_chains_are_judged_in_one_pass() {
        let many = |plugin: &str, count: usize| vec![plugin; count].join(",");
        let keys: String = (0..20_000).map(|number| format!(r#""k{number}":0,"#)).collect();
        for plugin in
            [r#"{"type":"vrf"}"#, r#"{"type":"sbr"}"#, r#"{"type":"bandwidth","ingressRate":1,"ingressBurst":1}"#]
        {
            let plugins = many(plugin, 10_000);
            for versions in
                [r#""cniVersion":"0.2.0""#.to_owned(), format!(r#""cniVersions":[{}]"#, many(r#""1.0.0""#, 10_000))]
            {
                let config = format!(r#"{{{keys}{versions},"name":"net","plugins":[{{"type":"sriov"}},{plugins}]}}"#);
                assert!(found(&config).len() < 100, "{plugin}");
            }
        }
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
            for (plugin, rule, is_denied) in [
                (r#"{"type":"vrf","vrfname":"blue"}"#, "meta/vrf", vrf),
                (r#"{"type":"bandwidth"}"#, "meta/bandwidth", bandwidth),
            ] {
                let config = format!(r#"{{{version}"plugins":[{{"type":"sriov"}},{plugin}]}}"#);
                let place = if version.is_empty() { "/plugins/1/type" } else { "/cniVersion" };
                let want: Vec<_> = is_denied.then(|| format!("{rule} deny {place}")).into_iter().collect();
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
