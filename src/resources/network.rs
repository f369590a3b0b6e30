//! The networks that the operator renders a NAD from.

use std::borrow::Cow;

use super::raw::{RawFields, RawObject};
use super::{LAST_NAMESPACE, Meta, Misshapen, NetworkId, ObjectKey};

/// The three kinds of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkKind {
    /// SriovNetwork, Ethernet by the sriov plugin.
    Sriov,
    /// SriovIBNetwork, InfiniBand by the ib-sriov plugin.
    SriovIb,
    /// OVSNetwork, Open vSwitch by the ovs plugin.
    Ovs,
}

impl NetworkKind {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Sriov, Self::SriovIb, Self::Ovs];

    /// The kind with this name.
    pub fn from_kind(kind: &str) -> Option<Self> {
        match kind {
            "SriovNetwork" => Some(Self::Sriov),
            "SriovIBNetwork" => Some(Self::SriovIb),
            "OVSNetwork" => Some(Self::Ovs),
            _ => None,
        }
    }

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sriov => "SriovNetwork",
            Self::SriovIb => "SriovIBNetwork",
            Self::Ovs => "OVSNetwork",
        }
    }

    /// The name of the kind in an address of the API server.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Sriov => "sriovnetworks",
            Self::SriovIb => "sriovibnetworks",
            Self::Ovs => "ovsnetworks",
        }
    }

    /// The CNI plugin its NAD calls.
    pub fn plugin(self) -> &'static str {
        match self {
            Self::Sriov => "sriov",
            Self::SriovIb => "ib-sriov",
            Self::Ovs => "ovs",
        }
    }
}

/// A SriovNetwork, SriovIBNetwork or OVSNetwork.
#[derive(Clone, Debug)]
pub struct Network<'a> {
    /// Which of the three.
    pub kind: NetworkKind,
    /// Its metadata.
    pub meta: Meta<'a>,
    /// Its spec, read field by field.
    pub spec: RawFields<'a>,
    /// What has a wrong type in metadata, or a spec that is none.
    pub misshapen: Vec<Misshapen>,
}

impl<'a> Network<'a> {
    pub(super) fn read(kind: NetworkKind, head: RawObject<'a>) -> Self {
        let mut misshapen = Vec::new();
        let meta = Meta::of(head.metadata, &mut misshapen);
        let spec = head.spec.or_record("/spec", "an object", &mut misshapen).unwrap_or_default();
        Self { kind, meta, spec, misshapen }
    }

    /// Which network this is.
    pub fn id(&self) -> NetworkId {
        let (namespace, name) = (self.meta.namespace.clone().into_owned(), self.meta.name.clone().into_owned());
        NetworkId { kind: self.kind, namespace, name }
    }

    /// A text field; empty where it is absent, as Go reads it.
    pub fn text(&self, field: &str) -> Cow<'a, str> {
        self.spec.text(field).value().unwrap_or_default()
    }

    /// A number field.
    pub fn integer(&self, field: &str) -> Option<i64> {
        self.spec.integer(field).value()
    }

    /// The same network without one field of its spec.
    pub fn without(&self, field: &str) -> Self {
        Self { spec: self.spec.without(field), ..self.clone() }
    }

    /// The namespace its NAD goes to.
    pub fn target_namespace(&self) -> Cow<'a, str> {
        match self.text("networkNamespace") {
            target if target.is_empty() => self.meta.namespace.clone(),
            target => target,
        }
    }

    /// The key of the NAD it renders.
    pub fn nad_key(&self) -> ObjectKey {
        ObjectKey::new(&self.target_namespace(), &self.meta.name)
    }

    /// The key of the NAD that the operator last rendered for it, if that is another one.
    pub fn previous_nad_key(&self) -> Option<ObjectKey> {
        self.previous_namespace().map(|last| ObjectKey::new(&last, &self.meta.name))
    }

    /// The namespace that the operator recorded as the last target, if it is another one than the current target.
    pub fn previous_namespace(&self) -> Option<Cow<'a, str>> {
        self.meta.annotation(LAST_NAMESPACE).filter(|last| !last.is_empty() && *last != self.target_namespace())
    }

    /// Whether the operator recorded that it rendered the NAD to the current target.
    pub fn is_rendered_to_target(&self) -> bool {
        self.meta.annotation(LAST_NAMESPACE).is_some_and(|last| last == self.target_namespace())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_plurals_and_plugins() {
        let of = |kind: NetworkKind| (kind.name(), kind.plural(), kind.plugin());
        assert_eq!(
            NetworkKind::ALL.map(of),
            [
                ("SriovNetwork", "sriovnetworks", "sriov"),
                ("SriovIBNetwork", "sriovibnetworks", "ib-sriov"),
                ("OVSNetwork", "ovsnetworks", "ovs"),
            ]
        );
    }
}
