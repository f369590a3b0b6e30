//! static: fixed addresses.

use super::super::super::Rule;
use super::super::super::finding::Findings;
use super::super::super::rule::rule;
use super::address::{AddressParser, Cidr, cidr_help, ip_help};
use super::repeated::Repeated;
use super::{AddressSource, Ipam, debug_text, host_local, routes, version_name};
use crate::cni::{CniObject, Plugin};
use crate::json::{Span, Value};

rule! { STATIC_ADDRESS = "ipam/static-address", Deny;
    wrong: "The static plugin rejects an address.";
    why: "The plugin parses `addresses` when a pod starts. An `address` without its prefix length, or a `gateway` that is not an \
        address, fails every pod; so does a second address of the same IP family before cniVersion 0.3.0. An address that is given \
        twice is a warning, because it fails only if the pod gets a kernel interface. With the capability `ips`, pods can provide \
        addresses that replace these, and an invalid one is a warning; so is an invalid one of `ips` in `args.cni` or `runtimeConfig`.";
    fix: "Write the address with its prefix length, for example 192.168.10.7/24.";
}

/// The rules on a static section.
pub(super) fn check(ipam: &Ipam<'_>, out: &mut Findings<'_>) -> AddressSource {
    routes::check(ipam, out);
    addresses(ipam, &STATIC_ADDRESS, AddressParser::Strict, out).source
}

/// The addresses that static and host-local read beside their section. A runtime replaces those of `runtimeConfig`.
pub(super) fn check_beside(plugin: &Plugin<'_>, ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let (rule, help) = match ipam.kind {
        "static" => (&STATIC_ADDRESS, "write the address with its prefix length, for example 192.168.10.7/24"),
        "host-local" => (&host_local::HOST_LOCAL_RANGE, "write an address of one of the ranges"),
        _ => return,
    };
    let is_good = |text: &str| {
        let is_cidr = AddressParser::Strict.cidr(text).is_some();
        is_cidr || (ipam.kind == "host-local" && AddressParser::Strict.ip(text).is_some())
    };
    let runtime = plugin.object.object_of("runtimeConfig");
    if let Some(runtime) = runtime.filter(|_| ipam.kind == "host-local") {
        let replaceable = Ipam { is_uncertain: true, ..*ipam };
        for set in runtime.list_of("ipRanges") {
            let _ = host_local::set(&replaceable, set, out);
        }
    }
    let arguments = plugin.object.object_of("args").and_then(|args| args.object_of("cni"));
    for object in [arguments, runtime].into_iter().flatten() {
        for value in object.list_of("ips") {
            if let Some(text) = value.as_str().filter(|text| !is_good(text)) {
                let headline = format!("`ips` has {}, which {} cannot parse", debug_text(text), ipam.kind);
                ipam.report(out, rule, value.span, headline, ipam.fails(), help).at_most_warn();
            }
        }
    }
}

/// What `addresses` hold.
pub(super) struct Addresses {
    pub(super) source: AddressSource,
    /// The first good one of IPv4, and of IPv6.
    pub(super) firsts: [Option<Span>; 2],
}

/// The rules on `addresses`, which whereabouts has too.
pub(super) fn addresses(
    ipam: &Ipam<'_>,
    rule: &'static Rule,
    reader: AddressParser,
    out: &mut Findings<'_>,
) -> Addresses {
    let value = ipam.object.value_of("addresses");
    let elements = value.and_then(Value::elements).unwrap_or_default();
    let mut firsts: [Option<Span>; 2] = [None, None];
    let mut second = None;
    let mut repeated = Repeated::new("address");
    for element in elements {
        let Some((span, text, cidr)) = address(ipam, element, rule, reader, out) else { continue };
        let is_ipv4 = cidr.ip.to_canonical().is_ipv4();
        repeated.check((cidr.ip.to_canonical(), cidr.prefix), text, span, ipam, rule, out);
        let [v4, v6] = &mut firsts;
        match if is_ipv4 { v4 } else { v6 } {
            first @ None => *first = Some(span),
            Some(_) => second = second.or(Some((span, text))),
        }
    }
    if let (Some(version), Some((span, text))) = (ipam.old_version, second) {
        let headline = format!("address {} is the second of its IP family", debug_text(text));
        let note = format!(
            "{} rejects it {}; every pod that uses this network fails to start",
            ipam.kind,
            version_name(version)
        );
        let help = "use cniVersion 0.3.0 or later, or keep one address";
        let finding = ipam.report(out, rule, span, headline, note, help);
        if ipam.may_be_supplied {
            finding.at_most_warn();
        }
    }
    let given = value.is_some_and(|value| value.elements().is_none_or(|elements| !elements.is_empty()));
    Addresses { source: if given { AddressSource::Given } else { AddressSource::Missing }, firsts }
}

/// One address: its span, its text, and what it is. `None` if it is not an address.
fn address<'d>(
    ipam: &Ipam<'_>,
    element: &'d Value<'d>,
    rule: &'static Rule,
    reader: AddressParser,
    out: &mut Findings<'_>,
) -> Option<(Span, &'d str, Cidr)> {
    let kind = ipam.kind;
    let object = CniObject::of(element);
    if let Some(object) = object {
        // In exactly this spelling it is a different field of the plugin, of another type.
        if let Some(own) = object.get_exact("Address").filter(|own| !own.value.is_null()) {
            if CniObject::of(&own.value).is_none() {
                let headline = format!("`Address` is {}, expected `address`", ipam.shown(own.value.span));
                let note = format!(
                    "in this spelling {kind} decodes another field; every pod that uses this network fails to start"
                );
                ipam.report(out, rule, own.value.span, headline, note, "write `address`, in lower case");
            }
            return None;
        }
        if let Some(value) = object.value_of("gateway")
            && let Some(text) = value.as_str().filter(|text| !text.is_empty())
            && AddressParser::Strict.ip(text).is_none()
        {
            let headline = format!("`gateway` is {}, which is not an IP address", debug_text(text));
            ipam.report(out, rule, value.span, headline, ipam.fails(), ip_help(text));
        }
    } else if !element.is_null() {
        return None;
    }
    let value = object.and_then(|object| object.value_of("address"));
    let text = value.map_or(Some(""), Value::as_str)?;
    let span = value.unwrap_or(element).span;
    let Some(cidr) = reader.cidr(text) else {
        let headline = match value {
            Some(_) => format!("`address` is {}, which is not an address with a prefix length", debug_text(text)),
            None => "an element of `addresses` has no `address`".to_owned(),
        };
        let finding = ipam.report(out, rule, span, headline, ipam.fails(), cidr_help(text));
        if ipam.may_be_supplied && kind == "static" {
            finding.at_most_warn();
        }
        return None;
    };
    Some((span, text, cidr))
}
