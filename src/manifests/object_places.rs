//! Where the manifests are of objects that findings about other objects may name.

use std::sync::Arc;

use crate::policy::SourcePlace;
use crate::resources::ObjectKey;

/// The places of manifests, by kind, namespace and name. Kinds, namespaces and files are few: their texts are shared.
#[derive(Debug, Default)]
pub(super) struct ObjectPlaces(Vec<ObjectPlace>);

/// One manifest; the order is that of look-ups.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectPlace {
    pub(super) kind: Arc<str>,
    pub(super) namespace: Arc<str>,
    pub(super) name: Box<str>,
    pub(super) file: Arc<str>,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl ObjectPlaces {
    pub(super) fn add(&mut self, place: ObjectPlace) {
        self.0.push(place);
    }

    pub(super) fn into_places(self) -> Vec<ObjectPlace> {
        self.0
    }

    /// Sorts the places for look-ups. Of several manifests of one object, as of an overlay and its base, the first is shown.
    pub(super) fn finish(&mut self) {
        self.0.sort();
        self.0.dedup_by(|a, b| (&a.kind, &a.namespace, &a.name) == (&b.kind, &b.namespace, &b.name));
        self.0.shrink_to_fit();
    }

    pub(super) fn find(&self, kind: &str, key: &ObjectKey) -> Option<SourcePlace> {
        let wanted = (kind, key.namespace(), key.name());
        let found = self.0.binary_search_by(|place| (&*place.kind, &*place.namespace, &*place.name).cmp(&wanted));
        let place = self.0.get(found.ok()?)?;
        Some(SourcePlace { file: Arc::clone(&place.file), line: place.line as usize, column: place.column as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_manifest_of_an_object_is_found() {
        let place = |kind: &str, namespace: &str, name: &str, file: &str, line| ObjectPlace {
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
            file: file.into(),
            line,
            column: 9,
        };
        let mut places = ObjectPlaces::default();
        for (kind, namespace, name, file, line) in [
            ("SriovNetwork", "apps", "net", "a.yaml", 3),
            ("NetworkAttachmentDefinition", "apps", "net", "overlay.yaml", 4),
            ("NetworkAttachmentDefinition", "apps", "net", "base.yaml", 7),
            ("NetworkAttachmentDefinition", "apps", "net", "base.yaml", 5),
        ] {
            places.add(place(kind, namespace, name, file, line));
        }
        places.finish();
        let found = |kind: &str, namespace: &str, name: &str| {
            let place = places.find(kind, &ObjectKey::new(namespace, name))?;
            Some((place.file.to_string(), place.line, place.column))
        };
        assert_eq!(found("NetworkAttachmentDefinition", "apps", "net"), Some(("base.yaml".to_owned(), 5, 9)));
        assert_eq!(found("SriovNetwork", "apps", "net"), Some(("a.yaml".to_owned(), 3, 9)));
        for (kind, namespace, name) in
            [("SriovNetwork", "apps", "other"), ("SriovNetwork", "other", "net"), ("OVSNetwork", "apps", "net")]
        {
            assert_eq!(found(kind, namespace, name), None);
        }
    }
}
