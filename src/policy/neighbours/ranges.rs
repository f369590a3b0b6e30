//! Ranges of addresses as pairs of numbers.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// How many ranges of one NAD are compared with those of others. A config whose exclusions leave more is not compared.
pub(in crate::policy) const MAX_RANGES: usize = 16;

/// The first and the last address of a range. IPv4 addresses are those mapped into IPv6, so that all are on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::policy) struct AddressRange {
    pub(super) first: u128,
    pub(super) last: u128,
}

/// Where the mapped addresses are.
const MAPPED: AddressRange = AddressRange { first: 0xffff_0000_0000, last: 0xffff_ffff_ffff };

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

impl AddressRange {
    /// Both included; `None` if there is no address between the two, or if they are of two families.
    pub(in crate::policy) fn new(first: IpAddr, last: IpAddr) -> Option<Self> {
        let range = Self { first: number(first), last: number(last) };
        // An IPv6 range around the mapped addresses does not hold them.
        let is_around = first.is_ipv6() && range.overlaps(MAPPED);
        (first.is_ipv4() == last.is_ipv4() && range.first <= range.last && !is_around).then_some(range)
    }

    /// Whether both have an address.
    pub(super) fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The addresses of both.
    pub(super) fn shared(self, other: Self) -> Option<Self> {
        let shared = Self { first: self.first.max(other.first), last: self.last.min(other.last) };
        (shared.first <= shared.last).then_some(shared)
    }

    /// The parts before and after another range.
    fn without(self, other: Self) -> impl Iterator<Item = Self> {
        let before = other.first.checked_sub(1).map(|last| Self { first: self.first, last: last.min(self.last) });
        let after = other.last.checked_add(1).map(|first| Self { first: first.max(self.first), last: self.last });
        before.into_iter().chain(after).filter(|part| part.first <= part.last)
    }

    /// Whether it is a single address.
    pub(in crate::policy) fn is_single(self) -> bool {
        self.first == self.last
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = [self.first, self.last].map(|number| IpAddr::V6(Ipv6Addr::from(number)).to_canonical());
        if first == last { write!(formatter, "{first}") } else { write!(formatter, "{first}-{last}") }
    }
}

/// The ranges without some others; `None` if too many parts are left.
pub(in crate::policy) fn subtract(from: AddressRange, excluded: &[AddressRange]) -> Option<Vec<AddressRange>> {
    let mut left = vec![from];
    for exclusion in excluded {
        left = left.into_iter().flat_map(|range| range.without(*exclusion)).collect();
        if left.len() > MAX_RANGES {
            return None;
        }
    }
    Some(left)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small(first: u8, last: u8) -> AddressRange {
        AddressRange { first: first.into(), last: last.into() }
    }

    fn members(ranges: &[AddressRange]) -> Vec<u128> {
        (0..=255).filter(|number| ranges.iter().any(|range| (range.first..=range.last).contains(number))).collect()
    }

    fn range() -> impl Strategy<Value = AddressRange> {
        (any::<u8>(), any::<u8>()).prop_map(|(one, other)| small(one.min(other), one.max(other)))
    }

    proptest! {
        #[test]
        fn overlaps_is_sharing_an_address(one in range(), other in range()) {
            let shared = members(&[one]).into_iter().any(|number| members(&[other]).contains(&number));
            prop_assert_eq!(one.overlaps(other), shared);
            prop_assert_eq!(other.overlaps(one), shared);
            let both: Vec<_> = one.shared(other).into_iter().collect();
            let want: Vec<_> = members(&[one]).into_iter().filter(|number| members(&[other]).contains(number)).collect();
            prop_assert_eq!(members(&both), want);
        }

        #[test]
        fn subtracting_leaves_the_other_addresses(from in range(), excluded in prop::collection::vec(range(), 0..6)) {
            let left = subtract(from, &excluded).unwrap();
            let taken = members(&excluded);
            let want: Vec<_> = members(&[from]).into_iter().filter(|number| !taken.contains(number)).collect();
            prop_assert_eq!(members(&left), want);
            prop_assert!(left.windows(2).all(|pair| pair[0].last < pair[1].first), "{:?}", left);
        }
    }

    #[test]
    fn families_are_apart() {
        let range = |first: &str, last: &str| AddressRange::new(first.parse().unwrap(), last.parse().unwrap());
        let v4 = range("10.0.0.1", "10.0.0.9").unwrap();
        assert_eq!(v4.to_string(), "10.0.0.1-10.0.0.9");
        assert!(!v4.overlaps(range("fd00::1", "fd00::ffff").unwrap()));
        assert_eq!(range("::", "ffff::"), None, "it would hold every IPv4 address");
        assert_eq!((range("10.0.0.1", "fd00::1"), range("10.0.0.9", "10.0.0.1")), (None, None));
        assert!(range("10.0.0.1", "10.0.0.1").unwrap().is_single() && !v4.is_single());
        let all = range("::1:0:0:0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").unwrap();
        assert_eq!(subtract(all, &[all]), Some(Vec::new()), "at the end of the line");
    }

    #[test]
    fn many_exclusions_are_given_up() {
        let every_other: Vec<_> = (0..40).map(|number| small(number * 2 + 1, number * 2 + 1)).collect();
        assert_eq!(subtract(small(0, 255), &every_other), None);
    }
}
