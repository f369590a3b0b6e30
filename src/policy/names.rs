//! What a finding may name. A finding about one namespace's object is read by people who may not read what is in another.

use crate::resources::NetworkId;

/// Something of another namespace that a finding would name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A network.
    Network(NetworkId),
    /// What the node policies offer.
    NodePolicies,
}

/// What may be named to whoever reads the findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Everything: they read the cluster, or the manifests, with rights of their own.
    #[default]
    All,
    /// What is in the object's own namespace, and these.
    Own(Vec<Reference>),
}

impl Names {
    /// Whether something may be named in a finding about an object in that namespace.
    pub(crate) fn allow(&self, reference: &Reference, namespace: &str) -> bool {
        match (self, reference) {
            (Self::All, _) => true,
            (Self::Own(_), Reference::Network(network)) if network.namespace == namespace => true,
            (Self::Own(others), _) => others.contains(reference),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::NetworkKind;

    #[test]
    fn other_namespaces_are_named_only_where_that_was_granted() {
        let network = |namespace: &str| {
            Reference::Network(NetworkId {
                kind: NetworkKind::Sriov,
                namespace: namespace.to_owned(),
                name: "n".to_owned(),
            })
        };
        for (names, reference, want) in [
            (Names::All, network("op"), true),
            (Names::All, Reference::NodePolicies, true),
            (Names::Own(Vec::new()), network("apps"), true),
            (Names::Own(Vec::new()), network("op"), false),
            (Names::Own(Vec::new()), Reference::NodePolicies, false),
            (Names::Own(vec![network("op")]), network("op"), true),
            (Names::Own(vec![network("op")]), network("other"), false),
        ] {
            assert_eq!(names.allow(&reference, "apps"), want, "{names:?} {reference:?}");
        }
    }
}
