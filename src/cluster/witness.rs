//! Whoever wants to see every write that a watch tells of, as it was stored.

use std::sync::{Arc, PoisonError, RwLock};

use super::collection::Id;

/// Sees what is written. It is called by the watch itself, which waits meanwhile.
pub trait Witness: Send + Sync {
    /// An object is new or has changed; `object` is its text.
    fn saw(&self, kind: &'static str, namespace: &str, name: &str, object: &str);
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
        let witness = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(witness), Some(id)) = (witness, Id::of(object)) {
            witness.saw(kind, &id.namespace, &id.name, object);
        }
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
        elsewhere.set(None);
        witnesses.saw("Thing", object);
        assert_eq!(*notes.0.lock().unwrap(), ["Thing s/a 41", "Thing /b 25"]);
    }
}
