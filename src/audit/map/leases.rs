//! The leases of whereabouts: IPPools, and the addresses that a pod has whatever range they are of (OverlappingRangeIPReservations).
//!
//! An IPPool is named by the `network_name`, by the node where nodes have slices, and by the range; its allocations are counted from the
//! address of the range's network. So it is found by its name, and its content is only addresses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

use super::ranges::RangeSpec;
use super::rows::{LeaseSource, MapLease, MapRange};
use super::{MAX_LEASES, short};
use crate::json::JsonReader;
use crate::policy::{address_number, numbered_address};
use crate::resources::raw::RawFields;

/// How many sliced ranges of one network are tried for an IPPool.
const MAX_CANDIDATES: usize = 16;

/// An IPPool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeasePool {
    namespace: String,
    name: String,
    net: IpNet,
    /// How many allocations it has.
    count: u64,
    /// The first of them: the offset, the pod and the interface.
    leases: Vec<(u128, String, String)>,
}

impl LeasePool {
    /// Reads an IPPool; `None` if it has no range. At most `most` allocations are kept.
    pub(super) fn read(json: &str, most: usize) -> Option<Self> {
        let object = RawFields::parse(json).ok()?;
        let meta = RawFields::parse(object.raw("metadata")?).ok()?;
        let spec = RawFields::parse(object.raw("spec")?).ok()?;
        let text = |key| short(&meta.text(key).value().unwrap_or_default());
        let net: IpNet = spec.text("range").value()?.parse().ok()?;
        let (mut count, mut leases) = (0, Vec::new());
        let read = JsonReader::whole(spec.raw("allocations").unwrap_or("{}"), |reader| {
            reader.members(|reader, offset, _| {
                let allocation = RawFields::read_object(reader)?;
                // whereabouts ignores what is no number.
                if let (Ok(offset), Some(allocation)) = (offset.parse::<i64>(), allocation) {
                    count += 1;
                    if leases.len() < most {
                        let text = |key| short(&allocation.text(key).value().unwrap_or_default());
                        leases.push((u128::from(offset.unsigned_abs()), text("podref"), text("ifname")));
                    }
                }
                Ok(())
            })
        });
        read.ok()?;
        leases.sort_unstable();
        Some(Self { namespace: text("namespace"), name: text("name"), net: net.trunc(), count, leases })
    }

    /// How many allocations are kept.
    pub(super) fn kept(&self) -> usize {
        self.leases.len()
    }
}

/// The name of the IPPool of a range that all nodes share.
fn pool_name(network_name: &str, net: &IpNet) -> String {
    let range = range_in_name(net);
    if network_name.is_empty() { range } else { format!("{network_name}-{range}") }
}

/// A range as it is part of a name.
fn range_in_name(net: &IpNet) -> String {
    net.to_string().replace([':', '/'], "-")
}

/// Everything that was read about leases.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaseStore {
    pub(super) pools: Vec<LeasePool>,
    /// The names of OverlappingRangeIPReservations.
    pub(super) reservations: Vec<String>,
    /// Whether all IPPools were read.
    pub(super) is_complete: bool,
    /// Whether every NAD that may have one of these ranges is on the map.
    pub(super) knows_all_nads: bool,
}

impl LeaseStore {
    /// Fills in what is taken of each range; the leases. An IPPool without a NAD becomes a range of its own.
    pub(super) fn fill(
        mut self,
        ranges: &mut Vec<MapRange>,
        specs: &BTreeMap<String, (RangeSpec, Vec<String>)>,
    ) -> Vec<MapLease> {
        self.pools.sort_unstable_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
        self.pools.dedup_by(|one, other| (&one.namespace, &one.name) == (&other.namespace, &other.name));
        let is_whereabouts = |range: &&mut MapRange| range.ipam == "whereabouts";
        for range in ranges.iter_mut().filter(is_whereabouts).filter(|_| self.is_complete) {
            (range.leases, range.used) = (LeaseSource::NoIpPool, Some(0));
        }
        let finder = PoolFinder::new(specs);
        let at: HashMap<String, usize> = ranges.iter().enumerate().map(|(at, range)| (range.id.clone(), at)).collect();
        let (mut leases, mut taken) = (Vec::new(), BTreeMap::<usize, Vec<u128>>::new());
        for pool in &self.pools {
            let found = finder.range_of(pool).and_then(|id| at.get(id).copied());
            let Some(number) = found.or_else(|| self.left_behind(pool, ranges)) else { continue };
            let Some(range) = ranges.get_mut(number) else { continue };
            range.leases = LeaseSource::IpPool;
            range.used = Some(range.used.unwrap_or_default().saturating_add(pool.count));
            range.pools.push(super::key(&pool.namespace, &pool.name));
            for (offset, pod, interface) in &pool.leases {
                let ip = address_number(pool.net.network()).saturating_add(*offset);
                taken.entry(number).or_default().push(ip);
                if leases.len() < MAX_LEASES {
                    leases.push(MapLease {
                        range: range.id.clone(),
                        address: numbered_address(ip, pool.net.addr().is_ipv4()).to_string(),
                        pod: pod.clone(),
                        interface: interface.clone(),
                    });
                }
            }
        }
        self.reserve(ranges, &taken);
        leases
    }

    /// The new row of an IPPool that no NAD on the map has.
    fn left_behind(&self, pool: &LeasePool, ranges: &mut Vec<MapRange>) -> Option<usize> {
        if !self.knows_all_nads {
            return None;
        }
        let suffix = range_in_name(&pool.net);
        let network_name = pool.name.strip_suffix(&suffix)?.trim_end_matches('-').to_owned();
        let id = match network_name.as_str() {
            "" => format!("whereabouts {}", pool.net),
            name => format!("whereabouts {name} {}", pool.net),
        };
        ranges.push(MapRange {
            id,
            ipam: "whereabouts".to_owned(),
            network_name,
            cidr: pool.net.to_string(),
            first: pool.net.network().to_string(),
            last: pool.net.broadcast().to_string(),
            ..MapRange::default()
        });
        Some(ranges.len() - 1)
    }

    /// Counts the reserved addresses of each range that none of its own leases has.
    fn reserve(&self, ranges: &mut [MapRange], taken: &BTreeMap<usize, Vec<u128>>) {
        let names: BTreeSet<&str> = ranges.iter().map(|range| range.network_name.as_str()).collect();
        let mut reserved: BTreeMap<(String, bool), Vec<u128>> = BTreeMap::new();
        for (name, ip) in self.reservations.iter().filter_map(|name| reserved_address(name, &names)) {
            reserved.entry((name.to_owned(), ip.is_ipv4())).or_default().push(address_number(ip));
        }
        reserved.values_mut().for_each(|all| all.sort_unstable());
        for (at, range) in ranges.iter_mut().enumerate().filter(|(_, range)| range.ipam == "whereabouts") {
            let (Ok(first), Ok(last)) = (range.first.parse::<IpAddr>(), range.last.parse::<IpAddr>()) else { continue };
            let Some(all) = reserved.get(&(range.network_name.clone(), first.is_ipv4())) else { continue };
            let below = |limit: u128| all.partition_point(|ip| *ip < limit);
            let inside = below(address_number(last).saturating_add(1)).saturating_sub(below(address_number(first)));
            let is_inside = |ip: &&u128| (address_number(first)..=address_number(last)).contains(*ip);
            let own = taken.get(&at).into_iter().flatten().filter(is_inside).filter(|ip| all.binary_search(ip).is_ok());
            range.reserved_elsewhere = inside.saturating_sub(own.count()) as u64;
        }
    }
}

/// The `network_name` and the address in the name of a reservation: `name-10.0.0.5`, `fd00--5`.
fn reserved_address<'n>(name: &'n str, names: &BTreeSet<&str>) -> Option<(&'n str, IpAddr)> {
    let ip = |text: &str| text.parse::<IpAddr>().ok().or_else(|| text.replace('-', ":").parse().ok());
    if let Some(ip) = ip(name) {
        return Some(("", ip));
    }
    let parts = name.match_indices('-').filter_map(|(at, _)| Some((name.get(..at)?, name.get(at + 1..)?)));
    parts.filter(|(network, _)| names.contains(network)).find_map(|(network, rest)| Some((network, ip(rest)?)))
}

/// Finds the range that an IPPool is of.
struct PoolFinder<'s> {
    /// The ids of ranges, by the name of the IPPool that all nodes share.
    shared: HashMap<String, &'s str>,
    /// The ranges that have an IPPool for each node: the `network_name` and the id.
    sliced: HashMap<IpNet, Vec<(&'s str, &'s str)>>,
}

impl<'s> PoolFinder<'s> {
    fn new(specs: &'s BTreeMap<String, (RangeSpec, Vec<String>)>) -> Self {
        let mut found = Self { shared: HashMap::new(), sliced: HashMap::new() };
        for (id, (spec, _)) in specs.iter().filter(|(_, (spec, _))| spec.range.ipam == "whereabouts") {
            found.shared.insert(pool_name(&spec.network_name, &spec.range.net), id);
            if spec.is_sliced {
                found.sliced.entry(spec.range.net).or_default().push((&spec.network_name, id));
            }
        }
        found
    }

    fn range_of(&self, pool: &LeasePool) -> Option<&'s str> {
        if let Some(id) = self.shared.get(&pool.name) {
            return Some(id);
        }
        let owner = pool.name.strip_suffix(&range_in_name(&pool.net))?;
        let mut net = Some(pool.net);
        while let Some(wider) = net {
            let candidates = self.sliced.get(&wider).into_iter().flatten().take(MAX_CANDIDATES);
            let is_of = |network: &str| {
                network.is_empty() || owner.strip_prefix(network).is_some_and(|rest| rest.starts_with('-'))
            };
            // Of two that fit, the longer name is meant.
            let best = candidates.filter(|(network, _)| is_of(network)).max_by_key(|(network, _)| network.len());
            if let Some((_, id)) = best {
                return Some(id);
            }
            net = wider.supernet();
        }
        None
    }
}
