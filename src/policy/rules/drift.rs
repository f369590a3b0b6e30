//! The NAD a network should have, and how a stored one differs from it.

use serde_json::Value;

use super::super::Facts;
use super::rendering::DEFAULT_PREFIX;
use crate::cni::Config;
use crate::json::Document;
use crate::resources::{Nad, Network, NetworkKind, RESOURCE_NAME, render};
use crate::visible::truncated;

/// How many differences are reported.
const MAX_DIFFERENCES: usize = 3;
/// How many characters of a value are shown.
const MAX_SHOWN: usize = 40;
/// Differs between releases of the operator.
const VERSION_KEY: &str = "cniVersion";
/// Added by admission: another rule reports whether it is missing.
const RESOURCE_NAME_KEY: &str = "resourceName";

/// The config the operator renders; `None` if it cannot render the network.
pub(super) fn expected(network: &Network<'_>, facts: &Facts) -> Option<String> {
    let prefix = facts.prefix.as_ref().map_or(DEFAULT_PREFIX, |prefix| prefix.value.as_str());
    let rendered = render(network, prefix);
    rendered.fault.is_none().then_some(rendered.config)
}

/// The differences between a NAD and its network's rendering, as what the NAD has or lacks. Without a prefix, resource names are
/// not compared.
pub(super) fn differences(network: &Network<'_>, nad: &Nad<'_>, prefix: Option<&str>, facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    let resource = prefix.map(|prefix| format!("{prefix}/{}", network.text("resourceName")));
    // An Open vSwitch network need not have a resource.
    let resource = resource.filter(|_| network.kind != NetworkKind::Ovs || !network.text("resourceName").is_empty());
    if let (Some(want), Some(is)) = (&resource, nad.meta.annotation(RESOURCE_NAME))
        && *want != is
    {
        let is = truncated(is.as_ref(), MAX_SHOWN);
        found.push(format!("has resourceName {is:?}, its network has {want:?}"));
    }
    let Some(want) = expected(network, facts) else { return found };
    let text = nad.config.as_deref().unwrap_or_default();
    match (read(&want), read(text)) {
        (Some(mut want), Some(mut is)) => {
            strip(&mut want, &[VERSION_KEY, RESOURCE_NAME_KEY]);
            strip(&mut is, &[VERSION_KEY]);
            strip_added_name(&mut is, resource.as_deref());
            compare("", Some(&want), Some(&is), &mut found);
        }
        (Some(_), None) => found.push("has a config that cannot be read".to_owned()),
        (None, _) => {}
    }
    found.truncate(MAX_DIFFERENCES);
    found
}

/// Whether a NAD is what its network renders to, whatever its resource prefix is.
pub(crate) fn is_rendering(network: &Network<'_>, nad: &Nad<'_>, facts: &Facts) -> bool {
    let Some(want) = expected(network, facts) else { return false };
    let text = nad.config.as_deref().unwrap_or_default();
    let values = |text: &str| {
        let mut config = read(text)?;
        strip(&mut config, &[VERSION_KEY, RESOURCE_NAME_KEY]);
        Some(config)
    };
    want == text || values(&want).is_some_and(|want| Some(want) == values(text))
}

/// The values of a config, if it can be parsed.
fn read(text: &str) -> Option<Value> {
    let document = Document::parse(text).ok()?;
    Config::of(&document)?;
    serde_json::from_str(text).ok()
}

/// Removes keys from the config and from each plugin.
fn strip(config: &mut Value, keys: &[&str]) {
    for_each_plugin(config, &mut |plugin| {
        for key in keys {
            plugin.remove(*key);
        }
    });
}

/// Removes the resourceName that admission added. Any other value differs from the network.
fn strip_added_name(config: &mut Value, resource: Option<&str>) {
    for_each_plugin(config, &mut |plugin| {
        if resource.is_none() || plugin.get(RESOURCE_NAME_KEY).and_then(Value::as_str) == resource {
            plugin.remove(RESOURCE_NAME_KEY);
        }
    });
}

fn for_each_plugin(config: &mut Value, work: &mut dyn FnMut(&mut serde_json::Map<String, Value>)) {
    if let Some(config) = config.as_object_mut() {
        work(config);
        for plugin in config.get_mut("plugins").and_then(Value::as_array_mut).into_iter().flatten() {
            plugin.as_object_mut().into_iter().for_each(&mut *work);
        }
    }
}

/// Collects where two values differ, descending while both are of the same type.
fn compare(pointer: &str, want: Option<&Value>, is: Option<&Value>, found: &mut Vec<String>) {
    if found.len() >= MAX_DIFFERENCES || want == is {
        return;
    }
    match (want, is) {
        (Some(Value::Object(want)), Some(Value::Object(is))) => {
            for (key, value) in want {
                compare(&format!("{pointer}/{}", crate::json::escape(key)), Some(value), is.get(key), found);
            }
            for (key, value) in is.iter().filter(|(key, _)| !want.contains_key(*key)) {
                compare(&format!("{pointer}/{}", crate::json::escape(key)), None, Some(value), found);
            }
        }
        (Some(Value::Array(want)), Some(Value::Array(is))) if want.len() == is.len() => {
            for (at, (want, is)) in want.iter().zip(is).enumerate() {
                compare(&format!("{pointer}/{at}"), Some(want), Some(is), found);
            }
        }
        (Some(want), Some(is)) => {
            found.push(format!("has `{pointer}` {}, its network has {}", short_json(is), short_json(want)));
        }
        (Some(want), None) => {
            found.push(format!("lacks `{pointer}`, its network has {}", short_json(want)));
        }
        (None, Some(is)) => {
            found.push(format!("has `{pointer}` {}, its network does not set it", short_json(is)));
        }
        (None, None) => {}
    }
}

fn short_json(value: &Value) -> String {
    truncated(value.to_string(), MAX_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Object;

    const CONFIG: &str =
        r#"{"cniVersion":"1.0.0","name":"net","type":"sriov","vlan":5,"vlanQoS":0,"logLevel":"info","ipam":{}}"#;

    /// The differences with the prefix `a.io`, whether the NAD is the rendering, and the differences without a prefix.
    fn compared(kind: &str, spec: &str, annotation: Option<&str>, config: &str) -> (Vec<String>, bool, Vec<String>) {
        let network = format!(
            r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"{kind}","metadata":{{"name":"net","namespace":"op"}},"spec":{spec}}}"#
        );
        let annotations: serde_json::Map<_, _> =
            annotation.map(|name| (RESOURCE_NAME.to_owned(), name.into())).into_iter().collect();
        let nad = serde_json::json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "net", "namespace": "apps", "annotations": annotations}, "spec": {"config": config},
        })
        .to_string();
        let (Ok(Some(Object::Network(network))), Ok(Some(Object::Nad(nad)))) =
            (Object::read(&network), Object::read(&nad))
        else {
            panic!("a network and a NAD")
        };
        let facts = Facts::default();
        let with_prefix = differences(&network, &nad, Some("a.io"), &facts);
        (with_prefix, is_rendering(&network, &nad, &facts), differences(&network, &nad, None, &facts))
    }

    #[test]
    fn differences_are_what_the_nad_has_or_lacks() {
        let spec = r#"{"resourceName":"cx7","vlan":5}"#;
        let with = |old: &str, new: &str| CONFIG.replace(old, new);
        let other_name = r#"has resourceName "a.io/x", its network has "a.io/cx7""#;
        let none: &[&str] = &[];
        for (annotation, config, want, is_same, unprefixed) in [
            (Some("a.io/cx7"), CONFIG.to_owned(), none, true, none),
            (None, with("1.0.0", "0.3.1"), none, true, none),
            (Some("a.io/x"), CONFIG.to_owned(), &[other_name], true, none),
            (None, with(r#""vlan""#, r#""resourceName":"a.io/cx7","vlan""#), none, true, none),
            (
                None,
                with(r#""vlan""#, r#""resourceName":"b.io/cx7","vlan""#),
                &["has `/resourceName` \"b.io/cx7\", its network does not set it"],
                true,
                none,
            ),
            (
                None,
                with(":5", ":6"),
                &["has `/vlan` 6, its network has 5"],
                false,
                &["has `/vlan` 6, its network has 5"],
            ),
            (
                None,
                with(r#""vlan":5,"#, ""),
                &["lacks `/vlan`, its network has 5"],
                false,
                &["lacks `/vlan`, its network has 5"],
            ),
            (
                None,
                with(r#""ipam":{}"#, r#""ipam":{"a/b":1}"#),
                &["has `/ipam/a~1b` 1, its network does not set it"],
                false,
                &["has `/ipam/a~1b` 1, its network does not set it"],
            ),
            (None, "{".to_owned(), &["has a config that cannot be read"], false, &["has a config that cannot be read"]),
            (
                None,
                r#"{"type":"sriov","a":1,"b":2}"#.to_owned(),
                &[
                    "lacks `/ipam`, its network has {}",
                    "lacks `/logLevel`, its network has \"info\"",
                    "lacks `/name`, its network has \"net\"",
                ],
                false,
                &[
                    "lacks `/ipam`, its network has {}",
                    "lacks `/logLevel`, its network has \"info\"",
                    "lacks `/name`, its network has \"net\"",
                ],
            ),
        ] {
            let (found, same, without) = compared("SriovNetwork", spec, annotation, &config);
            assert_eq!(found, want, "{config}");
            assert_eq!(same, is_same, "{config}");
            assert_eq!(without, unprefixed, "{config}");
        }
    }

    #[test]
    fn lists_are_compared_element_by_element() {
        let spec = r#"{"resourceName":"cx7","vlan":5,"ipam":"{\"routes\":[{\"dst\":\"a\"},{\"dst\":\"b\"}]}"}"#;
        let config = |routes: &str| CONFIG.replace("\"ipam\":{}", &format!("\"ipam\":{{\"routes\":{routes}}}"));
        let (found, ..) = compared("SriovNetwork", spec, None, &config(r#"[{"dst":"a"},{"dst":"c"}]"#));
        assert_eq!(found, ["has `/ipam/routes/1/dst` \"c\", its network has \"b\""]);
        let (found, ..) = compared("SriovNetwork", spec, None, &config(r#"[{"dst":"a"}]"#));
        assert_eq!(found, ["has `/ipam/routes` [{\"dst\":\"a\"}], its network has [{\"dst\":\"a\"},{\"dst\":\"b\"}]"]);
    }

    /// Neither a NAD nor its differences are judged by a network that the operator cannot render.
    #[test]
    fn a_network_that_cannot_be_rendered_has_no_rendering() {
        let (found, is_same, _) = compared("SriovNetwork", r#"{"resourceName":"cx7","ipam":"{"}"#, None, CONFIG);
        assert_eq!((found, is_same), (Vec::new(), false));
    }

    #[test]
    fn an_ovs_network_need_not_have_a_resource() {
        let config = r#"{"cniVersion":"1.0.0","name":"net","type":"ovs","bridge":"b","ipam":{}}"#;
        let (found, is_same, _) = compared("OVSNetwork", r#"{"bridge":"b"}"#, Some("a.io/x"), config);
        assert_eq!((found, is_same), (Vec::new(), true));
        let (found, ..) = compared("OVSNetwork", r#"{"bridge":"b","resourceName":"y"}"#, Some("a.io/x"), config);
        assert_eq!(found, [r#"has resourceName "a.io/x", its network has "a.io/y""#]);
    }
}
