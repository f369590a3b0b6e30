//! Identifies the operator among the writers of NADs, and its last write. Its field manager has the name of its binary, which
//! distributions change; but no other manager wrote as many of the rendered NADs.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::stored_object::ObjectMeta;

/// How many field managers are counted.
const MAX_MANAGERS: usize = 64;
/// Field managers that are never the operator: kubectl, and nadmit itself.
const OTHERS: [&str; 2] = ["kubectl", "nadmit"];

/// The writers of rendered NADs.
#[derive(Clone, Debug, Default)]
pub struct NadWriters(BTreeMap<Box<str>, WriterActivity>);

#[derive(Clone, Copy, Debug)]
struct WriterActivity {
    nads: usize,
    last: Timestamp,
}

impl NadWriters {
    /// Records a rendered NAD.
    pub fn record_nad(&mut self, object_meta: &ObjectMeta) {
        for (manager, at) in &object_meta.writers {
            if OTHERS.iter().any(|other| manager.starts_with(other)) {
                continue;
            }
            if let Some(wrote) = self.0.get_mut(manager) {
                *wrote = WriterActivity { nads: wrote.nads + 1, last: wrote.last.max(*at) };
            } else if self.0.len() < MAX_MANAGERS {
                self.0.insert(manager.clone(), WriterActivity { nads: 1, last: *at });
            }
        }
    }

    /// When the operator last wrote a NAD, as far as known.
    pub fn operator_last_wrote(&self) -> Option<Timestamp> {
        // On a tie, the one with the operator's name.
        let ranked = self.0.iter().map(|(manager, wrote)| (wrote.nads, manager.contains("operator"), wrote.last));
        ranked.max().map(|(.., last)| last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_is_the_manager_with_most_nads() {
        let at = |hour: u8| -> Timestamp { format!("2026-11-01T{hour:02}:00:00Z").parse().unwrap() };
        let nad = |writers: &[(&str, u8)]| ObjectMeta {
            writers: writers.iter().map(|(manager, hour)| ((*manager).into(), at(*hour))).collect(),
            ..ObjectMeta::default()
        };
        let mut writers = NadWriters::default();
        assert_eq!(writers.operator_last_wrote(), None);
        writers.record_nad(&nad(&[("kubectl-edit", 9), ("nadmit", 9)]));
        assert_eq!(writers.operator_last_wrote(), None);
        writers.record_nad(&nad(&[("sriov-operator", 2), ("a-tool", 8)]));
        assert_eq!(writers.operator_last_wrote(), Some(at(2)), "with equal counts");
        for hour in [3, 4] {
            writers.record_nad(&nad(&[("renamed", hour)]));
        }
        assert_eq!(writers.operator_last_wrote(), Some(at(4)), "whatever its name");
    }

    #[test]
    fn number_of_managers_is_bounded() {
        let mut writers = NadWriters::default();
        for number in 0..=MAX_MANAGERS {
            let name = format!("manager-{number}");
            let written = ObjectMeta {
                writers: [(name.as_str().into(), Timestamp::UNIX_EPOCH)].into_iter().collect(),
                ..ObjectMeta::default()
            };
            writers.record_nad(&written);
            assert_eq!(writers.0.len(), (number + 1).min(MAX_MANAGERS));
        }
    }
}
