//! Whoever wants to see every write that a watch tells of, as it was stored.

use std::sync::{Arc, PoisonError, RwLock};

use super::collection::Id;

/// Sees what is written. It is called by the watch itself, which waits meanwhile.
pub trait Witness: Send + Sync {
    /// An object is new or has changed; `object` is its text.
    fn saw(&self, kind: &'static str, namespace: &str, name: &str, object: &str);

    /// An object is gone; `object` is its last text.
    fn lost(&self, kind: &'static str, namespace: &str, name: &str, object: &str);
}

/// The witness of all that is watched, if there is one now.
#[derive(Clone, Default)]
pub(super) struct Witnesses(Arc<RwLock<Option<Arc<dyn Witness>>>>);

impl Witnesses {
    /// From now on this one sees, and nobody else.
    pub(super) fn set(&self, witness: Option<Arc<dyn Witness>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = witness;
    }

    /// An object is new or has changed.
    pub(super) fn saw(&self, kind: &'static str, object: &str) {
        if let Some((witness, id)) = self.now().zip(Id::of(object)) {
            witness.saw(kind, &id.namespace, &id.name, object);
        }
    }

    /// An object is gone.
    pub(super) fn lost(&self, kind: &'static str, object: &str) {
        if let Some((witness, id)) = self.now().zip(Id::of(object)) {
            witness.lost(kind, &id.namespace, &id.name, object);
        }
    }

    fn now(&self) -> Option<Arc<dyn Witness>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Witness for Notes {
        fn saw(&self, kind: &'static str, namespace: &str, name: &str, object: &str) {
            self.0.lock().unwrap().push(format!("{kind} {namespace}/{name} {}", object.len()));
        }

        fn lost(&self, kind: &'static str, namespace: &str, name: &str, _: &str) {
            self.0.lock().unwrap().push(format!("{kind} {namespace}/{name} lost"));
        }
    }

    #[test]
    fn a_witness_sees_what_has_a_name_for_as_long_as_it_looks() {
        let (witnesses, notes) = (Witnesses::default(), Arc::new(Notes::default()));
        let object = r#"{"metadata":{"name":"a","namespace":"s"}}"#;
        witnesses.saw("Thing", object);
        let elsewhere = witnesses.clone();
        elsewhere.set(Some(Arc::clone(&notes) as _));
        for text in [object, "{}", "5", r#"{"metadata":{"name":"b"}}"#] {
            witnesses.saw("Thing", text);
        }
        witnesses.lost("Thing", object);
        elsewhere.set(None);
        witnesses.saw("Thing", object);
        assert_eq!(*notes.0.lock().unwrap(), ["Thing s/a 41", "Thing /b 25", "Thing s/a lost"]);
    }
}
