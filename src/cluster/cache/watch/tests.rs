use super::*;
use crate::cluster::client::ApiResource;

/// Puts objects, given as text, into a new cache.
pub(in crate::cluster) fn store<K: Summarize>(objects: &[String]) -> K {
    let mut store = K::default();
    put(&mut store, objects);
    store
}

pub(in crate::cluster) fn put<K: Summarize>(store: &mut K, objects: &[String]) {
    for object in objects {
        let object = ApiObject::read(object).unwrap();
        store.put(&object.key, K::read(&object).unwrap());
    }
}

/// The summary of an object, given as text.
pub(in crate::cluster) fn read<K: Summarize>(object: &str) -> Option<K::Summarized> {
    K::read(&ApiObject::read(object)?)
}

#[test]
fn unreadable_object_is_skipped_and_counted() {
    #[derive(Default)]
    struct Sizes(std::collections::BTreeMap<ObjectKey, usize>);
    impl Summarize for Sizes {
        type Summarized = usize;
        fn read(object: &ApiObject<'_>) -> Option<usize> {
            (!object.text.contains("odd")).then_some(object.text.len())
        }
        fn put(&mut self, key: &ObjectKey, fact: usize) {
            self.0.insert(key.clone(), fact);
        }
        fn remove(&mut self, key: &ObjectKey) {
            self.0.remove(key);
        }
        fn count(&self) -> usize {
            self.0.len()
        }
    }
    let metrics = crate::telemetry::Metrics::default();
    let cache = Cache::<Sizes>::new("Thing", ApiPath::all(ApiResource::NODES), &metrics.caches);
    let (mut store, mut logged) = (Sizes::default(), LoggedObjects::default());
    let named = |name: &str, rest: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"spec":"{rest}"}}"#);
    for object in [named("a", ""), named("b", "odd"), "5".to_owned(), "{}".to_owned(), named("c", "")] {
        cache.add(&mut store, ApiObject::read(&object).as_ref(), &mut logged);
    }
    assert_eq!(store.0.keys().map(ObjectKey::name).collect::<Vec<_>>(), ["a", "c"]);
    // Its previous summary is removed.
    for name in ["a", "b"] {
        cache.add(&mut store, ApiObject::read(&named(name, "odd")).as_ref(), &mut logged);
    }
    assert_eq!(store.0.keys().map(ObjectKey::name).collect::<Vec<_>>(), ["c"]);
    let text = metrics.text();
    assert!(text.contains("nadmit_cache_skipped_total{kind=\"Thing\"} 5\n"), "{text}");
    // Each is logged once; those without a name once together.
    assert_eq!(logged.0.len(), 3);
    // It is not watched, so that nothing is amiss while it is unknown.
    assert!(cache.state().is_unknown() && !text.contains("nadmit_cache_ready"), "{text}");
    cache.replace(CacheState::Known(store));
    assert!(metrics.text().contains("nadmit_cache_ready{kind=\"Thing\"} 1\n"));
    assert!(metrics.text().contains("nadmit_cache_objects{kind=\"Thing\"} 1\n"));
    assert!(cache.listed.is_cancelled());
}
