//! Gateways that the kernel cannot reach from the addresses of the interface.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::super::finding::Findings;
use super::Ipam;
use super::address::AddressParser;
use super::routes::ROUTE;
use crate::cni::CniObject;
use crate::json::{Span, Value};

/// How many routes, and how many subnets, are compared with each other.
const MAX_COMPARED: usize = 64;

/// Reports routes of host-local and static whose gateway is in none of the subnets.
pub(super) fn check(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let routes = ipam.object.list_of("routes");
    if routes.is_empty() || routes.len() > MAX_COMPARED || ipam.may_be_supplied {
        return;
    }
    let sources = sources(ipam);
    if sources.len() > MAX_COMPARED {
        return;
    }
    let nets: Option<Vec<IpNet>> = sources.iter().map(|source| source.net).collect();
    // What cannot be read has a rule of its own.
    let Some(nets) = nets.filter(|nets| !nets.is_empty()) else { return };
    let destination = |route: &Value<'_>| network(CniObject::of(route)?, "dst");
    let destinations: Vec<Option<IpNet>> = routes.iter().map(destination).collect();
    for (index, route) in routes.iter().enumerate() {
        let Some(route) = CniObject::of(route) else { continue };
        let Some(to) = network(route, "dst") else { continue };
        // Without a gateway of its own, a route gets the first one of its family.
        let gateway = address(route, "gw").or_else(|| {
            let mut given = sources.iter().filter_map(|source| source.gateway);
            given.find(|(gateway, _)| gateway.is_ipv4() == is_ipv4(&to))
        });
        let Some((gateway, span)) = gateway else { continue };
        let is_reached = |net: &IpNet| net.contains(&gateway);
        // Another route may lead to the gateway.
        let others = destinations.iter().enumerate().filter(|(other, _)| *other != index);
        let is_routed = others.filter_map(|(_, net)| net.as_ref()).any(|net| net.prefix_len() > 0 && is_reached(net));
        if gateway.is_ipv4() == is_ipv4(&to) && !nets.iter().any(is_reached) && !is_routed {
            let headline = format!("the gateway {gateway} is in none of the subnets");
            let note = "the kernel rejects the route (\"network is unreachable\"), and pods with a kernel interface fail to start";
            let help = "use a gateway in the subnet of the address";
            ipam.report(out, &ROUTE, span, headline, note, help).at_most_warn();
        }
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
    let of =
        |object: CniObject<'_>, key: &str| Source { net: network(object, key), gateway: address(object, "gateway") };
    match ipam.kind {
        "static" => {
            ipam.object.list_of("addresses").iter().filter_map(CniObject::of).map(|one| of(one, "address")).collect()
        }
        "host-local" => {
            let top = ipam.object.value_of("subnet").map(|_| of(ipam.object, "subnet"));
            let sets = ipam.object.list_of("ranges").iter().flat_map(|set| set.elements().unwrap_or_default());
            top.into_iter().chain(sets.filter_map(CniObject::of).map(|range| of(range, "subnet"))).collect()
        }
        _ => Vec::new(),
    }
}

fn network(object: CniObject<'_>, key: &str) -> Option<IpNet> {
    AddressParser::Strict.cidr(object.str_of(key)?)?.network()
}

fn address(object: CniObject<'_>, key: &str) -> Option<(IpAddr, Span)> {
    let value: &Value<'_> = object.value_of(key)?;
    Some((AddressParser::Strict.ip(value.as_str()?)?, value.span))
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
