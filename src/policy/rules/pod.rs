//! Rules on pods, and on the objects that make them, against the NADs that they select.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::finding::{ConfigPlace, Findings, MAX_PER_RULE};
use super::super::rule::rule;
use super::super::scope::NamespaceScope;
use super::super::{Facts, Finding, Lookup, NameVisibility, Reference, RelatedObject, Rule, SelectedNad};
use super::pod_devices;
use crate::json::line_column;
use crate::resources::{
    DEFAULT_NETWORK, LONGEST_INTERFACE, NETWORKS, ObjectKey, SelectedNetwork, Selection, SelectionError, Workload,
    has_variable,
};

rule! { SELECTION = "pod/selection", Deny in check;
    wrong: "Multus cannot read the annotation by which a pod selects its networks.";
    why: "Multus takes the annotation for JSON as soon as it has a `[`, a `{` or a quote, and for names between commas otherwise. It \
        reads all of it before it attaches anything, so one mistake keeps the pod in ContainerCreating, with all its networks. In a \
        cluster it is reported only where the policy says so (`pods`).";
    fix: "Write names between commas, `namespace/name@interface`, or a JSON list of objects with a `name`.";
}

rule! { INTERFACE = "pod/interface", Warn;
    wrong: "A pod asks for an interface name that it cannot get.";
    why: "The CNI library rejects names of more than 15 bytes and those with `/`, `:` or a space. Multus rejects a name that the pod \
        already has: `eth0` is its default network, and two selections cannot share one.";
    fix: "Give each selection a short name of its own, or leave the name out: Multus then chooses net1, net2 and so on.";
}

rule! { NAMESPACE = "pod/namespace", Warn;
    wrong: "A pod selects a NAD of a namespace from which Multus isolates it.";
    why: "Where Multus runs with `namespaceIsolation`, it attaches a pod only to NADs of the pod's own namespace and of those in \
        `globalNamespaces`; a pod that selects another one hangs in ContainerCreating. nadmit cannot see how Multus is configured: this \
        is reported only where the policy says it (`multus.namespaceIsolation`).";
    fix: "Create the NAD in the namespace of the pod, or in one of the global namespaces.";
}

rule! { NAD_ABSENT = "pod/nad-absent", Warn;
    wrong: "A pod selects a NAD that does not exist.";
    why: "Multus looks the NAD up when the pod starts, in the pod's own namespace if the selection names none, and the pod hangs in \
        ContainerCreating until it exists. In files it is not known which NADs a cluster has: there only a name is reported that is \
        nearly that of a NAD given together with it.";
    fix: "Correct the name or the namespace, or create the NAD.";
}

rule! { HOST_NETWORK = "pod/host-network", Warn;
    wrong: "A pod on the network of its node selects networks.";
    why: "With `hostNetwork: true` the kubelet sets up no network for the pod, so Multus is never called, and the annotation has no \
        effect.";
    fix: "Remove the annotation, or `hostNetwork: true`.";
}

pub(super) const NAD_KIND: &str = "NetworkAttachmentDefinition";
pub(super) const HANGS: &str = "the pod hangs in ContainerCreating";
/// How many NADs of other namespaces the writer's permission is checked for.
const MAX_FOREIGN: usize = 4;

/// Where in the object a selected network stands.
pub(super) struct SelectionPlace {
    pointer: String,
    inside: Option<ConfigPlace>,
}

impl SelectionPlace {
    /// Adds a finding here.
    pub(super) fn report<'o>(
        self,
        rule: &'static Rule,
        (headline, note, help): (String, String, String),
        out: &'o mut Findings<'_>,
    ) -> &'o mut Finding {
        match self.inside {
            Some(place) => out.text(rule, self.pointer, place, headline, note, help),
            None => out.object(rule, self.pointer, headline, note, help),
        }
    }
}

/// The networks that a workload selects, with their places.
pub(super) struct SelectedNetworks<'w> {
    workload: &'w Workload<'w>,
    text: &'w str,
}

impl<'w> SelectedNetworks<'w> {
    fn of(workload: &'w Workload<'w>) -> Self {
        Self { workload, text: workload.networks.as_deref().unwrap_or_default() }
    }

    /// All of them, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &'w SelectedNetwork)> + use<'w> {
        self.workload.selected().enumerate()
    }

    /// The place of the one with that number.
    pub(super) fn place(&self, number: usize, network: &SelectedNetwork) -> SelectionPlace {
        let listed = self.workload.selection.networks().len();
        match number.checked_sub(listed).and_then(|number| self.workload.machine_networks.get(number)) {
            Some((pointer, _)) => SelectionPlace { pointer: pointer.clone(), inside: None },
            None => in_annotation(self.workload, NETWORKS, self.text, network.span.clone()),
        }
    }
}

fn in_annotation(workload: &Workload<'_>, key: &str, text: &str, span: Range<usize>) -> SelectionPlace {
    let (line, column) = line_column(text, span.start);
    let inside = ConfigPlace { pointer: String::new(), span, line, column };
    SelectionPlace { pointer: workload.annotation_pointer(key), inside: Some(inside) }
}

/// The rules on a pod, or on an object that makes pods.
pub(super) fn check(workload: &Workload<'_>, facts: &Facts, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    if workload.is_on_host_network {
        if workload.networks.is_some() {
            let headline = "the pod selects networks, but it is on the network of its node (`hostNetwork: true`)";
            let help = "remove the annotation, or `hostNetwork: true`";
            let note = "Multus is not called for it, so the annotation has no effect";
            out.object(&HOST_NETWORK, workload.annotation_pointer(NETWORKS), headline, note, help).about_key();
        }
        return;
    }
    let selected = SelectedNetworks::of(workload);
    // What stands in for a variable of a manifest is not known. In a cluster nothing replaces it any more.
    let is_known = |text: &str| facts.is_cluster || !has_variable(text);
    if let Some(text) = workload.default_network.as_deref().filter(|text| is_known(text)) {
        check_default(workload, text, out);
    }
    if !facts.is_cluster && workload.selects_by_variable() {
        return;
    }
    if let Selection::Wrong(error) = &workload.selection {
        unreadable(error, in_annotation(workload, NETWORKS, selected.text, error.span.clone()), out);
        return;
    }
    check_names(&selected, out);
    check_interfaces(&selected, out);
    let own = workload.meta.namespace.as_ref();
    check_isolation(&selected, own, scope, out);
    let nads = VisibleNads::of(&selected, own, facts, out);
    check_existence(&selected, &nads, facts, out);
    pod_devices::check(&selected, workload, &nads, facts, scope, out);
}

/// The annotation that replaces the default network: exactly one element.
fn check_default(workload: &Workload<'_>, text: &str, out: &mut Findings<'_>) {
    let error = |problem: &str, words| SelectionError {
        span: 0..text.len(),
        problem: problem.to_owned(),
        words,
        help: "name exactly one NAD, or remove the annotation".to_owned(),
    };
    // The namespace of an element without one is a setting of Multus.
    let wrong = match Selection::read(text, "kube-system") {
        _ if text.is_empty() => error("it is empty", "pod annotation does not have \"network\" as key"),
        Selection::Wrong(error) => error,
        Selection::Read(networks) if networks.is_empty() => error("the list is empty", "index out of range [0]"),
        Selection::Read(networks) if networks.len() > 1 => {
            error("it names several networks", "more than one default network is specified")
        }
        Selection::Read(_) | Selection::Unknown => return,
    };
    unreadable(&wrong, in_annotation(workload, DEFAULT_NETWORK, text, wrong.span.clone()), out);
}

fn unreadable(error: &SelectionError, place: SelectionPlace, out: &mut Findings<'_>) {
    let headline = format!("network selection: {}", error.problem);
    let note = format!("{HANGS} with \"{}\"", error.words);
    place.report(&SELECTION, (headline, note, error.help.clone()), out);
}

/// Names that no NAD can have.
fn check_names(selected: &SelectedNetworks<'_>, out: &mut Findings<'_>) {
    let wrong = selected.all().filter(|(_, network)| network.name.is_empty() || network.name.contains('/'));
    for (number, network) in wrong.take(MAX_PER_RULE) {
        let (problem, help) = match network.name.split_once('/') {
            Some((namespace, name)) => (
                format!("`{}` is not the name of a NAD", network.name),
                format!("write \"namespace\": {namespace:?}, \"name\": {name:?}"),
            ),
            None => ("an element names no NAD".to_owned(), "remove it, or the comma beside it".to_owned()),
        };
        let (words, span) = ("cannot find a network-attachment-definition", network.span.clone());
        let error = SelectionError { span, problem, words, help };
        unreadable(&error, selected.place(number, network), out);
    }
}

fn check_interfaces(selected: &SelectedNetworks<'_>, out: &mut Findings<'_>) {
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let mut found = 0;
    for (number, network) in selected.all().filter(|(_, network)| !network.interface.is_empty()) {
        let name = network.interface.as_str();
        let problem = if name.len() > LONGEST_INTERFACE {
            Some((
                format!("interface name `{name}` is longer than {LONGEST_INTERFACE} bytes"),
                "interface name is too long",
            ))
        } else if matches!(name, "." | "..") || name.contains(|c: char| matches!(c, '/' | ':') || c.is_whitespace()) {
            let words = "interface name contains / or : or whitespace characters";
            Some((format!("interface name {name:?} is not allowed"), words))
        } else if name == "eth0" {
            Some(("interface name `eth0` is that of the default network".to_owned(), "already exists"))
        } else if !taken.insert(name) {
            Some((format!("interface name `{name}` is asked for twice"), "already exists"))
        } else {
            None
        };
        let Some((headline, words)) = problem else { continue };
        let note = format!("{HANGS} with \"{words}\"");
        let help = "use another name of at most 15 bytes, or none".to_owned();
        selected.place(number, network).report(&INTERFACE, (headline, note, help), out);
        found += 1;
        if found == MAX_PER_RULE {
            return;
        }
    }
}

fn check_isolation(selected: &SelectedNetworks<'_>, own: &str, scope: &NamespaceScope<'_>, out: &mut Findings<'_>) {
    // In a file the namespace may be left to the context it is applied in.
    if own.is_empty() {
        return;
    }
    let multus = &scope.policy.multus;
    let isolated =
        selected.all().filter(|(_, network)| network.namespace != own && multus.isolates(&network.namespace));
    for (number, network) in isolated.take(MAX_PER_RULE) {
        let headline = format!("the pod is in namespace `{own}`, and selects a NAD of `{}`", network.namespace);
        let note = format!("{HANGS} with \"namespace isolation enabled, annotation violates permission\"");
        let help = "use a NAD of the pod's namespace, or of a global one".to_owned();
        selected.place(number, network).report(&NAMESPACE, (headline, note, help), out);
    }
}

/// The NADs of other namespaces that a finding may say anything about.
pub(super) struct VisibleNads(BTreeSet<ObjectKey>);

impl VisibleNads {
    fn of(selected: &SelectedNetworks<'_>, own: &str, facts: &Facts, out: &mut Findings<'_>) -> Self {
        let mut foreign = BTreeSet::new();
        for nad in selected.all().filter_map(|(_, network)| network.nad()).filter(|nad| nad.namespace() != own) {
            if foreign.len() == MAX_FOREIGN && facts.names != NameVisibility::All {
                break;
            }
            foreign.insert(nad);
        }
        foreign.retain(|nad| out.may_name(Reference::Nad(nad.clone()), own, facts));
        Self(foreign)
    }

    /// What is known about a selected NAD, as far as it may be shown.
    pub(super) fn get<'f>(&self, network: &SelectedNetwork, own: &str, facts: &'f Facts) -> Option<&'f SelectedNad> {
        let key = network.nad()?;
        let is_visible = key.namespace() == own || self.0.contains(&key);
        facts.selected.get(&key).filter(|_| is_visible)
    }
}

fn check_existence(selected: &SelectedNetworks<'_>, nads: &VisibleNads, facts: &Facts, out: &mut Findings<'_>) {
    let own = selected.workload.meta.namespace.as_ref();
    let mut found = BTreeSet::new();
    for (number, network) in selected.all() {
        let Some(nad) = nads.get(network, own, facts) else { continue };
        let is_absent = match &nad.nad {
            Lookup::Found(_) => false,
            Lookup::Absent => true,
            Lookup::Unknown => nad.similar.is_some(),
        };
        if !is_absent || found.len() == MAX_PER_RULE || !found.insert((&network.namespace, &network.name)) {
            continue;
        }
        let place = if network.namespace == own {
            "its own namespace".to_owned()
        } else {
            format!("namespace `{}`", network.namespace)
        };
        let is_known = nad.nad == Lookup::Absent;
        let headline = if is_known {
            format!("the pod selects NAD `{}`, which does not exist in {place}", network.name)
        } else {
            format!("the pod selects NAD `{}`, which is not among the manifests", network.name)
        };
        let note = if is_known {
            format!("{HANGS} until it exists, with \"cannot find a network-attachment-definition\"")
        } else {
            format!("if it does not exist, {HANGS}")
        };
        let help = match &nad.similar {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => "correct the name or the namespace, or create the NAD".to_owned(),
        };
        let related = nad.similar.as_ref().map(|similar| {
            RelatedObject::new(NAD_KIND, ObjectKey::new(&network.namespace, similar), "has nearly this name")
        });
        selected.place(number, network).report(&NAD_ABSENT, (headline, note, help), out).related_to(related);
    }
}

#[cfg(test)]
mod tests;
