//! Addresses as Multus checks them in a selection, with the parsers of Go's `net`.

use std::net::IpAddr;

/// Whether `net.ParseIP` reads it.
pub(super) fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// Whether it is an address, or an address with a prefix length.
pub(super) fn is_ip_or_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return is_ip(text) };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most: u8 = if address.is_ipv4() { 32 } else { 128 };
    let digits = prefix.trim_start_matches('0');
    // `/024` is read as 24.
    !prefix.is_empty()
        && prefix.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.is_empty() || digits.parse::<u8>().is_ok_and(|length| length <= most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row was run through Go's parsers.
    #[test]
    fn accepts_what_go_accepts() {
        for (text, ip, either) in [
            ("10.0.0.1", true, true),
            ("10.0.0.1/24", false, true),
            ("10.0.0.1/024", false, true),
            ("10.0.0.1/33", false, false),
            ("10.0.0.1/", false, false),
            ("10.0.0.1/24/5", false, false),
            ("10.0.0.01", false, false),
            ("fd00::1/64", false, true),
            ("fd00::1%eth0", false, false),
            ("::ffff:10.0.0.1/120", false, true),
            (" 10.0.0.1", false, false),
            ("", false, false),
        ] {
            assert_eq!((is_ip(text), is_ip_or_cidr(text)), (ip, either), "{text:?}");
        }
    }
}
