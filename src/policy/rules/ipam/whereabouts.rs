//! whereabouts: ranges shared by the whole cluster.
//!
//! Releases differ: what only some of them reject is a warning here.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::address::{AddressParser, address_number, cidr_help, ip_help, within};
use super::repeated::Repeated;
use super::{AddressSource, IGNORED, Ipam, debug_text, routes, static_address, version_name};
use crate::cni::CniObject;
use crate::cni::releases::{Program, Since};
use crate::json::{Span, Value};

rule! { WHEREABOUTS_RANGE = "ipam/whereabouts-range", Deny;
    wrong: "whereabouts rejects a range of addresses.";
    why: "whereabouts parses `range`, each of `ipRanges`, `gateway` and `addresses` when a pod starts, and `exclude` when it allocates \
        an address. What it cannot parse fails every pod, and so does an `exclude` that leaves no address. A range is a network, or \
        `first-last/prefix` with the first address in that network; host bits and leading zeros are allowed. A range of one or two \
        addresses is a warning, because most releases reject it.";
    fix: "Write a range with its prefix length, for example 192.168.20.0/24 or 192.168.20.10-192.168.20.90/24.";
    releases: "From whereabouts 0.8 on, a pod gets the same address again from a range that is given twice. That is a warning, unless \
        the policy names an older release (`versions`).";
}

/// Since when a pod gets the same address again from a range.
const SAME_ADDRESS: Since = Since { program: Program::Whereabouts, release: [0, 8, 0] };

/// How a range is read.
#[derive(Clone, Copy, Debug)]
struct RangeOptions {
    /// Which parser reads its bounds: the top level and `ipRanges` use different ones.
    bounds: AddressParser,
    /// Whether all nodes allocate from the same addresses, those within the bounds.
    is_plain: bool,
}

/// The rules on a whereabouts section.
pub(super) fn check(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> AddressSource {
    let object = ipam.object;
    routes::check(ipam, out);
    let addresses = static_address::addresses(ipam, &WHEREABOUTS_RANGE, AddressParser::Tolerant, out);
    gateway(ipam, out);
    let nets: Vec<_> = ranges(ipam, out).into_iter().map(|range| (range.span, range.net)).collect();
    // Older releases give a second address from the same range.
    if nets.len() > 1 && out.versions.reach(SAME_ADDRESS) != Some(false) {
        let mut repeated = Repeated::new("range");
        for (span, net) in &nets {
            repeated.check(*net, net, *span, ipam, &WHEREABOUTS_RANGE, out);
        }
    }
    lost_addresses(ipam, &nets, addresses.firsts, out);
    let has_more =
        object.value_of("ipRanges").is_some_and(|value| value.elements().is_none_or(|elements| !elements.is_empty()));
    if top(ipam).is_some() || has_more { AddressSource::Given } else { addresses.source }
}

/// The range beside the type.
fn top<'d>(ipam: &Ipam<'d>) -> Option<&'d Value<'d>> {
    ipam.object.value_of("range").filter(|value| value.as_str() != Some(""))
}

/// A range that whereabouts accepts.
pub(super) struct WhereaboutsRange {
    pub(super) span: Span,
    pub(super) net: IpNet,
    /// The first and the last address that it hands out; `None` if most releases reject it.
    pub(super) bounds: Option<(u128, u128)>,
    /// The first and the last address of each part that is excluded.
    pub(super) excluded: Vec<(u128, u128)>,
}

/// All ranges, in the order in which they are used.
pub(super) fn ranges(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> Vec<WhereaboutsRange> {
    let object = ipam.object;
    let is_plain = object.value_of("node_slice_size").is_none() && object.value_of("enable_l3").is_none();
    let mut found = Vec::new();
    match top(ipam) {
        Some(value) => {
            found.extend(range(ipam, object, value, RangeOptions { bounds: AddressParser::Tolerant, is_plain }, out));
        }
        None => without_range(ipam, out),
    }
    slices(ipam, found.first().map(|range| range.net), out);
    for element in object.list_of("ipRanges") {
        found.extend(element_of_ip_ranges(ipam, element, is_plain, out));
    }
    found
}

/// The gateway of all ranges. Spelled `Gateway` it is another field, which accepts anything.
pub(super) fn gateway_of<'d>(ipam: &Ipam<'d>) -> Option<&'d Value<'d>> {
    let all = ipam.object.named("gateway").filter(|member| member.key != "Gateway");
    all.max_by(|a, b| a.key.cmp(&b.key)).map(|member| &member.value)
}

/// The network of an object with a `range`.
pub(super) fn network_of(object: CniObject<'_>) -> Option<IpNet> {
    let text = object.str_of("range")?;
    AddressParser::Tolerant.cidr(text.split_once('-').map_or(text, |(_, rest)| rest))?.network()
}

/// The network of the first range that whereabouts uses, if it can be read.
pub(in crate::policy) fn first_range(section: CniObject<'_>) -> Option<IpNet> {
    let has_own = section.value_of("range").is_some_and(|value| value.as_str() != Some(""));
    network_of(if has_own { section } else { CniObject::of(section.list_of("ipRanges").first()?)? })
}

fn gateway(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let Some(value) = gateway_of(ipam) else { return };
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    if AddressParser::Tolerant.ip(text).is_none() {
        let headline = format!("`gateway` is {}, which is not an IP address", debug_text(text));
        ipam.report(out, &WHEREABOUTS_RANGE, value.span, headline, ipam.fails(), ip_help(text));
    }
}

/// Keys that need a `range` which is absent.
fn without_range(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    for key in ["range_start", "range_end", "exclude"] {
        let Some(value) = ipam.object.value_of(key) else { continue };
        let empty = value.as_str() == Some("") || value.elements().is_some_and(<[Value<'_>]>::is_empty);
        if !empty && !ipam.object.list_of("ipRanges").is_empty() {
            let headline = format!("`{key}` is {}, but there is no `range` beside it", ipam.shown(value.span));
            let help = format!("move `{key}` into the elements of `ipRanges`");
            out.config(&IGNORED, value.span, headline, "whereabouts ignores it", help);
        }
    }
}

fn element_of_ip_ranges(
    ipam: &Ipam<'_>,
    element: &Value<'_>,
    is_plain: bool,
    out: &mut Findings<'_>,
) -> Option<WhereaboutsRange> {
    let object = CniObject::of(element);
    if object.is_none() && !element.is_null() {
        return None;
    }
    let Some((object, value)) = object.and_then(|object| Some((object, object.value_of("range")?))) else {
        let headline = "an element of `ipRanges` has no `range`";
        let help = "add a `range`, for example 192.168.10.0/24";
        ipam.report(out, &WHEREABOUTS_RANGE, element.span, headline, ipam.fails(), help);
        return None;
    };
    if let Some(member) = object.get("gateway").filter(|member| !member.value.is_null()) {
        let headline = format!("`gateway` is {} in an element of `ipRanges`", ipam.shown(member.value.span));
        let note = "whereabouts does not read it there";
        out.config(&IGNORED, member.key_span, headline, note, "move `gateway` out, beside `ipRanges`");
    }
    let is_plain = is_plain && object.value_of("enable_l3").is_none();
    range(ipam, object, value, RangeOptions { bounds: AddressParser::Strict, is_plain }, out)
}

/// One range with what limits it.
fn range(
    ipam: &Ipam<'_>,
    object: CniObject<'_>,
    value: &Value<'_>,
    how: RangeOptions,
    out: &mut Findings<'_>,
) -> Option<WhereaboutsRange> {
    let text = value.as_str()?;
    let report = |out: &mut Findings<'_>, why: &str, help: &str| {
        let headline = format!("`range` is {}, {why}", debug_text(text));
        ipam.report(out, &WHEREABOUTS_RANGE, value.span, headline, ipam.fails(), help);
        None
    };
    let (first, rest) = text.split_once('-').map_or((None, text), |(first, rest)| (Some(first), rest));
    let first = match first.map(|first| AddressParser::Tolerant.ip(first)) {
        Some(None) => return report(out, "which does not start with an IP address", "write first-last/prefix"),
        Some(first) => first,
        None => None,
    };
    let Some(cidr) = AddressParser::Tolerant.cidr(rest) else {
        return report(out, "which is not a network", cidr_help(rest));
    };
    let net = cidr.network()?;
    if first.is_some_and(|first| !net.contains(&first)) {
        return report(out, "which starts outside of its own network", &format!("start it in {net}"));
    }
    let is_tiny = net.max_prefix_len() - net.prefix_len() < 2;
    if is_tiny {
        let headline = format!("`range` is {}, which is too small", debug_text(text));
        let note = "most releases of whereabouts reject it; every pod that uses this network fails to start";
        let help = if net.addr().is_ipv4() { "use a prefix of at most /30" } else { "use a prefix of at most /126" };
        ipam.report(out, &WHEREABOUTS_RANGE, value.span, headline, note, help).at_most_warn();
    }
    let bounds = RangeBounds { ipam, object, reader: how.bounds, net };
    let (start, end) = match first {
        Some(first) => {
            bounds.overridden_bounds(out);
            (Some((first, value.span)), Some((cidr.ip.to_canonical(), value.span)))
        }
        None => (bounds.read("range_start", out), bounds.read("range_end", out)),
    };
    let bounds = (!is_tiny).then(|| bounds.apply(start, end, out));
    let excluded = excludes(ipam, object, net, bounds.filter(|_| how.is_plain), out);
    Some(WhereaboutsRange { span: value.span, net, bounds, excluded })
}

/// The limits within a range.
struct RangeBounds<'a, 'd> {
    ipam: &'a Ipam<'d>,
    object: CniObject<'a>,
    reader: AddressParser,
    net: IpNet,
}

impl RangeBounds<'_, '_> {
    /// `first-last/prefix` overrides the other bounds.
    fn overridden_bounds(&self, out: &mut Findings<'_>) {
        for key in ["range_start", "range_end"] {
            if let Some((ip, span)) = self.read(key, out) {
                let headline = format!("`{key}` is {ip}, which is overridden by `range`");
                let note = "the `range` has its own first and last address; whereabouts ignores the key";
                out.config(&IGNORED, span, headline, note, format!("remove `{key}`"));
            }
        }
    }

    /// A bound. An invalid one is ignored at the top level and rejected in `ipRanges`.
    fn read(&self, key: &str, out: &mut Findings<'_>) -> Option<(IpAddr, Span)> {
        let value = self.object.value_of(key)?;
        let text = value.as_str().filter(|text| !text.is_empty())?;
        let ip = self.reader.ip(text);
        if ip.is_none() && self.reader == AddressParser::Tolerant {
            let headline = format!("`{key}` is {}, which is not an IP address", debug_text(text));
            out.config(&IGNORED, value.span, headline, "whereabouts ignores it", ip_help(text));
        } else if ip.is_none() {
            let headline = format!("`{key}` is {}, which is not an IP address", debug_text(text));
            self.ipam.report(out, &WHEREABOUTS_RANGE, value.span, headline, self.ipam.fails(), ip_help(text));
        }
        Some((ip?, value.span))
    }

    /// The first and the last address that are handed out.
    fn apply(
        &self,
        start: Option<(IpAddr, Span)>,
        end: Option<(IpAddr, Span)>,
        out: &mut Findings<'_>,
    ) -> (u128, u128) {
        let (network, broadcast) = (self.net.network(), self.net.broadcast());
        let (mut from, mut to) =
            (address_number(network).saturating_add(1), address_number(broadcast).saturating_sub(1));
        let is_inside =
            |ip: IpAddr, from, to| within(ip, network, broadcast) && (from..=to).contains(&address_number(ip));
        let mut dropped = |which: &str, (ip, span): (IpAddr, Span)| {
            let net = self.net;
            let why = if within(ip, network, broadcast) { "leaves no address" } else { "is not in the network" };
            let headline = format!("the {which} address of {net} is set to {ip}, which {why}");
            let help = format!("use addresses of {net}, the lower one first");
            out.config(&IGNORED, span, headline, "whereabouts ignores it", help);
        };
        match start {
            Some((ip, _)) if is_inside(ip, from, to) => from = address_number(ip),
            // The range starts after the network address in any case.
            Some(start) if start.0 != network => dropped("first", start),
            _ => {}
        }
        match end {
            Some((ip, _)) if is_inside(ip, from, to) => to = address_number(ip),
            Some(end) if end.0 != broadcast => dropped("last", end),
            _ => {}
        }
        (from, to)
    }
}

/// The excluded parts of a range; `handed_out` are its first and last address where these are certain.
fn excludes(
    ipam: &Ipam<'_>,
    object: CniObject<'_>,
    net: IpNet,
    handed_out: Option<(u128, u128)>,
    out: &mut Findings<'_>,
) -> Vec<(u128, u128)> {
    let Some(list) = object.value_of("exclude") else { return Vec::new() };
    let mut taken: Vec<(u128, u128)> = Vec::new();
    for value in list.elements().unwrap_or_default() {
        // A null is decoded as an empty text, and rejected.
        let Some(text) = value.as_str().or(value.is_null().then_some("")) else { continue };
        let one = || AddressParser::Strict.ip(text).map(IpNet::from);
        let Some(excluded) = AddressParser::Strict.cidr(text).and_then(|cidr| cidr.network()).or_else(one) else {
            let headline = format!("`exclude` has {}, which is not a network", debug_text(text));
            let help = match ip_help(text) {
                zeros if zeros.contains("zeros") => zeros,
                _ => "write a network or an address, for example 192.168.10.0/28",
            };
            ipam.report(out, &WHEREABOUTS_RANGE, value.span, headline, ipam.fails(), help);
            continue;
        };
        if net.contains(&excluded) || excluded.contains(&net) {
            taken.push((address_number(excluded.network()), address_number(excluded.broadcast())));
        } else {
            let headline = format!("`exclude` has {}, which is not in {net}", debug_text(text));
            out.config(&IGNORED, value.span, headline, "it excludes no address", format!("exclude a part of {net}"));
        }
    }
    if handed_out.is_some_and(|(from, to)| covers(taken.clone(), from, to)) {
        let headline = format!("`exclude` leaves no address of {net}");
        let note = "there is no address to hand out; every pod that uses this network fails to start";
        ipam.report(out, &WHEREABOUTS_RANGE, list.span, headline, note, "exclude less, or widen the range");
    }
    taken
}

/// Whether these ranges together cover every number from the first to the last.
fn covers(mut taken: Vec<(u128, u128)>, from: u128, to: u128) -> bool {
    taken.sort_unstable();
    let mut next = from;
    for (first, last) in taken {
        if first > next {
            return false;
        }
        if last >= to {
            return true;
        }
        next = next.max(last + 1);
    }
    false
}

/// Each range and each of `addresses` gives one address; results of old CNI versions hold one per family.
fn lost_addresses(ipam: &Ipam<'_>, nets: &[(Span, IpNet)], addresses: [Option<Span>; 2], out: &mut Findings<'_>) {
    let Some(version) = ipam.old_version else { return };
    for (is_ipv4, fixed) in [true, false].into_iter().zip(addresses) {
        let ranges = nets.iter().filter(|(_, net)| net.addr().is_ipv4() == is_ipv4).map(|(span, _)| *span);
        if let Some(span) = ranges.chain(fixed).nth(1) {
            let family = if is_ipv4 { "IPv4" } else { "IPv6" };
            let headline = format!("{} gives a second {family} address", ipam.shown(span));
            let note = format!("{}, that address is lost", version_name(version));
            out.config(&IGNORED, span, headline, note, "use cniVersion 0.3.0 or later");
        }
    }
}

/// The per-node slices of a range, in releases that support them.
fn slices(ipam: &Ipam<'_>, net: Option<IpNet>, out: &mut Findings<'_>) {
    let Some(value) = ipam.object.value_of("node_slice_size") else { return };
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    let size: Option<u8> = text.strip_prefix('/').unwrap_or(text).parse().ok();
    let fits = |size: u8| net.is_none_or(|net| (net.prefix_len()..=net.max_prefix_len()).contains(&size));
    if !size.is_some_and(fits) {
        let range = net.map_or_else(|| "the range".to_owned(), |net| net.to_string());
        let headline = format!("`node_slice_size` is {}, which does not fit into {range}", debug_text(text));
        let note = "whereabouts cannot cut a slice of that size for a node";
        let help = "write a longer prefix length than that of the range, for example /28";
        ipam.report(out, &WHEREABOUTS_RANGE, value.span, headline, note, help).at_most_warn();
    }
}
