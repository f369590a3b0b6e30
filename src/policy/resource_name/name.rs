//! Names of extended resources.

/// Why a name is not a valid extended resource name; `None` if it is.
pub(crate) fn unusable(name: &str) -> Option<&'static str> {
    let Some((domain, rest)) = name.split_once('/') else {
        return Some(if name.is_empty() { "is empty" } else { "has no domain" });
    };
    if rest.is_empty() {
        return Some("has no name after the slash");
    }
    if rest.contains('/') {
        return Some("has more than one slash");
    }
    if domain.ends_with("kubernetes.io") {
        return Some("has the reserved domain kubernetes.io");
    }
    if !is_domain(domain) {
        return Some("has a domain that is not a DNS name");
    }
    if !is_name(rest) {
        return Some("has invalid characters after the slash");
    }
    None
}

/// Whether the part after the slash is valid: letters and digits at both ends, `-`, `_` and `.` between, at most 63.
pub(crate) fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let inner = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63 && inner && ends(bytes.first()) && ends(bytes.last())
}

/// Only the domain is missing, which claims (DRA) allow and device plugins never do.
pub(super) fn is_unqualified(name: &str) -> bool {
    !name.contains('/') && is_name(name)
}

/// The part after the slash, which must agree; the domain differs between vendors.
pub(crate) fn own_name(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, own)| own)
}

/// The domain, if it is valid: also in a name that is doubled or ends after the slash.
pub(super) fn domain(name: &str) -> Option<&str> {
    name.split_once('/').map(|(domain, _)| domain).filter(|domain| is_domain(domain))
}

/// Whether a text can be the domain of an extended resource.
fn is_domain(domain: &str) -> bool {
    // Letters and digits at both ends of each label.
    let mut before = b'.';
    let mut fits = |byte: u8| {
        let before = std::mem::replace(&mut before, byte);
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'-' => before != b'.',
            b'.' => !matches!(before, b'.' | b'-'),
            _ => false,
        }
    };
    let are_labels = domain.bytes().all(&mut fits) && fits(b'.');
    // Quotas prepend `requests.`, and the result must still be a DNS name.
    domain.len() <= 244 && !domain.starts_with("requests.") && are_labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_resource_names() {
        for (name, usable) in [
            ("openshift.io/mlxnics", true),
            ("intel.com/intel_sriov_netdevice", true),
            ("a/b", true),
            ("openshift.io/", false),
            ("/x", false),
            ("", false),
            ("mlxnics", false),
            ("openshift.io/openshift.io/x", false),
            ("kubernetes.io/x", false),
            ("node.kubernetes.io/x", false),
            ("requests.io/x", false),
            ("requests.a/x", false),
            ("Openshift.io/x", false),
            ("openshift..io/x", false),
            (".io/x", false),
            ("openshift./x", false),
            ("-a.io/x", false),
            ("a-.io/x", false),
            ("a.io-/x", false),
            ("a.-io/x", false),
            ("a-b.io/x", true),
            ("a_b.io/x", false),
            ("\u{e9}.io/x", false),
            ("openshift.io/-x", false),
            ("openshift.io/x y", false),
        ] {
            assert_eq!(unusable(name).is_none(), usable, "{name}");
        }
        assert!(unusable(&format!("a.io/{}", "x".repeat(63))).is_none());
        assert!(unusable(&format!("a.io/{}", "x".repeat(64))).is_some());
    }

    #[test]
    fn names_have_a_domain_and_an_own_part() {
        for (name, in_domain, own) in [
            ("a.io/x", Some("a.io"), "x"),
            ("a.io/b.io/x", Some("a.io"), "x"),
            ("a.io/", Some("a.io"), ""),
            ("x", None, "x"),
            ("A/x", None, "x"),
            ("/x", None, "x"),
        ] {
            assert_eq!((domain(name), own_name(name)), (in_domain, own), "{name}");
        }
        for (length, fits) in [(244, true), (245, false)] {
            assert_eq!(is_domain(&"a".repeat(length)), fits, "{length}");
        }
    }
}
