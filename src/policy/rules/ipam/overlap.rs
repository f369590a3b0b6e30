//! Addresses that two NADs hand out.

use super::super::super::finding::Findings;
use super::super::super::neighbours::PoolConflictKind;
use super::super::super::rule::rule;
use super::super::neighbours::NeighbourCheck;
use super::pools::handed_out;

rule! { OVERLAP = "ipam/overlap", Warn;
    wrong: "Another NAD hands out the same addresses.";
    why: "Two NADs on one layer 2 network give the same address to two pods: host-local knows only the leases of its own network name and \
        node, whereabouts only those of its `network_name`, static none. The other way round, two ranges of whereabouts with one \
        `network_name`, also an empty one, share their addresses even on two VLANs: what one has given, the other does not give. NADs \
        are compared where their configs show that the layer 2 network is the same, or surely another: the same `master`, bridge or \
        resource, and the same VLAN or partition, or two of them.";
    fix: "Separate the ranges (`exclude`, `range_start`, `rangeStart`). On one network, give all NADs whereabouts with the same \
        `network_name`; on separate ones, each its own.";
}

/// Reports the oldest of the NADs that hand out the same addresses.
pub(in crate::policy::rules) fn check(about: &NeighbourCheck<'_>, out: &mut Findings<'_>) {
    let Some(own) = &about.summary.pool else { return };
    let conflict = |other: &crate::policy::NeighbourFact| own.conflict(other.summary.pool.as_ref()?);
    let mut here = about.neighbours().filter_map(|other| Some((other, conflict(other)?)));
    let (Some((other, conflict)), Some(found)) = (here.next(), handed_out(about.config)) else { return };
    let (who, related) = about.named(other, "hands out the same addresses", out);
    // Of a NAD that may not be named, the finding says only that it has some of these addresses.
    let addresses = match related.is_some() {
        true => conflict.shared.to_string(),
        false if conflict.range.is_single() => conflict.range.to_string(),
        false => format!("some of {}", conflict.range),
    };
    let place = own.place();
    let (headline, note, help) = match conflict.kind {
        PoolConflictKind::Duplicate => (
            format!("{who} hands out {addresses}, too"),
            format!("both give these addresses to pods on {place}, and two pods can get the same one"),
            match conflict.is_whereabouts {
                true => "give both the same `network_name`, or separate the ranges",
                false => "separate the ranges, or let whereabouts hand out both",
            },
        ),
        PoolConflictKind::Blocked => (
            format!("{who} takes {addresses}, too"),
            format!("{place} is another network, but whereabouts does not give in one what it has given in the other"),
            "set another `network_name` in each of them",
        ),
    };
    out.config(&OVERLAP, found.span, headline, note, help).related_to(related);
}
