//! What a finding may name. Findings about an object in one namespace are read by people who may not read other namespaces.

use crate::resources::{NetworkId, ObjectKey};

/// An object of another namespace that a finding would name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A network.
    Network(NetworkId),
    /// A NAD.
    Nad(ObjectKey),
    /// The resources that node policies offer.
    NodePolicies,
    /// The pods in that namespace.
    Pods(String),
    /// The pods in all namespaces.
    AllPods,
    /// The names under which the SR-IOV DRA driver publishes devices.
    DeviceAttributes,
}

/// What may be named to readers of the findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NameVisibility {
    /// Everything: they read the cluster or the manifests with their own permissions.
    #[default]
    All,
    /// Only the object's own namespace, and these.
    Own(Vec<Reference>),
}

impl NameVisibility {
    /// Whether something may be named in a finding about an object in that namespace.
    pub(crate) fn allow(&self, reference: &Reference, namespace: &str) -> bool {
        match (self, reference) {
            (Self::All, _) => true,
            (Self::Own(_), Reference::Network(network)) if network.namespace == namespace => true,
            (Self::Own(_), Reference::Nad(nad)) if nad.namespace() == namespace => true,
            (Self::Own(others), Reference::Pods(_)) if others.contains(&Reference::AllPods) => true,
            (Self::Own(others), _) => others.contains(reference),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::NetworkKind;

    #[test]
    fn names_of_other_namespaces_need_permission() {
        let network = |namespace: &str| {
            Reference::Network(NetworkId {
                kind: NetworkKind::Sriov,
                namespace: namespace.to_owned(),
                name: "n".to_owned(),
            })
        };
        for (names, reference, want) in [
            (NameVisibility::All, network("op"), true),
            (NameVisibility::All, Reference::NodePolicies, true),
            (NameVisibility::Own(Vec::new()), Reference::Nad(ObjectKey::new("apps", "n")), true),
            (NameVisibility::Own(Vec::new()), Reference::Nad(ObjectKey::new("op", "n")), false),
            (NameVisibility::Own(Vec::new()), network("apps"), true),
            (NameVisibility::Own(Vec::new()), network("op"), false),
            (NameVisibility::Own(Vec::new()), Reference::NodePolicies, false),
            (NameVisibility::Own(Vec::new()), Reference::DeviceAttributes, false),
            (NameVisibility::Own(vec![Reference::DeviceAttributes]), Reference::DeviceAttributes, true),
            (NameVisibility::Own(vec![network("op")]), network("op"), true),
            (NameVisibility::Own(vec![network("op")]), network("other"), false),
            // Whoever may delete a NAD may have no right to see the pods beside it.
            (NameVisibility::All, Reference::Pods("apps".to_owned()), true),
            (NameVisibility::Own(Vec::new()), Reference::Pods("apps".to_owned()), false),
            (NameVisibility::Own(vec![Reference::AllPods]), Reference::Pods("apps".to_owned()), true),
            (NameVisibility::Own(vec![Reference::Pods("apps".to_owned())]), Reference::AllPods, false),
            (NameVisibility::Own(Vec::new()), Reference::Nad(ObjectKey::new("apps", "n")), true),
            (NameVisibility::Own(vec![network("op")]), Reference::Nad(ObjectKey::new("op", "n")), false),
        ] {
            assert_eq!(names.allow(&reference, "apps"), want, "{names:?} {reference:?}");
        }
    }
}
