//! The part of `metadata` that rules read.

use std::borrow::Cow;

use jiff::Timestamp;

use super::raw::{FieldValue, RawFields};
use super::{Misshapen, NetworkId, NetworkKind, OWNER_REF, ObjectKey};
use crate::json::{Error, JsonReader};

/// An object's metadata.
#[derive(Clone, Debug, Default)]
pub struct Meta<'a> {
    /// `metadata.name`; empty while the server has still to generate one.
    pub name: Cow<'a, str>,
    /// `metadata.namespace`; empty in a manifest that leaves it to the context it is applied in.
    pub namespace: Cow<'a, str>,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// Whether the object has metadata at all.
    pub is_there: bool,
    annotations: Option<RawFields<'a>>,
    owner: Option<NetworkId>,
    /// `metadata.creationTimestamp`, as it is written.
    created: Option<&'a str>,
    /// The text of `metadata.ownerReferences`.
    references: Option<&'a str>,
}

/// The members of `metadata` that rules read, found in one pass; the last of duplicates counts.
#[derive(Debug, Default)]
pub(super) struct RawMetadata<'a> {
    name: FieldValue<Cow<'a, str>>,
    namespace: FieldValue<Cow<'a, str>>,
    annotations: FieldValue<RawFields<'a>>,
    owners: Option<&'a str>,
    created: Option<&'a str>,
    deleting: bool,
}

impl<'a> RawMetadata<'a> {
    pub(super) fn read(reader: &mut JsonReader<'a>) -> Result<Self, Error> {
        let mut found = Self::default();
        reader.members(|reader, key, _| {
            match key.as_ref() {
                "name" => found.name = FieldValue::text(reader)?,
                "namespace" => found.namespace = FieldValue::text(reader)?,
                "annotations" => found.annotations = FieldValue::fields(reader)?,
                "ownerReferences" => found.owners = Some(reader.skip()?),
                "creationTimestamp" => found.created = Some(reader.skip()?),
                "deletionTimestamp" => found.deleting = reader.skip()? != "null",
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl<'a> Meta<'a> {
    /// The metadata of an object; fields of a wrong type are recorded and treated as absent.
    pub(super) fn of(metadata: FieldValue<RawMetadata<'a>>, misshapen: &mut Vec<Misshapen>) -> Self {
        let Some(found) = metadata.or_record("/metadata", "an object", misshapen) else { return Self::default() };
        let name = found.name.or_record("/metadata/name", "a string", misshapen).unwrap_or_default();
        let namespace = found.namespace.or_record("/metadata/namespace", "a string", misshapen).unwrap_or_default();
        let annotations = found.annotations.or_record("/metadata/annotations", "an object", misshapen);
        for (key, found) in annotations.iter().flat_map(RawFields::no_texts) {
            let pointer = format!("/metadata/annotations/{}", crate::json::escape(key));
            misshapen.push(Misshapen { pointer, expected: "a string", found });
        }
        let referenced = || references(found.owners).iter().find_map(|owner| network_owner(owner, &namespace));
        let owner = named_owner(annotations.as_ref()).or_else(referenced);
        let (deleting, created, references) = (found.deleting, found.created, found.owners);
        Self { name, namespace, deleting, is_there: true, annotations, owner, created, references }
    }

    /// The metadata of an object that is not stored yet.
    pub(super) fn rendered(name: &'a str, namespace: &'a str, annotations: RawFields<'a>) -> Self {
        let (name, namespace) = (Cow::Borrowed(name), Cow::Borrowed(namespace));
        let owner = named_owner(Some(&annotations));
        Self { name, namespace, is_there: true, annotations: Some(annotations), owner, ..Self::default() }
    }

    /// When the object was created, if the server has stored it.
    pub fn created(&self) -> Option<Timestamp> {
        self.created.and_then(|text| text.trim_matches('"').parse().ok())
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<Cow<'a, str>> {
        self.annotations.as_ref().and_then(|annotations| annotations.text(key).value())
    }

    /// An annotation as it is written, of whatever type it is.
    pub(super) fn raw_annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations.as_ref().and_then(|annotations| annotations.raw(key))
    }

    /// The owner references, of networks and of everything else.
    pub(super) fn references(&self) -> Vec<RawFields<'a>> {
        references(self.references)
    }

    /// Whether there is a map to add an annotation to.
    pub fn has_annotations(&self) -> bool {
        self.annotations.is_some()
    }

    /// The network that the operator's annotation names as owner, or the ownerReference does.
    pub fn owner(&self) -> Option<&NetworkId> {
        self.owner.as_ref()
    }
}

/// The network that the operator's annotation names.
fn named_owner(annotations: Option<&RawFields<'_>>) -> Option<NetworkId> {
    NetworkId::parse(&annotations?.text(OWNER_REF).value()?)
}

fn references(raw: Option<&str>) -> Vec<RawFields<'_>> {
    raw.and_then(|raw| RawFields::list(raw).value()).unwrap_or_default()
}

/// The network of an ownerReference, which is always in the same namespace.
fn network_owner(owner: &RawFields<'_>, namespace: &str) -> Option<NetworkId> {
    let version = owner.text("apiVersion").value()?;
    let kind = NetworkKind::from_kind(&owner.text("kind").value()?)?;
    let name = owner.text("name").value().filter(|name| name.len() <= super::LONGEST_NAME)?.into_owned();
    let is_ours = version.split_once('/').is_some_and(|(group, _)| group == super::NETWORK_GROUP);
    is_ours.then(|| NetworkId { kind, namespace: namespace.to_owned(), name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_network_only_in_the_group_of_networks() {
        for (version, is_ours) in [
            ("sriovnetwork.openshift.io/v1", true),
            ("sriovnetwork.openshift.io", false),
            ("sriovnetwork.openshift.io.example.com/v1", false),
            ("v1", false),
        ] {
            let owner = format!(r#"{{"apiVersion":"{version}","kind":"SriovNetwork","name":"net"}}"#);
            let found = network_owner(&RawFields::parse(&owner).unwrap(), "op");
            assert_eq!(found.is_some(), is_ours, "{version}");
        }
    }

    #[test]
    fn an_object_that_is_not_stored_yet_has_its_metadata() {
        let annotations = RawFields::parse(r#"{"a":"b"}"#).unwrap();
        let meta = Meta::rendered("net", "apps", annotations);
        assert_eq!((meta.key(), meta.annotation("a").as_deref()), (ObjectKey::new("apps", "net"), Some("b")));
        assert!(meta.is_there && meta.has_annotations() && !meta.deleting);
    }
}
