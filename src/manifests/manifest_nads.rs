//! What the NADs among the manifests mean to each other, and those that networks render.

use std::sync::Arc;

use crate::policy::{NeighbourFact, NeighbourIndex, NetworkUse};
use crate::resources::{NetworkId, Object, ObjectKey, render};

/// The NADs of a set of manifests.
#[derive(Debug, Default)]
pub(super) struct ManifestNads {
    read: Vec<(ObjectKey, Option<NetworkId>, NetworkUse)>,
    index: NeighbourIndex,
}

impl ManifestNads {
    /// Adds a NAD, or the one that a network renders.
    pub(super) fn add(&mut self, object: &Object<'_>) {
        let (network, summary) = match object {
            Object::Nad(nad) => (None, NetworkUse::of(nad)),
            // Without an IPAM section it hands out nothing. The domain of its resource does not count.
            Object::Network(network) if !network.text("ipam").is_empty() => {
                let rendered = render(network, "");
                let Some(nad) = rendered.nad() else { return };
                (Some(network.id()), NetworkUse::of(&nad))
            }
            Object::Network(_) | Object::Claim(_) | Object::NodePolicy(_) | Object::Workload(_) => return,
        };
        if !object.meta().name.is_empty() && (network.is_none() || !summary.is_empty()) {
            self.read.push((object.nad_key(), network, summary));
        }
    }

    /// Merges those of other manifests.
    pub(super) fn merge(&mut self, other: Self) {
        self.read.extend(other.read);
    }

    /// Prepares the NADs for look-ups.
    pub(super) fn finish(&mut self) {
        let mut read = std::mem::take(&mut self.read);
        read.sort_by_cached_key(|(_, _, summary)| summary.first_range());
        let (rendered, nads): (Vec<_>, Vec<_>) = read.into_iter().partition(|(_, network, _)| network.is_some());
        // A NAD that is given itself counts, and not what a network would render.
        for (key, network, summary) in nads.into_iter().chain(rendered) {
            match network {
                None => self.index.add(&key, summary),
                Some(network) => self.index.add_rendered(&key, network, summary),
            }
        }
    }

    /// The NADs that matter to one.
    pub(super) fn neighbours(&self, key: &ObjectKey, own: &NetworkUse) -> Vec<Arc<NeighbourFact>> {
        self.index.neighbours(key, own)
    }
}
