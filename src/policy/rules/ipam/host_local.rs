//! host-local: ranges that each node allocates from on its own.

use std::net::IpAddr;

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::address::{AddressParser, cidr_help, ip_help, number, within};
use super::{AddressSource, IGNORED, Ipam, quoted, routes, version_name};
use crate::cni::CniObject;
use crate::json::{Span, Value};

rule! { HOST_LOCAL_RANGE = "ipam/host-local-range", Deny;
"a range that host-local rejects";
"host-local validates all ranges before it hands out an address, and one invalid range fails every pod: a `subnet` that is not a network, has host bits set or leaves fewer than two addresses, a `rangeStart` or `rangeEnd` outside of it, overlapping ranges, sets that are empty or mix IPv4 with IPv6. A range that contains only its gateway is accepted but never gives an address. Without any range it fails too, unless the runtime provides one \
(capability `ipRanges`)." }

/// A range that host-local accepts, as it fills it in.
#[derive(Clone, Copy, Debug)]
struct Range {
    span: Span,
    start: IpAddr,
    end: IpAddr,
    gateway: IpAddr,
}

/// The rules on a host-local section.
pub(super) fn check(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> AddressSource {
    let object = ipam.object;
    routes::check(ipam, out);
    let ranges = object.value_of("ranges");
    let has_subnet = object.get("subnet").is_some();
    let top = if has_subnet { range(ipam, object, out) } else { bounds_without_subnet(ipam, out) };
    let top = top.map(|range| vec![range]);
    let sets = ranges.and_then(Value::elements).unwrap_or_default();
    // The range at the top becomes the first set.
    let sets: Vec<Vec<Range>> = top.into_iter().chain(sets.iter().filter_map(|value| set(ipam, value, out))).collect();
    sets.iter().for_each(|set| only_gateway(ipam, set, out));
    one_address_per_family(ipam, &sets, out);
    overlaps(ipam, sets.concat(), out);
    let has_ranges = ranges.is_some_and(|value| value.elements().is_none_or(|sets| !sets.is_empty()));
    if has_subnet || has_ranges { AddressSource::Given } else { AddressSource::Missing }
}

/// The keys of a range at the top, without the `subnet` that would make it one.
fn bounds_without_subnet(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> Option<Range> {
    for key in ["rangeStart", "rangeEnd", "gateway"] {
        if let Ok(Some(ip)) = bound(ipam, ipam.object, key, out)
            && let Some(value) = ipam.object.value_of(key)
            && !ipam.object.list_of("ranges").is_empty()
        {
            let message = format!("`{key}` is {ip}, which host-local ignores: it needs a `subnet` beside it");
            out.config(&IGNORED, value.span, message, "move it into the range in `ranges` that it is meant for");
        }
    }
    None
}

/// One set of ranges; `None` where host-local would have stopped with an error.
fn set(ipam: &Ipam<'_>, value: &Value<'_>, out: &mut Findings<'_>) -> Option<Vec<Range>> {
    let elements = match value.elements() {
        Some(elements) if !elements.is_empty() => elements,
        None if !value.is_null() => return None,
        _ => {
            let message =
                format!("a set in `ranges` is {}: host-local rejects it and fails every pod", describe(value));
            ipam.report(out, &HOST_LOCAL_RANGE, value.span, message, "write a list of ranges: [{\"subnet\": \"…\"}]");
            return None;
        }
    };
    let mut ranges = Vec::with_capacity(elements.len());
    for element in elements {
        match CniObject::of(element) {
            Some(object) => ranges.push(range(ipam, object, out)?),
            None if element.is_null() => {
                let message = "a range in `ranges` is null: host-local rejects it and fails every pod".to_owned();
                ipam.report(out, &HOST_LOCAL_RANGE, element.span, message, "write {\"subnet\": \"…\"}");
                return None;
            }
            None => return None,
        }
    }
    let first = ranges.first()?;
    if let Some(other) = ranges.iter().find(|range| range.start.is_ipv4() != first.start.is_ipv4()) {
        let message = format!(
            "the range from {} is in one set with that from {}: host-local rejects sets that mix IPv4 and IPv6 and fails every pod",
            other.start, first.start
        );
        let help = "give each family a list of its own in `ranges`";
        ipam.report(out, &HOST_LOCAL_RANGE, other.span, message, help);
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
        let message = "a range in `ranges` has no `subnet`: host-local fails every pod".to_owned();
        ipam.report(out, rule, object.value.span, message, "add a `subnet`: for instance 192.168.10.0/24");
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
    let report = |out: &mut Findings<'_>, value: &Value<'_>, message: String, help: &str| {
        ipam.report(out, rule, value.span, message, help);
        None
    };
    let Some(cidr) = AddressParser::Strict.cidr(text) else {
        let message = format!(
            "`subnet` is {}, which is not a network: host-local fails every pod",
            ipam.shown(member.value.span)
        );
        return report(out, &member.value, message, cidr_help(text));
    };
    let net = cidr.network()?;
    if cidr.ip.is_ipv6() && cidr.ip.to_canonical().is_ipv4() {
        let message =
            format!("`subnet` is {}, an IPv4 network written as IPv6: host-local fails every pod", quoted(text));
        return report(out, &member.value, message, &format!("write {net}"));
    }
    if net.max_prefix_len() - net.prefix_len() < 2 {
        let message =
            format!("`subnet` is {}, too small to hand out addresses: host-local fails every pod", quoted(text));
        let help = if cidr.ip.is_ipv4() { "use a prefix of at most /30" } else { "use a prefix of at most /126" };
        return report(out, &member.value, message, help);
    }
    if net.addr() != cidr.ip {
        let message = format!("`subnet` is {}, with host bits set: host-local fails every pod", quoted(text));
        return report(out, &member.value, message, &format!("write {net}"));
    }
    let first = next(net.addr())?;
    let last = if net.addr().is_ipv4() { previous(net.broadcast())? } else { net.broadcast() };
    let outside = |out: &mut Findings<'_>, key: &str, ip: IpAddr, from: IpAddr, to: IpAddr| {
        let value = object.value_of(key)?;
        let message = format!("`{key}` is {ip}, outside of {from} to {to}: host-local fails every pod");
        let help = format!("use an address of {net}, with `rangeStart` not after `rangeEnd`");
        report(out, value, message, &help)
    };
    if let Some(start) = start {
        let to =
            end.filter(|end| end.is_ipv4() == start.is_ipv4() && net.contains(end)).unwrap_or_else(|| net.broadcast());
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
        let message = format!("`{key}` is {}, which is not an IP address: host-local fails every pod", quoted(text));
        ipam.report(out, &HOST_LOCAL_RANGE, value.span, message, ip_help(text));
    }
    ip.map(Some).ok_or(())
}

/// The gateway is never handed out.
fn only_gateway(ipam: &Ipam<'_>, set: &[Range], out: &mut Findings<'_>) {
    let alone = |range: &Range| range.start == range.end && range.start == range.gateway;
    if let Some(first) = set.first().filter(|_| set.iter().all(alone)) {
        let message = format!(
            "the range contains only its gateway {}, which host-local never hands out: every pod fails",
            first.start
        );
        ipam.report(out, &HOST_LOCAL_RANGE, first.span, message, "widen the range, or set another gateway");
    }
}

/// Results of old CNI versions hold one address per family, and each set gives one.
fn one_address_per_family(ipam: &Ipam<'_>, sets: &[Vec<Range>], out: &mut Findings<'_>) {
    let Some(version) = ipam.old_version else { return };
    for family in [true, false] {
        let mut firsts = sets.iter().filter_map(|set| set.first()).filter(|range| range.start.is_ipv4() == family);
        if let (Some(_), Some(second)) = (firsts.next(), firsts.next()) {
            let message = format!(
                "the range from {} would give a second address of its family, which host-local rejects {}",
                second.start,
                version_name(version)
            );
            let help = "use cniVersion 0.3.0 or later, or put the ranges into one set";
            ipam.report(out, &HOST_LOCAL_RANGE, second.span, message, help);
        }
    }
}

/// No two ranges may share an address, in one set or in two.
fn overlaps(ipam: &Ipam<'_>, mut ranges: Vec<Range>, out: &mut Findings<'_>) {
    // A start after the end is possible (the broadcast address alone); its overlaps are not checked.
    ranges.retain(|range| number(range.start) <= number(range.end));
    ranges.sort_by_key(|range| (range.start.is_ipv6(), number(range.start), range.span.start));
    for pair in ranges.windows(2) {
        let [a, b] = pair else { continue };
        if !within(b.start, a.start, a.end) {
            continue;
        }
        let (earlier, later) = if a.span.start < b.span.start { (a, b) } else { (b, a) };
        let message = format!(
            "the range {} to {} overlaps with {} to {}: host-local fails every pod",
            later.start, later.end, earlier.start, earlier.end
        );
        let help = "remove one of them, or separate them with `rangeStart` and `rangeEnd`";
        ipam.report(out, &HOST_LOCAL_RANGE, later.span, message, help);
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
