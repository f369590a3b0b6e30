//! The labels of nodes that NADs ask for: network-resources-injector copies them into the nodeSelector of pods.

use super::InterfacePlan;
use crate::audit::chain::ClusterNode;
use crate::policy::ResourceInjector;
use crate::resources::ObjectKey;

/// A label that a NAD of a pod asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NadLabel {
    /// The label.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The NAD.
    pub nad: ObjectKey,
    /// Whether the injector copies it to the pod; `None` if it is not known whether there is one.
    pub is_copied: Option<bool>,
}

impl NadLabel {
    /// The labels that the NADs of these interfaces ask for. Of a pod whose requests are final, its own nodeSelector has them already, if
    /// anything copied them.
    pub(super) fn of(interfaces: &[InterfacePlan], injector: Option<ResourceInjector>) -> Vec<Self> {
        let nads = || interfaces.iter().filter_map(|one| Some((one.nad.as_ref()?, one.nad_plan()?)));
        // Without a resource to request, it leaves the nodeSelector alone, too.
        let has_resource = nads().any(|(_, nad)| nad.resource.is_some());
        let is_copied = match injector {
            Some(ResourceInjector::None) => return Vec::new(),
            _ if !has_resource => Some(false),
            Some(ResourceInjector::All | ResourceInjector::Missing) => Some(true),
            None => None,
        };
        let mut found: Vec<Self> = Vec::new();
        for (key, nad) in nads() {
            let Some((label, value)) = nad.node_label.clone() else { continue };
            let label = Self { key: label, value, nad: key.clone(), is_copied };
            // Of two NADs with the same label the later one counts.
            found.retain(|other| other.key != label.key);
            found.push(label);
        }
        found
    }

    pub(super) fn is_on(&self, node: &ClusterNode) -> bool {
        node.labels.get(&self.key) == Some(&self.value)
    }

    pub(super) fn reason(&self) -> String {
        let when = if self.is_copied.is_none() { ", if it runs," } else { "" };
        format!("it has no label {self}, which network-resources-injector{when} copies from NAD {}", self.nad)
    }

    /// What becomes of it.
    pub(super) fn in_words(&self) -> String {
        let nad = &self.nad;
        match self.is_copied {
            Some(true) => format!("{self}, which network-resources-injector copies from NAD {nad}"),
            None => format!("perhaps {self}: network-resources-injector, if it runs, copies it from NAD {nad}"),
            Some(false) => format!(
                "not {self} of NAD {nad}: network-resources-injector copies it only if a network of the pod names a resource"
            ),
        }
    }
}

impl std::fmt::Display for NadLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}
