//! What YAML makes of the filled template.

use super::{ExpectedNad, RenderFault};
use crate::json;
use crate::resources::{OWNER_REF, RESOURCE_NAME};
use crate::yaml::{self, Documents, Scalar, YamlNode, resolve};

/// The longest config that is not read as YAML.
const MAX_DIRECT: usize = 64 << 10;

/// The config in the filled template, if all else is as it was meant.
pub(super) fn config(filled: &str, meant: &ExpectedNad<'_>) -> Result<String, RenderFault> {
    match direct(filled, meant) {
        Some(config) => Ok(config),
        None => through_yaml(&meant.manifest(filled), meant),
    }
}

/// The same without reading the template as YAML, where the result is certain: every name is a plain string, and the config is printable
/// ASCII without an apostrophe, so that YAML only folds its lines. Anything else is doubtful.
pub(super) fn direct(filled: &str, meant: &ExpectedNad<'_>) -> Option<String> {
    let names = [meant.name, meant.namespace, meant.resource, meant.owner];
    if filled.len() > MAX_DIRECT || !names.into_iter().all(is_plain) {
        return None;
    }
    if !filled.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n') && byte != b'\'') {
        return None;
    }
    let mut config = String::with_capacity(filled.len());
    let mut lines = filled.split('\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let is_first = number == 0;
        // A separator of documents ends the scalar, and a blank line is a line break in it.
        if !is_first && (line.starts_with("---") || line.starts_with("...") || line.trim_matches(' ').is_empty()) {
            return None;
        }
        let line = if is_first { line } else { line.trim_start_matches(' ') };
        let is_last = lines.peek().is_none();
        config.push_str(if is_last { line } else { line.trim_end_matches(' ') });
        if !is_last {
            config.push(' ');
        }
    }
    Some(config)
}

/// Whether a text without quotes is the same string to YAML.
fn is_plain(text: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/');
    text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && text.bytes().all(is_harmless)
        && resolve(text) == Scalar::String
}

/// Reads the filled template as the operator does.
pub(super) fn through_yaml(manifest: &str, meant: &ExpectedNad<'_>) -> Result<String, RenderFault> {
    // The Go library accepts no other control characters.
    let printable = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{85}') || !c.is_control();
    if let Some(control) = manifest.chars().find(|c| !printable(*c)) {
        return Err(RenderFault::NotYaml(format!("it contains the control character U+{:04X}", control as u32)));
    }
    // The Kubernetes reader splits at every line that starts with three dashes.
    let documents = manifest.split("\n---").filter(|document| !document.trim().is_empty()).count();
    if documents != 1 {
        return Err(RenderFault::Documents(documents));
    }
    // The intended result has a dozen values and no alias.
    let mut nodes = Documents::small(manifest);
    let node = match nodes.next().map(|document| document.node) {
        Some(Ok(node)) => node,
        Some(Err(error)) => return Err(RenderFault::NotYaml(error.problem)),
        None => return Err(RenderFault::Documents(0)),
    };
    if let Some(more) = nodes.next() {
        return Err(more.node.map_or_else(|error| RenderFault::NotYaml(error.problem), |_| RenderFault::Documents(2)));
    }
    let differs = |pointer: &str| Err(RenderFault::Differs(pointer.to_owned()));
    for (pointer, keys) in [
        ("", &["apiVersion", "kind", "metadata", "spec"] as &[&str]),
        ("/metadata", &["name", "namespace", "annotations"]),
        ("/metadata/annotations", &[RESOURCE_NAME, OWNER_REF]),
        ("/spec", &["config"]),
    ] {
        match &node.follow(pointer).0.value {
            yaml::YamlValue::Map(entries) if entries.len() == keys.len() => {
                if let Some(other) = entries.iter().find(|entry| !keys.contains(&entry.key.as_ref())) {
                    return differs(&format!("{pointer}/{}", json::escape(&other.key)));
                }
            }
            yaml::YamlValue::Map(entries) => {
                let other = entries.iter().find(|entry| !keys.contains(&entry.key.as_ref()));
                return differs(&other.map_or(pointer.to_owned(), |o| format!("{pointer}/{}", json::escape(&o.key))));
            }
            _ => return differs(pointer),
        }
    }
    for (pointer, want) in [("/metadata/name", meant.name), ("/metadata/namespace", meant.namespace)] {
        let found = node.follow(pointer).0;
        match found.as_str() {
            Some(text) if text == want => {}
            Some(_) => return differs(pointer),
            // No namespace is given: `kubectl apply` uses that of the context.
            None if want.is_empty() => {}
            None => return Err(not_text(pointer, found)),
        }
    }
    for (key, want) in [(RESOURCE_NAME, meant.resource), (OWNER_REF, meant.owner)] {
        let pointer = format!("/metadata/annotations/{}", json::escape(key));
        if node.follow(&pointer).0.as_str() != Some(want) {
            return differs(&pointer);
        }
    }
    match node.follow("/spec/config").0.as_str() {
        Some(config) => Ok(config.to_owned()),
        None => differs("/spec/config"),
    }
}

fn not_text(pointer: &str, found: &YamlNode) -> RenderFault {
    let what = if pointer.ends_with("namespace") { "namespace" } else { "name" };
    RenderFault::NotText(what, found.to_json())
}
