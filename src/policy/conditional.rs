//! The values of a config that not every release reads: what is wrong with them depends on the release in use.

use std::collections::BTreeMap;

use crate::cni::releases::Since;
use crate::json::Span;

/// A value that not every release reads.
#[derive(Debug)]
pub(super) struct ConditionalValue {
    end: u32,
    /// Since when it is read.
    pub(super) since: Since,
    /// Whether the release in use is known, and does not read it.
    pub(super) is_ignored: bool,
}

/// All of a config, by their start. None is inside of another one.
#[derive(Debug, Default)]
pub(super) struct ConditionalValues(BTreeMap<u32, ConditionalValue>);

impl ConditionalValues {
    /// Adds a value, unless the release in use reads it. `None`: whether it does is unknown.
    pub(super) fn add(&mut self, value: Span, since: Since, is_read: Option<bool>) {
        if is_read != Some(true) {
            let is_ignored = is_read.is_some();
            self.0.insert(value.start, ConditionalValue { end: value.end, since, is_ignored });
        }
    }

    /// The one around a place.
    pub(super) fn around(&self, place: Span) -> Option<&ConditionalValue> {
        let (_, value) = self.0.range(..=place.start).next_back()?;
        (place.end <= value.end).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::releases::Program;

    #[test]
    fn a_place_is_found_in_the_value_around_it() {
        let since = Since { program: Program::Multus, release: [4, 2, 0] };
        let span = |start, end| Span { start, end };
        let mut values = ConditionalValues::default();
        values.add(span(10, 20), since, None);
        values.add(span(30, 40), since, Some(false));
        values.add(span(50, 60), since, Some(true));
        let found = |start, end| values.around(span(start, end)).map(|value| value.is_ignored);
        for (start, end, want) in [
            (10, 20, Some(false)),
            (12, 13, Some(false)),
            (30, 31, Some(true)),
            (39, 40, Some(true)),
            (5, 8, None),
            (5, 25, None),
            (10, 21, None),
            (20, 30, None),
            (52, 53, None),
        ] {
            assert_eq!(found(start, end), want, "{start}..{end}");
        }
    }
}
