//! Addresses and networks as Go reads them.
//!
//! Two parsers differ: `net.ParseIP` and `net.ParseCIDR` reject leading zeros, and the one that whereabouts uses for most of its
//! keys accepts them. Both treat `::ffff:10.0.0.1` as an IPv4 address. The standard library's parser agrees with neither.

use std::net::IpAddr;

use ipnet::IpNet;

/// Which of Go's two parsers reads a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressParser {
    /// The standard library.
    Strict,
    /// The one that drops leading zeros.
    Tolerant,
}

/// An address with a prefix length, as written: host bits are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cidr {
    /// The address.
    pub(super) ip: IpAddr,
    /// The prefix length.
    pub(super) prefix: u8,
}

impl AddressParser {
    /// Parses an address. An IPv4-mapped one becomes IPv4.
    pub(super) fn ip(self, text: &str) -> Option<IpAddr> {
        self.raw_ip(text).map(|ip| ip.to_canonical())
    }

    /// The address and prefix length in a text.
    pub(super) fn cidr(self, text: &str) -> Option<Cidr> {
        // In so few bytes this takes half as long as `split_once`.
        let slash = text.bytes().position(|byte| byte == b'/')?;
        let (ip, prefix) = (self.raw_ip(text.get(..slash)?)?, text.get(slash + 1..)?);
        if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Both parsers read `/024` as 24.
        let prefix: u8 = match prefix.trim_start_matches('0') {
            "" => 0,
            digits => digits.parse().ok()?,
        };
        (prefix <= bits(ip)).then_some(Cidr { ip, prefix })
    }

    fn raw_ip(self, text: &str) -> Option<IpAddr> {
        match self {
            Self::Strict => text.parse().ok(),
            Self::Tolerant => text.parse().ok().or_else(|| without_leading_zeros(text).parse().ok()),
        }
    }
}

impl Cidr {
    /// The network it lies in. An IPv4-mapped IPv6 address gives the IPv4 network, as far as the prefix allows.
    pub(super) fn network(self) -> Option<IpNet> {
        let bare = self.ip.to_canonical();
        let net = match self.prefix.checked_sub(96) {
            Some(prefix) if bare.is_ipv4() && self.ip.is_ipv6() => IpNet::new(bare, prefix),
            _ => IpNet::new(self.ip, self.prefix),
        };
        net.ok().map(|net| net.trunc())
    }
}

/// An address as a number; comparable within its family only.
pub(crate) fn address_number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// The address of a number.
pub(crate) fn numbered_address(number: u128, is_ipv4: bool) -> IpAddr {
    match u32::try_from(number) {
        Ok(number) if is_ipv4 => IpAddr::V4(number.into()),
        _ => IpAddr::V6(number.into()),
    }
}

/// Whether `ip` is between the two, both included, and of their family.
pub(super) fn within(ip: IpAddr, first: IpAddr, last: IpAddr) -> bool {
    ip.is_ipv4() == first.is_ipv4() && (address_number(first)..=address_number(last)).contains(&address_number(ip))
}

/// How to fix a text that should be an address with a prefix length.
pub(super) fn cidr_help(text: &str) -> &'static str {
    let bare = text.trim();
    if bare != text && AddressParser::Strict.cidr(bare).is_some() {
        "remove the spaces"
    } else if AddressParser::Tolerant.cidr(text).is_some() {
        "remove the leading zeros"
    } else if AddressParser::Tolerant.ip(text).is_some() {
        "add the prefix length, for example /24"
    } else {
        "write an address and a prefix length, for example 192.168.10.0/24"
    }
}

/// How to fix a text that should be an address.
pub(super) fn ip_help(text: &str) -> &'static str {
    let bare = text.trim();
    if bare != text && AddressParser::Strict.ip(bare).is_some() {
        "remove the spaces"
    } else if AddressParser::Tolerant.ip(text).is_some() {
        "remove the leading zeros"
    } else if AddressParser::Tolerant.cidr(text).is_some() {
        "write the address alone, without the prefix length"
    } else {
        "write an address, for example 192.168.10.1"
    }
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// The text with each number in it shortened to its significant digits.
fn without_leading_zeros(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    // Whether a digit of the current number has been written, or a zero is held back in case no digit follows.
    let (mut written, mut held) = (false, false);
    for character in text.chars() {
        match character {
            '0' if !written => held = true,
            digit if digit.is_ascii_hexdigit() => {
                written = true;
                result.push(digit);
            }
            separator => {
                if held && !written {
                    result.push('0');
                }
                (written, held) = (false, false);
                result.push(separator);
            }
        }
    }
    if held && !written {
        result.push('0');
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row was run through Go's `net` and through `k8s.io/utils/net`.
    #[test]
    fn reads_addresses_as_go_does() {
        for (text, strict, tolerant) in [
            ("10.0.0.1", Some("10.0.0.1"), Some("10.0.0.1")),
            ("010.0.0.1", None, Some("10.0.0.1")),
            ("10.0.0.000", None, Some("10.0.0.0")),
            ("10.0.0.0001", None, Some("10.0.0.1")),
            ("10.0.0.256", None, None),
            ("10.0.0", None, None),
            ("10.0.0.1 ", None, None),
            ("", None, None),
            ("fd00::1", Some("fd00::1"), Some("fd00::1")),
            ("FD00::00001", None, Some("fd00::1")),
            ("::", Some("::"), Some("::")),
            ("1:2:3:4:5:6:7::", Some("1:2:3:4:5:6:7:0"), Some("1:2:3:4:5:6:7:0")),
            ("1:2:3:4::5:6:7:8", None, None),
            ("::ffff:10.0.0.1", Some("10.0.0.1"), Some("10.0.0.1")),
            ("::ffff:010.0.0.1", None, Some("10.0.0.1")),
            ("fe80::1%eth0", None, None),
        ] {
            let read = |reader: AddressParser| reader.ip(text).map(|ip| ip.to_string());
            assert_eq!(read(AddressParser::Strict).as_deref(), strict, "{text}");
            assert_eq!(read(AddressParser::Tolerant).as_deref(), tolerant, "{text}");
        }
    }

    /// Each row was run through Go's `net` and through `k8s.io/utils/net`.
    #[test]
    fn reads_networks_as_go_does() {
        for (text, strict, tolerant) in [
            ("10.1.0.0/24", Some("10.1.0.0/24"), Some("10.1.0.0/24")),
            ("10.1.0.5/24", Some("10.1.0.0/24"), Some("10.1.0.0/24")),
            ("010.1.0.0/24", None, Some("10.1.0.0/24")),
            ("10.1.0.0/024", Some("10.1.0.0/24"), Some("10.1.0.0/24")),
            ("10.1.0.0/0", Some("0.0.0.0/0"), Some("0.0.0.0/0")),
            ("10.1.0.0/33", None, None),
            ("10.1.0.0/", None, None),
            ("10.1.0.0/+24", None, None),
            ("10.1.0.0/24/24", None, None),
            ("10.1.0.0", None, None),
            ("/24", None, None),
            ("fd00::5/64", Some("fd00::/64"), Some("fd00::/64")),
            ("fd00::/129", None, None),
            ("::ffff:10.1.0.9/120", Some("10.1.0.0/24"), Some("10.1.0.0/24")),
        ] {
            let read = |reader: AddressParser| Some(reader.cidr(text)?.network()?.to_string());
            assert_eq!(read(AddressParser::Strict).as_deref(), strict, "{text}");
            assert_eq!(read(AddressParser::Tolerant).as_deref(), tolerant, "{text}");
        }
    }

    #[test]
    fn help_texts_fit_the_mistake() {
        assert_eq!(cidr_help("10.1.0.0"), "add the prefix length, for example /24");
        assert_eq!(cidr_help(" 10.1.0.0/24"), "remove the spaces");
        assert_eq!(cidr_help("010.1.0.0/24"), "remove the leading zeros");
        assert_eq!(ip_help("10.1.0.1/24"), "write the address alone, without the prefix length");
        assert_eq!(ip_help("x"), "write an address, for example 192.168.10.1");
    }

    #[test]
    fn help_says_what_to_change() {
        for (text, of_network, of_address) in [
            (" 10.0.0.0/24", "remove the spaces", "write an address, for example 192.168.10.1"),
            ("10.0.0.1 ", "write an address and", "remove the spaces"),
            ("x ", "write an address and", "write an address, for"),
            ("010.0.0.0/24", "remove the leading zeros", "write the address alone"),
            ("010.0.0.1", "add the prefix length", "remove the leading zeros"),
            ("10.0.0.1", "add the prefix length", ""),
            ("10.0.0.0/24", "", "write the address alone"),
        ] {
            assert!(of_network.is_empty() || cidr_help(text).starts_with(of_network), "{text:?} {}", cidr_help(text));
            assert!(of_address.is_empty() || ip_help(text).starts_with(of_address), "{text:?} {}", ip_help(text));
        }
    }
}
