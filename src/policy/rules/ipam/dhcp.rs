//! dhcp: leases from a server on the network.

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::{AddressSource, Ipam, debug_text};
use crate::cni::CniObject;
use crate::json::{Span, Value};

rule! { DHCP_OPTION = "ipam/dhcp-option", Deny;
    wrong: "The dhcp plugin rejects an option of `request` or `provide`.";
    why: "The dhcp daemon on the node knows six options by name, and all by number. It rejects the lease, and every pod fails, if an \
        option has another name, if an option of `provide` has none, or if a value is longer than 255 bytes.";
    fix: "Write the number of the option in quotes, or one of dhcp-client-identifier, subnet-mask, routers, host-name, user-class and \
        vendor-class-identifier.";
    releases: "The dhcp plugin reads `request` and `provide` from release 1.1 of cni-plugins on. A wrong value is not reported if the \
        policy names an older release (`versions`).";
}

/// The options that have a name.
const NAMES: &[&str] =
    &["dhcp-client-identifier", "subnet-mask", "routers", "host-name", "user-class", "vendor-class-identifier"];

const LEASE_REJECTED: &str = "the dhcp daemon rejects the lease; every pod that uses this network fails to start";

/// The rules on a dhcp section.
pub(super) fn check(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> AddressSource {
    for element in ipam.object.list_of("provide") {
        let Some((option, span)) = option(element) else { continue };
        known(ipam, "provide", option, span, out);
        let value = CniObject::of(element).and_then(|object| object.value_of("value"));
        if let Some(value) = value
            && let Some(text) = value.as_str().filter(|text| text.len() > 255)
        {
            let headline =
                format!("the value of DHCP option {option:?} has {} bytes, at most 255 are allowed", text.len());
            ipam.report(out, &DHCP_OPTION, value.span, headline, LEASE_REJECTED, "shorten the value to 255 bytes");
        }
    }
    for element in ipam.object.list_of("request") {
        // Here an option without a name is passed over.
        if let Some((option, span)) = option(element).filter(|(option, _)| !option.is_empty()) {
            known(ipam, "request", option, span, out);
        }
    }
    // The addresses come from the server.
    AddressSource::Given
}

/// The option that an element names, and where; `None` where it cannot be decoded.
fn option<'d>(element: &'d Value<'d>) -> Option<(&'d str, Span)> {
    let Some(object) = CniObject::of(element) else { return element.is_null().then_some(("", element.span)) };
    match object.value_of("option") {
        Some(value) => value.as_str().map(|option| (option, value.span)),
        None => Some(("", element.span)),
    }
}

fn known(ipam: &Ipam<'_>, list: &str, option: &str, span: Span, out: &mut Findings<'_>) {
    if NAMES.contains(&option) || is_number(option) {
        return;
    }
    let headline = if option.is_empty() {
        format!("an element of `{list}` names no `option`")
    } else {
        format!("unknown DHCP option {} in `{list}`", debug_text(option))
    };
    let help = format!("use a number from 0 to 255, in quotes, or one of {}", NAMES.join(", "));
    ipam.report(out, &DHCP_OPTION, span, headline, LEASE_REJECTED, help);
}

/// A number of eight bits, as Go reads one: digits alone, and as many zeros in front as one likes.
fn is_number(option: &str) -> bool {
    let digits = option.trim_start_matches('0');
    let significant = if digits.is_empty() && !option.is_empty() { "0" } else { digits };
    significant.bytes().all(|byte| byte.is_ascii_digit()) && significant.parse::<u8>().is_ok()
}
