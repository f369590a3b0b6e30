//! Rules on the settings of sriov-cni for a virtual function, except the VLAN.

use super::super::Rule;
use super::super::finding::Findings;
use super::super::rule::rule;
use crate::cni::Plugin;
use crate::cni::mac::Mac;
use crate::json::{Kind, Value};

rule! { MAC = "sriov/mac", Deny;
    wrong: "`mac` is not a MAC address that a VF can have.";
    why: "sriov-cni parses the address when a pod starts, and fails the pod if it cannot (\"failed to parse MAC address\"). Drivers \
        reject a multicast address, one of all zeros and one that has not six bytes. A pod that brings its own address does not use \
        this one, so with the capability `mac` it is a warning.";
    fix: "Write six bytes in hexadecimal, as in \"02:00:00:00:00:01\", or remove `mac`.";
}

rule! { TX_RATE = "sriov/tx-rate", Deny;
    wrong: "A transmit rate is below 0, or the minimum is above the maximum.";
    why: "The rates are in Mbit/s, and 0 means no limit. The kernel rejects a minimum above a maximum that is not 0, and no pod that \
        uses the network starts. sriov-cni passes rates on without a check, cut to 32 bits: -1 becomes 4294967295.";
    fix: "Write rates of 0 or above, the minimum not above the maximum.";
}

rule! { ON_OFF = "sriov/on-off", Deny;
    wrong: "`spoofchk` or `trust` is meant to be on, but is not written exactly as \"on\".";
    why: "sriov-cni does not check the value: \"on\" switches the setting on, and every other text switches it off, including \"true\" \
        and \"ON\". Spoof checking that was meant to protect the network is then silently off. A value that was not meant to be on, \
        such as \"no\", also ends up off, and is only a warning.";
    fix: "Write \"on\" or \"off\", in lower case.";
}

rule! { LINK_STATE = "sriov/link-state", Deny;
    wrong: "`link_state` is not auto, enable or disable.";
    why: "sriov-cni knows these three words, in lower case only, and fails the pod for any other value (\"invalid link_state value\").";
    fix: "Write \"auto\", \"enable\" or \"disable\"; or remove `link_state`.";
}

rule! { LOG_LEVEL = "sriov/log-level", Warn;
    wrong: "sriov-cni does not know this `logLevel`.";
    why: "sriov-cni knows panic, error, warning, info and debug, in upper or lower case. For any other value it logs at info, so the \
        messages that you look for may be missing.";
    fix: "Write one of panic, error, warning, info and debug.";
    releases: "sriov-cni reads `logLevel` from release 2.8 on.";
}

rule! { NO_EFFECT = "sriov/no-effect", Warn;
    wrong: "`mtu`, `master` or `vfid` is set, which sriov-cni overwrites.";
    why: "sriov-cni decodes the keys, and then overwrites them with what it finds out about the VF that the pod was given. The \
        interface keeps the MTU that the VF has, unless a chained `tuning` plugin changes it.";
    fix: "Remove the key. Set an MTU on the device (in the SriovNetworkNodePolicy), or chain the `tuning` plugin with this `mtu`.";
}

/// The rules on one `sriov` plugin.
pub(crate) fn check(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    if let Some(value) = configured_mac(plugin) {
        mac(plugin, value, &MAC, "sriov-cni", out);
    }
    tx_rate(plugin, out);
    for (key, effect) in [("spoofchk", "spoof checking"), ("trust", "trust")] {
        on_off(plugin, key, effect, out);
    }
    link_state(plugin, &LINK_STATE, "sriov-cni", out);
    log_level(plugin, out);
    no_effect(plugin, out);
}

/// The address a plugin sets on the pod's interface: a `runtimeConfig` in the config takes precedence over `mac`.
pub(super) fn configured_mac<'d>(plugin: &Plugin<'d>) -> Option<&'d Value<'d>> {
    let runtime = plugin.object.object_of("runtimeConfig").and_then(|runtime| runtime.value_of("mac"));
    runtime.filter(|value| value.as_str() != Some("")).or_else(|| plugin.object.value_of("mac"))
}

/// What is wrong with such an address.
pub(super) fn mac(plugin: &Plugin<'_>, value: &Value<'_>, rule: &'static Rule, reader: &str, out: &mut Findings<'_>) {
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    let help = "write six bytes in hexadecimal, as in \"02:00:00:00:00:01\"";
    let (problem, note) = match Mac::parse(text) {
        None => {
            let pods = failing_pods(from_pod(plugin, "mac"));
            let headline = format!("`mac` is {text:?}, which is not a MAC address");
            let note = format!("{reader} cannot parse it, and {pods} fails to start");
            let finding = out.config(rule, value.span, headline, note, help);
            if from_pod(plugin, "mac") {
                finding.at_most_warn();
            }
            return;
        }
        Some(mac) if mac.bare => {
            ("has no separators", "only plugins that were built with a recent Go release can parse it")
        }
        Some(mac) if mac.bytes != 6 => ("does not have six bytes", "an Ethernet interface cannot have this address"),
        Some(mac) if mac.multicast => ("is a multicast address", "drivers reject it for an interface"),
        Some(mac) if mac.zero => ("is all zeros", "drivers reject it for an interface"),
        Some(_) => return,
    };
    out.config(rule, value.span, format!("`mac` is {text:?}, which {problem}"), note, help).at_most_warn();
}

/// Whether pods may provide their own value, which then replaces the one in the config.
pub(super) fn from_pod(plugin: &Plugin<'_>, capability: &str) -> bool {
    // Every reader decodes capabilities as a map, so each has exactly one spelling.
    let declared = plugin.object.object_of("capabilities").and_then(|all| all.get_exact(capability));
    declared.is_some_and(|member| member.value.kind == Kind::Bool(true))
}

/// Which pods an invalid value in the config affects.
pub(super) fn failing_pods(from_pod: bool) -> &'static str {
    if from_pod { "every pod that does not provide its own" } else { "every pod that uses this network" }
}

fn tx_rate(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let mut rates = [None, None];
    for (key, rate) in ["min_tx_rate", "max_tx_rate"].into_iter().zip(&mut rates) {
        let Some(value) = plugin.object.value_of(key) else { continue };
        let Some(given) = value.as_int() else { continue };
        if given < 0 {
            let cut = given as u32;
            let headline = format!("`{key}` is {given}, expected 0 or more");
            let note = format!("truncated to 32 bits, the kernel is asked for {cut} Mbit/s");
            out.config(&TX_RATE, value.span, headline, note, "write a rate in Mbit/s, or 0 for no limit");
        } else if let Ok(fits) = u32::try_from(given) {
            *rate = Some((fits, value));
        } else {
            let headline = format!("`{key}` is {given}, which does not fit into 32 bits");
            let note = format!("truncated to 32 bits, the kernel is asked for {} Mbit/s", given as u32);
            out.config(&TX_RATE, value.span, headline, note, "write the rate in Mbit/s").at_most_warn();
        }
    }
    if let [Some((min, value)), Some((max, _))] = rates
        && min > max
        && max > 0
    {
        let headline = format!("`min_tx_rate` is {min}, above the `max_tx_rate` of {max}");
        let note = "the kernel rejects it; every pod that uses this network fails to start";
        out.config(&TX_RATE, value.span, headline, note, "write a minimum that is not above the maximum");
    }
}

fn on_off(plugin: &Plugin<'_>, key: &str, effect: &str, out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of(key) else { return };
    let Some(text) = value.as_str().filter(|text| !matches!(*text, "" | "on" | "off")) else { return };
    let headline = format!("`{key}` is {text:?}, expected \"on\" or \"off\"");
    let note = format!("sriov-cni treats every value but \"on\" as off, and switches {effect} off");
    if reads_like_on(text) {
        out.config(&ON_OFF, value.span, headline, note, "write \"on\"").replaced_by(Some("on"));
    } else {
        out.config(&ON_OFF, value.span, headline, note, "write \"on\" or \"off\"").at_most_warn();
    }
}

fn reads_like_on(text: &str) -> bool {
    let plain = text.trim().to_ascii_lowercase();
    matches!(plain.as_str(), "on" | "true" | "t" | "yes" | "y" | "1" | "enable" | "enabled" | "active")
}

/// The `link_state` of sriov-cni and of ib-sriov-cni.
pub(super) fn link_state(plugin: &Plugin<'_>, rule: &'static Rule, reader: &str, out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of("link_state") else { return };
    let Some(state) = value.as_str() else { return };
    if !matches!(state, "" | "auto" | "enable" | "disable") {
        let headline = format!("`link_state` is {state:?}, expected auto, enable or disable");
        let note = format!("{reader} rejects it; every pod that uses this network fails to start");
        out.config(rule, value.span, headline, note, "write \"auto\", \"enable\" or \"disable\"");
    }
}

fn log_level(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    const LEVELS: [&str; 5] = ["panic", "error", "warning", "info", "debug"];
    let Some(value) = plugin.object.value_of("logLevel") else { return };
    let Some(level) = value.as_str().filter(|level| !level.is_empty()) else { return };
    if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
        let headline = format!("`logLevel` is {level:?}, which sriov-cni does not know");
        let help = format!("write one of {}", LEVELS.join(", "));
        out.config(&LOG_LEVEL, value.span, headline, "sriov-cni logs at info instead", help);
    }
}

fn no_effect(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let object = plugin.object;
    // A default value requests nothing.
    let mtu = object.int_of("mtu").filter(|mtu| *mtu != 0).map(|mtu| mtu.to_string());
    let master = object.text_of("master").map(|master| format!("{master:?}"));
    let vfid = object.int_of("vfid").map(|vfid| vfid.to_string());
    let because = [
        (
            "mtu",
            mtu,
            "sriov-cni leaves the MTU of the VF as it is",
            "set it on the device, or chain the `tuning` plugin with this `mtu`",
        ),
        ("master", master, "sriov-cni uses the device that the pod was given", "remove `master`"),
        ("vfid", vfid, "sriov-cni uses the VF that the pod was given", "remove `vfid`"),
    ];
    for (key, given, note, help) in because {
        if let (Some(given), Some(member)) = (given, object.get(key)) {
            out.config(&NO_EFFECT, member.value.span, format!("`{key}` is {given} and has no effect"), note, help);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    /// Findings for an `sriov` config with these members.
    fn sriov(members: &str) -> Vec<String> {
        found(&format!(r#"{{"cniVersion":"1.0.0","type":"sriov",{members}}}"#))
    }

    #[test]
    fn mac() {
        for (mac, want) in [
            ("", ""),
            ("02:00:00:00:00:01", ""),
            ("CA-FE-C0-FF-EE-00", ""),
            ("cafe.c0ff.ee00", ""),
            ("02:00:00:00:00", "deny"),
            ("02:00:00:00:00:0g", "deny"),
            ("auto", "deny"),
            (" 02:00:00:00:00:01", "deny"),
            ("020000000001", "warn"),
            ("01:00:5e:00:00:01", "warn"),
            ("00:00:00:00:00:00", "warn"),
            ("02:00:00:00:00:00:00:01", "warn"),
        ] {
            let want: Vec<_> = (!want.is_empty()).then(|| format!("sriov/mac {want} /mac")).into_iter().collect();
            assert_eq!(sriov(&format!(r#""mac":"{mac}""#)), want, "{mac:?}");
        }
        assert_eq!(sriov(r#""mac":"x","capabilities":{"mac":true}"#), ["sriov/mac warn /mac"]);
        assert_eq!(sriov(r#""mac":"x","runtimeConfig":{"mac":"02:00:00:00:00:01"}"#), Vec::<String>::new());
        assert_eq!(sriov(r#""runtimeConfig":{"mac":"x"}"#), ["sriov/mac deny /runtimeConfig/mac"]);
        assert_eq!(sriov(r#""mac":"x","capabilities":{"mac":false}"#), ["sriov/mac deny /mac"]);
    }

    #[test]
    fn rates() {
        for (members, want) in [
            (r#""min_tx_rate":0,"max_tx_rate":0"#, &[] as &[&str]),
            (r#""min_tx_rate":100"#, &[]),
            (r#""min_tx_rate":100,"max_tx_rate":0"#, &[]),
            (r#""min_tx_rate":100,"max_tx_rate":100"#, &[]),
            (r#""min_tx_rate":101,"max_tx_rate":100"#, &["sriov/tx-rate deny /min_tx_rate"]),
            (r#""min_tx_rate":null,"max_tx_rate":100"#, &[]),
            (r#""max_tx_rate":-1"#, &["sriov/tx-rate deny /max_tx_rate"]),
            (
                r#""min_tx_rate":-5,"max_tx_rate":-1"#,
                &["sriov/tx-rate deny /min_tx_rate", "sriov/tx-rate deny /max_tx_rate"],
            ),
            (r#""max_tx_rate":4294967295"#, &[]),
            (r#""max_tx_rate":4294967296"#, &["sriov/tx-rate warn /max_tx_rate"]),
            (r#""min_tx_rate":4294967297,"max_tx_rate":1"#, &["sriov/tx-rate warn /min_tx_rate"]),
            (r#""max_tx_rate":"100""#, &["nad/field-type deny /max_tx_rate"]),
        ] {
            assert_eq!(sriov(members), want, "{members}");
        }
    }

    #[test]
    fn on_and_off() {
        for key in ["spoofchk", "trust"] {
            for (text, want) in [
                ("on", ""),
                ("off", ""),
                ("", ""),
                ("true", "deny"),
                ("True", "deny"),
                ("ON", "deny"),
                ("On", "deny"),
                (" on", "deny"),
                ("on ", "deny"),
                ("yes", "deny"),
                ("enable", "deny"),
                ("enabled", "deny"),
                ("1", "deny"),
                ("false", "warn"),
                ("OFF", "warn"),
                ("no", "warn"),
                ("0", "warn"),
                ("disable", "warn"),
                ("maybe", "warn"),
            ] {
                let want: Vec<_> =
                    (!want.is_empty()).then(|| format!("sriov/on-off {want} /{key}")).into_iter().collect();
                assert_eq!(sriov(&format!(r#""{key}":"{text}""#)), want, "{key} {text:?}");
            }
        }
        assert_eq!(sriov(r#""spoofchk":null,"trust":null"#), Vec::<String>::new());
        assert_eq!(sriov(r#""spoofchk":true"#), ["nad/field-type deny /spoofchk"]);
        assert_eq!(sriov(r#""spoofChk":"true""#), ["nad/ambiguous-key warn /spoofChk", "sriov/on-off deny /spoofChk"]);
    }

    #[test]
    fn link_state_log_level_and_ignored_keys() {
        for (members, want) in [
            (r#""link_state":"auto""#, &[] as &[&str]),
            (r#""link_state":"enable""#, &[]),
            (r#""link_state":"disable""#, &[]),
            (r#""link_state":"""#, &[]),
            (r#""link_state":null"#, &[]),
            (r#""link_state":"Enable""#, &["sriov/link-state deny /link_state"]),
            (r#""link_state":"up""#, &["sriov/link-state deny /link_state"]),
            (r#""logLevel":"debug""#, &[]),
            (r#""logLevel":"WARNING""#, &[]),
            (r#""logLevel":"""#, &[]),
            (r#""logLevel":"warn""#, &["sriov/log-level warn /logLevel"]),
            (r#""logLevel":"verbose""#, &["sriov/log-level warn /logLevel"]),
            (r#""mtu":9000"#, &["sriov/no-effect warn /mtu"]),
            (r#""mtu":0,"master":"""#, &[]),
            (r#""master":"ens1f0","vfid":0"#, &["sriov/no-effect warn /master", "sriov/no-effect warn /vfid"]),
            (r#""mtu":"9000""#, &["nad/field-type deny /mtu"]),
            (r#""logFile":"/var/log/sriov.log""#, &["sriov/host-file warn /logFile"]),
            (r#""logFile":"""#, &[]),
        ] {
            assert_eq!(sriov(members), want, "{members}");
        }
    }
}
