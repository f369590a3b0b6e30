//! Whether the server can do its work, and what it waits for.

use std::sync::{Mutex, PoisonError};

/// What is not there yet. Ready when nothing is left.
#[derive(Debug, Default)]
pub struct Readiness {
    missing: Mutex<Vec<&'static str>>,
}

impl Readiness {
    /// Not ready until that is there.
    pub fn waits_for(&self, what: &'static str) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.contains(&what) {
            missing.push(what);
        }
    }

    /// That is there now.
    pub fn has(&self, what: &'static str) {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).retain(|missing| *missing != what);
    }

    /// Whether nothing is missing.
    pub fn is_ready(&self) -> bool {
        self.check().is_ok()
    }

    /// `Err` with what is missing, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if missing.is_empty() { Ok(()) } else { Err(format!("not ready: {}", missing.join(", "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_waits_for() {
        let readiness = Readiness::default();
        assert_eq!(readiness.check(), Ok(()));
        readiness.waits_for("the certificate");
        readiness.waits_for("the caches");
        readiness.waits_for("the caches");
        assert_eq!(readiness.check(), Err("not ready: the certificate, the caches".to_owned()));
        readiness.has("the certificate");
        assert_eq!(readiness.check(), Err("not ready: the caches".to_owned()));
        readiness.has("the caches");
        assert_eq!(readiness.check(), Ok(()));
    }
}
