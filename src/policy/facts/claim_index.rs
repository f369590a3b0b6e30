//! The claims, DeviceClasses and objects of the SR-IOV DRA driver in a set of manifests or in a cluster.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::ClaimFacts;
use crate::policy::resource_name::own_name;
use crate::resources::{ClaimKind, DeviceClaim, DraMode, DriverObject, ObjectKey};

/// What is known about devices by claim (DRA).
#[derive(Clone, Debug, Default)]
pub struct ClaimIndex {
    /// The NADs that claims and claim templates name.
    by_claim: BTreeSet<ObjectKey>,
    /// The names of the NADs that DeviceClasses name, in whatever namespace.
    by_class: BTreeSet<String>,
    /// The extended resources that DeviceClasses serve.
    served: BTreeSet<String>,
    /// The resource names that the driver publishes.
    published: BTreeSet<String>,
    /// The modes of the driver's DaemonSets.
    modes: BTreeSet<Option<DraMode>>,
    /// Whether an object shows that the driver is installed. A claim does not: anybody may write one.
    has_driver: bool,
    /// Whether all DeviceClasses are known, so that no driver means that none is installed.
    pub knows_classes: bool,
    served_list: Arc<[String]>,
}

impl ClaimIndex {
    /// Adds a claim or DeviceClass.
    pub fn add(&mut self, claim: &DeviceClaim<'_>) {
        if claim.kind == ClaimKind::Class {
            self.has_driver |= claim.names_driver;
            self.by_class.extend(claim.nad_names().map(Cow::into_owned));
            self.served.extend(claim.extended_resource.as_deref().map(str::to_owned));
        } else {
            self.by_claim.extend(claim.nad_names().map(|name| ObjectKey::new(&claim.meta.namespace, &name)));
        }
    }

    /// Adds an object of the driver.
    pub fn add_driver_object(&mut self, object: DriverObject) {
        self.has_driver = true;
        match object {
            DriverObject::DaemonSet(mode) => drop(self.modes.insert(mode)),
            DriverObject::Devices(names) => self.published.extend(names),
        }
    }

    /// Merges another index.
    pub fn merge(&mut self, other: Self) {
        self.by_claim.extend(other.by_claim);
        self.by_class.extend(other.by_class);
        self.served.extend(other.served);
        self.published.extend(other.published);
        self.modes.extend(other.modes);
        self.has_driver |= other.has_driver;
    }

    /// Prepares the index for lookups.
    pub fn finish(mut self) -> Self {
        self.served_list = self.served.iter().cloned().collect();
        self
    }

    /// Whether the driver is installed.
    pub fn has_driver(&self) -> bool {
        self.has_driver
    }

    /// The extended resources that DeviceClasses serve.
    pub fn served(&self) -> Arc<[String]> {
        Arc::clone(&self.served_list)
    }

    /// The facts about a NAD; `resource_name` is the one it has.
    pub fn facts(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        let name = resource_name.filter(|_| !self.published.is_empty());
        let is_published = name.map(|name| self.published.contains(name));
        ClaimFacts {
            has_driver: (self.has_driver || self.knows_classes).then_some(self.has_driver),
            mode: one_mode(self.modes.iter().copied()),
            is_named_by_class: self.by_class.contains(nad.name()),
            is_named_by_claim: self.by_claim.contains(nad),
            is_published,
            published: match is_published {
                Some(true) => Arc::default(),
                _ => published_names(self.published.iter().map(String::as_str), resource_name),
            },
        }
    }
}

/// Some of the published names: without a resourceName the first ones, and with another one those that differ only before the slash.
pub fn published_names<'p>(all: impl Iterator<Item = &'p str>, resource_name: Option<&str>) -> Arc<[String]> {
    /// More would not be read in a finding.
    const MOST: usize = 4;
    let mut names = BTreeSet::new();
    for name in all.filter(|name| resource_name.is_none_or(|other| own_name(other) == own_name(name))) {
        names.insert(name);
        if names.len() > MOST {
            names.pop_last();
        }
    }
    names.into_iter().map(str::to_owned).collect()
}

/// The mode of the driver's DaemonSets; `None` if there are none or they disagree.
pub fn one_mode(mut modes: impl Iterator<Item = Option<DraMode>>) -> Option<DraMode> {
    let first = modes.next()?;
    if modes.all(|other| other == first) { first } else { None }
}

/// The extended resource of a network that a DeviceClass serves, by its name after the slash. Without a known prefix any domain may be the
/// operator's.
pub fn served_resource<'s>(served: &'s [String], name: &str, prefix: Option<&str>) -> Option<&'s str> {
    let is_it = |served: &&String| {
        let Some((domain, own)) = served.split_once('/') else { return false };
        own == name && prefix.is_none_or(|prefix| prefix == domain)
    };
    served.iter().find(is_it).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_the_driver_shows_that_it_is_installed() {
        let mut index = ClaimIndex::default();
        let nad = ObjectKey::new("apps", "net");
        assert!(!index.has_driver());
        assert_eq!(index.facts(&nad, None).has_driver, None, "the classes are not known");
        index.knows_classes = true;
        assert_eq!(index.facts(&nad, None).has_driver, Some(false));
        index.add_driver_object(DriverObject::Devices(vec!["a.io/b".to_owned()]));
        assert!(index.has_driver());
        assert_eq!(index.facts(&nad, Some("a.io/b")).is_published, Some(true));
        assert_eq!(index.facts(&nad, Some("a.io/c")).is_published, Some(false));
        let mut other = ClaimIndex::default();
        other.merge(index);
        assert!(other.has_driver());
        assert_eq!(other.facts(&nad, Some("a.io/b")).has_driver, Some(true));
    }

    #[test]
    fn a_served_resource_has_the_prefix_that_is_known() {
        let served = ["odd", "a.io/x", "b.io/y"].map(str::to_owned);
        for (name, prefix, want) in [
            ("x", None, Some("a.io/x")),
            ("y", Some("b.io"), Some("b.io/y")),
            ("y", Some("a.io"), None),
            ("odd", None, None),
        ] {
            assert_eq!(served_resource(&served, name, prefix), want, "{name} {prefix:?}");
        }
    }

    #[test]
    fn published_names_are_few_and_like_the_one_that_is_there() {
        let all = ["e.io/x", "x", "d.io/x", "y", "c.io/x", "b.io/x", "a.io/y"];
        for (name, want) in [
            (None, &["a.io/y", "b.io/x", "c.io/x", "d.io/x"][..]),
            (Some("z.io/x"), &["b.io/x", "c.io/x", "d.io/x", "e.io/x"]),
            (Some("y"), &["a.io/y", "y"]),
            (Some("z"), &[]),
            (Some(""), &[]),
        ] {
            assert_eq!(*published_names(all.into_iter(), name), *want, "{name:?}");
        }
    }

    #[test]
    fn the_mode_is_known_where_all_agree() {
        let (multus, standalone) = (Some(DraMode::Multus), Some(DraMode::Standalone));
        for (modes, want) in [
            (vec![], None),
            (vec![multus], multus),
            (vec![multus, multus], multus),
            (vec![multus, standalone], None),
            (vec![standalone, None], None),
        ] {
            assert_eq!(one_mode(modes.iter().copied()), want, "{modes:?}");
        }
    }
}
