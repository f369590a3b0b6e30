//! What a network's NAD should be, and how a stored one differs from it.

use serde_json::Value;

use super::super::Facts;
use super::super::finding::shortened;
use super::rendering::USUAL_PREFIX;
use crate::cni::Config;
use crate::json::Document;
use crate::resources::{Nad, Network, NetworkKind, RESOURCE_NAME, render};

/// How many differences are told.
const MOST: usize = 3;
/// How much of a value is quoted.
const QUOTED: usize = 60;
/// Differs between releases of the operator.
const OF_RELEASE: &str = "cniVersion";
/// Admission's own business: whether it is missing is said elsewhere.
const OURS: &str = "resourceName";

/// The config the operator renders; `None` where it can make none.
pub(super) fn expected(network: &Network<'_>, facts: &Facts) -> Option<String> {
    let prefix = facts.prefix.as_ref().map_or(USUAL_PREFIX, |prefix| prefix.value.as_str());
    let rendered = render(network, prefix);
    rendered.nad.is_some().then_some(rendered.config)
}

/// How a NAD differs from what its network renders to, in words. Without a prefix, resource names are not compared.
pub(super) fn differences(network: &Network<'_>, nad: &Nad<'_>, prefix: Option<&str>, facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    let resource = prefix.map(|prefix| format!("{prefix}/{}", network.text("resourceName")));
    // An Open vSwitch network need not have a resource.
    let resource = resource.filter(|_| network.kind != NetworkKind::Ovs || !network.text("resourceName").is_empty());
    if let (Some(want), Some(is)) = (&resource, nad.meta.annotation(RESOURCE_NAME))
        && *want != is
    {
        found.push(format!("its resourceName is \"{}\", the network's is \"{want}\"", shortened(is.as_ref(), QUOTED)));
    }
    let Some(want) = expected(network, facts) else { return found };
    let text = nad.config.as_deref().unwrap_or_default();
    match (read(&want), read(text)) {
        (Some(mut want), Some(mut is)) => {
            strip(&mut want, &[OF_RELEASE, OURS]);
            strip(&mut is, &[OF_RELEASE]);
            strip_own(&mut is, resource.as_deref());
            compare("", Some(&want), Some(&is), &mut found);
        }
        (Some(_), None) => found.push("its config cannot be read".to_owned()),
        (None, _) => {}
    }
    found.truncate(MOST);
    found
}

/// Whether a NAD is what its network renders to, whatever its resource prefix is.
pub(crate) fn is_rendering(network: &Network<'_>, nad: &Nad<'_>, facts: &Facts) -> bool {
    let Some(want) = expected(network, facts) else { return false };
    let text = nad.config.as_deref().unwrap_or_default();
    let values = |text: &str| {
        let mut config = read(text)?;
        strip(&mut config, &[OF_RELEASE, OURS]);
        Some(config)
    };
    want == text || values(&want).is_some_and(|want| Some(want) == values(text))
}

/// A config's values, where it is one that can be read at all.
fn read(text: &str) -> Option<Value> {
    let document = Document::parse(text).ok()?;
    Config::of(&document)?;
    serde_json::from_str(text).ok()
}

/// Takes keys out of the config and of each plugin in it.
fn strip(config: &mut Value, keys: &[&str]) {
    for_each_plugin(config, &mut |plugin| {
        for key in keys {
            plugin.remove(*key);
        }
    });
}

/// Takes out the resourceName that admission added. Any other says something else than the network.
fn strip_own(config: &mut Value, resource: Option<&str>) {
    for_each_plugin(config, &mut |plugin| {
        if resource.is_none() || plugin.get(OURS).and_then(Value::as_str) == resource {
            plugin.remove(OURS);
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

/// Where two values differ, as deep as they are of one kind.
fn compare(pointer: &str, want: Option<&Value>, is: Option<&Value>, found: &mut Vec<String>) {
    if found.len() >= MOST || want == is {
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
            found.push(format!("`{pointer}` in its config is {}, the network's is {}", quoted(is), quoted(want)));
        }
        (Some(want), None) => {
            found.push(format!("`{pointer}` is missing in its config, the network has {}", quoted(want)));
        }
        (None, Some(is)) => {
            found.push(format!("`{pointer}` in its config is {}, and the network says nothing of it", quoted(is)));
        }
        (None, None) => {}
    }
}

fn quoted(value: &Value) -> String {
    shortened(value.to_string(), QUOTED)
}
