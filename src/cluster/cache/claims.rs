//! The caches of devices by claim (DRA). DeviceClasses show whether the SR-IOV driver is installed; claims and the driver's own objects
//! are watched only where it is.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::cluster::cache::observer::{ObserverSlot, WatchObserver};
use crate::cluster::cache::watch::{Cache, CacheState, Summarize};
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::policy::{ClaimFacts, ClaimIndex, one_mode};
use crate::resources::{DeviceClaim, DraMode, DriverObject, ObjectKey, name_of};
use crate::telemetry::metrics::CacheMetrics;

/// How long a relist, of which no observer is notified, may go unnoticed.
const RECHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The caches.
pub(in crate::cluster) struct ClaimCaches {
    pub(in crate::cluster) classes: Cache<DeviceClassStore>,
    /// ResourceClaims and ResourceClaimTemplates.
    pub(in crate::cluster) claims: [Cache<ClaimStore>; 2],
    /// DeviceAttributes, SriovResourcePolicies and DaemonSets.
    pub(in crate::cluster) driver: [Cache<DriverStore>; 3],
    classes_changed: Arc<ClassNotifier>,
}

/// Reports that DeviceClasses changed.
#[derive(Default)]
struct ClassNotifier(Notify);

impl WatchObserver for ClassNotifier {
    fn on_applied(&self, _: &'static str, _: &ApiObject<'_>) {
        self.0.notify_one();
    }

    fn on_deleted(&self, _: &'static str, _: &ApiObject<'_>) {
        self.0.notify_one();
    }
}

impl ClaimCaches {
    pub(in crate::cluster) fn new(metrics: &CacheMetrics) -> Self {
        let classes_changed = Arc::<ClassNotifier>::default();
        let observers = ObserverSlot::default();
        observers.set(Some(Arc::clone(&classes_changed) as _));
        let [claims, templates, attributes, policies, daemon_sets] = paths();
        Self {
            classes: Cache::new("DeviceClass", ApiPath::all(ApiResource::DEVICE_CLASSES), metrics)
                .with_observer(&observers),
            claims: [
                Cache::new("ResourceClaim", claims, metrics),
                Cache::new("ResourceClaimTemplate", templates, metrics),
            ],
            driver: [
                Cache::new("DeviceAttributes", attributes, metrics),
                Cache::new("SriovResourcePolicy", policies, metrics),
                Cache::new("DaemonSet", daemon_sets, metrics),
            ],
            classes_changed,
        }
    }

    /// Watches claims and the driver's objects as soon as the driver is installed.
    pub(in crate::cluster) async fn follow(&self, cluster: &Cluster) {
        while self.has_driver() != Some(true) {
            let _ = timeout(RECHECK_INTERVAL, self.classes_changed.0.notified()).await;
        }
        let claims = join_all(self.claims.iter().map(|cache| cache.follow(cluster)));
        let driver = join_all(self.driver.iter().map(|cache| cache.follow(cluster)));
        futures_util::future::join(claims, driver).await;
    }

    /// Whether a DeviceClass shows that the SR-IOV driver is installed; `None` if unknown.
    pub(in crate::cluster) fn has_driver(&self) -> Option<bool> {
        match &*self.classes.state() {
            CacheState::Known(classes) => Some(classes.has_driver()),
            CacheState::NotInstalled => Some(false),
            CacheState::Unknown => None,
        }
    }

    /// The extended resources that DeviceClasses serve.
    pub(in crate::cluster) fn served(&self) -> Arc<[String]> {
        match &*self.classes.state() {
            CacheState::Known(classes) => classes.served(),
            CacheState::NotInstalled | CacheState::Unknown => Arc::default(),
        }
    }

    /// The facts about a NAD; `resource_name` is the one it has.
    pub(in crate::cluster) fn facts(&self, nad: &ObjectKey, resource_name: Option<&str>) -> ClaimFacts {
        let has_driver = self.has_driver();
        if has_driver != Some(true) {
            return ClaimFacts { has_driver, ..ClaimFacts::default() };
        }
        let is_named_by_class =
            matches!(&*self.classes.state(), CacheState::Known(classes) if classes.names(nad.name()));
        let is_named =
            |cache: &Cache<ClaimStore>| matches!(&*cache.state(), CacheState::Known(claims) if claims.names(nad));
        let [.., daemon_sets] = &self.driver;
        let mode = match &*daemon_sets.state() {
            CacheState::Known(sets) => one_mode(sets.modes()),
            CacheState::NotInstalled | CacheState::Unknown => None,
        };
        ClaimFacts {
            has_driver,
            mode,
            is_named_by_class,
            is_named_by_claim: self.claims.iter().any(is_named),
            is_published: resource_name.and_then(|name| self.is_published(name)),
        }
    }

    /// Whether the driver publishes devices under a name; `None` if unknown.
    fn is_published(&self, name: &str) -> Option<bool> {
        let [attributes, policies, _] = &self.driver;
        let mut is_published = false;
        for cache in [attributes, policies] {
            match &*cache.state() {
                CacheState::Known(devices) => is_published |= devices.publishes(name),
                CacheState::NotInstalled => {}
                CacheState::Unknown => return None,
            }
        }
        Some(is_published)
    }
}

/// The paths of claims, claim templates, DeviceAttributes, SriovResourcePolicies, and DaemonSets of DRA drivers.
fn paths() -> [ApiPath; 5] {
    [
        ApiPath::all(ApiResource::CLAIMS),
        ApiPath::all(ApiResource::CLAIM_TEMPLATES),
        ApiPath::all(ApiResource::DEVICE_ATTRIBUTES),
        ApiPath::all(ApiResource::RESOURCE_POLICIES),
        ApiPath::all(ApiResource::DAEMON_SETS).labelled(&[("app.kubernetes.io/component", "kubeletplugin")]),
    ]
}

impl Cluster {
    /// Lists the DeviceClasses and, where the SR-IOV driver is installed, the claims and the driver's objects. What may not be read
    /// is unknown.
    pub(in crate::cluster) async fn claim_index(&self) -> Result<ClaimIndex, ApiError> {
        let mut index = ClaimIndex::default();
        let classes = ApiPath::all(ApiResource::DEVICE_CLASSES);
        match self.for_each_object(&classes, |text| add(&mut index, DeviceClaim::read_class(text))).await {
            Err(failed) if failed.is_forbidden() => return Ok(index),
            listed => drop(listed?),
        }
        index.knows_classes = true;
        if index.has_driver() {
            let [claims, templates, attributes, policies, daemon_sets] = paths();
            for path in [claims, templates] {
                allowed(self.for_each_object(&path, |text| add(&mut index, DeviceClaim::read_claim(text))).await)?;
            }
            for path in [attributes, policies, daemon_sets] {
                let add = |text: &str| {
                    if let Some(object) = DriverObject::read(text) {
                        index.add_driver_object(object);
                    }
                };
                allowed(self.for_each_object(&path, add).await)?;
            }
        }
        Ok(index.finish())
    }
}

fn add(index: &mut ClaimIndex, claim: Option<DeviceClaim<'_>>) {
    if let Some(claim) = claim {
        index.add(&claim);
    }
}

/// A list that may not be read is empty.
fn allowed<T>(listed: Result<T, ApiError>) -> Result<(), ApiError> {
    match listed {
        Err(failed) if failed.is_forbidden() => Ok(()),
        listed => listed.map(drop),
    }
}

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
    fn has_driver(&self) -> bool {
        self.classes.values().any(|class| class.has_driver)
    }

    fn names(&self, nad: &str) -> bool {
        self.classes.values().any(|class| class.nads.iter().any(|name| **name == *nad))
    }

    fn served(&self) -> Arc<[String]> {
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
    fn names(&self, nad: &ObjectKey) -> bool {
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
    fn modes(&self) -> impl Iterator<Item = Option<DraMode>> {
        self.0.values().filter_map(|object| match object {
            DriverObject::DaemonSet(mode) => Some(*mode),
            DriverObject::Devices(_) => None,
        })
    }

    fn publishes(&self, name: &str) -> bool {
        let has = |object: &DriverObject| matches!(object, DriverObject::Devices(names) if names.iter().any(|one| one == name));
        self.0.values().any(has)
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
mod tests {
    use super::*;
    use crate::cluster::cache::watch::tests::{kept, put, read};
    use crate::resources::DRA_DRIVER;

    fn parameters(nad: &str) -> String {
        format!(
            r#"{{"opaque":{{"driver":"{DRA_DRIVER}","parameters":{{"apiVersion":"{DRA_DRIVER}/v1alpha1","kind":"VfConfig","netAttachDefName":"{nad}"}}}},"requests":["vf"]}}"#
        )
    }

    fn class(name: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
        )
    }

    fn claim(namespace: &str, name: &str, nads: &[&str]) -> String {
        let configs: Vec<String> = nads.iter().map(|nad| parameters(nad)).collect();
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}"}},
            "spec":{{"devices":{{"config":[{}]}}}}}}"#,
            configs.join(",")
        )
    }

    fn driver_object(group: &str, kind: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"{group}","kind":"{kind}","metadata":{{"name":"d","namespace":"dra"}},"spec":{spec}}}"#
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
            let mut classes: DeviceClassStore = kept(std::slice::from_ref(&class));
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
        let mut classes: DeviceClassStore = kept(&[serving("b", "a.io/y"), serving("a", "a.io/x"), class("c", "{}")]);
        assert_eq!(classes.served().as_ref(), ["a.io/x", "a.io/y"]);
        put(&mut classes, &[serving("b", "a.io/x")]);
        assert_eq!(classes.served().as_ref(), ["a.io/x"]);
    }

    #[test]
    fn nads_are_named_as_long_as_a_claim_names_them() {
        let key = |name: &str| ObjectKey::new("apps", name);
        let mut claims: ClaimStore = kept(&[
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

    #[test]
    fn facts_are_known_as_far_as_the_caches_are_synced() {
        let metrics = crate::telemetry::Metrics::default();
        let caches = ClaimCaches::new(&metrics.caches);
        let net = ObjectKey::new("apps", "net");
        let facts = || caches.facts(&net, Some("nic_1"));
        assert_eq!(facts(), ClaimFacts::default());
        caches.classes.take(CacheState::NotInstalled);
        assert_eq!(facts(), ClaimFacts { has_driver: Some(false), ..ClaimFacts::default() });

        caches.classes.take(CacheState::Known(kept(&[class(DRA_DRIVER, "{}")])));
        let driver = ClaimFacts { has_driver: Some(true), ..ClaimFacts::default() };
        assert_eq!(facts(), driver);
        let [claims, _] = &caches.claims;
        claims.take(CacheState::Known(kept(&[claim("apps", "one", &["net"])])));
        assert_eq!(facts(), ClaimFacts { is_named_by_claim: true, ..driver });
        claims.take(CacheState::Known(ClaimStore::default()));

        let named = class("vfs", &format!(r#"{{"config":[{}]}}"#, parameters("net")));
        caches.classes.take(CacheState::Known(kept(&[named])));
        assert_eq!(facts(), ClaimFacts { is_named_by_class: true, ..driver });

        let [attributes, policies, daemon_sets] = &caches.driver;
        let group = format!("{DRA_DRIVER}/v1alpha1");
        let spec = r#"{"attributes":{"k8s.cni.cncf.io/resourceName":{"string":"nic_1"}}}"#;
        attributes.take(CacheState::Known(kept(&[driver_object(&group, "DeviceAttributes", spec)])));
        assert_eq!(facts().is_published, None, "the policies are not known");
        policies.take(CacheState::NotInstalled);
        assert_eq!(facts().is_published, Some(true));
        assert_eq!(caches.facts(&net, Some("nic_2")).is_published, Some(false));
        assert_eq!(caches.facts(&net, None).is_published, None);

        let container = |mode: &str| {
            let spec = format!(
                r#"{{"template":{{"spec":{{"containers":[{{"image":"dra-driver-sriov","args":["--configuration-mode={mode}"]}}]}}}}}}"#
            );
            driver_object("apps/v1", "DaemonSet", &spec)
        };
        daemon_sets.take(CacheState::Known(kept(&[container("MULTUS")])));
        assert_eq!(facts().mode, Some(DraMode::Multus));
        let other = driver_object("apps/v1", "DaemonSet", r#"{"template":{"spec":{"containers":[{"image":"gpu"}]}}}"#);
        daemon_sets.take(CacheState::Known(kept(&[other])));
        assert_eq!(facts().mode, None);
    }
}
