//! Pods, and the objects that make pods, as far as they select networks.
//!
//! Only those with an annotation that selects a network are read: a repository or a cluster has many others, which nadmit has nothing
//! to say about.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::raw::{FieldValue, RawFields, RawObject};
use super::{DEFAULT_NETWORK, Meta, Misshapen, NETWORKS, SelectedNetwork, Selection, has_variable, name_of};
use crate::json::{JsonReader, escape};

/// How many resources of a pod are recorded.
const MAX_RESOURCES: usize = 64;

/// A kind of object that is a pod or makes pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum WorkloadKind {
    Pod,
    ReplicationController,
    Deployment,
    StatefulSet,
    DaemonSet,
    ReplicaSet,
    Job,
    CronJob,
    /// Of KubeVirt.
    VirtualMachine,
}

impl WorkloadKind {
    /// All of them, with their API group.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Pod, ""),
        (Self::ReplicationController, ""),
        (Self::Deployment, "apps"),
        (Self::StatefulSet, "apps"),
        (Self::DaemonSet, "apps"),
        (Self::ReplicaSet, "apps"),
        (Self::Job, "batch"),
        (Self::CronJob, "batch"),
        (Self::VirtualMachine, "kubevirt.io"),
    ];

    /// The kind of an object with these two fields.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self::ALL.into_iter().find(|(known, of)| known.name() == kind && *of == group).map(|(known, _)| known)
    }

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::ReplicationController => "ReplicationController",
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
            Self::VirtualMachine => "VirtualMachine",
        }
    }

    /// Its API group.
    pub fn group(self) -> &'static str {
        Self::ALL.into_iter().find(|(known, _)| *known == self).map_or("", |(_, group)| group)
    }

    /// The JSON pointer of its pod template; empty for a pod.
    fn template(self) -> &'static str {
        match self {
            Self::Pod => "",
            Self::CronJob => "/spec/jobTemplate/spec/template",
            _ => "/spec/template",
        }
    }
}

/// A pod, or an object that makes pods, which select networks.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    /// Which kind.
    pub kind: WorkloadKind,
    /// Its metadata.
    pub meta: Meta<'a>,
    /// The text of the annotation that selects networks.
    pub networks: Option<Cow<'a, str>>,
    /// The text of the annotation that replaces the default network.
    pub default_network: Option<Cow<'a, str>>,
    /// The networks in the first one.
    pub selection: Selection,
    /// The networks of a virtual machine, and the JSON pointer of each.
    pub machine_networks: Vec<(String, SelectedNetwork)>,
    /// How many of each extended resource the containers request.
    pub requests: BTreeMap<String, u64>,
    /// Whether it claims devices (DRA).
    pub has_claims: bool,
    /// Whether its pods use the network of their node.
    pub is_on_host_network: bool,
    /// Fields of a wrong type.
    pub misshapen: Vec<Misshapen>,
    pub(super) spec: RawFields<'a>,
}

impl<'a> Workload<'a> {
    /// Reads a pod. The items of a list of the API server do not state their kind.
    pub fn read_pod(json: &'a str) -> Option<Self> {
        Self::read(WorkloadKind::Pod, JsonReader::whole(json, RawObject::read).ok()?)
    }

    /// Reads an object of that kind, whether or not its pods select a network; `None` if it is not JSON.
    pub fn of_kind(kind: WorkloadKind, json: &'a str) -> Option<Self> {
        Some(Self::read_any(kind, JsonReader::whole(json, RawObject::read).ok()?))
    }

    /// Reads an object; `None` if its pods select no network.
    pub(super) fn read(kind: WorkloadKind, head: RawObject<'a>) -> Option<Self> {
        Some(Self::read_any(kind, head)).filter(|read| {
            read.networks.is_some() || read.default_network.is_some() || !read.machine_networks.is_empty()
        })
    }

    fn read_any(kind: WorkloadKind, head: RawObject<'a>) -> Self {
        let mut misshapen = Vec::new();
        let meta = Meta::of(head.metadata, &mut misshapen);
        let spec = head.spec.or_record("/spec", "an object", &mut misshapen).unwrap_or_default();
        let template = PodTemplate::of(kind, &spec);
        let annotation = |key: &str| match &template {
            Some(PodTemplate { annotations, .. }) => annotations.as_ref().and_then(|all| all.text(key).value()),
            None => meta.annotation(key),
        };
        let networks = annotation(NETWORKS).filter(|text| !text.is_empty());
        let default_network = annotation(DEFAULT_NETWORK);
        let pod = match &template {
            Some(template) => template.spec.clone(),
            None => spec.clone(),
        };
        let namespace = meta.namespace.as_ref();
        let machine_networks =
            if kind == WorkloadKind::VirtualMachine { machine_networks(&pod, namespace) } else { Vec::new() };
        // KubeVirt writes the annotation of a machine's pod from its networks, over one that is there.
        let networks = networks.filter(|_| machine_networks.is_empty());
        Self {
            kind,
            selection: Selection::read(networks.as_deref().unwrap_or_default(), namespace),
            networks,
            default_network,
            machine_networks,
            requests: requests(&pod),
            has_claims: pod.objects("resourceClaims").value().is_some_and(|claims| !claims.is_empty()),
            is_on_host_network: pod.raw("hostNetwork") == Some("true"),
            meta,
            misshapen,
            spec,
        }
    }

    /// The JSON pointer of an annotation of its pods.
    pub fn annotation_pointer(&self, key: &str) -> String {
        format!("{}/metadata/annotations/{}", self.kind.template(), escape(key))
    }

    /// All networks that its pods select.
    pub fn selected(&self) -> impl Iterator<Item = &SelectedNetwork> {
        self.selection.networks().iter().chain(self.machine_networks.iter().map(|(_, network)| network))
    }

    /// Whether the selected networks depend on variables, which are replaced before a manifest is applied.
    pub fn selects_by_variable(&self) -> bool {
        let machine = self.machine_networks.iter().flat_map(|(_, network)| [&network.namespace, &network.name]);
        self.networks.as_deref().into_iter().chain(machine.map(String::as_str)).any(has_variable)
    }

    /// The spec of its pods.
    pub(super) fn pod_spec(&self) -> RawFields<'a> {
        PodTemplate::of(self.kind, &self.spec).map_or_else(|| self.spec.clone(), |template| template.spec)
    }

    /// Whether its pods are the same as those of another version of it.
    pub(super) fn makes_pods_of(&self, old: &Self) -> bool {
        self.networks == old.networks
            && self.default_network == old.default_network
            && self.spec.is_same(&old.spec)
            && self.misshapen == old.misshapen
    }
}

/// The part of a pod template that is read.
struct PodTemplate<'a> {
    annotations: Option<RawFields<'a>>,
    spec: RawFields<'a>,
}

impl<'a> PodTemplate<'a> {
    /// The template in a spec; `None` for a pod, which has none.
    fn of(kind: WorkloadKind, spec: &RawFields<'a>) -> Option<Self> {
        let path = kind.template().strip_prefix("/spec/")?;
        let mut template = spec.clone();
        for field in path.split('/') {
            template = object(&template, field);
        }
        let annotations = object(&template, "metadata").raw("annotations").and_then(|raw| RawFields::parse(raw).ok());
        Some(Self { annotations, spec: object(&template, "spec") })
    }
}

/// The object in a field; without members where there is none.
fn object<'a>(fields: &RawFields<'a>, key: &str) -> RawFields<'a> {
    fields.raw(key).and_then(|raw| RawFields::parse(raw).ok()).unwrap_or_default()
}

/// The extended resources that the containers request together. Containers run at once, and those before them one after the other;
/// what is only a limit is requested, too.
fn requests(pod: &RawFields<'_>) -> BTreeMap<String, u64> {
    let (mut sum, mut most) = (BTreeMap::new(), BTreeMap::new());
    for (list, is_before) in [("containers", false), ("initContainers", true)] {
        for container in pod.objects(list).value().unwrap_or_default() {
            let runs_on = container.text("restartPolicy").value().as_deref() == Some("Always");
            for (name, count) in requested_by(&container) {
                if is_before && !runs_on {
                    let known: &mut u64 = most.entry(name).or_default();
                    *known = count.max(*known);
                } else {
                    let known: &mut u64 = sum.entry(name).or_default();
                    *known = known.saturating_add(count);
                }
            }
        }
    }
    for (name, count) in most {
        let known = sum.entry(name).or_default();
        *known = count.max(*known);
    }
    sum
}

fn requested_by(container: &RawFields<'_>) -> BTreeMap<String, u64> {
    let resources = object(container, "resources");
    let mut found = BTreeMap::new();
    for list in ["limits", "requests"] {
        let list = object(&resources, list);
        // Extended resources have a domain.
        for name in list.keys().filter(|name| name.contains('/')).take(MAX_RESOURCES) {
            let count = quantity(&list, name);
            let known: &mut u64 = found.entry(name_of(name).to_owned()).or_default();
            *known = count.max(*known);
        }
    }
    found
}

/// A number of devices. What is not plain digits counts as enough.
fn quantity(list: &RawFields<'_>, name: &str) -> u64 {
    let text = match list.text(name) {
        FieldValue::Value(text) => text,
        FieldValue::Absent | FieldValue::Wrong(_) => list.raw(name).unwrap_or_default().into(),
    };
    text.parse().unwrap_or(u64::MAX)
}

/// The networks of a virtual machine that are NADs.
fn machine_networks(spec: &RawFields<'_>, namespace: &str) -> Vec<(String, SelectedNetwork)> {
    let networks = spec.objects("networks").value().unwrap_or_default();
    let read = networks.iter().enumerate().filter_map(|(number, network)| {
        let name = object(network, "multus").text("networkName").value()?;
        let pointer = format!("/spec/template/spec/networks/{number}/multus/networkName");
        Some((pointer, SelectedNetwork::named(&name, namespace)))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Object;

    fn read(json: &str) -> Option<Workload<'_>> {
        match Object::read(json).unwrap() {
            Some(Object::Workload(workload)) => Some(workload),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    fn pod(annotations: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"apps","annotations":{annotations}}},"spec":{spec}}}"#
        )
    }

    #[test]
    fn every_kind_is_read_by_its_template() {
        let template = r#"{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"net, other/b@x"}},"spec":{"hostNetwork":true}}"#;
        for (kind, group) in WorkloadKind::ALL {
            let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
            let annotated = r#"{"k8s.v1.cni.cncf.io/networks":"net, other/b@x"}"#;
            let (annotations, spec) = match kind {
                WorkloadKind::Pod => (annotated, r#"{"hostNetwork":true}"#.to_owned()),
                WorkloadKind::CronJob => ("{}", format!(r#"{{"jobTemplate":{{"spec":{{"template":{template}}}}}}}"#)),
                _ => ("{}", format!(r#"{{"template":{template}}}"#)),
            };
            let json = |version: &str, annotations: &str, spec: &str| {
                format!(
                    r#"{{"apiVersion":"{version}","kind":"{}","metadata":{{"name":"w","namespace":"apps","annotations":{annotations}}},"spec":{spec}}}"#,
                    kind.name()
                )
            };
            let text = json(&version, annotations, &spec);
            let workload = read(&text).unwrap_or_else(|| panic!("{text}"));
            let nads: Vec<_> =
                workload.selected().filter_map(SelectedNetwork::nad).map(|nad| nad.to_string()).collect();
            assert_eq!(nads, ["apps/net", "other/b"], "{text}");
            assert!(workload.is_on_host_network && workload.kind == kind && kind.group() == group);
            assert!(
                workload.annotation_pointer(NETWORKS).ends_with("/metadata/annotations/k8s.v1.cni.cncf.io~1networks")
            );
            // An annotation of the object itself is none of its pods.
            if kind != WorkloadKind::Pod {
                assert!(read(&json(&version, annotated, "{}")).is_none());
            }
            assert!(read(&json("example.com/v1", annotations, &spec)).is_none());
        }
    }

    #[test]
    fn requests_are_counted_as_kubernetes_does() {
        let container = |resources: &str| format!(r#"{{"name":"c","resources":{resources}}}"#);
        let one = container(r#"{"requests":{"a.io/x":"1","cpu":"1"},"limits":{"a.io/x":1}}"#);
        let two = container(r#"{"limits":{"a.io/x":"2","a.io/y":"1"}}"#);
        let odd = container(r#"{"limits":{"a.io/z":"1k"}}"#);
        let sidecar = two.replace(r#""name""#, r#""restartPolicy":"Always","name""#);
        for (spec, want) in [
            (format!(r#"{{"containers":[{one},{two}]}}"#), vec![("a.io/x", 3), ("a.io/y", 1)]),
            (format!(r#"{{"containers":[{one}],"initContainers":[{two}]}}"#), vec![("a.io/x", 2), ("a.io/y", 1)]),
            (format!(r#"{{"containers":[{one}],"initContainers":[{sidecar}]}}"#), vec![("a.io/x", 3), ("a.io/y", 1)]),
            (format!(r#"{{"containers":[{odd}]}}"#), vec![("a.io/z", u64::MAX)]),
            (r#"{"containers":[{"resources":5},{}]}"#.to_owned(), vec![]),
            ("{}".to_owned(), vec![]),
        ] {
            let text = pod(r#"{"k8s.v1.cni.cncf.io/networks":"net"}"#, &spec);
            let found = read(&text).unwrap().requests;
            assert_eq!(found.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>(), want, "{spec}");
        }
    }

    #[test]
    fn pods_without_a_selection_are_not_read() {
        for (annotations, is_read) in [
            ("{}", false),
            ("null", false),
            (r#"{"k8s.v1.cni.cncf.io/networks":""}"#, false),
            (r#"{"k8s.v1.cni.cncf.io/networks":5}"#, false),
            (r#"{"k8s.v1.cni.cncf.io/networks":"net"}"#, true),
            (r#"{"v1.multus-cni.io/default-network":""}"#, true),
        ] {
            assert_eq!(read(&pod(annotations, "{}")).is_some(), is_read, "{annotations}");
        }
        let claiming = pod(r#"{"k8s.v1.cni.cncf.io/networks":"net"}"#, r#"{"resourceClaims":[{"name":"c"}]}"#);
        assert!(read(&claiming).unwrap().has_claims);
        let item = claiming.replace(r#""apiVersion":"v1","kind":"Pod","#, "");
        assert!(Workload::read_pod(&item).unwrap().has_claims);
    }

    #[test]
    fn machines_name_their_networks() {
        let json = r#"{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"m","namespace":"apps"},
            "spec":{"template":{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"ignored"}},"spec":{"networks":
            [{"name":"default","pod":{}},{"name":"a","multus":{"networkName":"net"}},{"name":"b","multus":{"networkName":"o/net"}}]}}}}"#;
        let machine = read(json).unwrap();
        let found: Vec<_> =
            machine.machine_networks.iter().map(|(at, one)| format!("{at} {}", one.nad().unwrap())).collect();
        assert_eq!(
            found,
            [
                "/spec/template/spec/networks/1/multus/networkName apps/net",
                "/spec/template/spec/networks/2/multus/networkName o/net"
            ]
        );
        assert_eq!(machine.networks, None);
    }
}
