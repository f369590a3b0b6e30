//! Observers of watch events.

use std::sync::{Arc, PoisonError, RwLock};

use crate::cluster::client::collection::key_of;
use crate::resources::ObjectKey;

/// Observes watch events. Called synchronously by the watch.
pub trait WatchObserver: Send + Sync {
    /// An object was added or modified; `object` is its text.
    fn on_applied(&self, kind: &'static str, key: &ObjectKey, object: &str);

    /// An object was deleted; `object` is its last text.
    fn on_deleted(&self, kind: &'static str, key: &ObjectKey, object: &str);
}

/// The current observer of all watches, if any.
#[derive(Clone, Default)]
pub(in crate::cluster) struct ObserverSlot(Arc<RwLock<Option<Arc<dyn WatchObserver>>>>);

impl ObserverSlot {
    /// Replaces the observer.
    pub(in crate::cluster) fn set(&self, observer: Option<Arc<dyn WatchObserver>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = observer;
    }

    /// An object was added or modified.
    pub(in crate::cluster) fn on_applied(&self, kind: &'static str, object: &str) {
        if let Some((observer, key)) = self.now().zip(key_of(object)) {
            observer.on_applied(kind, &key, object);
        }
    }

    /// An object was deleted.
    pub(in crate::cluster) fn on_deleted(&self, kind: &'static str, object: &str) {
        if let Some((observer, key)) = self.now().zip(key_of(object)) {
            observer.on_deleted(kind, &key, object);
        }
    }

    fn now(&self) -> Option<Arc<dyn WatchObserver>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl WatchObserver for Notes {
        fn on_applied(&self, kind: &'static str, key: &ObjectKey, object: &str) {
            self.0.lock().unwrap().push(format!("{kind} {key} {}", object.len()));
        }

        fn on_deleted(&self, kind: &'static str, key: &ObjectKey, _: &str) {
            self.0.lock().unwrap().push(format!("{kind} {key} lost"));
        }
    }

    #[test]
    fn observer_receives_named_objects_while_set() {
        let (observers, notes) = (ObserverSlot::default(), Arc::new(Notes::default()));
        let object = r#"{"metadata":{"name":"a","namespace":"s"}}"#;
        observers.on_applied("Thing", object);
        let elsewhere = observers.clone();
        elsewhere.set(Some(Arc::clone(&notes) as _));
        for text in [object, "{}", "5", r#"{"metadata":{"name":"b"}}"#] {
            observers.on_applied("Thing", text);
        }
        observers.on_deleted("Thing", object);
        elsewhere.set(None);
        observers.on_applied("Thing", object);
        assert_eq!(*notes.0.lock().unwrap(), ["Thing s/a 41", "Thing /b 25", "Thing s/a lost"]);
    }
}
