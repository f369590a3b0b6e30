//! The objects in a text: its documents, and the items of lists.

use crate::json::LineIndex;
use crate::yaml::{Documents, YamlNode, YamlValue};

/// A document of a file.
#[derive(Debug)]
pub enum ManifestDocument {
    /// An object with a kind.
    Manifest(Manifest),
    /// A document that is not an object or cannot be parsed: its line and the reason.
    Unreadable {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// An object as it stands in a file.
#[derive(Debug)]
pub struct Manifest {
    /// The line it begins on, from 1.
    pub line: usize,
    /// Its content.
    pub node: YamlNode,
}

impl Manifest {
    /// A string directly below the object: `kind`.
    pub fn text(&self, key: &str) -> &str {
        self.node.get(key).and_then(YamlNode::as_str).unwrap_or_default()
    }
}

/// Calls `visit` for every document of a text, one after the other; none is kept.
pub fn documents(lines: &LineIndex<'_>, visit: &mut dyn FnMut(ManifestDocument)) {
    for (index, document) in Documents::new(lines.text()).enumerate() {
        let number = index + 1;
        match document.node {
            Ok(node) => object(lines, document.line, number, node, visit),
            Err(error) => visit(ManifestDocument::Unreadable {
                line: error.line,
                problem: format!("document {number}: column {}: {}", error.column, error.problem),
            }),
        }
    }
}

fn object(lines: &LineIndex<'_>, line: usize, number: usize, node: YamlNode, visit: &mut dyn FnMut(ManifestDocument)) {
    let unreadable = |problem: String| ManifestDocument::Unreadable { line, problem };
    match &node.value {
        YamlValue::Null => return,
        YamlValue::Map(_) => {}
        _ => return visit(unreadable(format!("document {number}: not a Kubernetes object: expected a mapping"))),
    }
    let Some(kind) = node.get("kind").and_then(YamlNode::as_str) else {
        return visit(unreadable(format!("document {number}: not a Kubernetes object: `kind` is missing")));
    };
    if !kind.ends_with("List") || node.get("items").and_then(YamlNode::as_list).is_none() {
        return visit(ManifestDocument::Manifest(Manifest { line, node }));
    }
    // The items of a list of one kind need not repeat it.
    let kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty()).map(ToOwned::to_owned);
    let version = node.get("apiVersion").and_then(YamlNode::as_str).map(ToOwned::to_owned);
    let YamlValue::Map(entries) = node.value else { return };
    for items in entries.into_iter().filter(|entry| entry.key == "items").map(|entry| entry.node.value) {
        let YamlValue::List(items) = items else { continue };
        for mut item in items {
            if let Some(kind) = &kind {
                item.set_default("kind", kind);
                item.set_default("apiVersion", version.as_deref().unwrap_or_default());
            }
            object(lines, lines.at(item.span.start).0, number, item, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let mut kinds = Vec::new();
        documents(&LineIndex::of(text), &mut |document| {
            kinds.push(match document {
                ManifestDocument::Manifest(manifest) => format!("{} {}", manifest.line, manifest.text("kind")),
                ManifestDocument::Unreadable { line, problem } => format!("{line} ! {problem}"),
            });
        });
        kinds
    }

    #[test]
    fn finds_objects() {
        for (text, want) in [
            ("kind: A\n---\n---\nkind: B\n", &["1 A", "4 B"] as &[_]),
            ("kind: List\nitems:\n- kind: A\n- kind: BList\n  items: [{kind: C}]\n- kind: D\n", &["3 A", "5 C", "6 D"]),
            ("a: 1\n---\nkind: B\n", &["1 ! document 1: not a Kubernetes object: `kind` is missing", "3 B"]),
            ("kind: AList\nitems:\n- {metadata: {}}\n- {kind: B}\n", &["3 A", "4 B"]),
            ("- 1\n", &["1 ! document 1: not a Kubernetes object: expected a mapping"]),
            ("", &[]),
        ] {
            assert_eq!(kinds(text), want, "{text}");
        }
    }
}
