//! Objects that show that the SR-IOV DRA driver is installed, how it is configured, and which devices it publishes.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raw::{FieldValue, RawFields, RawObject};
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
                Some(Self::Devices(published(name)))
            }
            (version, "SriovResourcePolicy") if is_of_driver(version) => {
                let configs = spec.objects("configs").value().unwrap_or_default();
                Some(Self::Devices(published(configs.iter().filter_map(|config| config.text("resourceName").value()))))
            }
            _ => None,
        }
    }
}

/// The names under which devices are published; an empty one is none.
fn published<'a>(names: impl IntoIterator<Item = Cow<'a, str>>) -> Vec<String> {
    let names = names.into_iter().filter(|name| !name.is_empty());
    names.map(|name| name_of(&name).to_owned()).collect()
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

/// The mode of the driver: by its flag, or else by its variable. `None` if it cannot be known from the container alone.
fn mode(container: &RawFields<'_>) -> Option<DraMode> {
    const FLAG: &str = "configuration-mode";
    const VARIABLE: &str = "CONFIGURATION_MODE";
    let list = |key: &str| serde_json::from_str::<Vec<String>>(container.raw(key).unwrap_or("[]")).unwrap_or_default();
    let arguments: Vec<String> = list("command").into_iter().chain(list("args")).collect();
    // The last one counts; one dash is as good as two.
    let by_flag = arguments.iter().enumerate().rev().find_map(|(at, argument)| {
        let after = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?.strip_prefix(FLAG)?;
        match after.strip_prefix('=') {
            None if after.is_empty() => Some(arguments.get(at + 1).map(String::as_str)),
            value => value.map(Some),
        }
    });
    let is_in_script = || arguments.iter().any(|argument| argument.contains(FLAG) || argument.contains(VARIABLE));
    let by_variable = variable(container, VARIABLE);
    let value = match by_flag {
        Some(value) => value?,
        None if is_in_script() => return None,
        None => by_variable.as_deref()?,
    };
    match value {
        "" | "STANDALONE" => Some(DraMode::Standalone),
        "MULTUS" => Some(DraMode::Multus),
        _ => None,
    }
}

/// The value of a variable, empty if it is not set; `None` if it comes from another object.
fn variable<'a>(container: &RawFields<'a>, name: &str) -> Option<Cow<'a, str>> {
    let is_given = |key: &str| container.raw(key).is_some_and(|raw| raw != "[]");
    let variables = match container.objects("env") {
        FieldValue::Wrong(_) => return None,
        variables => variables.value().unwrap_or_default(),
    };
    // The last one counts; those of other objects count only if there is none.
    let Some(found) = variables.iter().rfind(|one| one.text("name").value().as_deref() == Some(name)) else {
        return (!is_given("envFrom")).then_some(Cow::Borrowed(""));
    };
    match found.text("value") {
        _ if found.raw("valueFrom").is_some() => None,
        FieldValue::Wrong(_) => None,
        value => Some(value.value().unwrap_or_default()),
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
            (r#"{"image":"dra-driver-sriov","args":["-configuration-mode","MULTUS"]}"#, Some(multus)),
            (
                r#"{"image":"dra-driver-sriov","args":["--configuration-mode","MULTUS","--configuration-mode=STANDALONE"]}"#,
                Some(standalone),
            ),
            (
                r#"{"image":"dra-driver-sriov","env":[{"name":"CONFIGURATION_MODE","value":"STANDALONE"},{"name":"CONFIGURATION_MODE","value":"MULTUS"}]}"#,
                Some(multus),
            ),
            (r#"{"image":"dra-driver-sriov","env":[{"name":"CONFIGURATION_MODE"}],"envFrom":[{}]}"#, Some(standalone)),
            (
                r#"{"image":"dra-driver-sriov","env":[{"name":"CONFIGURATION_MODE","value":"MULTUS","valueFrom":null}]}"#,
                Some(multus),
            ),
            (r#"{"image":"dra-driver-sriov","env":[],"envFrom":[]}"#, Some(standalone)),
            (r#"{"image":"x/sriov-device-plugin"}"#, None),
        ] {
            let item = daemon_set(container).replace(r#""apiVersion":"apps/v1","kind":"DaemonSet","#, "");
            for json in [daemon_set(container), item] {
                assert_eq!(DriverObject::read(&json), want.map(DriverObject::DaemonSet), "{container}");
            }
        }
    }

    #[test]
    fn a_mode_that_another_object_decides_is_unknown() {
        for container in [
            r#""env":[{"name":"CONFIGURATION_MODE","valueFrom":{}}]"#,
            r#""env":[{"name":"CONFIGURATION_MODE","valueFrom":{"configMapKeyRef":{"name":"m","key":"mode"}}}]"#,
            r#""env":[{"name":"CONFIGURATION_MODE","value":"$(MODE)"}]"#,
            r#""env":[{"name":"CONFIGURATION_MODE","value":5}]"#,
            r#""env":{}"#,
            r#""envFrom":[{"configMapRef":{"name":"m"}}]"#,
            r#""env":[{"name":"OTHER","value":"x"}],"envFrom":[{"configMapRef":{"name":"m"}}]"#,
            r#""args":["--configuration-mode=$(MODE)"]"#,
            r#""args":["--configuration-mode"]"#,
            r#""command":["sh","-c","dra-driver-sriov --configuration-mode=MULTUS"]"#,
            r#""command":["sh","-c","CONFIGURATION_MODE=MULTUS dra-driver-sriov"]"#,
        ] {
            let json = daemon_set(&format!(r#"{{"image":"dra-driver-sriov",{container}}}"#));
            assert_eq!(DriverObject::read(&json), Some(DriverObject::DaemonSet(None)), "{container}");
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
            ("DeviceAttributes", attributes(r#"{"string":""}"#), vec![]),
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
