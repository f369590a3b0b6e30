//! Observers of watch events.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::cluster::client::collection::ApiObject;

/// Observes watch events. Called synchronously by the watch.
pub trait WatchObserver: Send + Sync {
    /// An object was added or modified.
    fn on_applied(&self, kind: &'static str, object: &ApiObject<'_>);

    /// An object was deleted; this is how it was last.
    fn on_deleted(&self, kind: &'static str, object: &ApiObject<'_>);
}

/// Wakes whoever waits for a change, whichever object changed.
#[derive(Default)]
pub(in crate::cluster) struct ChangeNotifier(Notify);

impl ChangeNotifier {
    /// Waits for the next change.
    pub(in crate::cluster) async fn notified(&self) {
        self.0.notified().await;
    }
}

impl WatchObserver for ChangeNotifier {
    fn on_applied(&self, _: &'static str, _: &ApiObject<'_>) {
        self.0.notify_one();
    }

    fn on_deleted(&self, _: &'static str, _: &ApiObject<'_>) {
        self.0.notify_one();
    }
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
    pub(in crate::cluster) fn on_applied(&self, kind: &'static str, object: &ApiObject<'_>) {
        if let Some(observer) = self.now() {
            observer.on_applied(kind, object);
        }
    }

    /// An object was deleted.
    pub(in crate::cluster) fn on_deleted(&self, kind: &'static str, object: &ApiObject<'_>) {
        if let Some(observer) = self.now() {
            observer.on_deleted(kind, object);
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
        fn on_applied(&self, kind: &'static str, object: &ApiObject<'_>) {
            self.0.lock().unwrap().push(format!("{kind} {} {}", object.key, object.text.len()));
        }

        fn on_deleted(&self, kind: &'static str, object: &ApiObject<'_>) {
            self.0.lock().unwrap().push(format!("{kind} {} lost", object.key));
        }
    }

    #[test]
    fn observer_receives_objects_while_set() {
        let (observers, notes) = (ObserverSlot::default(), Arc::new(Notes::default()));
        let object = r#"{"metadata":{"name":"a","namespace":"s"}}"#;
        let object = ApiObject::read(object).unwrap();
        observers.on_applied("Thing", &object);
        let elsewhere = observers.clone();
        elsewhere.set(Some(Arc::clone(&notes) as _));
        observers.on_applied("Thing", &object);
        observers.on_applied("Thing", &ApiObject::read(r#"{"metadata":{"name":"b"}}"#).unwrap());
        observers.on_deleted("Thing", &object);
        elsewhere.set(None);
        observers.on_applied("Thing", &object);
        assert_eq!(*notes.0.lock().unwrap(), ["Thing s/a 41", "Thing /b 25", "Thing s/a lost"]);
    }
}
