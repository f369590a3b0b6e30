//! Which addresses a config hands out, read by the functions that judge it: a section that its plugin rejects hands out none.

use super::super::super::Action;
use super::super::super::finding::Findings;
use super::super::super::neighbours::ranges::{AddressRange, MAX_RANGES, subtract};
use super::super::super::ratchet::{JudgedObject, Ratchet};
use super::address::{AddressParser, numbered_address};
use super::{Ipam, host_local, old_version, static_address, whereabouts};
use crate::cni::releases::Versions;
use crate::cni::{CniObject, Config, Plugin};
use crate::json::{Span, Value};

/// What a plugin's IPAM section hands out.
pub(in crate::policy) struct HandedOut<'d> {
    /// The plugin whose interface gets the addresses.
    pub(in crate::policy) plugin: Plugin<'d>,
    /// The IPAM section, and its type.
    pub(in crate::policy) section: CniObject<'d>,
    pub(in crate::policy) kind: &'d str,
    pub(in crate::policy) ranges: Vec<AddressRange>,
    /// Where the ranges are written.
    pub(in crate::policy) span: Span,
}

/// The addresses that a config hands out for sure: by the first plugin with an IPAM section. `None` also if pods, the runtime or the
/// node may provide others, and where more than one program may read the config.
pub(in crate::policy) fn handed_out<'d>(config: &Config<'d>) -> Option<HandedOut<'d>> {
    if !config.others.is_empty() {
        return None;
    }
    let plugin = config.plugins.iter().find(|plugin| plugin.ipam().is_some())?;
    let ipam = Ipam::of(config.document.text, plugin, old_version(config))?;
    if ipam.may_be_supplied || ipam.is_uncertain {
        return None;
    }
    let (versions, document) = (Versions::default(), Some(config.document));
    let findings = || Findings::new(JudgedObject::Status, document, Ratchet::Off, &versions);
    let (mut out, mut again) = (findings(), findings());
    let (ranges, keys): (Option<Vec<AddressRange>>, [&str; 2]) = match ipam.kind {
        "host-local" => {
            host_local::check(&ipam, &mut out);
            let sets = host_local::sets(&ipam, &mut again);
            (joined(sets.iter().flatten().map(of_host_local)), ["subnet", "ranges"])
        }
        "whereabouts" => {
            whereabouts::check(&ipam, &mut out);
            let ranges = whereabouts::ranges(&ipam, &mut again);
            (joined(ranges.iter().map(of_whereabouts)), ["range", "ipRanges"])
        }
        "static" => {
            static_address::check(&ipam, &mut out);
            let addresses = ipam.object.list_of("addresses").iter().filter_map(CniObject::of);
            let address = |one: CniObject<'_>| {
                let ip = AddressParser::Strict.cidr(one.str_of("address")?)?.ip.to_canonical();
                Some(vec![AddressRange::new(ip, ip)?])
            };
            (joined(addresses.map(address)), ["addresses", "addresses"])
        }
        _ => return None,
    };
    let is_rejected =
        out.into_parts().0.iter().any(|found| found.rule.default == Action::Deny && found.ceiling == Action::Deny);
    let ranges = ranges.filter(|ranges| !ranges.is_empty() && !is_rejected)?;
    let written: &Value<'_> = keys.iter().find_map(|key| ipam.object.value_of(key))?;
    Some(HandedOut { plugin: *plugin, section: ipam.object, kind: ipam.kind, ranges, span: written.span })
}

/// All parts; `None` if one of them is unknown, or if there are too many.
fn joined(parts: impl Iterator<Item = Option<Vec<AddressRange>>>) -> Option<Vec<AddressRange>> {
    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
        if all.len() > MAX_RANGES {
            return None;
        }
    }
    Some(all)
}

fn of_host_local(range: &host_local::Range) -> Option<Vec<AddressRange>> {
    let gateway = AddressRange::new(range.gateway, range.gateway);
    // Of a subnet, only its broadcast address may be left.
    let Some(all) = AddressRange::new(range.start, range.end) else { return Some(Vec::new()) };
    subtract(all, gateway.as_slice())
}

fn of_whereabouts(range: &whereabouts::WhereaboutsRange) -> Option<Vec<AddressRange>> {
    let is_ipv4 = range.net.addr().is_ipv4();
    let ip = |number| numbered_address(number, is_ipv4);
    let of = |(first, last)| AddressRange::new(ip(first), ip(last));
    let excluded: Vec<_> = range.excluded.iter().filter_map(|part| of(*part)).collect();
    subtract(of(range.bounds?)?, &excluded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn ranges(members: &str) -> Option<String> {
        let text = format!(r#"{{"cniVersion":"1.0.0","type":"macvlan",{members}}}"#);
        let document = Document::parse(&text).unwrap();
        let found = handed_out(&Config::of(&document).unwrap())?;
        Some(found.ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn addresses_are_those_that_the_plugin_hands_out() {
        for (ipam, want) in [
            (r#""host-local","subnet":"10.0.0.0/24""#, Some("10.0.0.2-10.0.0.254")),
            (
                r#""host-local","subnet":"10.0.0.0/24","rangeStart":"10.0.0.10","rangeEnd":"10.0.0.20","gateway":"10.0.0.15""#,
                Some("10.0.0.10-10.0.0.14 10.0.0.16-10.0.0.20"),
            ),
            (
                r#""host-local","ranges":[[{"subnet":"10.0.0.0/30"}],[{"subnet":"fd00::/64"}]]"#,
                Some("10.0.0.2 fd00::2-fd00::ffff:ffff:ffff:ffff"),
            ),
            (r#""host-local","subnet":"10.0.0.5/24""#, None),
            (r#""host-local","ranges":[[{"subnet":"10.0.0.0/24"}],[{"subnet":"10.0.0.0/25"}]]"#, None),
            (r#""whereabouts","range":"10.0.0.0/24""#, Some("10.0.0.1-10.0.0.254")),
            (
                r#""whereabouts","range":"10.0.0.0/24","exclude":["10.0.0.0/28","10.0.0.100"]"#,
                Some("10.0.0.16-10.0.0.99 10.0.0.101-10.0.0.254"),
            ),
            (r#""whereabouts","range":"10.0.0.10-10.0.0.20/24""#, Some("10.0.0.10-10.0.0.20")),
            (
                r#""whereabouts","range":"10.0.0.0/24","range_start":"10.0.0.50","range_end":"10.0.9.9""#,
                Some("10.0.0.50-10.0.0.254"),
            ),
            (
                r#""whereabouts","range":"10.0.0.0/29","ipRanges":[{"range":"fd00::/126"}]"#,
                Some("10.0.0.1-10.0.0.6 fd00::1-fd00::2"),
            ),
            (r#""whereabouts","range":"10.0.0.0/32""#, None),
            (r#""whereabouts","range":"10.0.0.0/24","exclude":["x"]"#, None),
            (r#""whereabouts","range":"10.0.0.0/24","configuration_path":"/etc/w.conf""#, None),
            (r#""static","addresses":[{"address":"10.0.0.5/24"},{"address":"fd00::5/64"}]"#, Some("10.0.0.5 fd00::5")),
            (r#""static","addresses":[{"address":"10.0.0.5"}]"#, None),
            (r#""static""#, None),
            (r#""dhcp""#, None),
        ] {
            assert_eq!(ranges(&format!(r#""ipam":{{"type":{ipam}}}"#)).as_deref(), want, "{ipam}");
        }
    }

    #[test]
    fn addresses_that_something_else_may_provide_are_unknown() {
        for members in [
            r#""capabilities":{"ipRanges":true},"ipam":{"type":"host-local","subnet":"10.0.0.0/24"}"#,
            r#""capabilities":{"ips":true},"ipam":{"type":"static","addresses":[{"address":"10.0.0.5/24"}]}"#,
            r#""Type":"unknown-plugin","name":"n","ipam":{"type":"host-local","subnet":"10.0.0.0/24"}"#,
            r#""mtu":1500"#,
        ] {
            assert_eq!(ranges(members), None, "{members}");
        }
        let many: Vec<_> = (0..20).map(|number| format!(r#"{{"address":"10.0.{number}.5/24"}}"#)).collect();
        assert_eq!(ranges(&format!(r#""ipam":{{"type":"static","addresses":[{}]}}"#, many.join(","))), None);
    }
}
