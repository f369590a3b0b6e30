//! What the plugins of the CNI project reject: bridge, macvlan, ipvlan, vlan and host-device.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::meta::is_interface_name;
use super::sriov;
use crate::cni::{CniObject, Config, Plugin};
use crate::json::Value;
use crate::resources::{Nad, RESOURCE_NAME};

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
    wrong: "`mac` of macvlan is not a MAC address that an interface can have.";
    why: "macvlan parses the address before it creates the interface, and fails the pod if it cannot (\"invalid args ... for MAC \
        addr\"). An address that only the driver rejects is a warning: a multicast address, one of all zeros, or one that has not six \
        bytes. So is any address if the NAD has the capability `mac`, because a pod can then replace it.";
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
        `forceAddress` is set.";
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

rule! { HOST_DEVICE = "plugin/host-device", Deny;
    wrong: "A host-device plugin does not say which device to use.";
    why: "The plugin moves a device of the host into the pod: the one that `device`, `hwaddr`, `kernelpath` or `pciBusID` names, or \
        the one that the pod was given. A pod is given one if the NAD has a resourceName annotation (Multus then writes the device's \
        address into the config), or can name one if the NAD has the capability `deviceID`. Without any of these the plugin fails the \
        pod (\"specify either ...\").";
    fix: "Set `device`, `hwaddr`, `kernelpath` or `pciBusID`; or add the annotation `k8s.v1.cni.cncf.io/resourceName`.";
}

const REJECTED: &str = "the plugin rejects the config; every pod that uses this network fails to start";
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

/// The device of each host-device plugin. Where the policy calls it a device plugin, `nad/resource-name-missing` reports it.
pub(crate) fn check_host_devices(
    nad: &Nad<'_>,
    config: &Config<'_>,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    if nad.meta.annotation(RESOURCE_NAME).is_some() || scope.policy.device_kinds().any(|kind| kind == "host-device") {
        return;
    }
    let plugins = std::iter::once(config).chain(&config.others).flat_map(|config| &config.plugins);
    plugins.filter(|plugin| plugin.kind == "host-device").for_each(|plugin| host_device(plugin, out));
}

fn host_device(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let names = |object: CniObject<'_>, key: &str| object.value_of(key).is_some_and(|value| value.as_str() != Some(""));
    let is_named = ["device", "hwaddr", "kernelpath", "pciBusID"].iter().any(|key| names(plugin.object, key))
        || plugin.object.object_of("runtimeConfig").is_some_and(|runtime| names(runtime, "deviceID"));
    if is_named || sriov::from_pod(plugin, "deviceID") {
        return;
    }
    let help =
        "set `device`, `hwaddr`, `kernelpath` or `pciBusID`, or add the annotation k8s.v1.cni.cncf.io/resourceName";
    out.config(&HOST_DEVICE, plugin.type_member.value.span, "`host-device` names no device", REJECTED, help);
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::{found, found_without_device};

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
        let disabled = r#""disableContainerInterface":true,"ipam":{"type":"dhcp"}"#;
        assert_eq!(bridge(disabled), ["plugin/bridge-options warn /disableContainerInterface"]);
    }

    #[test]
    fn host_device_needs_a_device() {
        let missing = ["plugin/host-device deny /type"];
        assert_eq!(of(r#""type":"host-device""#), missing);
        assert_eq!(of(r#""type":"host-device","device":"""#), missing);
        assert_eq!(of(r#""type":"host-device","capabilities":{"deviceID":false}"#), missing);
        assert_eq!(of(r#""type":"host-device","capabilities":{"DEVICEID":true}"#), missing);
        for named in [
            r#""device":"eth1""#,
            r#""hwaddr":"02:00:00:00:00:01""#,
            r#""kernelpath":"/sys/devices/x""#,
            r#""capabilities":{"deviceID":true}"#,
        ] {
            assert_eq!(of(&format!(r#""type":"host-device",{named}"#)), Vec::<String>::new(), "{named}");
        }
        let annotated = found(r#"{"cniVersion":"1.0.0","name":"net","type":"host-device"}"#);
        assert_eq!(annotated, Vec::<String>::new());
    }
}
