//! Readiness of the server.

use std::sync::{Mutex, PoisonError};

/// The startup conditions. Ready when all are fulfilled.
#[derive(Debug, Default)]
pub struct Readiness {
    conditions: Mutex<Vec<Condition>>,
}

#[derive(Clone, Copy, Debug)]
struct Condition {
    name: &'static str,
    is_fulfilled: bool,
}

impl Readiness {
    /// Adds a condition.
    pub fn waits_for(&self, what: &'static str) {
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        match conditions.iter_mut().find(|condition| condition.name == what) {
            Some(known) => known.is_fulfilled = false,
            None => conditions.push(Condition { name: what, is_fulfilled: false }),
        }
    }

    /// Fulfills a condition, if it was added.
    pub fn fulfil(&self, what: &'static str) {
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        for condition in conditions.iter_mut().filter(|condition| condition.name == what) {
            condition.is_fulfilled = true;
        }
    }

    /// Whether nothing is missing.
    pub fn is_ready(&self) -> bool {
        self.check().is_ok()
    }

    /// `Err` with what is missing, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = conditions.iter().filter(|condition| !condition.is_fulfilled);
        let missing: Vec<_> = missing.map(|condition| condition.name).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("not ready: {}", missing.join(", "))) }
    }

    /// One line for each condition, as the API server's own `/readyz?verbose` has them.
    pub(super) fn lines(&self) -> String {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |condition: &Condition| match condition.is_fulfilled {
            true => format!("[+]{} ok\n", condition.name),
            false => format!("[-]{} failed: waiting\n", condition.name),
        };
        conditions.iter().map(line).collect()
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
        assert_eq!(readiness.lines(), "[+]the certificate ok\n[-]the caches failed: waiting\n");
        readiness.fulfil("the caches");
        assert_eq!(readiness.check(), Ok(()));
        readiness.waits_for("the certificate");
        assert_eq!(readiness.check(), Err("not ready: the certificate".to_owned()));
    }
}
