//! What decides in the manifests of the two examples of a rule: the versions, generations, field managers and annotations in which a write
//! differs from what is stored.

use serde_json::Value;

/// An example: what is beside its manifest, and the manifest.
#[derive(Clone, Copy)]
pub(super) struct Example<'e> {
    pub(super) facts: &'e Value,
    pub(super) manifest: &'e Value,
}

/// What something is called, and from an example what it is there.
type ManifestFact = (&'static str, fn(Example<'_>) -> Option<String>);

const STORED_NAD: &str = "/facts/stored/nad/spec/config";

const WORDS: [ManifestFact; 9] = [
    ("the resourceVersion in the write", |example| {
        word(example.facts.get("old").and(example.manifest.pointer("/metadata/resourceVersion"))?)
    }),
    ("the stored resourceVersion", |example| word(example.facts.pointer("/old/metadata/resourceVersion")?)),
    ("`observedGeneration` in the write", |example| word(example.manifest.pointer("/status/observedGeneration")?)),
    ("the stored `observedGeneration`", |example| word(example.facts.pointer("/old/status/observedGeneration")?)),
    ("who owns fields after the write", |example| managers(example.manifest.pointer("/metadata/managedFields")?)),
    ("who owns stored fields", |example| managers(example.facts.pointer("/old/metadata/managedFields")?)),
    ("`vlan` of the network", |example| {
        word(example.facts.pointer(STORED_NAD).and(example.manifest.pointer("/spec/vlan"))?)
    }),
    ("`vlan` in its NAD", |example| word(config(example.facts.pointer(STORED_NAD)?)?.get("vlan")?)),
    ("`resourceName` in the config", |example| {
        let config =
            config(example.facts.pointer("/facts/networks_here").and(example.manifest.pointer("/spec/config"))?)?;
        word(config.get("resourceName")?)
    }),
];

/// Each fact, and what it is in the bad and in the good example.
pub(super) fn facts(bad: Example<'_>, good: Example<'_>) -> Vec<(String, Option<String>, Option<String>)> {
    let mut found: Vec<_> = WORDS.iter().map(|(what, words)| ((*what).to_owned(), words(bad), words(good))).collect();
    let annotations = |example: Example<'_>| {
        example.manifest.pointer("/metadata/annotations").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (in_bad, in_good) = (annotations(bad), annotations(good));
    let mut keys: Vec<&String> = in_bad.keys().chain(in_good.keys()).collect();
    keys.sort();
    keys.dedup();
    found.extend(keys.into_iter().map(|key| {
        (format!("the annotation `{key}`"), in_bad.get(key).and_then(word), in_good.get(key).and_then(word))
    }));
    found
}

/// A config, which is JSON in a text.
fn config(text: &Value) -> Option<Value> {
    serde_json::from_str(text.as_str()?).ok()
}

fn word(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => format!("`{text}`"),
        Value::Null => return None,
        other => format!("`{other}`"),
    })
}

/// The field managers of an object, and how each wrote.
fn managers(entries: &Value) -> Option<String> {
    let words = entries.as_array()?.iter().filter_map(|entry| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        Some(format!("`{}` by {}", text("manager")?, text("operation")?))
    });
    Some(words.collect::<Vec<_>>().join(", "))
}
