//! Gateways that the kernel cannot reach from the addresses of the interface.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::super::finding::Findings;
use super::super::meta::SBR;
use super::address::AddressParser;
use super::routes::ROUTE;
use super::{Ipam, whereabouts};
use crate::cni::CniObject;
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

pub(super) fn is_ipv4(net: &IpNet) -> bool {
    matches!(net, IpNet::V4(_))
}

/// Where addresses come from.
pub(super) struct Source {
    /// The subnet, if it can be read.
    pub(super) net: Option<IpNet>,
    /// The gateway that is written with it, and where.
    pub(super) gateway: Option<(IpAddr, Span)>,
}

pub(super) fn sources(ipam: &Ipam<'_>) -> Vec<Source> {
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

pub(super) fn network(object: CniObject<'_>, key: &str, parser: AddressParser) -> Option<IpNet> {
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
}
