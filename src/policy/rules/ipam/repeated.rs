//! An address, range or route that is given twice: each plugin accepts it, and the kernel does not.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::super::super::Rule;
use super::super::super::finding::Findings;
use super::Ipam;
use crate::json::Span;

/// The values of a section so far.
pub(super) struct Repeated<T> {
    /// What they are: "address".
    what: &'static str,
    seen: BTreeSet<T>,
}

impl<T: Ord> Repeated<T> {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, seen: BTreeSet::new() }
    }

    /// Reports a value that was there before. Pods without a kernel interface work with it.
    pub(super) fn check(
        &mut self,
        value: T,
        shown: impl Display,
        span: Span,
        ipam: &Ipam<'_>,
        rule: &'static Rule,
        out: &mut Findings<'_>,
    ) {
        if !self.seen.insert(value) {
            let headline = format!("{} {shown} is given twice", self.what);
            let note = "the second one cannot be set (\"file exists\"), and pods with a kernel interface fail to start";
            ipam.report(out, rule, span, headline, note, "remove one of the two").at_most_warn();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    #[test]
    fn repeated_values_are_reported() {
        for (ipam, want) in [
            (r#""static","addresses":[{"address":"10.0.0.5/24"},{"address":"10.0.0.6/24"}]"#, None),
            (
                r#""static","addresses":[{"address":"10.0.0.5/24"},{"address":"10.0.0.5/24"}]"#,
                Some("ipam/static-address warn /ipam/addresses/1/address"),
            ),
            (r#""static","addresses":[{"address":"10.0.0.5/24"},{"address":"10.0.0.5/16"}]"#, None),
            (
                r#""host-local","subnet":"10.0.0.0/24","routes":[{"dst":"0.0.0.0/0"},{"dst":"0.0.0.0/0"}]"#,
                Some("ipam/route warn /ipam/routes/1"),
            ),
            (
                r#""host-local","subnet":"10.0.0.0/24","routes":[{"dst":"0.0.0.0/0"},{"dst":"0.0.0.0/0","gw":"10.0.0.9"}]"#,
                None,
            ),
            (
                r#""host-local","subnet":"10.0.0.0/24","routes":[{"dst":"0.0.0.0/0"},{"dst":"0.0.0.0/0","priority":5}]"#,
                None,
            ),
            // Nobody reads the comment.
            (
                r#""host-local","subnet":"10.0.0.0/24","routes":[{"dst":"0.0.0.0/0"},{"dst":"0.0.0.0/0","comment":5}]"#,
                Some("ipam/route warn /ipam/routes/1"),
            ),
            (
                r#""whereabouts","ipRanges":[{"range":"10.0.0.0/24"},{"range":"10.0.0.5-10.0.0.9/24"}]"#,
                Some("ipam/whereabouts-range warn /ipam/ipRanges/1/range"),
            ),
            (
                r#""whereabouts","range":"10.0.0.0/24","ipRanges":[{"range":"10.0.0.0/24"}]"#,
                Some("ipam/whereabouts-range warn /ipam/ipRanges/0/range"),
            ),
            (r#""whereabouts","range":"10.0.0.0/24","ipRanges":[{"range":"10.0.0.0/25"}]"#, None),
        ] {
            let config = format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","ipam":{{"type":{ipam}}}}}"#);
            assert_eq!(found(&config), want.into_iter().collect::<Vec<_>>(), "{ipam}");
        }
    }
}
