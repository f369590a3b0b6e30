//! Objects that show that the SR-IOV DRA driver is installed, how it is configured, and which devices it publishes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raw::{RawFields, RawObject};
use super::{DRA_DRIVER, name_of};
use crate::json::JsonReader;

/// How the SR-IOV DRA driver is configured, as it spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum DraMode {
    /// The driver reads the NAD itself and adds the device.
    Standalone,
    /// Multus adds the device; it finds it by the resourceName.
    Multus,
}

/// The image, and the program in it.
const PROGRAM: &str = "dra-driver-sriov";
/// The attribute of a device that Multus compares with the annotation of a NAD.
const NAME_ATTRIBUTE: &str = "k8s.cni.cncf.io/resourceName";

/// An object of the SR-IOV DRA driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverObject {
    /// Its DaemonSet; the mode is `None` if it is one that the driver does not know.
    DaemonSet(Option<DraMode>),
    /// A DeviceAttributes or SriovResourcePolicy, and the resource names in it.
    Devices(Vec<String>),
}

impl DriverObject {
    /// Reads an object; `None` if it is none of the driver.
    pub fn read(json: &str) -> Option<Self> {
        let head = JsonReader::whole(json, RawObject::read).ok()?;
        let spec = head.spec.value()?;
        match (head.api_version.as_ref(), head.kind.as_ref()) {
            // The items of a list of DaemonSets do not state their kind.
            ("apps/v1", "DaemonSet") | ("", "") => daemon_set(&spec),
            (version, "DeviceAttributes") if is_of_driver(version) => {
                let attributes = RawFields::parse(spec.raw("attributes").unwrap_or("{}")).ok()?;
                let value = attributes.raw(NAME_ATTRIBUTE).and_then(|raw| RawFields::parse(raw).ok());
                let name = value.and_then(|value| value.text("string").value());
                Some(Self::Devices(name.map(|name| name_of(&name).to_owned()).into_iter().collect()))
            }
            (version, "SriovResourcePolicy") if is_of_driver(version) => {
                let configs = spec.objects("configs").value().unwrap_or_default();
                let names = configs.iter().filter_map(|config| config.text("resourceName").value());
                Some(Self::Devices(names.map(|name| name_of(&name).to_owned()).collect()))
            }
            _ => None,
        }
    }
}

fn is_of_driver(api_version: &str) -> bool {
    api_version.split_once('/').is_some_and(|(group, _)| group == DRA_DRIVER)
}

fn daemon_set(spec: &RawFields<'_>) -> Option<DriverObject> {
    let template = RawFields::parse(spec.raw("template")?).ok()?;
    let pod = RawFields::parse(template.raw("spec")?).ok()?;
    let containers = pod.objects("containers").value()?;
    let is_driver = |container: &&RawFields<'_>| {
        ["image", "command", "args"].iter().any(|key| container.raw(key).is_some_and(|raw| raw.contains(PROGRAM)))
    };
    containers.iter().find(is_driver).map(|container| DriverObject::DaemonSet(mode(container)))
}

/// The mode of the driver: by its flag, or else by its variable.
fn mode(container: &RawFields<'_>) -> Option<DraMode> {
    const FLAG: &str = "--configuration-mode";
    let list = |key: &str| serde_json::from_str::<Vec<String>>(container.raw(key).unwrap_or("[]")).unwrap_or_default();
    let arguments: Vec<String> = list("command").into_iter().chain(list("args")).collect();
    let after = arguments.windows(2).find_map(|pair| match pair {
        [flag, value] if flag == FLAG => Some(value.clone()),
        _ => None,
    });
    let by_flag =
        arguments.iter().find_map(|argument| argument.strip_prefix(FLAG)?.strip_prefix('=').map(str::to_owned));
    let variables = container.objects("env").value().unwrap_or_default();
    let variable = variables.iter().find(|one| one.text("name").value().as_deref() == Some("CONFIGURATION_MODE"));
    let by_variable = || Some(variable?.text("value").value()?.into_owned());
    match by_flag.or(after).or_else(by_variable).unwrap_or_default().as_str() {
        "" | "STANDALONE" => Some(DraMode::Standalone),
        "MULTUS" => Some(DraMode::Multus),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon_set(container: &str) -> String {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{{"name":"d"}},"spec":{{"template":{{"spec":{{"containers":[{{"name":"other"}},{container}]}}}}}}}}"#
        )
    }

    #[test]
    fn mode_of_the_daemon_set() {
        let (standalone, multus) = (Some(DraMode::Standalone), Some(DraMode::Multus));
        for (container, want) in [
            (r#"{"image":"x/dra-driver-sriov:v1"}"#, Some(standalone)),
            (
                r#"{"command":["/usr/bin/dra-driver-sriov"],"env":[{"name":"CONFIGURATION_MODE","value":"MULTUS"}]}"#,
                Some(multus),
            ),
            (r#"{"command":["dra-driver-sriov","--configuration-mode=MULTUS"]}"#, Some(multus)),
            (r#"{"image":"dra-driver-sriov","args":["--configuration-mode","MULTUS"]}"#, Some(multus)),
            (r#"{"image":"dra-driver-sriov","args":["--other","MULTUS"]}"#, Some(standalone)),
            (
                r#"{"image":"dra-driver-sriov","args":["--configuration-mode=STANDALONE"],"env":[{"name":"CONFIGURATION_MODE","value":"MULTUS"}]}"#,
                Some(standalone),
            ),
            (r#"{"image":"dra-driver-sriov","env":[{"name":"CONFIGURATION_MODE","value":""}]}"#, Some(standalone)),
            (r#"{"image":"dra-driver-sriov","env":[{"name":"CONFIGURATION_MODE","value":"multus"}]}"#, Some(None)),
            (r#"{"image":"dra-driver-sriov","env":[{"name":"CONFIGURATION_MODE","valueFrom":{}}]}"#, Some(standalone)),
            (r#"{"image":"x/sriov-device-plugin"}"#, None),
        ] {
            let item = daemon_set(container).replace(r#""apiVersion":"apps/v1","kind":"DaemonSet","#, "");
            for json in [daemon_set(container), item] {
                assert_eq!(DriverObject::read(&json), want.map(DriverObject::DaemonSet), "{container}");
            }
        }
    }

    #[test]
    fn published_names() {
        let object = |group: &str, kind: &str, spec: &str| {
            format!(r#"{{"apiVersion":"{group}/v1alpha1","kind":"{kind}","metadata":{{"name":"d"}},"spec":{spec}}}"#)
        };
        let attributes = |value: &str| {
            format!(r#"{{"attributes":{{"k8s.cni.cncf.io/resourceName":{value},"other":{{"string":"x"}}}}}}"#)
        };
        for (kind, spec, want) in [
            ("DeviceAttributes", attributes(r#"{"string":"nic_1"}"#), vec!["nic_1"]),
            ("DeviceAttributes", attributes(r#"{"int":5}"#), vec![]),
            ("DeviceAttributes", "{}".to_owned(), vec![]),
            ("SriovResourcePolicy", r#"{"configs":[{},{"resourceName":"eth0"}]}"#.to_owned(), vec!["eth0"]),
            ("SriovResourcePolicy", "{}".to_owned(), vec![]),
        ] {
            let want = want.into_iter().map(str::to_owned).collect();
            assert_eq!(
                DriverObject::read(&object(DRA_DRIVER, kind, &spec)),
                Some(DriverObject::Devices(want)),
                "{spec}"
            );
            assert_eq!(DriverObject::read(&object("example.com", kind, &spec)), None);
        }
        for other in ["", "5", "{}", r#"{"apiVersion":"v1","kind":"Pod"}"#] {
            assert_eq!(DriverObject::read(other), None, "{other}");
        }
    }
}
