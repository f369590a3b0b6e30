//! What findings ask to change in a manifest, for people who let their files be fixed.
//!
//! That is more than admission changes: also what a finding's help says was certainly meant.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::finding::Repair;
use super::{Action, Finding};
use crate::cni::edit::{self, Edit};
use crate::json::write::json_string;
use crate::json::{Document, Kind, Span, escape, unescape};

/// The changes that fix a finding.
#[derive(Clone, Debug)]
pub struct Fix {
    /// The id of the finding's rule.
    pub rule: &'static str,
    /// What changes; all of it, or the finding stays.
    pub changes: Vec<ManifestChange>,
    /// Whether it is what somebody meant, and not what admission would repair.
    pub is_suggestion: bool,
}

/// One change of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestChange {
    /// Give an annotation a value.
    Annotate {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Remove an annotation.
    RemoveAnnotation {
        /// Its key.
        key: String,
    },
    /// Edit the text at a JSON pointer.
    EditText {
        /// The pointer.
        pointer: String,
        /// The edit; its place is one in the decoded text.
        edit: Edit,
    },
    /// Rename the key at a JSON pointer.
    RenameKey {
        /// The pointer.
        pointer: String,
        /// The key in its place.
        to: String,
    },
    /// Replace the scalar at a JSON pointer by a string.
    SetText {
        /// The pointer.
        pointer: String,
        /// The string.
        text: String,
    },
}

impl Finding {
    /// Whether a manifest can be changed so that this finding is gone.
    pub fn is_fixable(&self) -> bool {
        self.is_repaired() || self.is_suggestion()
    }

    /// The changes after which a manifest does not have this finding any more.
    pub fn fix(&self) -> Option<Fix> {
        let changes = match &self.replacement {
            _ if self.is_repaired() => self.repairs.iter().map(ManifestChange::of).collect(),
            Some(meant) if self.is_suggestion() => vec![self.change_to(meant)?],
            _ => return None,
        };
        Some(Fix { rule: self.rule.id, changes, is_suggestion: !self.is_repaired() })
    }

    fn is_repaired(&self) -> bool {
        let is_patched = self.action == Action::Patch || self.would == Some(Action::Patch);
        is_patched && !self.repairs.is_empty()
    }

    fn is_suggestion(&self) -> bool {
        self.replacement.is_some() && self.action > Action::Audit
    }

    fn change_to(&self, meant: &str) -> Option<ManifestChange> {
        let pointer = self.pointer.clone();
        Some(match &self.config {
            Some(place) => {
                let offset = |at: usize| u32::try_from(at).ok();
                let span = Span { start: offset(place.span.start)?, end: offset(place.span.end)? };
                ManifestChange::EditText { pointer, edit: Edit { span, text: json_string(meant) } }
            }
            None if self.is_about_key => ManifestChange::RenameKey { pointer, to: meant.to_owned() },
            None => ManifestChange::SetText { pointer, text: meant.to_owned() },
        })
    }
}

impl ManifestChange {
    fn of(repair: &Repair) -> Self {
        match repair {
            Repair::Annotate(key, value) => Self::Annotate { key: (*key).to_owned(), value: value.clone() },
            Repair::RemoveAnnotation(key) => Self::RemoveAnnotation { key: (*key).to_owned() },
            Repair::Config(edit) => Self::EditText { pointer: "/spec/config".to_owned(), edit: edit.clone() },
        }
    }

    /// The pointer of the value it is about.
    pub fn pointer(&self) -> String {
        match self {
            Self::Annotate { key, .. } | Self::RemoveAnnotation { key } => {
                format!("/metadata/annotations/{}", escape(key))
            }
            Self::EditText { pointer, .. } | Self::RenameKey { pointer, .. } | Self::SetText { pointer, .. } => {
                pointer.clone()
            }
        }
    }

    /// What somebody who makes this change by hand has to do, in the imperative.
    pub fn by_hand(&self) -> String {
        let place = |pointer: &str| pointer.trim_start_matches('/').replace('/', ".");
        match self {
            Self::Annotate { key, value } => format!("set the annotation {key} to {value}"),
            Self::RemoveAnnotation { key } => format!("remove the annotation {key}"),
            Self::EditText { pointer, edit } if edit.span.start == edit.span.end => {
                let text = edit.text.trim_start_matches(',').split_whitespace().collect::<Vec<_>>().join(" ");
                format!("add {text} to {}", place(pointer))
            }
            Self::EditText { pointer, edit } => format!("write {} in {}", edit.text, place(pointer)),
            Self::RenameKey { pointer, to } => format!("rename {} to {to}", place(pointer)),
            Self::SetText { pointer, text } => format!("write {text:?} at {}", place(pointer)),
        }
    }
}

/// The object after these changes. `None` where one of them does not fit the object.
pub fn changed<'c>(object: &Value, changes: impl IntoIterator<Item = &'c ManifestChange>) -> Option<Value> {
    let mut object = object.clone();
    // The places of edits are those in the text as it was.
    let mut edits = BTreeMap::<&str, Vec<Edit>>::new();
    for change in changes {
        match change {
            ManifestChange::Annotate { key, value } => {
                let annotations = member(member(object.as_object_mut()?, "metadata")?, "annotations")?;
                annotations.insert(key.clone(), value.as_str().into());
            }
            ManifestChange::RemoveAnnotation { key } => {
                let metadata = object.get_mut("metadata")?;
                metadata.get_mut("annotations")?.as_object_mut()?.remove(key)?;
            }
            ManifestChange::EditText { pointer, edit } => edits.entry(pointer).or_default().push(edit.clone()),
            ManifestChange::RenameKey { pointer, to } => {
                let (parent, key) = pointer.rsplit_once('/')?;
                let members = object.pointer_mut(parent)?.as_object_mut()?;
                let value = members.remove(&unescape(key))?;
                if members.insert(to.clone(), value).is_some() {
                    return None;
                }
            }
            ManifestChange::SetText { pointer, text } => *object.pointer_mut(pointer)? = text.as_str().into(),
        }
    }
    for (pointer, edits) in edits {
        let value = object.pointer_mut(pointer)?;
        *value = edited(value.as_str()?, &edits)?.into();
    }
    Some(object)
}

/// The JSON text after the edits. `None` where it would not be JSON any more.
fn edited(text: &str, edits: &[Edit]) -> Option<String> {
    let is_json = |text: &str| Document::parse(text).is_ok();
    let is_string = |edit: &Edit| {
        let replaced = text.get(edit.span.range()).map(Document::parse);
        replaced.is_some_and(|document| document.is_ok_and(|document| matches!(document.root.kind, Kind::String(_))))
    };
    let edited = edit::apply(text, edits);
    // The plugins of a network are written without the brackets around them: only whole strings can be replaced there for certain.
    let is_sound = if is_json(text) { is_json(&edited) } else { edits.iter().all(is_string) };
    is_sound.then_some(edited)
}

/// The object at a key; what is null or absent becomes one.
fn member<'o>(object: &'o mut Map<String, Value>, key: &str) -> Option<&'o mut Map<String, Value>> {
    let value = object.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edit(start: u32, end: u32, text: &str) -> ManifestChange {
        let edit = Edit { span: Span { start, end }, text: text.to_owned() };
        ManifestChange::EditText { pointer: "/spec/config".to_owned(), edit }
    }

    #[test]
    fn changes_are_made_or_do_not_fit() {
        let annotate = || ManifestChange::Annotate { key: "a/b".to_owned(), value: "v".to_owned() };
        let remove = || ManifestChange::RemoveAnnotation { key: "a/b".to_owned() };
        let rename =
            |pointer: &str, to: &str| ManifestChange::RenameKey { pointer: pointer.to_owned(), to: to.to_owned() };
        let set = |pointer: &str| ManifestChange::SetText { pointer: pointer.to_owned(), text: "v".to_owned() };
        for (object, change, want) in [
            (json!({}), annotate(), Some(json!({"metadata": {"annotations": {"a/b": "v"}}}))),
            (json!({"metadata": null}), annotate(), Some(json!({"metadata": {"annotations": {"a/b": "v"}}}))),
            (
                json!({"metadata": {"annotations": {"a/b": "x", "c": "d"}}}),
                annotate(),
                Some(json!({"metadata": {"annotations": {"a/b": "v", "c": "d"}}})),
            ),
            (json!({"metadata": {"annotations": []}}), annotate(), None),
            (
                json!({"metadata": {"annotations": {"a/b": ""}}}),
                remove(),
                Some(json!({"metadata": {"annotations": {}}})),
            ),
            (json!({"metadata": {"annotations": {}}}), remove(), None),
            (json!({"s": {"a~b": 1, "c": 2}}), rename("/s/a~0b", "d"), Some(json!({"s": {"d": 1, "c": 2}}))),
            (json!({"s": {"a": 1, "d": 2}}), rename("/s/a", "d"), None),
            (json!({"s": {"a": 1}}), rename("/s/b", "d"), None),
            (json!({"s": [true]}), set("/s/0"), Some(json!({"s": ["v"]}))),
            (json!({"s": []}), set("/s/0"), None),
            (
                json!({"spec": {"config": "{\"vlann\":1}"}}),
                edit(1, 8, "\"vlan\""),
                Some(json!({"spec": {"config": "{\"vlan\":1}"}})),
            ),
            // An edit that leaves no JSON is at the wrong place.
            (json!({"spec": {"config": "{\"vlann\":1}"}}), edit(2, 8, "\"vlan\""), None),
            // Where the text is none, a whole string can be replaced.
            (
                json!({"spec": {"config": "{\"a\":1},{}"}}),
                edit(1, 4, "\"b\""),
                Some(json!({"spec": {"config": "{\"b\":1},{}"}})),
            ),
            (json!({"spec": {"config": "{\"a\":1},{}"}}), edit(1, 5, "\"b\""), None),
            (json!({"spec": {"config": 5}}), edit(0, 1, "1"), None),
        ] {
            assert_eq!(changed(&object, [&change]), want, "{object} {change:?}");
        }
    }

    #[test]
    fn each_change_is_described_for_those_who_make_it_by_hand() {
        for (change, want) in [
            (ManifestChange::Annotate { key: "a/b".to_owned(), value: "v".to_owned() }, "set the annotation a/b to v"),
            (ManifestChange::RemoveAnnotation { key: "a/b".to_owned() }, "remove the annotation a/b"),
            (edit(5, 5, ",\n  \"resourceName\": \"a.io/b\""), "add \"resourceName\": \"a.io/b\" to spec.config"),
            (edit(5, 9, "\"vlan\""), "write \"vlan\" in spec.config"),
            (
                ManifestChange::RenameKey { pointer: "/spec/vlann".to_owned(), to: "vlan".to_owned() },
                "rename spec.vlann to vlan",
            ),
            (
                ManifestChange::SetText { pointer: "/spec/trust".to_owned(), text: "on".to_owned() },
                "write \"on\" at spec.trust",
            ),
        ] {
            assert_eq!(change.by_hand(), want);
        }
    }
}
