//! The ranges of a config as people know them: by the networks they are written as. Read by the functions that judge them.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::super::finding::Findings;
use super::super::super::ratchet::{JudgedObject, Ratchet};
use super::address::address_number;
use super::{Ipam, host_local, old_version, whereabouts};
use crate::cni::releases::Versions;
use crate::cni::{Config, Plugin};

/// A range of addresses that a config has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRange {
    /// The IPAM plugin.
    pub ipam: &'static str,
    /// Its network.
    pub net: IpNet,
    /// The first and the last address, as numbers in their family.
    pub bounds: (u128, u128),
    /// The first and the last address of each part that is never handed out.
    pub excluded: Vec<(u128, u128)>,
}

/// The ranges of all plugins of a chain, at most so many. What their IPAM plugin rejects is left out.
pub fn written_ranges(config: &Config<'_>, most: usize) -> Vec<WrittenRange> {
    let mut found: Vec<_> = config.plugins.iter().flat_map(|plugin| of_plugin(config, plugin)).collect();
    found.truncate(most);
    found
}

fn of_plugin(config: &Config<'_>, plugin: &Plugin<'_>) -> Vec<WrittenRange> {
    let text = config.document.text;
    let Some(ipam) = Ipam::of(text, plugin, old_version(config)) else { return Vec::new() };
    let versions = Versions::default();
    let mut out = Findings::new(JudgedObject::Status, Some(config.document), Ratchet::Off, &versions);
    match ipam.kind {
        "whereabouts" => {
            let ranges = whereabouts::ranges(&ipam, &mut out).into_iter();
            let of = |range: whereabouts::WhereaboutsRange| {
                let bounds = range.bounds?;
                Some(WrittenRange { ipam: "whereabouts", net: range.net, bounds, excluded: range.excluded })
            };
            ranges.filter_map(of).collect()
        }
        "host-local" => {
            let ranges = host_local::sets(&ipam, &mut out).into_iter().flatten();
            ranges.filter_map(|range| of_host_local(&range, text)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_host_local(range: &host_local::Range, text: &str) -> Option<WrittenRange> {
    let written: &str = text.get(range.span.range())?;
    let net: IpNet = serde_json::from_str::<String>(written).ok()?.parse().ok()?;
    let is_gateway_inside = |gateway: &IpAddr| net.contains(gateway);
    let gateway = Some(range.gateway).filter(is_gateway_inside).map(|ip| (address_number(ip), address_number(ip)));
    Some(WrittenRange {
        ipam: "host-local",
        net,
        bounds: (address_number(range.start), address_number(range.end)),
        excluded: gateway.into_iter().collect(),
    })
}
