//! host-local: ranges that each node allocates from on its own.

use std::net::IpAddr;

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::address::{AddressParser, address_number, cidr_help, ip_help, within};
use super::{AddressSource, IGNORED, Ipam, debug_text, routes, version_name};
use crate::cni::CniObject;
use crate::json::{Span, Value};

rule! { HOST_LOCAL_RANGE = "ipam/host-local-range", Deny;
    wrong: "host-local rejects a range of addresses.";
    why: "host-local checks all ranges before it hands out an address, and one invalid range fails every pod: a `subnet` that is not a \
        network, has host bits set or leaves fewer than two addresses; a `rangeStart` or `rangeEnd` outside of its subnet; ranges that \
        overlap; a set that is empty or mixes IPv4 with IPv6. A range that holds only its gateway is accepted, but never gives an \
        address. Without any range pods fail too, unless the runtime provides one (capability `ipRanges`).";
    fix: "Correct the value that the message names. A network of length 24, for example, is written as 192.168.10.0/24.";
}

/// A range that host-local accepts, as it fills it in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) span: Span,
    pub(super) start: IpAddr,
    pub(super) end: IpAddr,
    /// Never handed out.
    pub(super) gateway: IpAddr,
}

/// The rules on a host-local section.
pub(super) fn check(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> AddressSource {
    let object = ipam.object;
    routes::check(ipam, out);
    let sets = sets(ipam, out);
    sets.iter().for_each(|set| only_gateway(ipam, set, out));
    one_address_per_family(ipam, &sets, out);
    overlaps(ipam, sets.concat(), out);
    let ranges = object.value_of("ranges");
    let has_ranges = ranges.is_some_and(|value| value.elements().is_none_or(|sets| !sets.is_empty()));
    if object.get("subnet").is_some() || has_ranges { AddressSource::Given } else { AddressSource::Missing }
}

/// The sets of ranges that host-local accepts.
pub(super) fn sets(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> Vec<Vec<Range>> {
    let object = ipam.object;
    let has_subnet = object.get("subnet").is_some();
    let top = if has_subnet { range(ipam, object, out) } else { bounds_without_subnet(ipam, out) };
    let top = top.map(|range| vec![range]);
    let sets = object.list_of("ranges");
    // The range at the top becomes the first set.
    top.into_iter().chain(sets.iter().filter_map(|value| set(ipam, value, out))).collect()
}

/// The keys of a range at the top, without the `subnet` that would make it one.
fn bounds_without_subnet(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> Option<Range> {
    for key in ["rangeStart", "rangeEnd", "gateway"] {
        if let Ok(Some(ip)) = bound(ipam, ipam.object, key, out)
            && let Some(value) = ipam.object.value_of(key)
            && !ipam.object.list_of("ranges").is_empty()
        {
            let headline = format!("`{key}` is {ip}, but there is no `subnet` beside it");
            let help = format!("move `{key}` into the range in `ranges` that it is meant for");
            out.config(&IGNORED, value.span, headline, "host-local ignores it", help);
        }
    }
    None
}

/// One set of ranges; `None` where host-local would have stopped with an error.
pub(super) fn set(ipam: &Ipam<'_>, value: &Value<'_>, out: &mut Findings<'_>) -> Option<Vec<Range>> {
    let elements = match value.elements() {
        Some(elements) if !elements.is_empty() => elements,
        None if !value.is_null() => return None,
        _ => {
            let headline = format!("a set in `ranges` is {}", describe(value));
            let help = "write a list of ranges: [{\"subnet\": \"…\"}]";
            ipam.report(out, &HOST_LOCAL_RANGE, value.span, headline, ipam.fails(), help);
            return None;
        }
    };
    let mut ranges = Vec::with_capacity(elements.len());
    for element in elements {
        match CniObject::of(element) {
            Some(object) => ranges.push(range(ipam, object, out)?),
            None if element.is_null() => {
                let headline = "a range in `ranges` is null";
                let help = "write {\"subnet\": \"…\"}";
                ipam.report(out, &HOST_LOCAL_RANGE, element.span, headline, ipam.fails(), help);
                return None;
            }
            None => return None,
        }
    }
    let first = ranges.first()?;
    if let Some(other) = ranges.iter().find(|range| range.start.is_ipv4() != first.start.is_ipv4()) {
        let headline = format!("the ranges from {} and {} mix IPv4 and IPv6 in one set", first.start, other.start);
        let help = "give each family a list of its own in `ranges`";
        ipam.report(out, &HOST_LOCAL_RANGE, other.span, headline, ipam.fails(), help);
        return None;
    }
    Some(ranges)
}

fn describe(value: &Value<'_>) -> &'static str {
    if value.is_null() { "null" } else { "empty" }
}

/// One range; `None` where host-local rejects it or cannot decode it.
fn range(ipam: &Ipam<'_>, object: CniObject<'_>, out: &mut Findings<'_>) -> Option<Range> {
    let rule = &HOST_LOCAL_RANGE;
    let Some(member) = object.get("subnet") else {
        let help = "add a `subnet`, for example 192.168.10.0/24";
        ipam.report(out, rule, object.value.span, "a range in `ranges` has no `subnet`", ipam.fails(), help);
        return None;
    };
    // A null is decoded like an empty text here, and rejected.
    let text = if member.value.is_null() { "" } else { member.value.as_str()? };
    let (start, end, gateway) = match (
        bound(ipam, object, "rangeStart", out),
        bound(ipam, object, "rangeEnd", out),
        bound(ipam, object, "gateway", out),
    ) {
        (Ok(start), Ok(end), Ok(gateway)) => (start, end, gateway),
        _ => return None,
    };
    let report = |out: &mut Findings<'_>, value: &Value<'_>, headline: String, help: &str| {
        ipam.report(out, rule, value.span, headline, ipam.fails(), help);
        None
    };
    let Some(cidr) = AddressParser::Strict.cidr(text) else {
        let headline = format!("`subnet` is {}, which is not a network", ipam.shown(member.value.span));
        return report(out, &member.value, headline, cidr_help(text));
    };
    let net = cidr.network()?;
    if cidr.ip.is_ipv6() && cidr.ip.to_canonical().is_ipv4() {
        let headline = format!("`subnet` is {}, an IPv4 network written as IPv6", debug_text(text));
        return report(out, &member.value, headline, &format!("write {net}"));
    }
    if net.max_prefix_len() - net.prefix_len() < 2 {
        let headline = format!("`subnet` is {}, which is too small to hand out addresses", debug_text(text));
        let help = if cidr.ip.is_ipv4() { "use a prefix of at most /30" } else { "use a prefix of at most /126" };
        return report(out, &member.value, headline, help);
    }
    if net.addr() != cidr.ip {
        let headline = format!("`subnet` is {}, which has host bits set", debug_text(text));
        return report(out, &member.value, headline, &format!("write {net}"));
    }
    let first = next(net.addr())?;
    let last = if net.addr().is_ipv4() { previous(net.broadcast())? } else { net.broadcast() };
    let outside = |out: &mut Findings<'_>, key: &str, ip: IpAddr, from: IpAddr, to: IpAddr| {
        let value = object.value_of(key)?;
        let headline = format!("`{key}` is {ip}, outside of {from} to {to}");
        let help = format!("use an address of {net}, with `rangeStart` not after `rangeEnd`");
        report(out, value, headline, &help)
    };
    if let Some(start) = start {
        let to = end.filter(|end| net.contains(end)).unwrap_or_else(|| net.broadcast());
        if !within(start, net.addr(), to) {
            return outside(out, "rangeStart", start, net.addr(), to);
        }
    }
    if let Some(end) = end {
        let from = start.unwrap_or(first);
        if !within(end, from, net.broadcast()) {
            return outside(out, "rangeEnd", end, from, net.broadcast());
        }
    }
    let (start, end) = (start.unwrap_or(first), end.unwrap_or(last));
    Some(Range { span: member.value.span, start, end, gateway: gateway.unwrap_or(first) })
}

/// An address that may be absent or empty; an error where it is no address, or cannot be decoded.
fn bound(ipam: &Ipam<'_>, object: CniObject<'_>, key: &str, out: &mut Findings<'_>) -> Result<Option<IpAddr>, ()> {
    let Some(value) = object.value_of(key) else { return Ok(None) };
    let text = value.as_str().ok_or(())?;
    if text.is_empty() {
        return Ok(None);
    }
    let ip = AddressParser::Strict.ip(text);
    if ip.is_none() {
        let headline = format!("`{key}` is {}, which is not an IP address", debug_text(text));
        ipam.report(out, &HOST_LOCAL_RANGE, value.span, headline, ipam.fails(), ip_help(text));
    }
    ip.map(Some).ok_or(())
}

/// The gateway is never handed out.
fn only_gateway(ipam: &Ipam<'_>, set: &[Range], out: &mut Findings<'_>) {
    let alone = |range: &Range| range.start == range.end && range.start == range.gateway;
    if let Some(first) = set.first().filter(|_| set.iter().all(alone)) {
        let headline = format!("the range contains only its gateway {}", first.start);
        let note = "host-local never hands out the gateway; every pod that uses this network fails to start";
        let help = "widen the range, or set another gateway";
        ipam.report(out, &HOST_LOCAL_RANGE, first.span, headline, note, help);
    }
}

/// Results of old CNI versions hold one address per family, and each set gives one.
fn one_address_per_family(ipam: &Ipam<'_>, sets: &[Vec<Range>], out: &mut Findings<'_>) {
    let Some(version) = ipam.old_version else { return };
    for family in [true, false] {
        let mut firsts = sets.iter().filter_map(|set| set.first()).filter(|range| range.start.is_ipv4() == family);
        if let (Some(_), Some(second)) = (firsts.next(), firsts.next()) {
            let headline = format!("the range from {} gives a second address of its IP family", second.start);
            let note = format!(
                "host-local rejects that {}; every pod that uses this network fails to start",
                version_name(version)
            );
            let help = "use cniVersion 0.3.0 or later, or put the ranges into one set";
            ipam.report(out, &HOST_LOCAL_RANGE, second.span, headline, note, help);
        }
    }
}

/// No two ranges may share an address, in one set or in two.
fn overlaps(ipam: &Ipam<'_>, mut ranges: Vec<Range>, out: &mut Findings<'_>) {
    // A start after the end is possible (the broadcast address alone); its overlaps are not checked.
    ranges.retain(|range| address_number(range.start) <= address_number(range.end));
    ranges.sort_by_key(|range| (range.start.is_ipv6(), address_number(range.start), range.span.start));
    for pair in ranges.windows(2) {
        let [a, b] = pair else { continue };
        if !within(b.start, a.start, a.end) {
            continue;
        }
        let (earlier, later) = if a.span.start < b.span.start { (a, b) } else { (b, a) };
        let headline =
            format!("the range {} to {} overlaps with {} to {}", later.start, later.end, earlier.start, earlier.end);
        let help = "remove one of them, or separate them with `rangeStart` and `rangeEnd`";
        ipam.report(out, &HOST_LOCAL_RANGE, later.span, headline, ipam.fails(), help);
        return;
    }
}

fn next(ip: IpAddr) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).checked_add(1).map(|ip| IpAddr::V4(ip.into())),
        IpAddr::V6(ip) => u128::from(ip).checked_add(1).map(|ip| IpAddr::V6(ip.into())),
    }
}

fn previous(ip: IpAddr) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).checked_sub(1).map(|ip| IpAddr::V4(ip.into())),
        IpAddr::V6(ip) => u128::from(ip).checked_sub(1).map(|ip| IpAddr::V6(ip.into())),
    }
}
