//! The caches of devices by claim (DRA). DeviceClasses show whether the SR-IOV driver is installed; claims and the driver's own objects
//! are watched only where it is.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::cluster::cache::claim_stores::{ClaimStore, DeviceClassStore, DriverStore};
use crate::cluster::cache::observer::{ChangeNotifier, ObserverSlot};
use crate::cluster::cache::watch::{Cache, CacheState};
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::policy::{ClaimFacts, ClaimIndex, one_mode, published_names};
use crate::resources::{DeviceClaim, DriverObject, ObjectKey};
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
    /// Notified when a DeviceClass changes.
    classes_changed: Arc<ChangeNotifier>,
}

impl ClaimCaches {
    pub(in crate::cluster) fn new(metrics: &CacheMetrics) -> Self {
        let classes_changed = Arc::<ChangeNotifier>::default();
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
            let _ = timeout(RECHECK_INTERVAL, self.classes_changed.notified()).await;
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
        let (is_published, published) = self.published(resource_name);
        ClaimFacts {
            has_driver,
            mode,
            is_named_by_class,
            is_named_by_claim: self.claims.iter().any(is_named),
            is_published,
            published,
        }
    }

    /// Whether the driver publishes devices under a name, and otherwise some of the names that it does publish; `None` if unknown.
    fn published(&self, name: Option<&str>) -> (Option<bool>, Arc<[String]>) {
        let [attributes, policies, _] = &self.driver;
        let (attributes, policies) = (attributes.state(), policies.state());
        let states = [&*attributes, &*policies];
        if states.iter().any(|state| matches!(state, CacheState::Unknown)) {
            return Default::default();
        }
        let all = || {
            let devices = states.iter().filter_map(|state| match state {
                CacheState::Known(devices) => Some(devices),
                CacheState::NotInstalled | CacheState::Unknown => None,
            });
            devices.flat_map(DriverStore::published)
        };
        let is_published = name.map(|name| all().any(|one| one == name));
        let published = if is_published == Some(true) { Arc::default() } else { published_names(all(), name) };
        (is_published, published)
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
    /// is unknown; claims are then still listed in that namespace, as they show where the devices of its NADs come from.
    pub(in crate::cluster) async fn claim_index(&self, namespace: Option<&str>) -> Result<ClaimIndex, ApiError> {
        let mut index = ClaimIndex::default();
        let classes = ApiPath::all(ApiResource::DEVICE_CLASSES);
        let listed = self.for_each_object(&classes, |text| add(&mut index, DeviceClaim::read_class(text))).await;
        index.knows_classes = is_allowed(listed)?;
        if index.knows_classes && !index.has_driver() {
            return Ok(index.finish());
        }
        let knows_classes = index.knows_classes;
        let [claims, templates, attributes, policies, daemon_sets] = paths();
        for (everywhere, resource) in [(claims, ApiResource::CLAIMS), (templates, ApiResource::CLAIM_TEMPLATES)] {
            let mut visit = |text: &str| add(&mut index, DeviceClaim::read_claim(text));
            let is_listed = knows_classes && is_allowed(self.for_each_object(&everywhere, &mut visit).await)?;
            if let (false, Some(namespace)) = (is_listed, namespace) {
                let here = ApiPath::in_namespace(resource, namespace)?;
                is_allowed(self.for_each_object(&here, &mut visit).await)?;
            }
        }
        if index.has_driver() {
            for path in [attributes, policies, daemon_sets] {
                let add = |text: &str| {
                    if let Some(object) = DriverObject::read(text) {
                        index.add_driver_object(object);
                    }
                };
                is_allowed(self.for_each_object(&path, add).await)?;
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

/// Whether a list may be read; one that may not is empty.
fn is_allowed<T>(listed: Result<T, ApiError>) -> Result<bool, ApiError> {
    match listed {
        Err(failed) if failed.is_forbidden() => Ok(false),
        listed => listed.map(|_| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::cache::claim_stores::tests::{claim, class, parameters};
    use crate::cluster::cache::watch::tests::store;
    use crate::resources::{DRA_DRIVER, DraMode};

    fn driver_object(group: &str, kind: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"{group}","kind":"{kind}","metadata":{{"name":"d","namespace":"dra"}},"spec":{spec}}}"#
        )
    }

    #[test]
    fn facts_are_known_as_far_as_the_caches_are_synced() {
        let metrics = crate::telemetry::Metrics::default();
        let caches = ClaimCaches::new(&metrics.caches);
        let net = ObjectKey::new("apps", "net");
        let facts = || caches.facts(&net, Some("nic_1"));
        assert_eq!(facts(), ClaimFacts::default());
        caches.classes.replace(CacheState::NotInstalled);
        assert_eq!(facts(), ClaimFacts { has_driver: Some(false), ..ClaimFacts::default() });

        caches.classes.replace(CacheState::Known(store(&[class(DRA_DRIVER, "{}")])));
        let driver = || ClaimFacts { has_driver: Some(true), ..ClaimFacts::default() };
        assert_eq!(facts(), driver());
        let [claims, _] = &caches.claims;
        claims.replace(CacheState::Known(store(&[claim("apps", "one", &["net"])])));
        assert_eq!(facts(), ClaimFacts { is_named_by_claim: true, ..driver() });
        claims.replace(CacheState::Known(ClaimStore::default()));

        let named = class("vfs", &format!(r#"{{"config":[{}]}}"#, parameters("net")));
        caches.classes.replace(CacheState::Known(store(&[named])));
        assert_eq!(facts(), ClaimFacts { is_named_by_class: true, ..driver() });

        let [attributes, policies, daemon_sets] = &caches.driver;
        let group = format!("{DRA_DRIVER}/v1alpha1");
        let spec = r#"{"attributes":{"k8s.cni.cncf.io/resourceName":{"string":"nic_1"}}}"#;
        attributes.replace(CacheState::Known(store(&[driver_object(&group, "DeviceAttributes", spec)])));
        assert_eq!(facts().is_published, None, "the policies are not known");
        policies.replace(CacheState::NotInstalled);
        assert_eq!(facts().is_published, Some(true));
        assert_eq!(caches.facts(&net, Some("nic_2")).is_published, Some(false));
        assert_eq!(caches.facts(&net, None).is_published, None);
        for (name, want) in
            [(None, &["nic_1"][..]), (Some("a.io/nic_1"), &["nic_1"]), (Some("nic_1"), &[]), (Some("nic_2"), &[])]
        {
            assert_eq!(*caches.facts(&net, name).published, *want, "{name:?}");
        }

        let container = |mode: &str| {
            let spec = format!(
                r#"{{"template":{{"spec":{{"containers":[{{"image":"dra-driver-sriov","args":["--configuration-mode={mode}"]}}]}}}}}}"#
            );
            driver_object("apps/v1", "DaemonSet", &spec)
        };
        daemon_sets.replace(CacheState::Known(store(&[container("MULTUS")])));
        assert_eq!(facts().mode, Some(DraMode::Multus));
        let other = driver_object("apps/v1", "DaemonSet", r#"{"template":{"spec":{"containers":[{"image":"gpu"}]}}}"#);
        daemon_sets.replace(CacheState::Known(store(&[other])));
        assert_eq!(facts().mode, None);
    }
}
