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
/// How much of a value is quoted.
const MAX_QUOTED: usize = 40;
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

/// The differences between a NAD and its network's rendering, as what the NAD has or lacks. Without a prefix, resource names are not compared.
pub(super) fn differences(network: &Network<'_>, nad: &Nad<'_>, prefix: Option<&str>, facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    let resource = prefix.map(|prefix| format!("{prefix}/{}", network.text("resourceName")));
    // An Open vSwitch network need not have a resource.
    let resource = resource.filter(|_| network.kind != NetworkKind::Ovs || !network.text("resourceName").is_empty());
    if let (Some(want), Some(is)) = (&resource, nad.meta.annotation(RESOURCE_NAME))
        && *want != is
    {
        let is = truncated(is.as_ref(), MAX_QUOTED);
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
            found.push(format!("has `{pointer}` {}, its network has {}", quoted(is), quoted(want)));
        }
        (Some(want), None) => {
            found.push(format!("lacks `{pointer}`, its network has {}", quoted(want)));
        }
        (None, Some(is)) => {
            found.push(format!("has `{pointer}` {}, its network does not set it", quoted(is)));
        }
        (None, None) => {}
    }
}

fn quoted(value: &Value) -> String {
    truncated(value.to_string(), MAX_QUOTED)
}
