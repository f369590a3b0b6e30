//! Who hands out the addresses of a NAD, and what follows where two of them hand out the same.

use std::sync::Arc;

use super::l2::{L2, L2Comparison, Tag};
use super::ranges::AddressRange;
use crate::cni::{CniObject, Config};
use crate::policy::rules::ipam::pools::HandedOut;
use crate::resources::{Nad, name_of};

/// The addresses of a NAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPool {
    pub(super) ranges: Box<[AddressRange]>,
    pub(super) l2: L2,
    allocator: Allocator,
}

/// Who knows which addresses are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Allocator {
    /// Nobody.
    Static,
    /// A directory on each node.
    HostLocal { directory: Box<str> },
    /// The API server, for everyone who has the same `network_name`. `is_shared`: also between ranges.
    Whereabouts { network_name: Box<str>, is_shared: bool },
}

/// What follows where two pools have the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum PoolConflictKind {
    /// Two pods get the same address.
    Duplicate,
    /// An address that one has given is not given by the other, though it is another network.
    Blocked,
}

/// The same addresses in two pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) struct PoolConflict {
    pub(in crate::policy) kind: PoolConflictKind,
    /// The range of the first pool, and what the other one has of it.
    pub(in crate::policy) range: AddressRange,
    pub(in crate::policy) shared: AddressRange,
    /// Whether whereabouts hands out both.
    pub(in crate::policy) is_whereabouts: bool,
}

impl AddressPool {
    /// The one of a NAD; `None` if its config does not say where the addresses are used.
    pub(super) fn of(nad: &Nad<'_>, config: &Config<'_>, handed_out: &HandedOut<'_>) -> Option<Self> {
        let l2 = L2::of(nad, &handed_out.plugin)?;
        let section = handed_out.section;
        let allocator = match handed_out.kind {
            "static" => Allocator::Static,
            "host-local" => Allocator::HostLocal { directory: directory(nad, config, section) },
            "whereabouts" => Allocator::Whereabouts {
                network_name: name_of(section.str_of("network_name").unwrap_or_default()).into(),
                is_shared: section.value_of("enable_overlapping_ranges").is_none()
                    || section.is_true("enable_overlapping_ranges"),
            },
            _ => return None,
        };
        Some(Self { ranges: handed_out.ranges.as_slice().into(), l2, allocator })
    }

    /// Which of those on its layer 2 network know of each other's addresses; `None`: not even those with an equal pool.
    pub(super) fn allocator(&self) -> Option<Arc<str>> {
        match &self.allocator {
            Allocator::Static => None,
            Allocator::HostLocal { directory } => Some(["host-local ", directory].concat().into()),
            Allocator::Whereabouts { network_name, .. } => Some(["whereabouts ", network_name].concat().into()),
        }
    }

    /// What it has in common with those that block its addresses though they are used on other networks, and what separates these
    /// networks.
    pub(super) fn blocked_by(&self) -> Option<(Box<str>, Tag)> {
        let Allocator::Whereabouts { network_name, is_shared: true } = &self.allocator else { return None };
        let (networks, tag) = self.l2.separated()?;
        Some(([&*networks, "\0", network_name].concat().into(), tag))
    }

    /// What follows if both are used.
    pub(in crate::policy) fn conflict(&self, other: &Self) -> Option<PoolConflict> {
        use Allocator::{HostLocal, Whereabouts};
        let kind = match (self.l2.compare(&other.l2), &self.allocator, &other.allocator) {
            (L2Comparison::Unknown, ..) => return None,
            (L2Comparison::Same, Whereabouts { network_name: one, .. }, Whereabouts { network_name: two, .. })
            | (L2Comparison::Same, HostLocal { directory: one }, HostLocal { directory: two })
                if one == two =>
            {
                return None;
            }
            (L2Comparison::Same, ..) => PoolConflictKind::Duplicate,
            (
                L2Comparison::Other,
                Whereabouts { network_name: one, is_shared: true },
                Whereabouts { network_name: two, is_shared: true },
            ) if one == two => PoolConflictKind::Blocked,
            (L2Comparison::Other, ..) => return None,
        };
        let pairs = self.ranges.iter().flat_map(|range| other.ranges.iter().map(|one| (*range, *one)));
        let (range, shared) = pairs.filter_map(|(range, one)| Some((range, range.shared(one)?))).next()?;
        let is_whereabouts = [self, other].iter().all(|pool| matches!(pool.allocator, Whereabouts { .. }));
        Some(PoolConflict { kind, range, shared, is_whereabouts })
    }

    /// Where its addresses are used, in words.
    pub(in crate::policy) fn place(&self) -> &L2 {
        &self.l2
    }
}

/// Where host-local keeps its leases: below `dataDir`, by the name of the network. Multus names a network without one like its NAD.
fn directory(nad: &Nad<'_>, config: &Config<'_>, section: CniObject<'_>) -> Box<str> {
    let parent = section.text_of("dataDir").unwrap_or("/var/lib/cni/networks");
    let name = config.root.text_of("name").unwrap_or(&nad.meta.name);
    [name_of(parent).trim_end_matches('/'), "/", name_of(name)].concat().into()
}
