//! The objects in a text: its documents, and what lists among them hold.

use crate::json::Lines;
use crate::yaml::{Documents, Node, Value};

/// A document of a file.
#[derive(Debug)]
pub enum Document {
    /// An object with a kind.
    Manifest(Manifest),
    /// A document that is none, or cannot be read: where, and why.
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
    pub node: Node,
}

impl Manifest {
    /// A string directly below the object: `kind`.
    pub fn text(&self, key: &str) -> &str {
        self.node.get(key).and_then(Node::as_str).unwrap_or_default()
    }
}

/// Calls `visit` for every document of a text, one after the other; none is kept.
pub fn documents(lines: &Lines<'_>, visit: &mut dyn FnMut(Document)) {
    for (index, document) in Documents::new(lines.text()).enumerate() {
        let number = index + 1;
        match document.node {
            Ok(node) => object(lines, document.line, number, node, visit),
            Err(error) => visit(Document::Unreadable {
                line: error.line,
                problem: format!("document {number}: column {}: {}", error.column, error.problem),
            }),
        }
    }
}

fn object(lines: &Lines<'_>, line: usize, number: usize, node: Node, visit: &mut dyn FnMut(Document)) {
    let unreadable = |problem: String| Document::Unreadable { line, problem };
    match &node.value {
        Value::Null => return,
        Value::Map(_) => {}
        _ => return visit(unreadable(format!("document {number}: it is no Kubernetes object, which is a mapping"))),
    }
    let Some(kind) = node.get("kind").and_then(Node::as_str) else {
        return visit(unreadable(format!("document {number}: it has no `kind`, so it is no Kubernetes object")));
    };
    if !kind.ends_with("List") || node.get("items").and_then(Node::as_list).is_none() {
        return visit(Document::Manifest(Manifest { line, node }));
    }
    // The items of a list of one kind need not repeat it.
    let kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty()).map(ToOwned::to_owned);
    let version = node.get("apiVersion").and_then(Node::as_str).map(ToOwned::to_owned);
    let Value::Map(entries) = node.value else { return };
    for items in entries.into_iter().filter(|entry| entry.key == "items").map(|entry| entry.node.value) {
        let Value::List(items) = items else { continue };
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
        documents(&Lines::of(text), &mut |document| {
            kinds.push(match document {
                Document::Manifest(manifest) => format!("{} {}", manifest.line, manifest.text("kind")),
                Document::Unreadable { line, problem } => format!("{line} ! {problem}"),
            });
        });
        kinds
    }

    #[test]
    fn finds_objects() {
        for (text, want) in [
            ("kind: A\n---\n---\nkind: B\n", &["1 A", "4 B"] as &[_]),
            ("kind: List\nitems:\n- kind: A\n- kind: BList\n  items: [{kind: C}]\n- kind: D\n", &["3 A", "5 C", "6 D"]),
            ("a: 1\n---\nkind: B\n", &["1 ! document 1: it has no `kind`, so it is no Kubernetes object", "3 B"]),
            ("kind: AList\nitems:\n- {metadata: {}}\n- {kind: B}\n", &["3 A", "4 B"]),
            ("- 1\n", &["1 ! document 1: it is no Kubernetes object, which is a mapping"]),
            ("", &[]),
        ] {
            assert_eq!(kinds(text), want, "{text}");
        }
    }
}
