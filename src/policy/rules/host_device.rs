//! The device that the host-device plugin moves into the pod.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::plugin::REJECTED;
use super::sriov;
use crate::cni::mac::Mac;
use crate::cni::{CniObject, Config, Plugin};
use crate::json::Value;
use crate::resources::{Nad, RESOURCE_NAME};

rule! { HOST_DEVICE = "plugin/host-device", Deny;
    wrong: "A host-device plugin does not say which device to use, or names it wrongly.";
    why: "The plugin moves a device of the host into the pod: the one that `device`, `hwaddr`, `kernelpath` or `pciBusID` names, or \
        the one that the pod was given. A pod is given one if the NAD has a resourceName annotation (Multus then writes the device's \
        address into the config), or can name one if the NAD has the capability `deviceID`. Without any of these the plugin fails the \
        pod (\"specify either ...\"). Without `device` it parses `hwaddr`, and without both, `kernelpath` has to begin with /sys/devices/. With \
        `DPDKMode` the pod gets no interface, and plugins behind it that look for one fail: that is a warning.";
    fix: "Set `device`, `hwaddr`, `kernelpath` or `pciBusID`; or add the annotation `k8s.v1.cni.cncf.io/resourceName`.";
}

/// The device of each host-device plugin. Where the policy calls it a device plugin, `nad/resource-name-missing` reports it.
pub(crate) fn check_host_devices(
    nad: &Nad<'_>,
    config: &Config<'_>,
    scope: &NamespaceScope<'_>,
    out: &mut Findings<'_>,
) {
    check_dpdk_mode(config, out);
    if nad.meta.annotation(RESOURCE_NAME).is_some() || scope.policy.device_kinds().any(|kind| kind == "host-device") {
        return;
    }
    let plugins = std::iter::once(config).chain(&config.others).flat_map(|config| &config.plugins);
    plugins.filter(|plugin| plugin.kind == "host-device").for_each(|plugin| host_device(plugin, out));
}

/// Plugins that look for the pod's interface.
const NEED_INTERFACE: [&str; 4] = ["bandwidth", "sbr", "tuning", "vrf"];

/// A device for DPDK stays on the host, and the pod gets no interface from it.
fn check_dpdk_mode(config: &Config<'_>, out: &mut Findings<'_>) {
    let is_dpdk = |plugin: &Plugin<'_>| plugin.kind == "host-device" && plugin.object.is_true("DPDKMode");
    let mut behind = config.plugins.iter().skip_while(|plugin| !is_dpdk(plugin)).skip(1);
    if let Some(plugin) = behind.find(|plugin| NEED_INTERFACE.contains(&plugin.kind)) {
        let headline = format!("`{}` is behind a host-device with `DPDKMode`, which makes no interface", plugin.kind);
        let note =
            "it may not find the interface (\"Link not found\"), and pods that use this network then fail to start";
        let span = plugin.type_member.value.span;
        out.config(&HOST_DEVICE, span, headline, note, "remove the plugin, or `DPDKMode`").at_most_warn();
    }
}

fn host_device(plugin: &Plugin<'_>, out: &mut Findings<'_>) {
    let names = |object: CniObject<'_>, key: &str| object.value_of(key).is_some_and(|value| value.as_str() != Some(""));
    // Of a device with a driver for DPDK, the plugin reads nothing else.
    let may_be_dpdk = names(plugin.object, "pciBusID")
        || plugin.object.is_true("DPDKMode")
        || plugin.object.object_of("runtimeConfig").is_some_and(|runtime| names(runtime, "deviceID"))
        || sriov::from_pod(plugin, "deviceID");
    if names(plugin.object, "device") {
        return;
    }
    let wrong = |value: &Value<'_>, headline: String, help: &'static str, out: &mut Findings<'_>| {
        if !may_be_dpdk {
            out.config(&HOST_DEVICE, value.span, headline, REJECTED, help);
        }
    };
    if let Some(value) = plugin.object.value_of("hwaddr").filter(|value| value.as_str() != Some("")) {
        if let Some(text) = value.as_str().filter(|text| Mac::parse(text).is_none()) {
            let headline = format!("`hwaddr` is {text:?}, which is not a MAC address");
            wrong(value, headline, "write it in hexadecimal, as in \"02:00:00:00:00:01\"", out);
        }
        return;
    }
    if let Some(value) = plugin.object.value_of("kernelpath").filter(|value| value.as_str() != Some("")) {
        if let Some(text) = value.as_str().filter(|text| !text.starts_with("/sys/devices/")) {
            let headline = format!("`kernelpath` is {text:?}, which does not begin with /sys/devices/");
            wrong(value, headline, "write the device's directory below /sys/devices/", out);
        }
        return;
    }
    if let Some(value) = plugin.object.value_of("pciBusID").filter(|value| value.as_str().is_none()) {
        let headline = format!("`pciBusID` is {}, expected a string", value.describe());
        out.config(&HOST_DEVICE, value.span, headline, REJECTED, "write the PCI address in quotes");
        return;
    }
    let is_named = names(plugin.object, "pciBusID")
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
    fn host_device_needs_a_device() {
        let missing = ["plugin/host-device deny /type"];
        assert_eq!(of(r#""type":"host-device""#), missing);
        assert_eq!(of(r#""type":"host-device","device":"""#), missing);
        assert_eq!(of(r#""type":"host-device","capabilities":{"deviceID":false}"#), missing);
        assert_eq!(of(r#""type":"host-device","capabilities":{"DEVICEID":true}"#), missing);
        for (members, place) in [
            (r#""hwaddr":"02:00""#, "hwaddr"),
            (r#""hwaddr":"x","kernelpath":"/sys/devices/x""#, "hwaddr"),
            (r#""kernelpath":"/dev/x""#, "kernelpath"),
            (r#""pciBusID":5"#, "pciBusID"),
        ] {
            let want = [format!("plugin/host-device deny /{place}")];
            assert_eq!(of(&format!(r#""type":"host-device",{members}"#)), want, "{members}");
        }
        for named in [
            r#""device":"eth1","hwaddr":"x""#,
            r#""hwaddr":"x","pciBusID":"0000:01:00.1""#,
            r#""kernelpath":"x","DPDKMode":true"#,
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

    #[test]
    fn plugins_behind_a_device_for_dpdk_find_no_interface() {
        let chain = |device: &str, kind: &str| {
            found(&format!(
                r#"{{"cniVersion":"1.0.0","name":"net","plugins":[{{"type":"host-device","device":"eth1",{device}}},{{"type":"{kind}"}}]}}"#
            ))
        };
        let want = ["plugin/host-device warn /plugins/1/type"];
        assert_eq!(chain(r#""DPDKMode":true"#, "tuning"), want);
        assert_eq!(chain(r#""DPDKMode":false"#, "tuning"), Vec::<String>::new());
        assert_eq!(chain(r#""DPDKMode":true"#, "firewall"), Vec::<String>::new());
    }
}
