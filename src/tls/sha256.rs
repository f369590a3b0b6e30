//! SHA-256, of the crypto library that is linked anyway.

use std::fmt::Write as _;

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

/// The first hexadecimal digits of a text's SHA-256, as `sha256sum` prints them. At most 64.
pub fn sha256_digits(text: &str, digits: usize) -> String {
    let mut shown = String::new();
    if let Some(suite) = TLS13_AES_128_GCM_SHA256.tls13() {
        for byte in suite.common.hash_provider.hash(text.as_bytes()).as_ref() {
            // Writing to a String cannot fail.
            let _ = write!(shown, "{byte:02x}");
        }
    }
    shown.truncate(digits);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_sha256sum() {
        assert_eq!(sha256_digits("", 12), "e3b0c44298fc");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_digits("abc", 64), abc);
        assert_eq!(sha256_digits("abc", 100), abc);
    }
}
