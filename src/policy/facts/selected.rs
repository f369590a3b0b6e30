//! The NADs that a pod selects, as far as pods need to know them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{FactLookup, Facts, Lookup, NetworkFact};
use crate::cni::Config;
use crate::cni::arguments::Arguments;
use crate::json::Document;
use crate::policy::scope::NamespaceScope;
use crate::policy::{NameVisibility, Policy};
use crate::resources::{Nad, ObjectKey, RESOURCE_NAME, SelectedNetwork, Workload, name_of};

/// How many NADs of a pod are looked up: its annotation is written by whoever creates it.
const MAX_SELECTED: usize = 64;
/// For how many that are not there a similar one is searched.
const MAX_SIMILAR: usize = 4;

/// How many plugins of a NAD are kept.
const MAX_PLUGINS: usize = 8;
/// Moves the device that it is given into the pod.
const HOST_DEVICE: &str = "host-device";

/// What pods need to know about a NAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NadSummary {
    /// The resource of its devices, if it names one.
    pub resource_name: Option<Box<str>>,
    /// Whether only what follows the `/` of that resource is certain.
    pub is_prefix_assumed: bool,
    /// The types of its plugins, without those whose config names a device: which of them need one, the policy says.
    pub plugins: Box<[Box<str>]>,
    /// What a pod can ask of its plugins.
    pub arguments: Arguments,
}

/// Nothing is known: no resource, no plugin, and every argument may be read.
impl Default for NadSummary {
    fn default() -> Self {
        Self { resource_name: None, is_prefix_assumed: false, plugins: Box::default(), arguments: Arguments::EVERY }
    }
}

impl NadSummary {
    /// Summarizes a NAD.
    pub fn of(nad: &Nad<'_>) -> Self {
        let summary = Self {
            resource_name: nad.meta.annotation(RESOURCE_NAME).map(|name| name_of(&name).into()),
            ..Self::default()
        };
        // The config may be a file on the node.
        let document = nad.config.as_deref().and_then(|config| Document::parse(config).ok());
        let Some(config) = document.as_ref().and_then(Config::of) else { return summary };
        // Without a resource no device of a pod is for it.
        let is_named = summary.resource_name.is_some();
        let without_device = config.plugins.iter().filter(|plugin| is_named && plugin.fixed_device().is_none());
        let kinds = without_device.flat_map(|plugin| [Some(plugin.kind), plugin.kind_in_text]).flatten();
        let plugins = kinds.take(MAX_PLUGINS).map(|kind| name_of(kind).into()).collect();
        Self { plugins, arguments: config.arguments_read(), ..summary }
    }

    /// Whether a plugin fails without the device that Multus adds. Others, such as `bridge`, ignore it.
    pub(crate) fn needs_device(&self, scope: &NamespaceScope<'_>) -> bool {
        self.plugins.iter().any(|kind| scope.needs_device(kind) || &**kind == HOST_DEVICE)
    }
}

/// A NAD that a pod selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedNad {
    /// Whether it exists, and what it is.
    pub nad: Lookup<NadSummary>,
    /// Where it does not, or is not known to: another one in its namespace whose name is nearly the same.
    pub similar: Option<String>,
}

/// The pods that use a NAD while it is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NadUsers {
    /// Some of those in the namespace of the NAD.
    pub pods: Vec<String>,
    /// How many there are in that namespace.
    pub count: usize,
    /// Whether there are pods in other namespaces, too.
    pub has_others: bool,
}

impl Facts {
    /// Looks up the NADs that a pod selects.
    pub(super) fn gather_selected(&mut self, workload: &Workload<'_>, lookup: &dyn FactLookup, policy: &Policy) {
        let mut found = BTreeMap::new();
        let mut similar_left = MAX_SIMILAR;
        for key in workload.selected().filter_map(SelectedNetwork::nad) {
            if found.len() >= MAX_SELECTED {
                break;
            }
            if let Entry::Vacant(entry) = found.entry(key) {
                let selected =
                    self.selected_nad(entry.key(), &workload.meta.namespace, &mut similar_left, lookup, policy);
                entry.insert(selected);
            }
        }
        self.selected = found;
    }

    fn selected_nad(
        &self,
        key: &ObjectKey,
        namespace: &str,
        similar_left: &mut usize,
        lookup: &dyn FactLookup,
        policy: &Policy,
    ) -> SelectedNad {
        let nad = match lookup.nad(key) {
            Lookup::Found(nad) => Lookup::Found(nad.summary),
            Lookup::Unknown => Lookup::Unknown,
            Lookup::Absent => Lookup::Absent,
        };
        if matches!(nad, Lookup::Found(_)) {
            return SelectedNad { nad, similar: None };
        }
        // The operator is about to create it.
        if let Some(network) = self.renderers_at(key, lookup, policy).first() {
            return SelectedNad { nad: Lookup::Found(self.of_network(network, policy)), similar: None };
        }
        // The names in another namespace are nothing to whoever may not read it.
        let may_search = *similar_left > 0 && (key.namespace() == namespace || self.names == NameVisibility::All);
        *similar_left -= usize::from(may_search);
        SelectedNad { nad, similar: if may_search { lookup.similar_nad(key) } else { None } }
    }

    /// The NAD that a network renders, as far as it is certain.
    fn of_network(&self, network: &NetworkFact, policy: &Policy) -> NadSummary {
        let scope = policy.scope(&network.target_namespace);
        let Some(prefix) = scope.prefix(self).filter(|_| !network.resource_name.is_empty()) else {
            return NadSummary::default();
        };
        NadSummary {
            resource_name: Some(format!("{}/{}", prefix.value, network.resource_name).into()),
            is_prefix_assumed: prefix.assumed,
            plugins: [network.id.kind.plugin().into()].into(),
            ..NadSummary::default()
        }
    }
}
