//! What a set of manifests says about devices by claim (DRA).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::policy::{ClaimFacts, DraMode};
use crate::resources::{ClaimKind, DeviceClaim, DriverObject, ObjectKey};

/// The claims, DeviceClasses and objects of the SR-IOV DRA driver in a set of manifests.
#[derive(Debug, Default)]
pub(super) struct ClaimIndex {
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
    served_list: Arc<[String]>,
}

impl ClaimIndex {
    /// Adds a claim or DeviceClass.
    pub(super) fn add(&mut self, claim: &DeviceClaim<'_>) {
        if claim.kind == ClaimKind::Class {
            self.has_driver |= claim.names_driver;
            self.by_class.extend(claim.nad_names().map(std::borrow::Cow::into_owned));
            self.served.extend(claim.extended_resource.as_deref().map(str::to_owned));
        } else {
            self.by_claim.extend(claim.nad_names().map(|name| ObjectKey::new(&claim.meta.namespace, &name)));
        }
    }

    /// Adds an object of the driver.
    pub(super) fn add_driver_object(&mut self, object: DriverObject) {
        self.has_driver = true;
        match object {
            DriverObject::DaemonSet(mode) => drop(self.modes.insert(mode)),
            DriverObject::Devices(names) => self.published.extend(names),
        }
    }

    /// Merges another index.
    pub(super) fn merge(&mut self, other: Self) {
        self.by_claim.extend(other.by_claim);
        self.by_class.extend(other.by_class);
        self.served.extend(other.served);
        self.published.extend(other.published);
        self.modes.extend(other.modes);
        self.has_driver |= other.has_driver;
    }

    /// Prepares the index for lookups.
    pub(super) fn finish(&mut self) {
        self.served_list = self.served.iter().cloned().collect();
    }

    /// The extended resources that DeviceClasses serve.
    pub(super) fn served(&self) -> Arc<[String]> {
        Arc::clone(&self.served_list)
    }

    /// The facts about a NAD. What the manifests do not show is unknown.
    pub(super) fn facts(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        // Several DaemonSets may be of several clusters.
        let mode = if self.modes.len() == 1 { self.modes.first().copied().flatten() } else { None };
        let is_published = resource_name.filter(|_| !self.published.is_empty());
        ClaimFacts {
            has_driver: self.has_driver.then_some(true),
            mode,
            is_named_by_class: self.by_class.contains(nad.name()),
            is_named_by_claim: self.by_claim.contains(nad),
            is_published: is_published.map(|name| self.published.contains(name)),
        }
    }
}
