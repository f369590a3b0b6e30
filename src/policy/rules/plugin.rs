//! What the plugins of the CNI project reject: bridge, macvlan, ipvlan and vlan.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::meta::is_interface_name;
use super::sriov;
use crate::cni::mac::Mac;
use crate::cni::{CniObject, Plugin};
use crate::json::Value;

rule! { MACVLAN_MODE = "plugin/macvlan-mode", Deny;
    wrong: "macvlan does not know this `mode`.";
    why: "macvlan knows bridge, private, vepa and passthru, and rejects every other mode when a pod starts (\"unknown macvlan mode\"). \
        Without `mode`, or with an empty one, it uses bridge.";
    fix: "Write one of bridge, private, vepa and passthru; or remove `mode`. l2, l3 and l3s are modes of ipvlan.";
}

rule! { IPVLAN_MODE = "plugin/ipvlan-mode", Deny;
    wrong: "ipvlan does not know this `mode`.";
    why: "ipvlan knows l2, l3 and l3s, and rejects every other mode when a pod starts (\"unknown ipvlan mode\"). Without `mode`, or \
        with an empty one, it uses l2.";
    fix: "Write one of l2, l3 and l3s; or remove `mode`. bridge, private, vepa and passthru are modes of macvlan.";
}

rule! { MAC = "plugin/mac", Deny;
    wrong: "`mac` of macvlan or bridge is not a MAC address that an interface can have.";
    why: "macvlan parses the address before it creates the interface, and fails the pod if it cannot (\"invalid args ... for MAC \
        addr\"). An address that only the driver rejects is a warning: a multicast address, one of all zeros, or one that has not six \
        bytes. So is any address if the NAD has the capability `mac`, because a pod can then replace it; and so is an \
        address that bridge cannot parse, which reads it from `args.cni` or `runtimeConfig`.";
    fix: "Write six bytes in hexadecimal, as in \"02:00:00:00:00:01\", or remove `mac`.";
}

rule! { MTU = "plugin/mtu", Deny;
    wrong: "`mtu` is a value that macvlan, vlan or bridge cannot set.";
    why: "macvlan and vlan accept at most the MTU of their master, and take 0 as that MTU. The kernel accepts 68 to 65535 for macvlan \
        and bridge (\"invalid argument\"). A value that is too large for any master is a warning.";
    fix: "Write the MTU that you need, or remove `mtu` to use the default.";
}

rule! { BRIDGE_VLAN = "plugin/bridge-vlan", Deny;
    wrong: "`vlan` or `vlanTrunk` has a value that the bridge plugin rejects.";
    why: "`vlan` is a number from 0 to 4094. Each entry of `vlanTrunk` has an `id` from 1 to 4094, or both `minID` and `maxID`, the \
        smaller one first. The plugin rejects everything else when a pod starts, and panics on a null entry.";
    fix: "Write a VLAN id from 1 to 4094 (for `vlan` also 0, which means none); give each range both of its ends.";
    releases: "The bridge plugin reads `vlanTrunk` from release 1.3 of cni-plugins on. A wrong value is not reported if the policy \
        names an older release (`versions`).";
}

rule! { BRIDGE_OPTIONS = "plugin/bridge-options", Deny;
    wrong: "The bridge has an invalid name, or options that cannot be combined.";
    why: "The plugin creates the bridge, and the kernel accepts names of 1 to 15 characters without spaces, `/` and `:`; without \
        `bridge`, the name is cni0. The plugin rejects `hairpinMode` together with `promiscMode`, and `ipam` together with \
        `disableContainerInterface`; every pod that uses the network fails to start. With `isGateway` the bridge gets the gateway's \
        address of every network in `ipam`, but it can have only one IPv4 address: a second IPv4 network is a warning, unless \
        `forceAddress` is set, and so is a gateway of another family than its network. With `isDefaultGateway` the plugin adds a \
        default route of its own, and a second one in `ipam` without `gw` is a warning.";
    fix: "Shorten the name to 15 characters, or remove one of the two options.";
    releases: "The bridge plugin reads `disableContainerInterface` from release 1.4.1 of cni-plugins on: it is denied if the policy \
        names such a release (`versions`), and a warning if it names none.";
}

rule! { VLAN_MASTER = "plugin/vlan-master", Deny;
    wrong: "A vlan plugin has no `master`.";
    why: "The plugin creates a VLAN interface on the host's interface that `master` names. It has no default, and fails the pod (\"... \
        field is required\").";
    fix: "Set `master` to the name of an interface of the host.";
}

rule! { VLAN_ID = "plugin/vlan-id", Deny;
    wrong: "`vlanId` is not between 0 and 4094.";
    why: "The vlan plugin rejects the config, and every pod that uses the network fails to start. (Its error names 4095 as the largest \
        id, but 4095 fails too.)";
    fix: "Write a VLAN id from 1 to 4094, or 0 for none.";
}

pub(super) const REJECTED: &str = "the plugin rejects the config; every pod that uses this network fails to start";
/// The smallest MTU of an Ethernet interface, by the kernel.
pub(super) const SMALLEST_MTU: i64 = 68;
/// The largest MTU of an Ethernet interface, by the kernel.
const LARGEST_MTU: i64 = 65535;
/// The largest VLAN id.
const LARGEST: i64 = 4094;

/// The rules on one of these plugins.
pub(crate) fn check(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    match plugin.kind {
        "macvlan" => {
            mode(plugin, &MACVLAN_MODE, &["bridge", "private", "vepa", "passthru"], out);
            if let Some(value) = sriov::configured_mac(plugin) {
                sriov::mac(plugin, value, &MAC, "macvlan", out);
            }
            mtu(plugin, out);
        }
        "ipvlan" => mode(plugin, &IPVLAN_MODE, &["l2", "l3", "l3s"], out),
        "vlan" => {
            vlan(plugin, out);
            mtu(plugin, out);
        }
        "bridge" => {
            bridge(plugin, out);
            mtu(plugin, out);
        }
        _ => {}
    }
}

fn mode(plugin: &Plugin<'_>, rule: &'static super::Rule, known: &[&str], out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of("mode") else { return };
    if let Some(mode) = value.as_str().filter(|mode| !mode.is_empty() && !known.contains(mode)) {
        let headline = format!("`mode` is {mode:?}, which {} does not know", plugin.kind);
        out.config(rule, value.span, headline, REJECTED, format!("write one of {}", known.join(", ")));
    }
}

fn mtu(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let Some(value) = plugin.object.value_of("mtu") else { return };
    let Some(mtu) = value.as_int() else { return };
    let (is_wrong, expected) = match plugin.kind {
        // The plugin passes on only what is positive.
        "bridge" => ((1..SMALLEST_MTU).contains(&mtu), SMALLEST_MTU),
        "macvlan" => (mtu != 0 && mtu < SMALLEST_MTU, SMALLEST_MTU),
        _ => (mtu < 0, 0),
    };
    let help = "write the MTU, or remove it to use the default";
    if is_wrong {
        let headline = format!("`mtu` is {mtu}, expected at least {expected}");
        out.config(&MTU, value.span, headline, REJECTED, help);
    } else if mtu > LARGEST_MTU {
        let headline = format!("`mtu` is {mtu}, expected at most {LARGEST_MTU}");
        let finding = out.config(&MTU, value.span, headline, REJECTED, help);
        // The others compare it with the MTU of their master.
        if plugin.kind != "bridge" {
            finding.at_most_warn();
        }
    }
}

fn vlan(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let master = plugin.object.value_of("master");
    if master.is_none_or(|master| master.as_str() == Some("")) {
        let span = master.map_or(plugin.type_member.value.span, |master| master.span);
        let help = "set `master` to the name of the host's interface";
        out.config(&VLAN_MASTER, span, "`vlan` has no `master`", REJECTED, help);
    }
    if let Some(value) = plugin.object.value_of("vlanId") {
        vlan_id(value, "vlanId", &VLAN_ID, out);
    }
}

fn vlan_id(value: &Value<'_>, key: &str, rule: &'static super::Rule, out: &mut Findings<'_>) {
    if let Some(id) = value.as_int().filter(|id| !(0..=LARGEST).contains(id)) {
        let headline = format!("`{key}` is {id}, expected 0 to {LARGEST}");
        out.config(rule, value.span, headline, REJECTED, "write a VLAN id from 1 to 4094, or 0 for none");
    }
}

fn bridge(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    if let Some(value) = plugin.object.value_of("vlan") {
        vlan_id(value, "vlan", &BRIDGE_VLAN, out);
    }
    for entry in plugin.object.list_of("vlanTrunk") {
        if let Some(problem) = trunk_problem(entry) {
            let headline = format!("an entry of `vlanTrunk` {problem}");
            let help = "give each entry an `id`, or a `minID` and a `maxID`, from 1 to 4094";
            out.config(&BRIDGE_VLAN, entry.span, headline, REJECTED, help);
        }
    }
    if let Some(value) = plugin.object.value_of("bridge")
        && let Some(name) = value.as_str().filter(|name| !is_interface_name(name))
    {
        let headline = format!("`bridge` is {name:?}, which is not a valid interface name");
        let help = "write a name of at most 15 letters, digits, `-` or `_`, or remove `bridge` to use cni0";
        out.config(&BRIDGE_OPTIONS, value.span, headline, REJECTED, help);
    }
    bridge_mac(plugin, out);
    let is_set = |key: &str| plugin.object.is_true(key);
    let span = |key: &str| plugin.object.value_of(key).map_or(plugin.type_member.value.span, |value| value.span);
    if is_set("hairpinMode") && is_set("promiscMode") {
        let headline = "`hairpinMode` and `promiscMode` are both set";
        out.config(&BRIDGE_OPTIONS, span("promiscMode"), headline, REJECTED, "keep one of the two");
    }
    if is_set("disableContainerInterface") && plugin.ipam().is_some() {
        let headline = "`disableContainerInterface` is set, but `ipam` needs the interface";
        let help = "remove one of the two";
        out.config(&BRIDGE_OPTIONS, span("disableContainerInterface"), headline, REJECTED, help);
    }
}

/// The address that the bridge plugin gives to the pod's interface: it has no key of its own for it.
fn bridge_mac(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let of_pod = plugin.object.object_of("runtimeConfig").and_then(|runtime| runtime.value_of("mac"));
    let argument = || plugin.object.object_of("args")?.object_of("cni")?.value_of("mac");
    let Some(value) = of_pod.filter(|value| value.as_str() != Some("")).or_else(argument) else { return };
    if let Some(text) = value.as_str().filter(|text| !text.is_empty() && Mac::parse(text).is_none()) {
        let headline = format!("`mac` is {text:?}, which is not a MAC address");
        let help = "write six bytes in hexadecimal, as in \"02:00:00:00:00:01\"";
        // Old releases of the plugin do not read it.
        out.config(&MAC, value.span, headline, REJECTED, help).at_most_warn();
    }
}

/// What is wrong with an entry of `vlanTrunk`; values of the wrong type have a rule of their own.
fn trunk_problem(entry: &Value<'_>) -> Option<String> {
    if entry.is_null() {
        return Some("is null".to_owned());
    }
    let entry = CniObject::of(entry)?;
    let outside = |key: &str| {
        let id = entry.int_of(key).filter(|id| !(1..=LARGEST).contains(id))?;
        Some(format!("has `{key}` {id}, expected 1 to {LARGEST}"))
    };
    let (min, max) = (entry.value_of("minID"), entry.value_of("maxID"));
    match (min.map(Value::as_int), max.map(Value::as_int)) {
        (Some(Some(min)), Some(Some(max))) => outside("minID")
            .or_else(|| outside("maxID"))
            .or_else(|| (max < min).then(|| format!("has `minID` {min} above `maxID` {max}"))),
        (Some(_), None) => Some("has `minID` without `maxID`".to_owned()),
        (None, Some(_)) => Some("has `maxID` without `minID`".to_owned()),
        _ => None,
    }
    .or_else(|| outside("id"))
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found_without_device;

    fn of(plugin: &str) -> Vec<String> {
        found_without_device(&format!(r#"{{"cniVersion":"1.0.0","name":"net",{plugin}}}"#))
    }

    #[test]
    fn values_that_the_plugins_reject() {
        let table: &[(&str, &[&str])] = &[
            (r#""type":"macvlan","mode":"""#, &[]),
            (r#""type":"macvlan","mode":"passthru""#, &[]),
            (r#""type":"macvlan","mode":"l2""#, &["plugin/macvlan-mode deny /mode"]),
            (r#""type":"macvlan","mode":"Bridge""#, &["plugin/macvlan-mode deny /mode"]),
            (r#""type":"ipvlan","mode":"l3s""#, &[]),
            (r#""type":"ipvlan","mode":"bridge""#, &["plugin/ipvlan-mode deny /mode"]),
            (r#""type":"macvlan","mac":"02:00:00:00:00:01""#, &[]),
            (r#""type":"macvlan","mac":"02:00""#, &["plugin/mac deny /mac"]),
            (r#""type":"macvlan","mac":"02:00","capabilities":{"mac":true}"#, &["plugin/mac warn /mac"]),
            (r#""type":"macvlan","mac":"02:00","runtimeConfig":{"mac":"02:00:00:00:00:01"}"#, &[]),
            (r#""type":"macvlan","mac":"03:00:00:00:00:01""#, &["plugin/mac warn /mac"]),
            (r#""type":"macvlan","mtu":-1"#, &["plugin/mtu deny /mtu"]),
            (r#""type":"macvlan","mtu":67"#, &["plugin/mtu deny /mtu"]),
            (r#""type":"macvlan","mtu":68"#, &[]),
            (r#""type":"macvlan","mtu":65535"#, &[]),
            (r#""type":"macvlan","mtu":65536"#, &["plugin/mtu warn /mtu"]),
            (r#""type":"bridge","mtu":65536"#, &["plugin/mtu deny /mtu"]),
            (r#""type":"bridge","bridge":"br-0.1""#, &[]),
            (r#""type":"bridge","bridge":null"#, &[]),
            (r#""type":"bridge","bridge":"""#, &["plugin/bridge-options deny /bridge"]),
            (r#""type":"bridge","bridge":"abcdefghijklmnop""#, &["plugin/bridge-options deny /bridge"]),
            (r#""type":"bridge","bridge":"a/b""#, &["plugin/bridge-options deny /bridge"]),
            (r#""type":"macvlan","mtu":0"#, &[]),
            (r#""type":"ipvlan","mtu":-1"#, &[]),
            (r#""type":"vlan","master":"eth0","vlanId":4094"#, &[]),
            (r#""type":"vlan","master":"eth0","vlanId":4095"#, &["plugin/vlan-id deny /vlanId"]),
            (r#""type":"vlan","master":"eth0","vlanId":-1"#, &["plugin/vlan-id deny /vlanId"]),
            (r#""type":"vlan","master":"""#, &["plugin/vlan-master deny /master"]),
            (r#""type":"vlan","vlanId":5"#, &["plugin/vlan-master deny /type"]),
            (r#""type":"vlan","master":"eth0","mtu":-5"#, &["plugin/mtu deny /mtu"]),
            (r#""type":"vlan","master":"eth0","mtu":0"#, &[]),
        ];
        for (plugin, want) in table {
            assert_eq!(of(plugin), *want, "{plugin}");
        }
    }

    #[test]
    fn vlans_of_a_bridge() {
        let bridge = |members: &str| of(&format!(r#""type":"bridge",{members}"#));
        for good in [
            r#""vlan":4094"#,
            r#""vlanTrunk":[{"id":1},{"minID":1,"maxID":4094},{}]"#,
            r#""vlanTrunk":[{"minID":7,"maxID":7,"id":9}]"#,
            r#""hairpinMode":true,"promiscMode":false"#,
            r#""disableContainerInterface":true,"ipam":{}"#,
            r#""mtu":68"#,
            r#""mtu":0"#,
            r#""mtu":-1"#,
        ] {
            assert_eq!(bridge(good), Vec::<String>::new(), "{good}");
        }
        for bad in [
            r#""vlanTrunk":[null]"#,
            r#""vlanTrunk":[{"minID":1}]"#,
            r#""vlanTrunk":[{"maxID":1}]"#,
            r#""vlanTrunk":[{"minID":5,"maxID":4}]"#,
            r#""vlanTrunk":[{"minID":0,"maxID":4}]"#,
            r#""vlanTrunk":[{"minID":1,"maxID":4095}]"#,
            r#""vlanTrunk":[{"id":0}]"#,
            r#""vlanTrunk":[{"minID":1,"maxID":2,"id":4095}]"#,
        ] {
            assert_eq!(bridge(bad), ["plugin/bridge-vlan deny /vlanTrunk/0"], "{bad}");
        }
        assert_eq!(bridge(r#""mtu":67"#), ["plugin/mtu deny /mtu"]);
        assert_eq!(bridge(r#""vlan":4095"#), ["plugin/bridge-vlan deny /vlan"]);
        assert_eq!(bridge(r#""vlan":-1"#), ["plugin/bridge-vlan deny /vlan"]);
        let both = r#""hairpinMode":true,"promiscMode":true"#;
        assert_eq!(bridge(both), ["plugin/bridge-options deny /promiscMode"]);
        assert_eq!(bridge(r#""runtimeConfig":{"mac":"zz"}"#), ["plugin/mac warn /runtimeConfig/mac"]);
        assert_eq!(bridge(r#""args":{"cni":{"mac":"02:00"}}"#), ["plugin/mac warn /args/cni/mac"]);
        assert_eq!(bridge(r#""args":{"cni":{"mac":5}}"#), ["nad/field-type deny /args/cni/mac"]);
        let replaced = r#""args":{"cni":{"mac":"x"}},"runtimeConfig":{"mac":"02:00:00:00:00:01"}"#;
        assert_eq!(bridge(replaced), Vec::<String>::new());
        let disabled = r#""disableContainerInterface":true,"ipam":{"type":"dhcp"}"#;
        assert_eq!(bridge(disabled), ["plugin/bridge-options warn /disableContainerInterface"]);
    }
}
