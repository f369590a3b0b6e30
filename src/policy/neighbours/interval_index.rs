//! Finds the ranges that have an address in common with one, without comparing all of them.
//!
//! The ranges are in the order of their first addresses, and read as a balanced tree: the middle of a part is its root. Of each part
//! the highest last address is known, so that parts which end too early are skipped. It is one sorted list: crates for interval trees
//! allocate a node for each range.

use std::sync::OnceLock;

use super::ranges::AddressRange;

/// Ranges, each with the value that it belongs to.
#[derive(Debug)]
pub(super) struct IntervalIndex<T> {
    /// In the order of their first addresses, then of their values.
    ranges: Vec<(AddressRange, T)>,
    /// The highest last address of the part with this middle; made on first use after a change.
    highest: OnceLock<Box<[u128]>>,
}

impl<T> Default for IntervalIndex<T> {
    fn default() -> Self {
        Self { ranges: Vec::new(), highest: OnceLock::new() }
    }
}

impl<T: Ord> IntervalIndex<T> {
    pub(super) fn insert(&mut self, range: AddressRange, value: T) {
        self.highest.take();
        if let Err(at) = self.place(range, &value) {
            self.ranges.insert(at, (range, value));
        }
    }

    pub(super) fn remove(&mut self, range: AddressRange, value: &T) {
        self.highest.take();
        if let Ok(at) = self.place(range, value) {
            self.ranges.remove(at);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn place(&self, range: AddressRange, value: &T) -> Result<usize, usize> {
        self.ranges.binary_search_by(|(other, known)| (other, known).cmp(&(&range, value)))
    }

    /// Calls `each` for every range with an address of another one, until it returns false.
    pub(super) fn for_each_overlapping<'i>(&'i self, range: AddressRange, each: &mut dyn FnMut(&'i T) -> bool) {
        let highest = self.highest.get_or_init(|| self.highest());
        self.search(0..self.ranges.len(), highest, range, each);
    }

    /// Searches one part; false if `each` wants no more.
    fn search<'i>(
        &'i self,
        part: std::ops::Range<usize>,
        highest: &[u128],
        range: AddressRange,
        each: &mut dyn FnMut(&'i T) -> bool,
    ) -> bool {
        let middle = usize::midpoint(part.start, part.end);
        let (false, Some((root, value)), Some(end)) = (part.is_empty(), self.ranges.get(middle), highest.get(middle))
        else {
            return true;
        };
        if *end < range.first {
            return true;
        }
        if !self.search(part.start..middle, highest, range, each) {
            return false;
        }
        if root.first > range.last {
            return true;
        }
        (!root.overlaps(range) || each(value)) && self.search(middle + 1..part.end, highest, range, each)
    }

    fn highest(&self) -> Box<[u128]> {
        let mut highest = vec![0; self.ranges.len()].into_boxed_slice();
        self.fill(0..self.ranges.len(), &mut highest);
        highest
    }

    fn fill(&self, part: std::ops::Range<usize>, highest: &mut [u128]) -> u128 {
        let middle = usize::midpoint(part.start, part.end);
        let (false, Some((root, _))) = (part.is_empty(), self.ranges.get(middle)) else { return 0 };
        let below = self.fill(part.start..middle, highest).max(self.fill(middle + 1..part.end, highest));
        let end = root.last.max(below);
        if let Some(known) = highest.get_mut(middle) {
            *known = end;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range() -> impl Strategy<Value = AddressRange> {
        (any::<u8>(), any::<u8>())
            .prop_map(|(one, other)| AddressRange { first: one.min(other).into(), last: one.max(other).into() })
    }

    proptest! {
        #[test]
        fn finds_what_comparing_all_finds(
            ranges in prop::collection::vec(range(), 0..40), removed in 0..40_usize, wanted in range(),
        ) {
            let mut index = IntervalIndex::default();
            for (number, range) in ranges.iter().enumerate() {
                index.insert(*range, number);
            }
            let kept = |number: &usize| *number != removed;
            if let Some(range) = ranges.get(removed) {
                // Removing after a look-up must not leave what it has made.
                index.for_each_overlapping(wanted, &mut |_| true);
                index.remove(*range, &removed);
            }
            let mut found = Vec::new();
            index.for_each_overlapping(wanted, &mut |number| { found.push(*number); true });
            found.sort_unstable();
            let want: Vec<_> = (0..ranges.len()).filter(kept).filter(|number| ranges[*number].overlaps(wanted)).collect();
            prop_assert_eq!(&found, &want);
            let mut first = Vec::new();
            index.for_each_overlapping(wanted, &mut |number| { first.push(*number); first.len() < 2 });
            prop_assert_eq!(first.len(), want.len().min(2));
        }
    }
}
