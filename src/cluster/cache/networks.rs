//! The store of networks: which network renders where.

use std::collections::HashMap;

use crate::cluster::cache::watch::Summarize;
use crate::cluster::client::collection::ApiObject;
use crate::policy::NetworkFact;
use crate::resources::{LAST_NAMESPACE, NetworkId, NetworkKind, Object, ObjectKey, name_of};

/// The networks of one kind.
#[derive(Debug, Default)]
pub(in crate::cluster) struct NetworkStore {
    rendered: HashMap<ObjectKey, NetworkTarget>,
    /// The namespaces of the networks that render a NAD, by its key.
    here: HashMap<ObjectKey, Vec<Box<str>>>,
}

/// The target and resource of a network.
#[derive(Debug, PartialEq)]
pub(in crate::cluster) struct NetworkTarget {
    target: Box<str>,
    resource: Box<str>,
    /// Whether the operator has not yet deleted the NAD at the previous target.
    is_moving: bool,
}

impl NetworkStore {
    /// Those that render a NAD there.
    pub(in crate::cluster) fn at(&self, kind: NetworkKind, nad: &ObjectKey) -> impl Iterator<Item = NetworkFact> {
        let here = self.here.get(nad).into_iter().flatten();
        here.filter_map(move |namespace| {
            self.find(&NetworkId { kind, namespace: namespace.to_string(), name: nad.name().to_owned() })
        })
    }

    /// The one of that name.
    pub(in crate::cluster) fn find(&self, id: &NetworkId) -> Option<NetworkFact> {
        let rendered = self.rendered.get(&id.key())?;
        let (target_namespace, resource_name) = (rendered.target.to_string(), rendered.resource.to_string());
        Some(NetworkFact { id: id.clone(), target_namespace, resource_name })
    }

    /// The names of those that render to a namespace.
    pub(in crate::cluster) fn to(&self, target: &str) -> impl Iterator<Item = &str> {
        let here = self.rendered.iter().filter(move |(_, rendered)| *rendered.target == *target);
        here.map(|(key, _)| key.name())
    }

    /// The networks that moved to a namespace, with the move not completed by the operator.
    pub(in crate::cluster) fn moving_to(&self, target: &str) -> impl Iterator<Item = &ObjectKey> {
        let here = self.rendered.iter().filter(move |(_, rendered)| rendered.is_moving && *rendered.target == *target);
        here.map(|(key, _)| key)
    }
}

impl Summarize for NetworkStore {
    type Summarized = NetworkTarget;

    fn read(object: &ApiObject<'_>) -> Option<NetworkTarget> {
        match object.typed() {
            Some(Object::Network(network)) => {
                let (target, last) = (network.target_namespace(), network.meta.annotation(LAST_NAMESPACE));
                let is_moving = last.is_some_and(|last| last != target);
                let resource = network.text("resourceName");
                Some(NetworkTarget { target: name_of(&target).into(), resource: name_of(&resource).into(), is_moving })
            }
            _ => None,
        }
    }

    fn put(&mut self, key: &ObjectKey, fact: NetworkTarget) {
        self.remove(key);
        self.here.entry(ObjectKey::new(&fact.target, key.name())).or_default().push(key.namespace().into());
        self.rendered.insert(key.clone(), fact);
    }

    fn remove(&mut self, key: &ObjectKey) {
        let Some(before) = self.rendered.remove(key) else { return };
        let nad = ObjectKey::new(&before.target, key.name());
        if let Some(namespaces) = self.here.get_mut(&nad) {
            namespaces.retain(|namespace| **namespace != *key.namespace());
            if namespaces.is_empty() {
                self.here.remove(&nad);
            }
        }
    }

    fn count(&self) -> usize {
        self.rendered.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::cache::watch::tests::{put, read, store};

    fn network(namespace: &str, name: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork",
            "metadata":{{"name":"{name}","namespace":"{namespace}"}},"spec":{spec}}}"#
        )
    }

    fn namespaces(networks: &NetworkStore, target: &str, name: &str) -> Vec<String> {
        networks.at(NetworkKind::Sriov, &ObjectKey::new(target, name)).map(|fact| fact.id.namespace).collect()
    }

    #[test]
    fn summarizes_a_network_by_target_and_resource() {
        let table = [
            (r#"{"resourceName":"r","networkNamespace":"apps"}"#, ("apps", "r")),
            (r#"{"resourceName":"r"}"#, ("op", "r")),
            (r#"{"resourceName":"r","networkNamespace":""}"#, ("op", "r")),
            (r#"{"resourceName":5,"networkNamespace":["apps"],"mtu":-1,"other":{"deep":[[]]}}"#, ("op", "")),
            ("{}", ("op", "")),
            ("null", ("op", "")),
            ("[]", ("op", "")),
        ];
        for (spec, (target, resource)) in table {
            let want = NetworkTarget { target: target.into(), resource: resource.into(), is_moving: false };
            assert_eq!(read::<NetworkStore>(&network("op", "n", spec)), Some(want), "{spec}");
        }
        for other in ["", "5", "{}", r#"{"apiVersion":"v1","kind":"Pod"}"#] {
            assert_eq!(read::<NetworkStore>(other), None, "{other}");
        }
    }

    #[test]
    fn finds_networks_by_their_target() {
        let to = |target: &str| format!(r#"{{"resourceName":"r","networkNamespace":"{target}"}}"#);
        let mut networks: NetworkStore =
            store(&[network("op", "a", &to("apps")), network("apps", "a", "{}"), network("op", "b", &to("apps"))]);
        assert_eq!(namespaces(&networks, "apps", "a"), ["op", "apps"]);
        assert_eq!(namespaces(&networks, "apps", "b"), ["op"]);
        assert!(namespaces(&networks, "op", "a").is_empty());
        let fact = networks.at(NetworkKind::Ovs, &ObjectKey::new("apps", "b")).next().unwrap();
        assert_eq!((fact.id.to_string().as_str(), fact.target_namespace.as_str()), ("OVSNetwork op/b", "apps"));
        assert_eq!(fact.resource_name, "r");
        // The network moves, and is deleted.
        put(&mut networks, &[network("op", "a", &to("next"))]);
        assert_eq!(namespaces(&networks, "apps", "a"), ["apps"]);
        assert_eq!(namespaces(&networks, "next", "a"), ["op"]);
        networks.remove(&ObjectKey::new("op", "a"));
        networks.remove(&ObjectKey::new("apps", "a"));
        networks.remove(&ObjectKey::new("op", "never"));
        assert!(namespaces(&networks, "next", "a").is_empty());
        assert_eq!((networks.count(), networks.here.len()), (1, 1));
    }

    #[test]
    fn moved_networks_are_known_by_last_network_namespace() {
        let table = [
            ("null", "apps", false),
            (r#""apps""#, "apps", false),
            (r#""""#, "apps", true),
            (r#""old""#, "apps", true),
            ("5", "apps", false),
            (r#""old""#, "other", false),
        ];
        for (last, asked, want) in table {
            let text = network("op", "n", r#"{"networkNamespace":"apps"}"#);
            let annotations = format!(r#""annotations":{{"{LAST_NAMESPACE}":{last}}},"namespace":"#);
            let networks: NetworkStore = store(&[text.replacen(r#""namespace":"#, &annotations, 1)]);
            assert_eq!(
                networks.moving_to(asked).collect::<Vec<_>>() == [&ObjectKey::new("op", "n")],
                want,
                "{last} {asked}"
            );
        }
    }
}
