//! Which objects a full scan judges, and how much of their kinds it may list.
//!
//! Facts are read of the whole cluster in any case, as far as permitted, so that a verdict does not depend on what else is judged.
//! What may not be read is unknown.

use std::collections::{HashMap, HashSet};

use crate::cluster::cache::audit_context::UnreadFacts;
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::cluster::leader::node_policy_audit::selected_policies;
use crate::resources::{NetworkKind, ObjectKey};
use crate::supervise::contained;

/// What is judged; by default everything.
#[derive(Clone, Debug, Default)]
pub struct ScanScope {
    /// Only objects of this namespace. A kind that may not be listed is then skipped, and not an error.
    pub namespace: Option<String>,
    /// Only objects that this label selector matches.
    pub selector: Option<String>,
}

/// The judged kinds.
fn kinds() -> impl Iterator<Item = (&'static str, ApiResource)> {
    let networks = NetworkKind::ALL.map(|kind| (kind.name(), ApiResource::network(kind)));
    std::iter::once(("NetworkAttachmentDefinition", ApiResource::NADS)).chain(networks)
}

/// How much of a kind may be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Everywhere,
    /// Only in the namespace of the scope.
    Namespace,
    None,
}

/// How much of each judged kind may be listed; by default everything.
#[derive(Debug, Default)]
pub(in crate::cluster) struct ReadableKinds {
    namespace: String,
    /// The kinds that may not be listed in all namespaces, by their plural.
    limited: HashMap<&'static str, Extent>,
}

impl ReadableKinds {
    fn extent(&self, resource: ApiResource) -> Extent {
        self.limited.get(resource.plural()).copied().unwrap_or(Extent::Everywhere)
    }

    /// The collection of a kind that may be listed, if any.
    pub(in crate::cluster) fn collection(&self, resource: ApiResource) -> Result<Option<ApiPath>, ApiError> {
        match self.extent(resource) {
            Extent::Everywhere => Ok(Some(ApiPath::all(resource))),
            Extent::Namespace => ApiPath::in_namespace(resource, &self.namespace).map(Some),
            Extent::None => Ok(None),
        }
    }

    /// Whether all objects of a kind in a namespace are known.
    pub(in crate::cluster) fn covers(&self, resource: ApiResource, namespace: &str) -> bool {
        match self.extent(resource) {
            Extent::Everywhere => true,
            Extent::Namespace => self.namespace == namespace,
            Extent::None => false,
        }
    }

    /// Whether all networks of the cluster are known.
    pub(in crate::cluster) fn covers_networks(&self) -> bool {
        NetworkKind::ALL.into_iter().all(|kind| self.extent(ApiResource::network(kind)) == Extent::Everywhere)
    }

    /// Whether everything is known.
    pub(in crate::cluster) fn covers_everything(&self) -> bool {
        self.limited.is_empty()
    }

    /// Records what is skipped, in one line for each kind.
    fn record(&mut self, (kind, resource): (&str, ApiResource), extent: Extent, unread: &mut UnreadFacts) {
        let (plural, namespace) = (resource.plural(), &self.namespace);
        unread.0.push(match extent {
            Extent::Everywhere => return,
            Extent::Namespace => format!(
                "{kind}s of other namespaces could not be read; rules that depend on them were not checked: {}",
                missing(&format!("list {plural} in all namespaces"))
            ),
            Extent::None => {
                format!("{kind}s were not judged: {}", missing(&format!("list {plural} in namespace {namespace}")))
            }
        });
        self.limited.insert(plural, extent);
    }
}

/// The objects that are judged.
#[derive(Debug, Default)]
pub(in crate::cluster) struct JudgedObjects {
    namespace: Option<String>,
    /// Those that the selector matches, by the plural of their kind.
    selected: Option<HashSet<(&'static str, ObjectKey)>>,
}

impl JudgedObjects {
    pub(in crate::cluster) fn has(&self, resource: ApiResource, key: &ObjectKey) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == key.namespace())
            && self.selected.as_ref().is_none_or(|selected| selected.contains(&(resource.plural(), key.clone())))
    }

    /// The same for an object as it was listed; one without a name is not judged.
    pub(in crate::cluster) fn has_text(&self, resource: ApiResource, text: &str) -> bool {
        if self.namespace.is_none() && self.selected.is_none() {
            return true;
        }
        let object = contained(|| ApiObject::read(text)).ok().flatten();
        object.is_some_and(|object| self.has(resource, &object.key))
    }
}

impl Cluster {
    /// Finds out how much of each judged kind may be listed. It is an error if that is nothing; without a namespace, nothing is
    /// asked, and the lists of the scan themselves fail.
    pub(in crate::cluster) async fn readable_kinds(
        &self,
        scope: &ScanScope,
        unread: &mut UnreadFacts,
    ) -> Result<ReadableKinds, ApiError> {
        let Some(namespace) = scope.namespace.clone() else { return Ok(ReadableKinds::default()) };
        let mut readable = ReadableKinds { namespace, limited: HashMap::new() };
        let mut lines = UnreadFacts::default();
        for (kind, resource) in kinds() {
            let extent = if self.may_list(&ApiPath::all(resource)).await? {
                Extent::Everywhere
            } else if self.may_list(&ApiPath::in_namespace(resource, &readable.namespace)?).await? {
                Extent::Namespace
            } else {
                Extent::None
            };
            readable.record((kind, resource), extent, &mut lines);
        }
        if kinds().all(|(_, resource)| readable.extent(resource) == Extent::None) {
            let plurals: Vec<_> = kinds().map(|(_, resource)| resource.plural()).collect();
            let right = format!(
                "list {} or one of {}",
                ApiResource::NADS.plural(),
                plurals.get(1..).unwrap_or_default().join(", ")
            );
            return Err(ApiError::Forbidden(missing(&format!("{right} in namespace {}", readable.namespace))));
        }
        unread.0.extend(lines.0);
        Ok(readable)
    }

    /// The objects that are judged.
    pub(in crate::cluster) async fn judged_objects(
        &self,
        scope: &ScanScope,
        readable: &ReadableKinds,
    ) -> Result<JudgedObjects, ApiError> {
        let mut judged = JudgedObjects { namespace: scope.namespace.clone(), selected: None };
        let Some(selector) = &scope.selector else { return Ok(judged) };
        let mut selected = HashSet::new();
        for (_, resource) in kinds() {
            let path = match &scope.namespace {
                Some(_) if readable.extent(resource) == Extent::None => continue,
                Some(namespace) => ApiPath::in_namespace(resource, namespace)?,
                None => ApiPath::all(resource),
            };
            let add = |text: &str| {
                selected.extend(ApiObject::read(text).map(|object| (resource.plural(), object.key)));
            };
            let listed = self.for_each_object(&path.selected(selector), add).await;
            listed.map_err(|failed| failed.naming(&format!("list {} in all namespaces", resource.plural())))?;
        }
        let policies = selected_policies(self, scope.namespace.as_deref(), selector).await?;
        selected.extend(policies.into_iter().map(|key| (ApiResource::NODE_POLICIES.plural(), key)));
        judged.selected = Some(selected);
        Ok(judged)
    }

    /// Whether a collection may be listed.
    async fn may_list(&self, path: &ApiPath) -> Result<bool, ApiError> {
        match self.get(&path.page(1, "")).await {
            Err(failed) if failed.is_forbidden() => Ok(false),
            // One object may be too large for a page; listing it is permitted.
            Err(ApiError::TooLarge) => Ok(true),
            answer => answer.map(|_| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_kinds_are_known_only_where_they_may_be_listed() {
        let networks = ApiResource::network(NetworkKind::Sriov);
        let mut readable = ReadableKinds { namespace: "apps".to_owned(), ..ReadableKinds::default() };
        let mut unread = UnreadFacts::default();
        readable.record(("NetworkAttachmentDefinition", ApiResource::NADS), Extent::Everywhere, &mut unread);
        assert!(unread.0.is_empty() && readable.covers_everything() && readable.covers(ApiResource::NADS, "other"));
        readable.record(("NetworkAttachmentDefinition", ApiResource::NADS), Extent::Namespace, &mut unread);
        readable.record(("SriovNetwork", networks), Extent::None, &mut unread);
        insta::assert_snapshot!(unread.0.join("\n"), @"
        NetworkAttachmentDefinitions of other namespaces could not be read; rules that depend on them were not checked: missing permission: list network-attachment-definitions in all namespaces
        SriovNetworks were not judged: missing permission: list sriovnetworks in namespace apps
        ");
        assert!(readable.covers(ApiResource::NADS, "apps") && !readable.covers(ApiResource::NADS, "other"));
        assert!(!readable.covers(networks, "apps") && !readable.covers_networks() && !readable.covers_everything());
        let path = |resource| readable.collection(resource).unwrap().map(|path| path.to_string());
        assert_eq!(
            path(ApiResource::NADS).as_deref(),
            Some("/apis/k8s.cni.cncf.io/v1/namespaces/apps/network-attachment-definitions")
        );
        assert_eq!(path(networks), None);
    }

    #[test]
    fn namespace_and_selector_restrict_what_is_judged() {
        let networks = ApiResource::network(NetworkKind::Sriov);
        let (here, there) = (ObjectKey::new("apps", "net"), ObjectKey::new("other", "net"));
        let all = JudgedObjects::default();
        assert!(all.has(ApiResource::NADS, &here) && all.has_text(networks, "not even JSON"));
        let own = JudgedObjects { namespace: Some("apps".to_owned()), selected: None };
        assert!(own.has(ApiResource::NADS, &here) && !own.has(ApiResource::NADS, &there));
        assert!(own.has_text(networks, r#"{"metadata":{"namespace":"apps","name":"net"}}"#));
        assert!(!own.has_text(networks, r#"{"metadata":{}}"#));
        let selected = HashSet::from([(ApiResource::NADS.plural(), here.clone()), (networks.plural(), there.clone())]);
        let labelled = JudgedObjects { namespace: None, selected: Some(selected) };
        assert!(labelled.has(ApiResource::NADS, &here) && !labelled.has(networks, &here), "the kind counts");
        assert!(labelled.has(networks, &there));
        let both = JudgedObjects { namespace: Some("apps".to_owned()), ..labelled };
        assert!(both.has(ApiResource::NADS, &here) && !both.has(networks, &there));
    }
}
