//! A bridge that gets the addresses of its networks' gateways.

use ipnet::IpNet;

use super::super::super::finding::Findings;
use super::super::plugin::BRIDGE_OPTIONS;
use super::address::AddressParser;
use super::gateways::{is_ipv4, network, sources};
use super::{Ipam, whereabouts};
use crate::cni::{CniObject, Plugin};
use crate::json::Span;

/// Reports what a bridge cannot do as the gateway of its networks.
pub(super) fn check(plugin: &Plugin<'_>, ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let is = |key: &str| plugin.object.is_true(key);
    if plugin.kind != "bridge" || !(is("isGateway") || is("isDefaultGateway")) {
        return;
    }
    second_network(plugin, ipam, out);
    other_family(ipam, out);
    if is("isDefaultGateway") {
        second_default_route(ipam, out);
    }
}

/// The bridge gets each gateway with the length of the mask of its address.
fn other_family(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let wrong = sources(ipam).into_iter().find_map(|source| {
        let (net, (gateway, span)) = (source.net?, source.gateway?);
        (gateway.is_ipv4() != is_ipv4(&net)).then_some((net, gateway, span))
    });
    let Some((net, gateway, span)) = wrong else { return };
    let headline = format!("the gateway {gateway} is not of the same family as {net}");
    let note = "bridge fails (\"invalid argument\") when it gives itself this address; every pod that uses this network fails to start";
    let help = "use a gateway in the subnet of the address";
    ipam.report(out, &BRIDGE_OPTIONS, span, headline, note, help).at_most_warn();
}

/// With `isDefaultGateway` the plugin adds a default route of its own, unless `ipam` has one with a gateway.
fn second_default_route(ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    let nets: Vec<IpNet> = sources(ipam).into_iter().filter_map(|source| source.net).collect();
    let default_route = |route: &CniObject<'_>| {
        let to = network(*route, "dst", AddressParser::Strict)?;
        let is_double = to.prefix_len() == 0 && nets.iter().any(|net| is_ipv4(net) == is_ipv4(&to));
        (is_double && route.str_of("gw").is_none_or(str::is_empty)).then_some(())?;
        Some((to, route.value_of("dst")?.span))
    };
    let found = ipam.object.list_of("routes").iter().filter_map(CniObject::of).find_map(|route| default_route(&route));
    let Some((to, span)) = found else { return };
    let headline = format!("`isDefaultGateway` adds the route to {to}, too");
    let note = "a route without `gw` does not count for bridge, so it is added twice (\"file exists\"), and every pod that uses this network fails to start";
    let help = "remove this route, or `isDefaultGateway`";
    ipam.report(out, &BRIDGE_OPTIONS, span, headline, note, help).at_most_warn();
}

/// Reports the second IPv4 network of a bridge that gets the gateway's address of each of them: it can have only one.
fn second_network(plugin: &Plugin<'_>, ipam: &Ipam<'_>, out: &mut Findings<'_>) {
    if plugin.object.is_true("forceAddress") {
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

#[cfg(test)]
mod tests {
    use crate::policy::rules::testing::found;

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

    #[test]
    fn the_gateway_of_a_bridge_is_of_the_family_and_its_default_route_is_the_only_one() {
        let of = |option: &str, ipam: &str| {
            found(&format!(r#"{{"cniVersion":"1.0.0","type":"bridge","{option}":true,"ipam":{{{ipam}}}}}"#))
        };
        let local = |rest: &str| format!(r#""type":"host-local","subnet":"10.0.0.0/24"{rest}"#);
        let route = ["plugin/bridge-options warn /ipam/routes/0/dst"];
        let family = ["plugin/bridge-options warn /ipam/gateway"];
        let other = r#""type":"whereabouts","range":"fd00::/64","gateway":"10.0.0.1""#;
        for (option, ipam, want) in [
            ("isDefaultGateway", local(r#","routes":[{"dst":"0.0.0.0/0"}]"#), &route[..]),
            ("isDefaultGateway", local(r#","routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1"}]"#), &[]),
            ("isDefaultGateway", local(r#","routes":[{"dst":"10.9.0.0/16"}]"#), &[]),
            ("isGateway", local(r#","routes":[{"dst":"0.0.0.0/0"}]"#), &[]),
            ("isGateway", other.to_owned(), &family),
            ("isDefaultGateway", other.to_owned(), &family),
            ("hairpinMode", other.to_owned(), &[]),
        ] {
            assert_eq!(of(option, &ipam), want, "{option} {ipam}");
        }
    }
}
