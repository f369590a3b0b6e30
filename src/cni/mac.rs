//! Hardware addresses as Go's `net.ParseMAC` reads them, which is what every plugin calls; crates for MAC addresses accept other forms.

/// The kind of an address that parses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac {
    /// How many bytes it has: 6 for Ethernet, 8 for a GUID, 20 for IP over InfiniBand.
    pub bytes: usize,
    /// Whether it is written without separators, which only recent Go releases read.
    pub bare: bool,
    /// Whether it names a group of stations instead of one.
    pub multicast: bool,
    /// Whether every byte is zero.
    pub zero: bool,
}

impl Mac {
    /// Reads pairs of digits between `:` or `-`, fours between `.`, or digits alone; in 6, 8 or 20 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let (separator, digits) = match text.chars().find(|character| matches!(character, ':' | '-' | '.')) {
            Some(separator @ '.') => (Some(separator), 4),
            separator => (separator, 2),
        };
        let hex: String = match separator {
            Some(separator) if text.split(separator).any(|group| group.len() != digits) => return None,
            Some(separator) => text.split(separator).collect(),
            None => text.to_owned(),
        };
        let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !matches!(hex.len(), 12 | 16 | 40) {
            return None;
        }
        let first = hex.get(..2).and_then(|pair| u8::from_str_radix(pair, 16).ok())?;
        Some(Self {
            bytes: hex.len() / 2,
            bare: separator.is_none(),
            multicast: first & 1 == 1,
            zero: hex.bytes().all(|byte| byte == b'0'),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row was run through Go's parser.
    #[test]
    fn accepts_what_go_accepts() {
        for (text, want) in [
            ("02:00:00:00:00:01", Some((6, false, false, false))),
            ("02-00-00-00-00-01", Some((6, false, false, false))),
            ("0200.0000.0001", Some((6, false, false, false))),
            ("020000000001", Some((6, true, false, false))),
            ("CA:FE:C0:FF:EE:00", Some((6, false, false, false))),
            ("01:00:5e:00:00:01", Some((6, false, true, false))),
            ("ff:ff:ff:ff:ff:ff", Some((6, false, true, false))),
            ("00:00:00:00:00:00", Some((6, false, false, true))),
            ("02:00:00:00:00:00:00:01", Some((8, false, false, false))),
            ("", None),
            ("02:00:00:00:00", None),
            ("02:00:00:00:00:0g", None),
            ("2:0:0:0:0:1", None),
            (" 02:00:00:00:00:01", None),
            ("02:00:00:00:00:01 ", None),
            ("02:00-00:00:00:01", None),
            ("0200.0000", None),
            ("0200:00:00:00:01", None),
            ("020.0000.00001", None),
            ("02:00:00:00:00:01:02", None),
            ("02:00:00:00:00:é1", None),
        ] {
            let got = Mac::parse(text).map(|mac| (mac.bytes, mac.bare, mac.multicast, mac.zero));
            assert_eq!(got, want, "{text:?}");
        }
    }
}
