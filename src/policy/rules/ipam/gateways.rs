//! Gateways that the kernel cannot reach from the addresses of the interface.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::super::finding::Findings;
use super::super::meta::SBR;
use super::super::plugin::BRIDGE_OPTIONS;
use super::address::AddressParser;
use super::routes::ROUTE;
use super::{Ipam, whereabouts};
use crate::cni::{CniObject, Plugin};
use crate::json::{Span, Value};

/// How many routes, and how many subnets, are compared with each other.
const MAX_COMPARED: usize = 64;

/// Reports gateways of routes, and those from which `sbr` makes default routes, that are in none of the subnets.
pub(super) fn check(ipam: &Ipam<'_>, is_followed_by_sbr: bool, out: &mut Findings<'_>) {
    let routes = ipam.object.list_of("routes");
    if (routes.is_empty() && !is_followed_by_sbr) || routes.len() > MAX_COMPARED || ipam.may_be_supplied {
        return;
    }
    let sources = sources(ipam);
    if sources.len() > MAX_COMPARED {
        return;
    }
    let nets: Option<Vec<IpNet>> = sources.iter().map(|source| source.net).collect();
    // What cannot be read has a rule of its own.
    let Some(nets) = nets.filter(|nets| !nets.is_empty()) else { return };
    let destination = |route: &Value<'_>| network(CniObject::of(route)?, "dst", AddressParser::Strict);
    let reach = Reach { nets, destinations: routes.iter().map(destination).collect() };
    for (index, route) in routes.iter().enumerate() {
        let Some(route) = CniObject::of(route) else { continue };
        let Some(to) = network(route, "dst", AddressParser::Strict) else { continue };
        // Without a gateway of its own, a route gets the first one of its family.
        let gateway = address(route, "gw", AddressParser::Strict).or_else(|| {
            let mut given = sources.iter().filter_map(|source| source.gateway);
            given.find(|(gateway, _)| gateway.is_ipv4() == is_ipv4(&to))
        });
        let Some((gateway, span)) = gateway else { continue };
        if gateway.is_ipv4() == is_ipv4(&to) && !reach.leads_to(gateway, Some(index)) {
            let headline = format!("the gateway {gateway} is in none of the subnets");
            let note = "the kernel rejects the route (\"network is unreachable\"), and pods with a kernel interface fail to start";
            ipam.report(out, &ROUTE, span, headline, note, HELP).at_most_warn();
        }
    }
    if is_followed_by_sbr {
        default_routes(ipam, &sources, &reach, out);
    }
}

/// `sbr` adds a default route for each address that has a gateway.
fn default_routes(ipam: &Ipam<'_>, sources: &[Source], reach: &Reach, out: &mut Findings<'_>) {
    let mut reported: Option<Span> = None;
    for source in sources {
        let (Some(net), Some((gateway, span))) = (&source.net, source.gateway) else { continue };
        let why = match gateway.is_ipv4() == is_ipv4(net) {
            false => format!("is not of the same family as {net}"),
            true if !reach.leads_to(gateway, None) => "is in none of the subnets".to_owned(),
            true => continue,
        };
        // One gateway may belong to several subnets.
        if reported.replace(span) != Some(span) {
            let headline = format!("the gateway {gateway} {why}");
            let note = "`sbr` adds a default route to the gateway of each address; it cannot add this one, and pods with a kernel interface fail to start";
            ipam.report(out, &SBR, span, headline, note, HELP).at_most_warn();
        }
    }
}

const HELP: &str = "use a gateway in the subnet of the address";

/// What can be reached from an interface.
struct Reach {
    nets: Vec<IpNet>,
    /// Of each route, where it can be read.
    destinations: Vec<Option<IpNet>>,
}

impl Reach {
    /// Whether a subnet, or a route other than this one, leads to an address. No default route does.
    fn leads_to(&self, gateway: IpAddr, route: Option<usize>) -> bool {
        let others = self.destinations.iter().enumerate().filter(|(other, _)| Some(*other) != route);
        let routed = others.filter_map(|(_, net)| net.as_ref()).filter(|net| net.prefix_len() > 0);
        self.nets.iter().chain(routed).any(|net| net.contains(&gateway))
    }
}

/// Reports the second IPv4 network of a bridge that gets the gateway's address of each of them: it can have only one.
pub(super) fn check_bridge(plugin: &Plugin<'_>, ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let is = |key: &str| plugin.object.is_true(key);
    if plugin.kind != "bridge" || !(is("isGateway") || is("isDefaultGateway")) || is("forceAddress") {
        return;
    }
    let read = |object: CniObject<'_>, key: &str| {
        let span = object.value_of(key)?.span;
        let net =
            if key == "range" { whereabouts::network_of(object) } else { network(object, key, AddressParser::Strict) };
        net.filter(is_ipv4).map(|net| (net, span))
    };
    let all = |key: &'static str| ipam.object.list_of(key).iter();
    let top = |key: &'static str| read(ipam.object, key).into_iter();
    let networks: Vec<(IpNet, Span)> = match ipam.kind {
        "static" => all("addresses").filter_map(CniObject::of).filter_map(|one| read(one, "address")).collect(),
        // Of each set a pod gets one address.
        "host-local" => {
            let firsts = all("ranges").filter_map(|set| set.elements()?.first()).filter_map(CniObject::of);
            top("subnet").chain(firsts.filter_map(|range| read(range, "subnet"))).collect()
        }
        "whereabouts" => {
            let more = all("ipRanges").filter_map(CniObject::of);
            top("range").chain(more.filter_map(|range| read(range, "range"))).collect()
        }
        _ => Vec::new(),
    };
    let Some(((first, _), others)) = networks.split_first() else { return };
    if let Some((net, span)) = others.iter().find(|(net, _)| net.trunc() != first.trunc()) {
        let headline = format!("the bridge gets the gateway of {first}, and cannot get that of {net}, too");
        let note = "bridge fails (\"already has an IP address different from\"); every pod that uses this network fails to start";
        let help = "use one IPv4 network, or set `isGateway` to false";
        ipam.report(out, &BRIDGE_OPTIONS, *span, headline, note, help).at_most_warn();
    }
}

fn is_ipv4(net: &IpNet) -> bool {
    matches!(net, IpNet::V4(_))
}

/// Where addresses come from.
struct Source {
    /// The subnet, if it can be read.
    net: Option<IpNet>,
    /// The gateway that is written with it, and where.
    gateway: Option<(IpAddr, Span)>,
}

fn sources(ipam: &Ipam<'_>) -> Vec<Source> {
    let of = |object: CniObject<'_>, key: &str, parser: AddressParser| Source {
        net: network(object, key, parser),
        gateway: address(object, "gateway", parser),
    };
    let all = |key: &str| ipam.object.list_of(key).iter().filter_map(CniObject::of);
    match ipam.kind {
        "static" => all("addresses").map(|one| of(one, "address", AddressParser::Strict)).collect(),
        "host-local" => {
            let top = ipam.object.value_of("subnet").map(|_| of(ipam.object, "subnet", AddressParser::Strict));
            let sets = ipam.object.list_of("ranges").iter().flat_map(|set| set.elements().unwrap_or_default());
            let ranges = sets.filter_map(CniObject::of).map(|range| of(range, "subnet", AddressParser::Strict));
            top.into_iter().chain(ranges).collect()
        }
        "whereabouts" => {
            // All ranges share the gateway at the top.
            let gateway = whereabouts::gateway_of(ipam).and_then(|value| parsed(value, AddressParser::Tolerant));
            let ranges = ipam.object.value_of("range").map(|_| ipam.object).into_iter().chain(all("ipRanges"));
            let ranges = ranges.map(|range| Source { net: whereabouts::network_of(range), gateway });
            ranges.chain(all("addresses").map(|one| of(one, "address", AddressParser::Tolerant))).collect()
        }
        _ => Vec::new(),
    }
}

fn network(object: CniObject<'_>, key: &str, parser: AddressParser) -> Option<IpNet> {
    parser.cidr(object.str_of(key)?)?.network()
}

fn address(object: CniObject<'_>, key: &str, parser: AddressParser) -> Option<(IpAddr, Span)> {
    parsed(object.value_of(key)?, parser)
}

fn parsed(value: &Value<'_>, parser: AddressParser) -> Option<(IpAddr, Span)> {
    Some((parser.ip(value.as_str()?)?, value.span))
}

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

    #[test]
    fn gateways_must_be_reached_from_an_address() {
        let of = |ipam: &str| found(&format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","ipam":{{{ipam}}}}}"#));
        let table: &[(&str, &[&str])] = &[
            (
                r#""type":"static","addresses":[{"address":"10.0.0.5/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1"}]"#,
                &[],
            ),
            (
                r#""type":"static","addresses":[{"address":"10.0.0.5/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.9.0.1"}]"#,
                &["ipam/route warn /ipam/routes/0/gw"],
            ),
            (
                r#""type":"static","addresses":[{"address":"10.0.0.5/24","gateway":"10.9.0.1"}],"routes":[{"dst":"0.0.0.0/0"}]"#,
                &["ipam/route warn /ipam/addresses/0/gateway"],
            ),
            // Without a route, the gateway is only passed on.
            (r#""type":"static","addresses":[{"address":"10.0.0.5/24","gateway":"10.9.0.1"}]"#, &[]),
            // Another route leads to it.
            (
                r#""type":"static","addresses":[{"address":"10.0.0.5/24"}],"routes":[{"dst":"10.9.0.0/16"},{"dst":"0.0.0.0/0","gw":"10.9.0.1"}]"#,
                &[],
            ),
            (
                r#""type":"host-local","subnet":"fd00::/64","gateway":"10.0.0.1","routes":[{"dst":"0.0.0.0/0"}]"#,
                &["ipam/route warn /ipam/gateway"],
            ),
            (r#""type":"host-local","subnet":"fd00::/64","gateway":"10.0.0.1","routes":[{"dst":"::/0"}]"#, &[]),
            // A route does not lead to its own gateway.
            (
                r#""type":"host-local","subnet":"10.0.0.0/24","routes":[{"dst":"10.9.0.0/16","gw":"10.9.0.1"}]"#,
                &["ipam/route warn /ipam/routes/0/gw"],
            ),
            (r#""type":"host-local","ranges":[[{"subnet":"10.0.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]"#, &[]),
            (
                r#""type":"host-local","ranges":[[{"subnet":"10.0.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0","gw":"10.0.1.1"}]"#,
                &["ipam/route warn /ipam/routes/0/gw"],
            ),
        ];
        for (ipam, want) in table {
            assert_eq!(of(ipam), *want, "{ipam}");
        }
    }

    #[test]
    fn sbr_needs_gateways_of_the_subnets() {
        let of = |ipam: &str, then: &str| {
            found(&format!(r#"{{"cniVersion":"1.0.0","plugins":[{{"type":"macvlan","ipam":{{{ipam}}}}}{then}]}}"#))
        };
        let sbr = r#",{"type":"sbr"}"#;
        let table: &[(&str, &[&str])] = &[
            (r#""type":"static","addresses":[{"address":"10.0.0.5/24","gateway":"10.0.0.1"}]"#, &[]),
            (
                r#""type":"static","addresses":[{"address":"10.0.0.5/24","gateway":"10.9.0.1"}]"#,
                &["meta/sbr warn /plugins/0/ipam/addresses/0/gateway"],
            ),
            // A route leads to it.
            (
                r#""type":"static","addresses":[{"address":"10.0.0.5/24","gateway":"10.9.0.1"}],"routes":[{"dst":"10.9.0.0/16"}]"#,
                &["ipam/route warn /plugins/0/ipam/addresses/0/gateway"],
            ),
            (r#""type":"host-local","subnet":"10.0.0.0/24""#, &[]),
            (
                r#""type":"host-local","subnet":"fd00::/64","gateway":"10.0.0.1""#,
                &["meta/sbr warn /plugins/0/ipam/gateway"],
            ),
            (r#""type":"whereabouts","range":"10.0.0.5-10.0.0.9/24","gateway":"10.0.0.1""#, &[]),
            // Reported once, though the gateway is wrong for two ranges.
            (
                r#""type":"whereabouts","range":"fd00::/64","ipRanges":[{"range":"fd01::/64"}],"gateway":"10.0.0.1""#,
                &["meta/sbr warn /plugins/0/ipam/gateway"],
            ),
            (
                r#""type":"whereabouts","ipRanges":[{"range":"10.0.0.0/24"},{"range":"fd00::/64"}],"gateway":"10.0.0.1""#,
                &["meta/sbr warn /plugins/0/ipam/gateway"],
            ),
            (
                r#""type":"whereabouts","range":"10.0.0.0/24","addresses":[{"address":"10.1.0.5/24","gateway":"10.9.0.1"}]"#,
                &["meta/sbr warn /plugins/0/ipam/addresses/0/gateway"],
            ),
        ];
        for (ipam, want) in table {
            assert_eq!(of(ipam, sbr), *want, "{ipam}");
            assert!(!of(ipam, "").iter().any(|one| one.starts_with("meta/sbr")), "{ipam}");
        }
        // Its place is after the addresses.
        let first = r#"{"cniVersion":"1.0.0","plugins":[{"type":"sbr","prevResult":{}},{"type":"macvlan","ipam":{"type":"whereabouts","range":"fd00::/64","gateway":"10.0.0.1"}}]}"#;
        assert!(!found(first).iter().any(|one| one.starts_with("meta/sbr")));
    }

    #[test]
    fn a_bridge_is_the_gateway_of_one_network() {
        let of = |options: &str, ipam: &str| {
            found(&format!(r#"{{"cniVersion":"1.0.0","type":"bridge",{options}"ipam":{{{ipam}}}}}"#))
        };
        let two = r#""type":"host-local","subnet":"10.0.0.0/24","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd01::/64"}]]"#;
        let want = ["plugin/bridge-options warn /ipam/ranges/0/0/subnet"];
        for (options, ipam, want) in [
            (r#""isGateway":true,"#, two, &want[..]),
            (r#""isDefaultGateway":true,"#, two, &want),
            ("", two, &[]),
            (r#""isGateway":true,"forceAddress":true,"#, two, &[]),
            (
                r#""isGateway":true,"#,
                r#""type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"10.2.0.0/24"}],[{"subnet":"fd01::/64"}]]"#,
                &[],
            ),
            (
                r#""isGateway":true,"#,
                r#""type":"static","addresses":[{"address":"10.0.0.5/24"},{"address":"10.0.0.6/24"}]"#,
                &[],
            ),
            (
                r#""isGateway":true,"#,
                r#""type":"static","addresses":[{"address":"10.0.0.5/24"},{"address":"10.0.1.6/24"}]"#,
                &["plugin/bridge-options warn /ipam/addresses/1/address"],
            ),
            (
                r#""isGateway":true,"#,
                r#""type":"whereabouts","range":"10.0.0.0/24","ipRanges":[{"range":"10.2.0.5-10.2.0.9/24"}]"#,
                &["plugin/bridge-options warn /ipam/ipRanges/0/range"],
            ),
        ] {
            assert_eq!(of(options, ipam), *want, "{options} {ipam}");
        }
    }

    /// If all routes were compared with each other, this would take minutes.
    #[test]
    fn many_routes_are_not_compared_with_each_other() {
        let route = |n: usize| format!(r#"{{"dst":"10.{}.{}.0/24","gw":"10.8.0.1"}}"#, 100 + n / 256, n % 256);
        let routes = |count: usize| (0..count).map(route).collect::<Vec<_>>().join(",");
        let of = |routes: &str| {
            let ipam = format!(r#""type":"host-local","subnet":"10.0.0.0/24","routes":[{routes}]"#);
            found(&format!(r#"{{"cniVersion":"1.0.0","type":"macvlan","ipam":{{{ipam}}}}}"#)).len()
        };
        assert!(of(&routes(super::MAX_COMPARED)) > 0);
        assert_eq!(of(&routes(20_000)), 0);
    }

    #[test]
    fn so_many_routes_and_subnets_are_compared() {
        let of = |addresses: usize, routes: usize, around: &str| {
            let addresses = (0..addresses).map(|number| format!(r#"{{"address":"10.1.{number}.5/24"}}"#));
            let routes = (0..routes).map(|number| format!(r#"{{"dst":"10.2.{number}.0/24","gw":"10.9.0.1"}}"#));
            let [addresses, routes] = [addresses.collect::<Vec<_>>(), routes.collect()].map(|list| list.join(","));
            let ipam = format!(r#""type":"static","addresses":[{addresses}],"routes":[{routes}]"#);
            !found(&format!(r#"{{"cniVersion":"1.0.0","type":"macvlan",{around}"ipam":{{{ipam}}}}}"#)).is_empty()
        };
        for (addresses, routes, is_compared) in
            [(1, 1, true), (1, 64, true), (1, 65, false), (64, 1, true), (65, 1, false)]
        {
            assert_eq!(of(addresses, routes, ""), is_compared, "{addresses} {routes}");
        }
        assert!(!of(1, 1, r#""capabilities":{"ips":true},"#), "the runtime may pass other addresses");
    }
}
