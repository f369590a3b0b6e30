//! Who among the writers of NADs is the operator, and when it last wrote one. Its field manager is called after its program, which
//! distributions rename; but nobody else has written so many of the NADs that networks render.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::moments::Moments;

/// How many field managers are counted.
const MOST_MANAGERS: usize = 64;
/// Field managers that are never the operator: people's tools, and nadmit itself.
const OTHERS: [&str; 2] = ["kubectl", "nadmit"];

/// The writers of rendered NADs.
#[derive(Clone, Debug, Default)]
pub struct Writers(BTreeMap<Box<str>, Wrote>);

#[derive(Clone, Copy, Debug)]
struct Wrote {
    nads: usize,
    last: Timestamp,
}

impl Writers {
    /// A NAD that a network renders was seen.
    pub fn saw(&mut self, moments: &Moments) {
        for (manager, at) in &moments.writers {
            if OTHERS.iter().any(|other| manager.starts_with(other)) {
                continue;
            }
            if let Some(wrote) = self.0.get_mut(manager) {
                *wrote = Wrote { nads: wrote.nads + 1, last: wrote.last.max(*at) };
            } else if self.0.len() < MOST_MANAGERS {
                self.0.insert(manager.clone(), Wrote { nads: 1, last: *at });
            }
        }
    }

    /// When the operator last wrote a NAD, as far as anybody can tell.
    pub fn operator_wrote(&self) -> Option<Timestamp> {
        // Among equals the one that calls itself so.
        let ranked = self.0.iter().map(|(manager, wrote)| (wrote.nads, manager.contains("operator"), wrote.last));
        ranked.max().map(|(.., last)| last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_who_writes_them_all() {
        let at = |hour: u8| -> Timestamp { format!("2026-11-01T{hour:02}:00:00Z").parse().unwrap() };
        let nad = |writers: &[(&str, u8)]| Moments {
            writers: writers.iter().map(|(manager, hour)| ((*manager).into(), at(*hour))).collect(),
            ..Moments::default()
        };
        let mut writers = Writers::default();
        assert_eq!(writers.operator_wrote(), None);
        writers.saw(&nad(&[("kubectl-edit", 9), ("nadmit", 9)]));
        assert_eq!(writers.operator_wrote(), None);
        writers.saw(&nad(&[("sriov-operator", 2), ("a-tool", 8)]));
        assert_eq!(writers.operator_wrote(), Some(at(2)), "among equals");
        for hour in [3, 4] {
            writers.saw(&nad(&[("renamed", hour)]));
        }
        assert_eq!(writers.operator_wrote(), Some(at(4)), "whatever it is called");
    }
}
