//! Readiness of the server.

use std::sync::{Mutex, PoisonError};

/// The pending startup conditions. Ready when none is left.
#[derive(Debug, Default)]
pub struct Readiness {
    missing: Mutex<Vec<&'static str>>,
}

impl Readiness {
    /// Adds a condition.
    pub fn waits_for(&self, what: &'static str) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.contains(&what) {
            missing.push(what);
        }
    }

    /// Fulfills a condition.
    pub fn fulfil(&self, what: &'static str) {
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
    fn readiness_names_what_is_missing() {
        let readiness = Readiness::default();
        assert_eq!(readiness.check(), Ok(()));
        readiness.waits_for("the certificate");
        readiness.waits_for("the caches");
        readiness.waits_for("the caches");
        assert_eq!(readiness.check(), Err("not ready: the certificate, the caches".to_owned()));
        readiness.fulfil("the certificate");
        assert_eq!(readiness.check(), Err("not ready: the caches".to_owned()));
        readiness.fulfil("the caches");
        assert_eq!(readiness.check(), Ok(()));
    }
}
