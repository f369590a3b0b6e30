//! Where the addresses of an interface come from, as the config states it.

use crate::cni::{CniObject, OVN_PLUGIN, Plugin};
use crate::json::Value;
use crate::policy::runs_ipam;

/// How many ranges, addresses, routes and servers are listed each: a config of 1 MiB holds very many.
const MAX_LISTED: usize = 16;

/// What a plugin's IPAM section hands out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPlan {
    /// The IPAM plugin.
    pub plugin: String,
    /// Whether the plugin certainly runs its IPAM section.
    pub is_certain: bool,
    /// The ranges that it takes an address from, each of them.
    pub ranges: Listed<RangePlan>,
    /// The addresses that every pod gets.
    pub fixed: Listed<FixedAddress>,
    /// The routes.
    pub routes: Listed<RoutePlan>,
    /// The name servers.
    pub nameservers: Listed<String>,
    /// The domains that are searched.
    pub search: Listed<String>,
}

/// The first elements of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// Those that are listed.
    pub first: Vec<T>,
    /// How many there are besides.
    pub more: usize,
}

/// A range, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangePlan {
    /// The network, or for whereabouts also `first-last/prefix`.
    pub network: String,
    /// The first address.
    pub first: Option<String>,
    /// The last address.
    pub last: Option<String>,
    /// The gateway.
    pub gateway: Option<String>,
    /// What is left out.
    pub excluded: Listed<String>,
}

/// An address that every pod gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedAddress {
    /// The address with its prefix length.
    pub address: String,
    /// Its gateway.
    pub gateway: Option<String>,
}

/// A route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutePlan {
    /// The destination.
    pub destination: String,
    /// The gateway; without one, that of the address.
    pub gateway: Option<String>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { first: Vec::new(), more: 0 }
    }
}

impl<T> FromIterator<T> for Listed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut listed = Self::default();
        for item in items {
            if listed.first.len() < MAX_LISTED {
                listed.first.push(item);
            } else {
                listed.more += 1;
            }
        }
        listed
    }
}

impl AddressPlan {
    /// What a plugin's section hands out; `None` without one that is run.
    pub(super) fn of(plugin: &Plugin<'_>) -> Option<Self> {
        if plugin.kind == OVN_PLUGIN {
            return of_ovn(plugin.object);
        }
        let (section, kind) = plugin.ipam()?;
        let is_certain = runs_ipam(plugin)?;
        let dns = section.object_of("dns").or_else(|| plugin.object.object_of("dns"));
        Some(Self {
            plugin: kind.to_owned(),
            is_certain,
            ranges: ranges(section, kind),
            fixed: fixed(section, kind),
            routes: if kind == "dhcp" { Listed::default() } else { objects(section, "routes").map(route).collect() },
            nameservers: dns.map(|dns| texts(dns, "nameservers")).unwrap_or_default(),
            search: dns.map(|dns| texts(dns, "search")).unwrap_or_default(),
        })
    }

    /// The gateways that the section states, each once.
    pub fn gateways(&self) -> Vec<&str> {
        let of_ranges = self.ranges.first.iter().filter_map(|range| range.gateway.as_deref());
        let of_addresses = self.fixed.first.iter().filter_map(|address| address.gateway.as_deref());
        let mut all: Vec<&str> = Vec::new();
        for gateway in of_ranges.chain(of_addresses) {
            if !all.contains(&gateway) {
                all.push(gateway);
            }
        }
        all
    }
}

fn ranges(section: CniObject<'_>, kind: &str) -> Listed<RangePlan> {
    match kind {
        "host-local" => {
            let top = section.str_of("subnet").map(|_| section);
            let sets = section.list_of("ranges").iter().flat_map(|set| set.elements().unwrap_or_default());
            let all = top.into_iter().chain(sets.filter_map(CniObject::of));
            all.map(|range| RangePlan {
                network: text(range, "subnet").unwrap_or_default(),
                first: text(range, "rangeStart"),
                last: text(range, "rangeEnd"),
                gateway: text(range, "gateway"),
                excluded: Listed::default(),
            })
            .collect()
        }
        "whereabouts" => {
            let top = text(section, "range").map(|_| section);
            // All ranges share the gateway at the top.
            let gateway = text(section, "gateway");
            top.into_iter()
                .chain(objects(section, "ipRanges"))
                .map(|range| RangePlan {
                    network: text(range, "range").unwrap_or_default(),
                    first: text(range, "range_start"),
                    last: text(range, "range_end"),
                    gateway: gateway.clone(),
                    excluded: texts(range, "exclude"),
                })
                .collect()
        }
        _ => Listed::default(),
    }
}

fn fixed(section: CniObject<'_>, kind: &str) -> Listed<FixedAddress> {
    if !matches!(kind, "static" | "whereabouts") {
        return Listed::default();
    }
    let address = |one: CniObject<'_>| FixedAddress {
        address: text(one, "address").unwrap_or_default(),
        gateway: text(one, "gateway"),
    };
    objects(section, "addresses").map(address).collect()
}

fn route(route: CniObject<'_>) -> RoutePlan {
    RoutePlan { destination: text(route, "dst").unwrap_or_default(), gateway: text(route, "gw") }
}

/// OVN-Kubernetes hands out addresses itself.
fn of_ovn(config: CniObject<'_>) -> Option<AddressPlan> {
    let parts = |key: &str| {
        let list = config.str_of(key).unwrap_or_default().to_owned();
        list.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect::<Vec<_>>()
    };
    let excluded: Listed<String> = parts("excludeSubnets").into_iter().collect();
    let range = |network| RangePlan { network, excluded: excluded.clone(), ..RangePlan::default() };
    let ranges: Listed<RangePlan> = parts("subnets").into_iter().map(range).collect();
    let plan = AddressPlan { plugin: "ovn-kubernetes".to_owned(), is_certain: true, ranges, ..AddressPlan::default() };
    (!plan.ranges.first.is_empty()).then_some(plan)
}

fn text(object: CniObject<'_>, key: &str) -> Option<String> {
    object.text_of(key).map(str::to_owned)
}

fn texts(object: CniObject<'_>, key: &str) -> Listed<String> {
    object.list_of(key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn objects<'d>(object: CniObject<'d>, key: &str) -> impl Iterator<Item = CniObject<'d>> + use<'d> {
    object.list_of(key).iter().filter_map(CniObject::of)
}
