//! Which device each interface gets: Multus hands the devices of a pod to its networks in their order.

use std::collections::BTreeMap;

use super::nad::{DeviceNeed, NadPlan};

/// The device of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DevicePlan {
    /// It has none.
    None,
    /// It is not known whether it has one.
    Unknown,
    /// One of those that the pod requests.
    Pool {
        /// The resource.
        resource: String,
        /// Which of them, from 1.
        place: u64,
        /// How many the pod requests; `None` if that is not known.
        requested: Option<u64>,
    },
    /// The pod requests too few.
    Short {
        /// The resource.
        resource: String,
        /// Which one it would be, from 1.
        place: u64,
        /// How many the pod requests.
        requested: u64,
    },
    /// Always this one.
    Fixed(String),
    /// One that the pod claims (DRA); the driver adds it.
    Claim,
    /// One that the pod claims (DRA), if it does.
    PerhapsClaim,
    /// It needs one, and the NAD names no resource.
    Missing,
}

impl DevicePlan {
    /// As reports spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unknown => "unknown",
            Self::Pool { .. } => "resource",
            Self::Short { .. } => "too-few",
            Self::Fixed(_) => "fixed",
            Self::Claim => "claim",
            Self::PerhapsClaim => "perhaps-claim",
            Self::Missing => "missing",
        }
    }
}

/// The devices of a pod while its networks take them.
pub(super) struct PodDevices<'p> {
    /// How many of each resource it requests.
    pub(super) requests: &'p BTreeMap<String, u64>,
    /// Whether it also has resource claims; how many devices those bring is unknown.
    pub(super) has_claims: bool,
    /// Whether the requests for its networks are added later, so that missing ones mean nothing.
    pub(super) are_requested: bool,
    taken: BTreeMap<String, u64>,
}

impl<'p> PodDevices<'p> {
    pub(super) fn new(requests: &'p BTreeMap<String, u64>, has_claims: bool, are_requested: bool) -> Self {
        Self { requests, has_claims, are_requested, taken: BTreeMap::new() }
    }

    /// The same devices, of which none is taken yet.
    pub(super) fn untaken(&self) -> Self {
        Self { taken: BTreeMap::new(), ..*self }
    }

    /// The device for the next network. Multus looks for one by the annotation alone, whether the plugin needs it or not.
    pub(super) fn next(&mut self, nad: &NadPlan) -> DevicePlan {
        if nad.config.chain().is_none() {
            return DevicePlan::Unknown;
        }
        if let Some(resource) = &self.resource(nad) {
            let requested = self.requested(resource);
            let taken = self.taken.entry(resource.clone()).or_default();
            let place = *taken + 1;
            if requested.is_none_or(|requested| *taken < requested) && (requested.is_some() || nad.needs_device()) {
                *taken = place;
                return DevicePlan::Pool { resource: resource.clone(), place, requested };
            }
            if nad.need == DeviceNeed::Pool && nad.fixed_device().is_none() {
                *taken = place;
                let requested = requested.unwrap_or_default();
                return DevicePlan::Short { resource: resource.clone(), place, requested };
            }
        }
        match &nad.need {
            DeviceNeed::None => DevicePlan::None,
            DeviceNeed::Fixed(device) => DevicePlan::Fixed(device.clone()),
            DeviceNeed::Claim => DevicePlan::Claim,
            DeviceNeed::Either => DevicePlan::PerhapsClaim,
            DeviceNeed::Pool => {
                nad.fixed_device().map_or(DevicePlan::Missing, |device| DevicePlan::Fixed(device.to_owned()))
            }
        }
    }

    /// The resource of a NAD. Where its domain is only assumed, a resource of that name that the pod requests is meant.
    fn resource(&self, nad: &NadPlan) -> Option<String> {
        let resource = nad.resource.as_ref()?;
        let own_name = |resource: &str| resource.rsplit_once('/').map_or(resource, |(_, name)| name).to_owned();
        let is_meant = |requested: &&String| nad.is_prefix_assumed && own_name(requested) == own_name(resource);
        Some(self.requests.keys().find(is_meant).unwrap_or(resource).clone())
    }

    /// How many of a resource the pod requests; `None` if unknown.
    fn requested(&self, resource: &str) -> Option<u64> {
        let requested = self.requests.get(resource).copied();
        // A number that cannot be read counts as enough.
        if self.has_claims || self.are_requested || requested == Some(u64::MAX) {
            return None;
        }
        Some(requested.unwrap_or_default())
    }
}
