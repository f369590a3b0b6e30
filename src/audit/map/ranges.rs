//! The ranges of addresses in the IPAM sections of NADs, and how large they are.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::rows::{LeaseSource, MapRange};
use super::{MAX_PARTS, short};
use crate::cni::{CniObject, Config, Plugin};
use crate::policy::{WrittenRange, numbered_address, written_ranges};

/// The largest number that every reader of JSON has exactly.
const MAX_EXACT: u128 = 1 << 53;

/// A range in a NAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeSpec {
    pub(super) range: WrittenRange,
    pub(super) network_name: String,
    /// Whether each node has a slice of it, with an IPPool of its own.
    pub(super) is_sliced: bool,
}

/// The ranges of a config. One that its plugin would reject is left out: a finding is about it.
pub(super) fn of_config(config: &Config<'_>) -> Vec<RangeSpec> {
    let section = |plugin: &Plugin<'_>| -> Option<(String, bool)> {
        let (section, _) = plugin.ipam().filter(|(_, kind)| *kind == "whereabouts")?;
        let is_sliced = section.text_of("node_slice_size").is_some();
        Some((short(section.str_of("network_name").unwrap_or_default()), is_sliced))
    };
    let (network_name, is_sliced) = config.plugins.iter().find_map(section).unwrap_or_default();
    let of = |range: WrittenRange| {
        let is_whereabouts = range.ipam == "whereabouts";
        RangeSpec {
            network_name: if is_whereabouts { network_name.clone() } else { String::new() },
            is_sliced: is_whereabouts && is_sliced,
            range,
        }
    };
    written_ranges(config, MAX_PARTS).into_iter().filter(|range| range.bounds.0 <= range.bounds.1).map(of).collect()
}

/// The addresses that a config has for all its pods.
pub(super) fn fixed_addresses(section: CniObject<'_>) -> Vec<String> {
    let addresses = section.list_of("addresses").iter().filter_map(CniObject::of);
    addresses.filter_map(|one| one.str_of("address")).take(MAX_PARTS).map(short).collect()
}

impl RangeSpec {
    /// What NADs with this range have in common. Ranges of whereabouts that have one IPPool are one range.
    pub(super) fn id(&self) -> String {
        let net = self.range.net;
        match (self.range.ipam, self.network_name.as_str()) {
            ("whereabouts", "") => format!("whereabouts {net}"),
            ("whereabouts", name) => format!("whereabouts {name} {net}"),
            (ipam, _) => {
                format!("{ipam} {net} {}-{}", self.address(self.range.bounds.0), self.address(self.range.bounds.1))
            }
        }
    }

    fn address(&self, number: u128) -> IpAddr {
        numbered_address(number, self.range.net.addr().is_ipv4())
    }

    /// How many addresses are left of it; unknown if it excludes more parts than are kept.
    fn size(&self) -> Option<u64> {
        if self.range.excluded.len() > MAX_PARTS {
            return None;
        }
        let (first, last) = self.range.bounds;
        let mut parts = self.range.excluded.clone();
        parts.sort_unstable();
        let (mut left, mut next) = (0_u128, first);
        for (from, to) in parts {
            left = left.saturating_add(from.min(last.saturating_add(1)).saturating_sub(next));
            next = next.max(to.saturating_add(1));
        }
        left = left.saturating_add(last.saturating_add(1).saturating_sub(next));
        u64::try_from(left).ok().filter(|left| u128::from(*left) <= MAX_EXACT)
    }
}

/// The ranges of all NADs.
#[derive(Debug, Default)]
pub(super) struct RangeIndex {
    pub(super) by_id: BTreeMap<String, (RangeSpec, Vec<String>)>,
}

impl RangeIndex {
    /// Adds the ranges of a NAD; their ids.
    pub(super) fn add(&mut self, nad: &str, ranges: &[RangeSpec]) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for spec in ranges {
            let id = spec.id();
            let (known, nads) = self.by_id.entry(id.clone()).or_insert_with(|| (spec.clone(), Vec::new()));
            let (own, other) = (&mut known.range, &spec.range);
            own.bounds = (own.bounds.0.min(other.bounds.0), own.bounds.1.max(other.bounds.1));
            // What one of the NADs excludes, another one hands out.
            own.excluded.truncate(MAX_PARTS + 1);
            own.excluded.retain(|excluded| other.excluded.contains(excluded));
            known.is_sliced |= spec.is_sliced;
            if !ids.contains(&id) {
                nads.push(nad.to_owned());
                ids.push(id);
            }
        }
        ids
    }

    /// The rows, without what their leases say.
    pub(super) fn into_rows(self) -> Vec<MapRange> {
        let row = |(id, (spec, nads)): (String, (RangeSpec, Vec<String>))| {
            let parts = |(first, last): &(u128, u128)| match first == last {
                true => spec.address(*first).to_string(),
                false => format!("{}-{}", spec.address(*first), spec.address(*last)),
            };
            MapRange {
                id,
                ipam: spec.range.ipam.to_owned(),
                cidr: spec.range.net.to_string(),
                first: spec.address(spec.range.bounds.0).to_string(),
                last: spec.address(spec.range.bounds.1).to_string(),
                excluded: spec.range.excluded.iter().take(MAX_PARTS).map(parts).collect(),
                size: spec.size(),
                leases: if spec.range.ipam == "host-local" { LeaseSource::OnNodes } else { LeaseSource::Unknown },
                network_name: spec.network_name.clone(),
                nads,
                ..MapRange::default()
            }
        };
        self.by_id.into_iter().map(row).collect()
    }
}
