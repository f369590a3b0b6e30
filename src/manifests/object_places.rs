//! Where the manifests are of objects that findings about other objects may name.

use std::collections::BTreeSet;
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

impl ObjectPlace {
    /// Its kind, namespace and name.
    fn object(&self) -> (&str, &str, &str) {
        (&self.kind, &self.namespace, &self.name)
    }

    /// The directory of its file.
    fn directory(&self) -> &str {
        self.file.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

impl ObjectPlaces {
    pub(super) fn add(&mut self, place: ObjectPlace) {
        self.0.push(place);
    }

    pub(super) fn into_places(self) -> Vec<ObjectPlace> {
        self.0
    }

    /// Sorts the places for look-ups.
    pub(super) fn finish(&mut self) {
        self.0.sort();
        self.0.shrink_to_fit();
    }

    /// The places of all manifests of an object.
    fn all<'p>(&'p self, kind: &'p str, key: &'p ObjectKey) -> impl Iterator<Item = &'p ObjectPlace> {
        let wanted = (kind, key.namespace(), key.name());
        let start = self.0.partition_point(|place| place.object() < wanted);
        self.0.iter().skip(start).take_while(move |place| place.object() == wanted)
    }

    /// Whether manifests of two objects are in one file or one directory. Others may be for different clusters.
    pub(super) fn are_together(
        &self,
        (kind, key): (&str, &ObjectKey),
        (other_kind, other): (&str, &ObjectKey),
    ) -> bool {
        let directories: BTreeSet<&str> = self.all(kind, key).map(ObjectPlace::directory).collect();
        self.all(other_kind, other).any(|place| directories.contains(place.directory()))
    }

    /// The place of an object. Of several manifests of it, as of an overlay and its base, it is that of the first.
    pub(super) fn find(&self, kind: &str, key: &ObjectKey) -> Option<SourcePlace> {
        let place = self.all(kind, key).next()?;
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

    #[test]
    fn manifests_of_one_directory_are_together() {
        let mut places = ObjectPlaces::default();
        for (name, file) in [
            ("dev", "dev/a.yaml"),
            ("dev-too", "dev/b.yaml"),
            ("prod", "prod/a.yaml"),
            ("both", "dev/c.yaml"),
            ("both", "prod/c.yaml"),
            ("top", "a.yaml"),
        ] {
            let [kind, namespace, file] = ["NetworkAttachmentDefinition", "apps", file].map(Arc::from);
            places.add(ObjectPlace { kind, namespace, name: name.into(), file, line: 1, column: 1 });
        }
        places.finish();
        for (one, other, want) in [
            ("dev", "dev", true),
            ("dev", "dev-too", true),
            ("dev", "prod", false),
            ("dev", "both", true),
            ("both", "prod", true),
            ("dev", "top", false),
            ("top", "top", true),
            ("dev", "unknown", false),
        ] {
            let of = |name: &str| ObjectKey::new("apps", name);
            let kind = "NetworkAttachmentDefinition";
            assert_eq!(places.are_together((kind, &of(one)), (kind, &of(other))), want, "{one} {other}");
        }
    }
}
