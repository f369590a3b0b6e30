//! A stored webhook configuration compared with the wanted one.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::deploy::backstop::Parameters;
use crate::deploy::{NAME, set};

/// Adds the parameters of the backstop to a configuration.
pub(super) fn annotate(wanted: &mut Value, parameters: &Parameters) {
    let annotations =
        parameters.annotations.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
    if let Some(metadata) = wanted.get_mut("metadata") {
        set(metadata, "annotations", Value::Object(annotations.collect()));
    }
}

/// The metadata maps in which nadmit owns some keys.
const SHARED_METADATA: [&str; 2] = ["labels", "annotations"];

/// Whether the stored configuration is as wanted, ignoring foreign labels and annotations.
pub(super) fn is_as_wanted(stored: &Value, wanted: &Value) -> bool {
    let has_ours = |part: &str| {
        let pointer = format!("/metadata/{part}");
        let mut ours = wanted.pointer(&pointer).and_then(Value::as_object).into_iter().flatten();
        ours.all(|(key, value)| stored.pointer(&pointer).and_then(|all| all.get(key)) == Some(value))
    };
    let owners = stored.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    stored.get("webhooks") == wanted.get("webhooks")
        && SHARED_METADATA.into_iter().all(has_ours)
        && !owners.into_iter().any(is_old_owner)
}

/// The stored configuration with our fields restored.
pub(super) fn fixed(mut stored: Value, wanted: &Value) -> Value {
    if let Some(webhooks) = wanted.get("webhooks") {
        set(&mut stored, "webhooks", webhooks.clone());
    }
    let Some(metadata) = stored.get_mut("metadata") else { return stored };
    if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| !is_old_owner(owner));
    }
    for part in SHARED_METADATA {
        let Some(ours) = wanted.pointer(&format!("/metadata/{part}")).and_then(Value::as_object) else { continue };
        let mut all = metadata.get(part).filter(|all| all.is_object()).cloned().unwrap_or_else(|| json!({}));
        for (key, value) in ours {
            set(&mut all, key, value.clone());
        }
        set(metadata, part, all);
    }
    stored
}

/// Version 0.1.0 made its ClusterRole the owner of the configurations. They belong to the manifests now: recreating a ClusterRole
/// must not delete them, because only an administrator could restore them.
fn is_old_owner(owner: &Value) -> bool {
    let is = |key: &str, value: &str| owner.get(key).and_then(Value::as_str) == Some(value);
    is("kind", "ClusterRole") && is("name", NAME)
}

/// The bundle in all webhook entries, if it is the same.
pub(super) fn registered_bundle(stored: &[Option<Value>]) -> Option<String> {
    let mut bundles = Vec::new();
    for configuration in stored.iter().flatten() {
        for entry in configuration.get("webhooks")?.as_array()? {
            bundles.push(entry.pointer("/clientConfig/caBundle")?.as_str()?);
        }
    }
    let first = *bundles.first()?;
    if bundles.iter().any(|bundle| *bundle != first) {
        return None;
    }
    String::from_utf8(BASE64_STANDARD.decode(first).ok()?).ok()
}
