//! The routes that host-local, static and whereabouts hand on.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::address::{AddressParser, cidr_help, ip_help};
use super::repeated::Repeated;
use super::{IGNORED, Ipam, debug_text};
use crate::cni::{CniObject, same_key};
use crate::json::Value;

rule! { ROUTE = "ipam/route", Deny;
    wrong: "A route of `ipam` cannot be decoded, or cannot be set up.";
    why: "The IPAM plugin decodes `routes` first: a `dst` that is not a network, or a `gw` that is not an address, fails every pod. A \
        route without `dst` passes there, but the plugin that called it cannot decode the result. Some routes fail only when they are \
        set up, which needs a kernel interface in the pod; these are warnings: a gateway of the other IP family, one that is in none \
        of the subnets of host-local or static, and a route that is given twice.";
    fix: "Write `dst` as a network (0.0.0.0/0 for the default route), and `gw` as an address inside one of the subnets.";
}

/// The rules on the routes of a section.
pub(super) fn check(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let mut repeated = Repeated::new("route");
    for element in ipam.object.list_of("routes") {
        match CniObject::of(element) {
            Some(route) => {
                check_route(ipam, route, out);
                if let Some(key) = plain_route(route) {
                    let shown = ipam.shown(element.span);
                    repeated.check(key, shown, element.span, ipam, &ROUTE, out);
                }
            }
            None if element.is_null() => {
                let note = "the plugin that sets up the route crashes";
                ipam.report(out, &ROUTE, element.span, "a route is null", note, "remove the element").at_most_warn();
            }
            None => {}
        }
    }
}

fn check_route(ipam: &Ipam<'_>, route: CniObject<'_>, out: &mut Findings<'_>) {
    let Some(dst) = route.get("dst") else {
        let headline = "a route has no `dst`";
        let help = "add a `dst`, for example 0.0.0.0/0 for the default route";
        if ipam.old_version.is_some() {
            out.config(&IGNORED, route.value.span, headline, "the route is dropped", help);
        } else {
            let note =
                "the calling plugin cannot decode the IPAM result; every pod that uses this network fails to start";
            ipam.report(out, &ROUTE, route.value.span, headline, note, help);
        }
        return;
    };
    let to = destination(ipam, &dst.value, out);
    let Some(value) = route.value_of("gw") else { return };
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    match (AddressParser::Strict.ip(text), to) {
        (None, _) => {
            let headline = format!("`gw` is {}, which is not an IP address", debug_text(text));
            ipam.report(out, &ROUTE, value.span, headline, ipam.fails(), ip_help(text));
        }
        (Some(gateway), Some(is_ipv4)) if gateway.is_ipv4() != is_ipv4 => {
            let headline = format!("`gw` is {gateway}, which is not of the IP family of its `dst`");
            let note = "the route cannot be set, and pods with a kernel interface fail to start";
            ipam.report(out, &ROUTE, value.span, headline, note, "use a gateway of the same family").at_most_warn();
        }
        _ => {}
    }
}

/// Where a route leads to, and over which gateway, if that is all it says.
fn plain_route(route: CniObject<'_>) -> Option<(IpNet, Option<IpAddr>)> {
    let to = AddressParser::Strict.cidr(route.str_of("dst")?)?.network()?;
    let gateway = route.value_of("gw").filter(|value| value.as_str() != Some(""));
    let over = gateway.map(|value| AddressParser::Strict.ip(value.as_str()?)).unwrap_or_default();
    // Other keys are ignored.
    let is_more = |key: &str| ["mtu", "advmss", "priority", "table", "scope"].iter().any(|more| same_key(key, more));
    (!route.members.iter().any(|member| is_more(&member.key)) && gateway.is_some() == over.is_some())
        .then_some((to, over))
}

/// Whether the destination is one of IPv4; `None` where it cannot be read.
fn destination(ipam: &Ipam<'_>, value: &Value<'_>, out: &mut Findings<'_>) -> Option<bool> {
    // A null is decoded like an empty text here, and rejected.
    let text = if value.is_null() { "" } else { value.as_str()? };
    let Some(cidr) = AddressParser::Strict.cidr(text) else {
        let headline = format!("`dst` is {}, which is not a network", ipam.shown(value.span));
        ipam.report(out, &ROUTE, value.span, headline, ipam.fails(), cidr_help(text));
        return None;
    };
    Some(cidr.ip.to_canonical().is_ipv4())
}
