//! A cheap check whether two keys may be equal, so that nearly every pair of different keys is distinguished at once.

/// The length of a key and its first letter in lower case; nothing for a key that is not ASCII, because Go folds some
/// letters into ASCII, which shortens the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyShape(u32);

impl KeyShape {
    /// The shape of a key.
    pub const fn of(key: &str) -> Self {
        match key.as_bytes() {
            [first, ..] if key.is_ascii() => Self((key.len() as u32) << 8 | (*first | 0x20) as u32),
            _ => Self(0),
        }
    }

    /// The shape of a name that is known to be ASCII.
    #[inline]
    pub fn of_ascii(name: &str) -> Self {
        name.as_bytes().first().map_or(Self(0), |first| Self((name.len() as u32) << 8 | u32::from(first | 0x20)))
    }

    /// False if a key of this shape cannot be equal to an ASCII name of that shape, in whatever case.
    #[inline]
    pub fn may_equal(self, name: Self) -> bool {
        self == name || self.0 == 0
    }

    /// How many places there are.
    pub(crate) const PLACES: usize = 64;

    /// One of 64 places; shapes that may be equal have the same, unless one of them is not ASCII.
    #[inline]
    pub(crate) const fn place(self) -> usize {
        ((self.0 ^ self.0 >> 6) & 63) as usize
    }

    /// The place as a bit.
    #[inline]
    pub(crate) const fn bit(self) -> u64 {
        1 << self.place()
    }

    /// Whether anything is known of the key.
    #[inline]
    pub(crate) const fn is_known(self) -> bool {
        self.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_different_keys_have_different_shapes() {
        for (key, name, want) in [
            ("VLAN", "vlan", true),
            ("vlanQoS", "vlan", false),
            ("mtu", "vlan", false),
            ("trust", "vlan", false),
            ("tru\u{17f}t", "trust", true),
            ("\u{212a}ind", "kind", true),
            ("", "", true),
        ] {
            assert_eq!(KeyShape::of(key).may_equal(KeyShape::of(name)), want, "{key} {name}");
            assert_eq!(KeyShape::of(name), KeyShape::of_ascii(name), "{name}");
        }
    }
}
