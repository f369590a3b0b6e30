//! The paths of requests. They are made here only, and only of checked names: an owner reference or a network's target namespace
//! is text of whoever wrote the object.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::audit::map::WHEREABOUTS_GROUP;
use crate::cluster::client::ApiError;
use crate::deploy::webhooks::Phase;
use crate::deploy::{METRICS_PORT, NAME};
use crate::output::report::ReportKind;
use crate::resources::{
    CLAIM_GROUP, DRA_DRIVER, NAD_GROUP, NADS, NETWORK_GROUP, NODE_POLICIES, NetworkId, NetworkKind, ObjectKey,
};

/// The longest name.
const MAX_NAME_BYTES: usize = 253;

/// A resource of the API: group, version and plural.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) struct ApiResource {
    /// Empty for the core group.
    group: &'static str,
    version: &'static str,
    plural: &'static str,
}

impl ApiResource {
    pub(in crate::cluster) const NAMESPACES: Self = Self::of("", "namespaces");
    pub(in crate::cluster) const NODES: Self = Self::of("", "nodes");
    pub(in crate::cluster) const SECRETS: Self = Self::of("", "secrets");
    pub(in crate::cluster) const CONFIG_MAPS: Self = Self::of("", "configmaps");
    pub(in crate::cluster) const PODS: Self = Self::of("", "pods");
    pub(in crate::cluster) const SERVICES: Self = Self::of("", "services");
    pub(in crate::cluster) const EVENTS: Self = Self::of("", "events");
    pub(in crate::cluster) const SERVICE_ACCOUNTS: Self = Self::of("", "serviceaccounts");
    pub(in crate::cluster) const DEPLOYMENTS: Self = Self::of("apps", "deployments");
    pub(in crate::cluster) const LEASES: Self = Self::of("coordination.k8s.io", "leases");
    pub(in crate::cluster) const ACCESS_REVIEWS: Self = Self::of("authorization.k8s.io", "subjectaccessreviews");
    pub(in crate::cluster) const DEVICE_CLASSES: Self = Self::of(CLAIM_GROUP, "deviceclasses");
    pub(in crate::cluster) const CLAIMS: Self = Self::of(CLAIM_GROUP, "resourceclaims");
    pub(in crate::cluster) const CLAIM_TEMPLATES: Self = Self::of(CLAIM_GROUP, "resourceclaimtemplates");
    pub(in crate::cluster) const DEVICE_ATTRIBUTES: Self = Self::of_driver("deviceattributes");
    pub(in crate::cluster) const RESOURCE_POLICIES: Self = Self::of_driver("sriovresourcepolicies");
    pub(in crate::cluster) const DAEMON_SETS: Self = Self::of("apps", "daemonsets");
    pub(in crate::cluster) const NADS: Self = Self::of(NAD_GROUP, NADS);
    pub(in crate::cluster) const NODE_POLICIES: Self = Self::of(NETWORK_GROUP, NODE_POLICIES);
    pub(in crate::cluster) const NODE_STATES: Self = Self::of(NETWORK_GROUP, "sriovnetworknodestates");
    pub(in crate::cluster) const IP_POOLS: Self = Self::of_whereabouts("ippools");
    pub(in crate::cluster) const IP_RESERVATIONS: Self = Self::of_whereabouts("overlappingrangeipreservations");
    pub(in crate::cluster) const OPERATOR_CONFIGS: Self = Self::of(NETWORK_GROUP, "sriovoperatorconfigs");

    const fn of(group: &'static str, plural: &'static str) -> Self {
        Self { group, version: "v1", plural }
    }

    /// A resource of the SR-IOV DRA driver.
    const fn of_driver(plural: &'static str) -> Self {
        Self { group: DRA_DRIVER, version: "v1alpha1", plural }
    }

    /// A resource of whereabouts.
    const fn of_whereabouts(plural: &'static str) -> Self {
        Self { group: WHEREABOUTS_GROUP, version: "v1alpha1", plural }
    }

    /// The networks of a kind.
    pub(in crate::cluster) fn network(kind: NetworkKind) -> Self {
        Self::of(NETWORK_GROUP, kind.plural())
    }

    /// The reports of a kind.
    pub(in crate::cluster) fn report(kind: ReportKind) -> Self {
        let (group, version) = kind.api_version.split_once('/').unwrap_or(("", kind.api_version));
        Self { group, version, plural: kind.plural }
    }

    fn webhooks(phase: Phase) -> Self {
        let plural = match phase {
            Phase::Mutating => "mutatingwebhookconfigurations",
            Phase::Validating => "validatingwebhookconfigurations",
        };
        Self::of("admissionregistration.k8s.io", plural)
    }

    /// The name in paths and permissions.
    pub(in crate::cluster) fn plural(self) -> &'static str {
        self.plural
    }
}

/// The path and query of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cluster) struct ApiPath {
    path: String,
    /// Parameters, each after an `&`.
    query: String,
}

impl ApiPath {
    /// All objects of a resource.
    pub(in crate::cluster) fn all(resource: ApiResource) -> Self {
        Self::root(resource.group, resource.version).join(resource.plural)
    }

    /// Those in a namespace.
    pub(in crate::cluster) fn in_namespace(resource: ApiResource, namespace: &str) -> Result<Self, ApiError> {
        let root = Self::root(resource.group, resource.version).join("namespaces");
        Ok(root.child(namespace)?.join(resource.plural))
    }

    /// One object; one of a cluster-scoped resource has no namespace.
    pub(in crate::cluster) fn object(resource: ApiResource, key: &ObjectKey) -> Result<Self, ApiError> {
        match key.namespace() {
            "" => Self::all(resource).child(key.name()),
            namespace => Self::in_namespace(resource, namespace)?.child(key.name()),
        }
    }

    /// A NAD.
    pub(in crate::cluster) fn nad(key: &ObjectKey) -> Result<Self, ApiError> {
        Self::in_namespace(ApiResource::NADS, key.namespace())?.child(key.name())
    }

    /// A network.
    pub(in crate::cluster) fn network(id: &NetworkId) -> Result<Self, ApiError> {
        Self::in_namespace(ApiResource::network(id.kind), &id.namespace)?.child(&id.name)
    }

    /// A namespace.
    pub(in crate::cluster) fn namespace(name: &str) -> Result<Self, ApiError> {
        Self::all(ApiResource::NAMESPACES).child(name)
    }

    /// The webhook configuration of nadmit.
    pub(in crate::cluster) fn webhook(phase: Phase) -> Self {
        Self::all(ApiResource::webhooks(phase)).join(NAME)
    }

    /// The metrics of a pod of nadmit, through the API server.
    pub(in crate::cluster) fn pod_metrics(pod: &ObjectKey) -> Result<Self, ApiError> {
        let mut path = Self::object(ApiResource::PODS, pod)?;
        path.path.push_str(&format!(":{METRICS_PORT}/proxy/metrics"));
        Ok(path)
    }

    /// The object of a manifest; its plural is derived from its kind, by the rules that hold for everything nadmit consists of.
    pub(in crate::cluster) fn of_manifest(object: &Value) -> Result<Self, ApiError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = text("/kind").to_lowercase();
        let plural = match kind.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None => format!("{kind}s"),
        };
        let root = Self::root(group, version);
        let root = match text("/metadata/namespace") {
            "" => root,
            namespace => root.join("namespaces").child(namespace)?,
        };
        root.child(&plural)?.child(text("/metadata/name"))
    }

    fn root(group: &str, version: &str) -> Self {
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        Self { path, query: String::new() }
    }

    /// The object of that name in a collection.
    pub(in crate::cluster) fn child(self, name: &str) -> Result<Self, ApiError> {
        if is_name(name) { Ok(self.join(name)) } else { Err(invalid(name)) }
    }

    /// A segment that needs no check.
    fn join(mut self, segment: &str) -> Self {
        self.path.push('/');
        self.path.push_str(segment);
        self
    }

    /// Of a collection: the objects of that name. A selector has a syntax of its own, so the name is checked like a segment.
    pub(in crate::cluster) fn named(self, name: &str) -> Result<Self, ApiError> {
        if is_name(name) { Ok(self.with_name(name)) } else { Err(invalid(name)) }
    }

    /// Of Events: those about an object of that name.
    pub(in crate::cluster) fn about(self, name: &str) -> Result<Self, ApiError> {
        if is_name(name) {
            Ok(self.with("fieldSelector", &format!("involvedObject.name={name}")))
        } else {
            Err(invalid(name))
        }
    }

    /// Of a collection: the objects of a name that nadmit itself has chosen.
    pub(in crate::cluster) fn well_known(self, name: &'static str) -> Self {
        self.with_name(name)
    }

    fn with_name(self, name: &str) -> Self {
        self.with("fieldSelector", &format!("metadata.name={name}"))
    }

    /// Of a collection: the objects with these labels.
    pub(in crate::cluster) fn labelled(self, labels: &[(&str, &str)]) -> Self {
        let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        self.with("labelSelector", &labels.join(","))
    }

    /// Of a collection: the objects that a label selector matches. The API server checks its syntax.
    pub(in crate::cluster) fn selected(self, selector: &str) -> Self {
        self.with("labelSelector", selector)
    }

    /// A write that stores nothing.
    pub(in crate::cluster) fn dry_run(self) -> Self {
        self.with("dryRun", "All")
    }

    /// One page of a list, after the one that ended with this continue token.
    pub(in crate::cluster) fn page(&self, limit: usize, after: &str) -> Self {
        let page = self.clone().with("limit", &limit.to_string());
        if after.is_empty() { page } else { page.with("continue", after) }
    }

    /// A watch that starts with the objects there are.
    pub(in crate::cluster) fn watch(self) -> Self {
        self.with("watch", "1")
    }

    /// A watch from a resourceVersion on, with bookmarks, for that long.
    pub(in crate::cluster) fn watch_from(&self, version: &str, timeout: Duration) -> Self {
        let watch = self.clone().watch().with("allowWatchBookmarks", "true");
        watch.with("timeoutSeconds", &timeout.as_secs().to_string()).with("resourceVersion", version)
    }

    /// The object at this path as kubectl names it: `deployments.apps/nadmit in namespace nadmit`.
    pub(in crate::cluster) fn object_name(&self) -> String {
        let segments: Vec<&str> = self.path.split('/').skip(1).collect();
        let (group, rest) = match segments.as_slice() {
            ["apis", group, _, rest @ ..] => (*group, rest),
            [_, _, rest @ ..] => ("", rest),
            rest => ("", rest),
        };
        let of = |plural: &str| if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        match rest {
            ["namespaces", namespace, plural, name] => format!("{}/{name} in namespace {namespace}", of(plural)),
            [plural, name] => format!("{}/{name}", of(plural)),
            _ => self.path.clone(),
        }
    }

    fn with(mut self, parameter: &str, value: &str) -> Self {
        // Writing to a String cannot fail.
        let _ = write!(self.query, "&{parameter}=");
        for byte in value.bytes() {
            let _ = match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    self.query.write_char(byte.into())
                }
                _ => write!(self.query, "%{byte:02X}"),
            };
        }
        self
    }
}

/// As in a request, and in logs.
impl fmt::Display for ApiPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path)?;
        match self.query.strip_prefix('&') {
            Some(query) => write!(formatter, "?{query}"),
            None => Ok(()),
        }
    }
}

fn invalid(name: &str) -> ApiError {
    ApiError::Name(name.chars().take(100).collect())
}

/// Whether a text can name an object, and so be a segment of a path.
fn is_name(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.bytes().all(is_name) && !text.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_names_that_escape_the_path() {
        for good in ["a", "net-1", "a.b"] {
            assert_eq!(ApiPath::namespace(good).unwrap().to_string(), format!("/api/v1/namespaces/{good}"));
        }
        for bad in ["", "..", "a,b", "a=b", "a/b", "a?b", "a%2fb", "a b", "é", &"a".repeat(300)] {
            assert!(ApiPath::namespace(bad).is_err(), "{bad}");
            assert!(ApiPath::all(ApiResource::NODES).named(bad).is_err(), "{bad}");
            assert!(ApiPath::in_namespace(ApiResource::NADS, bad).is_err(), "{bad}");
            assert!(
                ApiPath::nad(&ObjectKey::new("apps", bad)).is_err() && ApiPath::nad(&ObjectKey::new(bad, "n")).is_err()
            );
            let id = |namespace: &str, name: &str| NetworkId {
                kind: NetworkKind::Ovs,
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            assert!(ApiPath::network(&id(bad, "n")).is_err() && ApiPath::network(&id("apps", bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_objects_as_kubectl_does() {
        let key = ObjectKey::new("nadmit", "it");
        for (path, want) in [
            (ApiPath::object(ApiResource::DEPLOYMENTS, &key), "deployments.apps/it in namespace nadmit"),
            (ApiPath::object(ApiResource::SECRETS, &key), "secrets/it in namespace nadmit"),
            (ApiPath::namespace("nadmit"), "namespaces/nadmit"),
            (
                Ok(ApiPath::webhook(Phase::Mutating)),
                "mutatingwebhookconfigurations.admissionregistration.k8s.io/nadmit",
            ),
            (Ok(ApiPath::all(ApiResource::NODES)), "/api/v1/nodes"),
        ] {
            assert_eq!(path.unwrap().object_name(), want);
        }
    }

    #[test]
    fn makes_each_form_of_path() {
        let net = ObjectKey::new("apps", "net");
        let nads = || ApiPath::in_namespace(ApiResource::NADS, "apps").unwrap();
        let report = ReportKind { api_version: "openreports.io/v1alpha1", kind: "Report", plural: "reports" };
        let (wait, labels) = (Duration::from_secs(290), [("a.io/b", "c"), ("d", "e")]);
        for (path, want) in [
            (ApiPath::all(ApiResource::NAMESPACES), "/api/v1/namespaces"),
            (ApiPath::object(ApiResource::NAMESPACES, &ObjectKey::new("", "apps")).unwrap(), "/api/v1/namespaces/apps"),
            (
                ApiPath::nad(&net).unwrap(),
                "/apis/k8s.cni.cncf.io/v1/namespaces/apps/network-attachment-definitions/net",
            ),
            (ApiPath::object(ApiResource::SECRETS, &net).unwrap(), "/api/v1/namespaces/apps/secrets/net"),
            (
                ApiPath::webhook(Phase::Mutating),
                "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nadmit",
            ),
            (ApiPath::pod_metrics(&net).unwrap(), "/api/v1/namespaces/apps/pods/net:9443/proxy/metrics"),
            (ApiPath::all(ApiResource::report(report)), "/apis/openreports.io/v1alpha1/reports"),
            (ApiPath::all(ApiResource::NODES).named("a").unwrap(), "/api/v1/nodes?fieldSelector=metadata.name%3Da"),
            (ApiPath::all(ApiResource::NODES).well_known("b"), "/api/v1/nodes?fieldSelector=metadata.name%3Db"),
            (
                ApiPath::all(ApiResource::NODES).labelled(&labels).page(5, "x+="),
                "/api/v1/nodes?labelSelector=a.io/b%3Dc%2Cd%3De&limit=5&continue=x%2B%3D",
            ),
            (
                nads().selected("a in (b), !c"),
                "/apis/k8s.cni.cncf.io/v1/namespaces/apps/network-attachment-definitions?labelSelector=a%20in%20%28b%29%2C%20%21c",
            ),
            (nads().dry_run(), "/apis/k8s.cni.cncf.io/v1/namespaces/apps/network-attachment-definitions?dryRun=All"),
            (
                ApiPath::all(ApiResource::NODES).watch_from("7", wait),
                "/api/v1/nodes?watch=1&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion=7",
            ),
        ] {
            assert_eq!(path.to_string(), want);
        }
    }
}
