//! The objects in a text: its documents, and the items of lists.

use std::ops::Range;

use crate::json::LineIndex;
use crate::policy::closest;
use crate::resources::{CLAIM_GROUP, NAD_GROUP, NETWORK_GROUP};
use crate::yaml::{Documents, YamlNode, YamlValue};

/// The longest path of a template that is shown.
const MAX_TEMPLATE_BYTES: usize = 512;

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
        /// Whether it may be meant as an object that nadmit judges, as far as can be seen.
        might_be_ours: bool,
    },
}

/// An object as it stands in a file.
#[derive(Debug)]
pub struct Manifest {
    /// The line it begins on, from 1.
    pub line: usize,
    /// The Helm template that it was rendered from, by the comment that `helm template` writes.
    pub template: Option<String>,
    /// The bytes of its document.
    pub part: Range<usize>,
    /// Where it is in its document, as a JSON pointer: `/items/3` in a list.
    pub pointer: String,
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
            Ok(node) => {
                let place = DocumentPlace {
                    line: document.line,
                    number,
                    part: document.part,
                    pointer: String::new(),
                    template: template(lines.text(), node.span.start).map(ToOwned::to_owned),
                };
                object(lines, place, node, visit);
            }
            Err(error) => visit(ManifestDocument::Unreadable {
                line: error.line,
                problem: format!("document {number}: column {}: {}", error.column, error.problem),
                might_be_ours: has_key_of_objects(lines.text()),
            }),
        }
    }
}

/// Where in a file an object is.
#[derive(Clone)]
struct DocumentPlace {
    line: usize,
    /// The number of the document, from 1.
    number: usize,
    /// The bytes of the document.
    part: Range<usize>,
    /// Where the object is in it.
    pointer: String,
    template: Option<String>,
}

fn object(lines: &LineIndex<'_>, place: DocumentPlace, node: YamlNode, visit: &mut dyn FnMut(ManifestDocument)) {
    let DocumentPlace { line, number, .. } = place;
    let not_an_object = |reason: &str, might_be_ours: bool| {
        let problem = format!("document {number}: not a Kubernetes object: {reason}");
        ManifestDocument::Unreadable { line, problem, might_be_ours }
    };
    match &node.value {
        YamlValue::Null => return,
        YamlValue::Map(_) => {}
        _ => return visit(not_an_object("expected a mapping", false)),
    }
    let api_version = node.get("apiVersion").and_then(YamlNode::as_str);
    let Some(kind) = node.get("kind").and_then(YamlNode::as_str) else {
        return visit(not_an_object("`kind` is missing", api_version.is_some_and(is_ours)));
    };
    if !kind.ends_with("List") || node.get("items").and_then(YamlNode::as_list).is_none() {
        let DocumentPlace { part, pointer, template, .. } = place;
        let template = template.or_else(|| annotated_template(&node).map(ToOwned::to_owned));
        return visit(ManifestDocument::Manifest(Manifest { line, template, part, pointer, node }));
    }
    // The items of a list of one kind need not repeat it.
    let kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty()).map(ToOwned::to_owned);
    let version = api_version.map(ToOwned::to_owned);
    let YamlValue::Map(entries) = node.value else { return };
    for items in entries.into_iter().filter(|entry| entry.key == "items").map(|entry| entry.node.value) {
        let YamlValue::List(items) = items else { continue };
        for (index, mut item) in items.into_iter().enumerate() {
            if let Some(kind) = &kind {
                item.set_default("kind", kind);
                item.set_default("apiVersion", version.as_deref().unwrap_or_default());
            }
            let pointer = format!("{}/items/{index}", place.pointer);
            let place = DocumentPlace { line: lines.at(item.span.start).0, pointer, ..place.clone() };
            object(lines, place, item, visit);
        }
    }
}

/// The kinds of the groups whose objects nadmit reads, also those that it does not judge.
const KINDS: [(&str, &[&str]); 3] = [
    (NAD_GROUP, &["NetworkAttachmentDefinition"]),
    (
        NETWORK_GROUP,
        &[
            "SriovNetwork",
            "SriovIBNetwork",
            "OVSNetwork",
            "SriovNetworkNodePolicy",
            "SriovNetworkNodeState",
            "SriovNetworkPoolConfig",
            "SriovOperatorConfig",
        ],
    ),
    (CLAIM_GROUP, &["ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"]),
];

impl Manifest {
    /// The kind that is meant, if there is none of this name in its group, but one of nearly the same.
    pub fn meant_kind(&self) -> Option<&'static str> {
        let group = self.text("apiVersion").split('/').next()?;
        let (_, kinds) = KINDS.iter().find(|(known, _)| *known == group)?;
        closest(self.text("kind"), kinds.iter().copied()).filter(|meant| *meant != self.text("kind"))
    }
}

/// Whether an `apiVersion` is of a group whose objects nadmit reads.
pub(super) fn is_ours(api_version: &str) -> bool {
    let group = api_version.split('/').next().unwrap_or_default();
    [NETWORK_GROUP, NAD_GROUP, CLAIM_GROUP].contains(&group)
}

/// Whether a text that cannot be parsed has a key that every object has.
fn has_key_of_objects(text: &str) -> bool {
    ["kind", "apiVersion"].iter().any(|key| {
        let mut behind = text.match_indices(key).filter_map(|(at, _)| text.get(at + key.len()..));
        behind.any(|rest| rest.trim_start_matches(['"', '\'', ' ', '\t']).starts_with(':'))
    })
}

/// The template that a document was rendered from: `helm template` names it in a comment above the document.
fn template(text: &str, start: usize) -> Option<&str> {
    let above = text.get(..start)?.lines().rev();
    let mut comments = above.take_while(|line| line.trim_end().is_empty() || line.starts_with('#'));
    comments.find_map(|line| line.strip_prefix("# Source: ")).map(str::trim_end).filter(|path| is_in_chart(path))
}

/// The same where Helm passes manifests to a post-renderer: there, newer releases write an annotation instead, and take it out again.
fn annotated_template(object: &YamlNode) -> Option<&str> {
    let (node, _, is_present) = object.follow("/metadata/annotations/postrenderer.helm.sh~1postrender-filename");
    node.as_str().filter(|path| is_present && is_in_chart(path))
}

/// Whether a text can be a path in a chart: it is shown as the name of a file.
fn is_in_chart(path: &str) -> bool {
    path.len() <= MAX_TEMPLATE_BYTES
        && path.contains('/')
        && path.split('/').all(|name| !name.is_empty() && name != "..")
        && !path.contains(crate::visible::is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let mut kinds = Vec::new();
        documents(&LineIndex::of(text), &mut |document| {
            kinds.push(match document {
                ManifestDocument::Manifest(manifest) => format!("{} {}", manifest.line, manifest.text("kind")),
                ManifestDocument::Unreadable { line, problem, might_be_ours } => {
                    format!("{line} ! {problem}{}", if might_be_ours { "; ours?" } else { "" })
                }
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
            (
                "apiVersion: k8s.cni.cncf.io/v1\nkid: A\n",
                &["1 ! document 1: not a Kubernetes object: `kind` is missing; ours?"],
            ),
            ("apiVersion: v2\nname: chart\n", &["1 ! document 1: not a Kubernetes object: `kind` is missing"]),
            ("", &[]),
        ] {
            assert_eq!(kinds(text), want, "{text}");
        }
    }

    #[test]
    fn a_broken_text_might_be_ours_if_it_has_a_key_of_objects() {
        for (text, want) in [
            ("kind: X\na: [", true),
            ("{\"kind\" : \"X\", a: [", true),
            ("apiVersion: v1\na: [", true),
            ("a: [", false),
            ("# of every kind\na: [", false),
        ] {
            assert_eq!(has_key_of_objects(text), want, "{text}");
        }
    }

    #[test]
    fn templates_are_named_in_comments() {
        for (text, want) in [
            ("---\n# Source: c/templates/a.yaml\nkind: A\n", &[Some("c/templates/a.yaml")] as &[_]),
            ("# Source: c/templates/a.yaml\n# more\n\nkind: A\n---\nkind: B\n", &[Some("c/templates/a.yaml"), None]),
            (
                "---\n# Source: c/charts/d/templates/a.yaml\nkind: List\nitems: [{kind: A}, {kind: B}]\n",
                &[Some("c/charts/d/templates/a.yaml"); 2],
            ),
            (
                "kind: A\nmetadata:\n  annotations:\n    postrenderer.helm.sh/postrender-filename: 'c/templates/a.yaml'\n",
                &[Some("c/templates/a.yaml")],
            ),
            ("kind: A\nmetadata: {annotations: {postrenderer.helm.sh/postrender-filename: ../../a}}\n", &[None]),
            ("# Source: /etc/passwd\nkind: A\n", &[None]),
            ("# Source: ../../a.yaml\nkind: A\n", &[None]),
            ("# Source: the handbook\nkind: A\n", &[None]),
            ("# Source: c/\u{202e}a.yaml\nkind: A\n", &[None]),
            ("kind: A # Source: c/a.yaml\n", &[None]),
        ] {
            let mut found = Vec::new();
            documents(&LineIndex::of(text), &mut |document| {
                if let ManifestDocument::Manifest(manifest) = document {
                    found.push(manifest.template);
                }
            });
            let found: Vec<_> = found.iter().map(Option::as_deref).collect();
            assert_eq!(found, want, "{text}");
        }
    }
}
