//! The stores of devices by claim (DRA): of each object only the names that matter.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::cluster::cache::watch::Summarize;
use crate::cluster::client::collection::ApiObject;
use crate::resources::{DeviceClaim, DraMode, DriverObject, ObjectKey, name_of};

/// The DeviceClasses.
#[derive(Debug, Default)]
pub(in crate::cluster) struct DeviceClassStore {
    classes: HashMap<Box<str>, DeviceClassSummary>,
    /// Computed on first use after a change.
    served: OnceLock<Arc<[String]>>,
}

/// A DeviceClass.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cluster) struct DeviceClassSummary {
    /// Whether it names the SR-IOV driver.
    has_driver: bool,
    /// The names of the NADs that its parameters name.
    nads: Box<[Box<str>]>,
    /// The extended resource that it serves.
    served: Option<Box<str>>,
}

impl DeviceClassStore {
    pub(super) fn has_driver(&self) -> bool {
        self.classes.values().any(|class| class.has_driver)
    }

    pub(super) fn names(&self, nad: &str) -> bool {
        self.classes.values().any(|class| class.nads.iter().any(|name| **name == *nad))
    }

    pub(super) fn served(&self) -> Arc<[String]> {
        let make = || {
            let mut served: Vec<String> =
                self.classes.values().filter_map(|class| class.served.as_deref().map(str::to_owned)).collect();
            served.sort_unstable();
            served.dedup();
            served.into()
        };
        Arc::clone(self.served.get_or_init(make))
    }
}

impl Summarize for DeviceClassStore {
    type Summarized = DeviceClassSummary;

    fn read(object: &ApiObject<'_>) -> Option<DeviceClassSummary> {
        let class = DeviceClaim::read_class(object.text)?;
        Some(DeviceClassSummary {
            has_driver: class.names_driver,
            nads: class.nad_names().map(|name| name.as_ref().into()).collect(),
            served: class.extended_resource.as_deref().map(|name| name_of(name).into()),
        })
    }

    fn put(&mut self, key: &ObjectKey, fact: DeviceClassSummary) {
        self.classes.insert(key.name().into(), fact);
        self.served = OnceLock::new();
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.classes.remove(key.name());
        self.served = OnceLock::new();
    }

    fn count(&self) -> usize {
        self.classes.len()
    }
}

/// The NADs that claims name. Of claims that name none, which are most, nothing is kept.
#[derive(Debug, Default)]
pub(in crate::cluster) struct ClaimStore {
    by_claim: HashMap<ObjectKey, Box<[Box<str>]>>,
    /// How many claims name each NAD.
    nads: HashMap<ObjectKey, usize>,
}

impl ClaimStore {
    pub(super) fn names(&self, nad: &ObjectKey) -> bool {
        self.nads.contains_key(nad)
    }
}

impl Summarize for ClaimStore {
    type Summarized = Box<[Box<str>]>;

    fn read(object: &ApiObject<'_>) -> Option<Box<[Box<str>]>> {
        let claim = DeviceClaim::read_claim(object.text)?;
        let mut names: Vec<Box<str>> = claim.nad_names().map(|name| name.as_ref().into()).collect();
        names.sort_unstable();
        names.dedup();
        Some(names.into())
    }

    fn put(&mut self, key: &ObjectKey, names: Box<[Box<str>]>) {
        self.remove(key);
        for name in &names {
            *self.nads.entry(ObjectKey::new(key.namespace(), name)).or_default() += 1;
        }
        if !names.is_empty() {
            self.by_claim.insert(key.clone(), names);
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        for name in self.by_claim.remove(key).iter().flatten() {
            let nad = ObjectKey::new(key.namespace(), name);
            if let Some(count) = self.nads.get_mut(&nad) {
                *count -= 1;
                if *count == 0 {
                    self.nads.remove(&nad);
                }
            }
        }
    }

    fn count(&self) -> usize {
        self.by_claim.len()
    }
}

/// The objects of the SR-IOV driver.
#[derive(Debug, Default)]
pub(in crate::cluster) struct DriverStore(HashMap<ObjectKey, DriverObject>);

impl DriverStore {
    pub(super) fn modes(&self) -> impl Iterator<Item = Option<DraMode>> {
        self.0.values().filter_map(|object| match object {
            DriverObject::DaemonSet(mode) => Some(*mode),
            DriverObject::Devices(_) => None,
        })
    }

    /// The names under which devices are published.
    pub(super) fn published(&self) -> impl Iterator<Item = &str> {
        let names = self.0.values().filter_map(|object| match object {
            DriverObject::Devices(names) => Some(names),
            DriverObject::DaemonSet(_) => None,
        });
        names.flatten().map(String::as_str)
    }
}

impl Summarize for DriverStore {
    type Summarized = Option<DriverObject>;

    /// A DaemonSet of another driver is no object of this one.
    fn read(object: &ApiObject<'_>) -> Option<Option<DriverObject>> {
        Some(DriverObject::read(object.text))
    }

    fn put(&mut self, key: &ObjectKey, fact: Option<DriverObject>) {
        match fact {
            Some(object) => drop(self.0.insert(key.clone(), object)),
            None => self.remove(key),
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cluster::cache::watch::tests::{put, read, store};
    use crate::resources::DRA_DRIVER;

    pub(in crate::cluster::cache) fn parameters(nad: &str) -> String {
        format!(
            r#"{{"opaque":{{"driver":"{DRA_DRIVER}","parameters":{{"apiVersion":"{DRA_DRIVER}/v1alpha1","kind":"VfConfig","netAttachDefName":"{nad}"}}}},"requests":["vf"]}}"#
        )
    }

    pub(in crate::cluster::cache) fn class(name: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
        )
    }

    pub(in crate::cluster::cache) fn claim(namespace: &str, name: &str, nads: &[&str]) -> String {
        let configs: Vec<String> = nads.iter().map(|nad| parameters(nad)).collect();
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}"}},
            "spec":{{"devices":{{"config":[{}]}}}}}}"#,
            configs.join(",")
        )
    }

    #[test]
    fn driver_is_found_by_its_device_classes() {
        let selector = format!(r#"{{"selectors":[{{"cel":{{"expression":"device.driver == '{DRA_DRIVER}'"}}}}]}}"#);
        for (class, want) in [
            (class(DRA_DRIVER, "{}"), true),
            (class("vfs", &selector), true),
            (class("vfs", &format!(r#"{{"config":[{}]}}"#, parameters("net"))), true),
            (class("gpu", r#"{"selectors":[{"cel":{"expression":"device.driver == 'gpu'"}}]}"#), false),
            (class("gpu", "{}"), false),
        ] {
            let mut classes: DeviceClassStore = store(std::slice::from_ref(&class));
            assert_eq!((classes.has_driver(), classes.count()), (want, 1), "{class}");
            classes.remove(&ApiObject::read(&class).unwrap().key);
            assert_eq!((classes.has_driver(), classes.count()), (false, 0));
        }
        // The items of a list do not state their kind.
        let item = format!(r#"{{"metadata":{{"name":"vfs"}},"spec":{{"config":[{}]}}}}"#, parameters("net"));
        assert!(read::<DeviceClassStore>(&item).unwrap().has_driver);
    }

    #[test]
    fn served_resources_follow_the_classes() {
        let serving = |name: &str, resource: &str| class(name, &format!(r#"{{"extendedResourceName":"{resource}"}}"#));
        let mut classes: DeviceClassStore = store(&[serving("b", "a.io/y"), serving("a", "a.io/x"), class("c", "{}")]);
        assert_eq!(classes.served().as_ref(), ["a.io/x", "a.io/y"]);
        put(&mut classes, &[serving("b", "a.io/x")]);
        assert_eq!(classes.served().as_ref(), ["a.io/x"]);
    }

    #[test]
    fn nads_are_named_as_long_as_a_claim_names_them() {
        let key = |name: &str| ObjectKey::new("apps", name);
        let mut claims: ClaimStore = store(&[
            claim("apps", "one", &["net", "net"]),
            claim("apps", "two", &["net", "other"]),
            claim("apps", "three", &[]),
        ]);
        assert!(claims.names(&key("net")) && claims.names(&key("other")) && !claims.names(&key("absent")));
        assert!(!claims.names(&ObjectKey::new("elsewhere", "net")));
        assert_eq!(claims.count(), 2, "a claim without parameters is not kept");
        put(&mut claims, &[claim("apps", "two", &["third"])]);
        assert!(claims.names(&key("net")) && !claims.names(&key("other")) && claims.names(&key("third")));
        claims.remove(&key("one"));
        claims.remove(&key("never"));
        assert!(!claims.names(&key("net")));
        put(&mut claims, &[claim("apps", "two", &[])]);
        assert_eq!((claims.count(), claims.nads.len()), (0, 0));
    }
}
