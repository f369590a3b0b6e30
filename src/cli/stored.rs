//! Stored objects as manifests, so that findings on them have lines.

use serde_json::Value;

use super::output_args;
use crate::json::LineIndex;
use crate::manifests::{ManifestDocument, documents};
use crate::output::JudgedDocument;
use crate::policy::Verdict;
use crate::resources::Object;
use crate::yaml::emit;

/// Calls `show` with a stored object as its author would write it, and its findings in there.
pub(super) fn judged(text: &str, object: &Object<'_>, verdict: &Verdict, mut show: impl FnMut(&JudgedDocument<'_>)) {
    let text = readable(text);
    let lines = LineIndex::of(&text);
    let meta = object.meta();
    let source = format!("{}/{}/{}", object.kind(), meta.namespace, meta.name);
    documents(&lines, &mut |document| {
        if let ManifestDocument::Manifest(manifest) = document {
            let json = manifest.node.to_json();
            show(&output_args::judged((&source, &lines), &manifest, (meta, &json), verdict));
        }
    });
}

/// The object without what the API server adds.
fn readable(text: &str) -> String {
    let mut object: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
        if let Some(Value::Object(meta)) = object.get_mut("metadata") {
            for added in ["managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"] {
                meta.remove(added);
            }
        }
    }
    emit::stream(&[object])
}
