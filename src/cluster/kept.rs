//! What is kept of namespaces, policies, NADs and whatever shows where the operator is, and how it is found again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::collection::{Id, members};
use super::prefix;
use super::watch::Keep;
use crate::deploy::EXEMPT;
use crate::policy::{Lookup, NadFact, NamespaceState};
use crate::resources::raw::Fields;
use crate::resources::{NetworkId, Object, name_of};

/// The namespaces, how they are, and whether they are exempt by their label.
#[derive(Debug, Default)]
pub(super) struct Namespaces(HashMap<Box<str>, (NamespaceState, bool)>);

impl Namespaces {
    pub(super) fn find(&self, name: &str) -> Lookup<NamespaceState> {
        self.0.get(name).map_or(Lookup::Absent, |(state, _)| Lookup::Found(*state))
    }

    /// How many are exempt.
    pub(super) fn exempt(&self) -> usize {
        self.0.values().filter(|(_, is_exempt)| *is_exempt).count()
    }
}

impl Keep for Namespaces {
    type Fact = (NamespaceState, bool);

    fn read(object: &str) -> Option<Self::Fact> {
        let meta = members(&Fields::parse(object).ok()?, "metadata")?;
        let label = members(&meta, "labels").and_then(|labels| labels.text(EXEMPT).value());
        let is_leaving = meta.raw("deletionTimestamp").is_some();
        let state = if is_leaving { NamespaceState::Terminating } else { NamespaceState::Active };
        Some((state, label.as_deref() == Some("true")))
    }

    fn put(&mut self, id: &Id<'_>, fact: Self::Fact) {
        self.0.insert(id.name.as_ref().into(), fact);
    }

    fn remove(&mut self, id: &Id<'_>) {
        self.0.remove(id.name.as_ref());
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

/// The DeviceClasses by which devices are claimed (DRA), and whether each is of the SR-IOV driver.
#[derive(Debug, Default)]
pub(super) struct DeviceClasses(HashMap<Box<str>, bool>);

/// The name of the SR-IOV DRA driver: in selectors, in parameters, or in the name of the class.
const SRIOV_DRIVER: &str = "sriovnetwork.k8snetworkplumbingwg.io";

impl DeviceClasses {
    pub(super) fn has_sriov(&self) -> bool {
        self.0.values().any(|is_sriov| *is_sriov)
    }
}

impl Keep for DeviceClasses {
    type Fact = bool;

    fn read(object: &str) -> Option<bool> {
        let class = Fields::parse(object).ok()?;
        let has_driver = |text: Option<&str>| text.is_some_and(|text| text.contains(SRIOV_DRIVER));
        let name = members(&class, "metadata")?.text("name").value();
        Some(has_driver(class.raw("spec")) || has_driver(name.as_deref()))
    }

    fn put(&mut self, id: &Id<'_>, fact: bool) {
        self.0.insert(id.name.as_ref().into(), fact);
    }

    fn remove(&mut self, id: &Id<'_>) {
        self.0.remove(id.name.as_ref());
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

/// The resource names that node policies offer.
#[derive(Debug, Default)]
pub(super) struct Policies {
    names: BTreeMap<Box<str>, String>,
    /// Made when it is first asked for after a change.
    offered: OnceLock<Arc<[String]>>,
}

impl Policies {
    pub(super) fn offered(&self) -> Arc<[String]> {
        let make = || {
            let mut names: Vec<_> = self.names.values().filter(|name| !name.is_empty()).cloned().collect();
            names.sort_unstable();
            names.dedup();
            names.into()
        };
        Arc::clone(self.offered.get_or_init(make))
    }
}

impl Keep for Policies {
    type Fact = String;

    /// A policy whose resourceName is no text offers nothing, like one that has none.
    fn read(object: &str) -> Option<String> {
        let policy = Fields::parse(object).ok()?;
        let name = members(&policy, "spec").and_then(|spec| spec.text("resourceName").value());
        Some(name_of(&name.unwrap_or_default()).to_owned())
    }

    fn put(&mut self, id: &Id<'_>, fact: String) {
        self.names.insert(id.key(), fact);
        self.offered = OnceLock::new();
    }

    fn remove(&mut self, id: &Id<'_>) {
        self.names.remove(&id.key());
        self.offered = OnceLock::new();
    }

    fn count(&self) -> usize {
        self.names.len()
    }
}

/// Whom each NAD belongs to, as the operator's annotation writes it: shorter than what it says.
#[derive(Debug, Default)]
pub(super) struct Nads(HashMap<Box<str>, Option<Box<str>>>);

impl Nads {
    pub(super) fn find(&self, place: &str) -> Lookup<NadFact> {
        let owner = |owner: &Option<Box<str>>| owner.as_deref().and_then(NetworkId::parse);
        self.0.get(place).map_or(Lookup::Absent, |nad| Lookup::Found(NadFact { owner: owner(nad) }))
    }
}

impl Keep for Nads {
    type Fact = Option<Box<str>>;

    fn read(object: &str) -> Option<Self::Fact> {
        match Object::read(object) {
            Ok(Some(Object::Nad(nad))) => Some(nad.meta.owner().map(|owner| owner.owner_ref().into())),
            _ => None,
        }
    }

    fn put(&mut self, id: &Id<'_>, fact: Self::Fact) {
        self.0.insert(id.key(), fact);
    }

    fn remove(&mut self, id: &Id<'_>) {
        self.0.remove(&id.key());
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

/// The namespaces in which something of the operator is, and the prefix of resource names that it states: its Deployment does.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<Box<str>, Option<Box<str>>>);

impl Places {
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(AsRef::as_ref)
    }

    /// Whether something is in that namespace.
    pub(super) fn has(&self, namespace: &str) -> bool {
        self.0.contains_key(namespace)
    }

    /// The prefix that is stated there.
    pub(super) fn prefix(&self, namespace: &str) -> Option<&str> {
        self.0.get(namespace)?.as_deref()
    }
}

impl Keep for Places {
    type Fact = Option<Box<str>>;

    fn read(object: &str) -> Option<Self::Fact> {
        let object: Value = serde_json::from_str(object).ok().filter(Value::is_object)?;
        Some(prefix::stated(&object).map(Into::into))
    }

    fn put(&mut self, id: &Id<'_>, prefix: Self::Fact) {
        self.0.insert(id.namespace.as_ref().into(), prefix);
    }

    fn remove(&mut self, id: &Id<'_>) {
        self.0.remove(id.namespace.as_ref());
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::watch::tests::{kept, put};
    use super::*;

    #[test]
    fn of_a_namespace_its_state_is_kept() {
        let namespace = |rest: &str| format!(r#"{{"metadata":{{"name":"n"{rest}}},"status":{{"phase":"Active"}}}}"#);
        let label = |value: &str| namespace(&format!(r#","labels":{{"a":"b","nadmit.io/exempt":{value}}}"#));
        for (object, want) in [
            (namespace(""), Some((NamespaceState::Active, false))),
            (namespace(r#","labels":{"a":5,"":null},"annotations":[]"#), Some((NamespaceState::Active, false))),
            (namespace(r#","deletionTimestamp":null"#), Some((NamespaceState::Active, false))),
            (namespace(r#","deletionTimestamp":"2026-11-01T08:00:00Z""#), Some((NamespaceState::Terminating, false))),
            (label(r#""true""#), Some((NamespaceState::Active, true))),
            (label(r#""false""#), Some((NamespaceState::Active, false))),
            (label("true"), Some((NamespaceState::Active, false))),
            ("{}".to_owned(), None),
            ("[]".to_owned(), None),
        ] {
            assert_eq!(Namespaces::read(&object), want, "{object}");
        }
        let namespaces: Namespaces = kept(&[namespace("")]);
        assert_eq!(namespaces.find("n"), Lookup::Found(NamespaceState::Active));
        assert_eq!(namespaces.find("m"), Lookup::Absent);
        assert_eq!(kept::<Namespaces>(&[namespace("")]).exempt(), 0);
        assert_eq!(kept::<Namespaces>(&[label(r#""true""#)]).exempt(), 1);
    }

    #[test]
    fn a_device_class_is_of_the_driver_that_it_names() {
        let class = |name: &str, spec: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#);
        let selector =
            r#"{"selectors":[{"cel":{"expression":"device.driver == 'sriovnetwork.k8snetworkplumbingwg.io'"}}]}"#;
        let config = r#"{"config":[{"opaque":{"driver":"sriovnetwork.k8snetworkplumbingwg.io","parameters":{}}}]}"#;
        for (class, is_sriov) in [
            (class("a", selector), true),
            (class("a", config), true),
            (class("sriovnetwork.k8snetworkplumbingwg.io", "{}"), true),
            (class("gpu", r#"{"selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}]}"#), false),
        ] {
            let mut classes: DeviceClasses = kept(std::slice::from_ref(&class));
            assert_eq!(classes.has_sriov(), is_sriov, "{class}");
            classes.remove(&Id::of(&class).unwrap());
            assert!(!classes.has_sriov());
        }
        assert_eq!(DeviceClasses::read("{}"), None);
    }

    #[test]
    fn of_a_policy_the_name_it_offers_is_kept() {
        let policy =
            |name: &str, spec: &str| format!(r#"{{"metadata":{{"name":"{name}","namespace":"op"}},"spec":{spec}}}"#);
        let offers = |name: &str| format!(r#"{{"resourceName":"{name}","numVfs":4,"nicSelector":{{}}}}"#);
        let mut policies: Policies = kept(&[
            policy("a", &offers("two")),
            policy("b", &offers("one")),
            policy("c", &offers("two")),
            policy("d", &offers("")),
            policy("e", r#"{"resourceName":7}"#),
            policy("f", "null"),
        ]);
        assert_eq!(policies.offered().as_ref(), ["one", "two"]);
        policies.remove(&Id::of(&policy("a", "{}")).unwrap());
        assert_eq!(policies.offered().as_ref(), ["one", "two"], "another offers it too");
        policies.remove(&Id::of(&policy("c", "{}")).unwrap());
        put(&mut policies, &[policy("f", &offers("three"))]);
        assert_eq!(policies.offered().as_ref(), ["one", "three"]);
        assert_eq!(Policies::read("5"), None);
    }

    #[test]
    fn of_a_nad_its_owner_is_kept() {
        let nad = |meta: &str| {
            format!(
                r#"{{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition",
                "metadata":{{"name":"n","namespace":"apps"{meta}}},"spec":{{"config":"{{}}"}}}}"#
            )
        };
        let annotated =
            |owner: &str| nad(&format!(r#","annotations":{{"sriovnetwork.openshift.io/owner-ref":"{owner}"}}"#));
        let reference =
            r#","ownerReferences":[{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"OVSNetwork","name":"n"}]"#;
        for (object, want) in [
            (nad(""), None),
            (annotated("SriovNetwork.sriovnetwork.openshift.io/op/n"), Some("SriovNetwork op/n")),
            (annotated("unknown/op/n"), None),
            (nad(reference), Some("OVSNetwork apps/n")),
            (nad(r#","annotations":[5]"#), None),
        ] {
            let Lookup::Found(found) = kept::<Nads>(std::slice::from_ref(&object)).find("apps/n") else {
                panic!("{object}")
            };
            assert_eq!(found.owner.map(|owner| owner.to_string()).as_deref(), want, "{object}");
        }
        assert_eq!(kept::<Nads>(&[nad("")]).find("apps/m"), Lookup::Absent);
        assert_eq!(Nads::read("{}"), None);
    }
}
