//! Finds the ranges of other groups that have an address in common with one, without comparing all of them.
//!
//! The ranges are in the order of their first addresses, in blocks of a bounded length: a change costs what one block costs, however many
//! ranges there are. Of each block the two highest last addresses of different groups are known, so a block is read only if it has a range
//! to be found, and however many ranges of its own group a tenant adds, they hide none of another one.

use super::ranges::AddressRange;

/// How many ranges a block has at most.
const LONGEST_BLOCK: usize = 128;

/// Ranges, each with the group and the value that it belongs to.
#[derive(Debug)]
pub(super) struct IntervalIndex<G, T> {
    /// None of them is empty.
    blocks: Vec<Block<G, T>>,
}

#[derive(Debug)]
struct Block<G, T> {
    /// In the order of their first addresses, then of their values.
    ranges: Vec<(AddressRange, T, G)>,
    /// The highest last address, and the group that has it.
    highest: Option<(u128, G)>,
    /// The highest last address of the other groups.
    second: Option<u128>,
}

impl<G, T> Default for IntervalIndex<G, T> {
    fn default() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<G: Clone + PartialEq, T: Ord> IntervalIndex<G, T> {
    pub(super) fn insert(&mut self, range: AddressRange, group: G, value: T) {
        let at = self.block_of(range, &value);
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(Block::of(vec![(range, value, group)]));
            return;
        };
        if let Err(place) = block.place(range, &value) {
            block.ranges.insert(place, (range, value, group));
            let upper = (block.ranges.len() > LONGEST_BLOCK).then(|| block.ranges.split_off(LONGEST_BLOCK / 2));
            block.measure();
            if let Some(upper) = upper {
                self.blocks.insert(at + 1, Block::of(upper));
            }
        }
    }

    pub(super) fn remove(&mut self, range: AddressRange, value: &T) {
        let at = self.block_of(range, value);
        let Some(block) = self.blocks.get_mut(at) else { return };
        if let Ok(place) = block.place(range, value) {
            block.ranges.remove(place);
            block.measure();
            if block.ranges.is_empty() {
                self.blocks.remove(at);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The block that has a range, or gets it.
    fn block_of(&self, range: AddressRange, value: &T) -> usize {
        let starts = |block: &Block<G, T>| {
            block.ranges.first().is_some_and(|(first, known, _)| (first, known) <= (&range, value))
        };
        self.blocks.partition_point(starts).saturating_sub(1)
    }

    /// Calls `each` for every range with an address of another one that is not of the group `except`, until it returns false.
    pub(super) fn for_each_overlapping<'i>(
        &'i self,
        range: AddressRange,
        except: Option<&G>,
        each: &mut dyn FnMut(&'i T) -> bool,
    ) {
        for block in &self.blocks {
            if block.ranges.first().is_none_or(|(first, ..)| first.first > range.last) {
                return;
            }
            if block.highest_except(except).is_none_or(|last| last < range.first) {
                continue;
            }
            for (other, value, group) in &block.ranges {
                if other.overlaps(range) && Some(group) != except && !each(value) {
                    return;
                }
            }
        }
    }
}

impl<G: Clone + PartialEq, T: Ord> Block<G, T> {
    fn of(ranges: Vec<(AddressRange, T, G)>) -> Self {
        let mut block = Self { ranges, highest: None, second: None };
        block.measure();
        block
    }

    fn place(&self, range: AddressRange, value: &T) -> Result<usize, usize> {
        self.ranges.binary_search_by(|(other, known, _)| (other, known).cmp(&(&range, value)))
    }

    fn measure(&mut self) {
        let highest = self.ranges.iter().max_by_key(|(range, ..)| range.last);
        let others = |(_, _, top): &(AddressRange, T, G)| {
            let others = self.ranges.iter().filter(|(_, _, group)| group != top);
            others.map(|(range, ..)| range.last).max()
        };
        self.second = highest.and_then(others);
        self.highest = highest.map(|(range, _, group)| (range.last, group.clone()));
    }

    fn highest_except(&self, except: Option<&G>) -> Option<u128> {
        match &self.highest {
            Some((last, group)) if Some(group) != except => Some(*last),
            _ => self.second,
        }
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
            ranges in prop::collection::vec((range(), 0..3_u8), 0..400),
            removed in prop::collection::vec(0..400_usize, 0..200),
            wanted in range(),
            except in prop::option::of(0..3_u8),
        ) {
            let mut index = IntervalIndex::default();
            for (number, (range, group)) in ranges.iter().enumerate() {
                index.insert(*range, *group, number);
            }
            for number in &removed {
                if let Some((range, _)) = ranges.get(*number) {
                    index.remove(*range, number);
                }
            }
            let mut found = Vec::new();
            index.for_each_overlapping(wanted, except.as_ref(), &mut |number| { found.push(*number); true });
            found.sort_unstable();
            let is_wanted = |number: &usize| {
                let (range, group) = ranges[*number];
                !removed.contains(number) && range.overlaps(wanted) && Some(group) != except
            };
            let want: Vec<_> = (0..ranges.len()).filter(is_wanted).collect();
            prop_assert_eq!(&found, &want);
            let mut first = Vec::new();
            index.for_each_overlapping(wanted, except.as_ref(), &mut |number| { first.push(*number); first.len() < 2 });
            prop_assert_eq!(first.len(), want.len().min(2));
            prop_assert!(index.blocks.iter().all(|block| (1..=LONGEST_BLOCK).contains(&block.ranges.len())));
        }
    }
}
