//! What the controller of whereabouts' node slices compares: of all NADs with one `network_name`, also of those that have none, the
//! first range and the size of the slices must be equal, and as texts. A NAD for which they are not gets no slices for new nodes.

use crate::cni::{CniObject, Config};
use crate::json::Value;
use crate::policy::rules::ipam::first_range;
use crate::resources::LONGEST_NAME;

/// What a NAD of whereabouts says about node slices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceUse {
    pub(super) network_name: Box<str>,
    /// The size of the slices as it is written; empty without slices.
    pub(super) size: Box<str>,
    /// The first range, as a network.
    pub(super) range: Box<str>,
}

impl SliceUse {
    /// That of a config; `None` if the controller does not read it, or something else may complete it.
    pub(in crate::policy) fn of(config: &Config<'_>) -> Option<Self> {
        if !config.others.is_empty() {
            return None;
        }
        // Of a list the controller reads the first plugin.
        let (section, kind) = config.plugins.first()?.ipam()?;
        if kind != "whereabouts" || section.text_of("configuration_path").is_some() {
            return None;
        }
        let net = first_range(section)?;
        let text = |key: &str| section.value_of(key).map_or(Some(""), Value::as_str);
        let (network_name, size) = (text("network_name")?, text("node_slice_size")?);
        let range = net.to_string();
        (network_name.len() + size.len() <= LONGEST_NAME).then(|| Self {
            network_name: network_name.into(),
            size: size.into(),
            range: range.into(),
        })
    }

    /// Whether it has slices.
    pub(in crate::policy) fn has_slices(&self) -> bool {
        !self.size.is_empty()
    }

    /// The `network_name`, which may be empty.
    pub(in crate::policy) fn network_name(&self) -> &str {
        &self.network_name
    }

    /// Whether one of the two gets no slices because of the other.
    pub(in crate::policy) fn disagrees(&self, other: &Self) -> bool {
        self.network_name == other.network_name
            && (self.has_slices() || other.has_slices())
            && (self.size != other.size || self.range != other.range)
    }
}

/// Whether the pool of a NAD's node slices gets a name: from `network_name`, or from the name beside the plugin's type. The name of a
/// list is not passed on to its plugins by the controller.
pub(in crate::policy) fn has_name(config: &Config<'_>) -> bool {
    let is_text =
        |object: CniObject<'_>, key: &str| object.value_of(key).is_some_and(|value| value.as_str() != Some(""));
    let Some(plugin) = config.plugins.first() else { return true };
    is_text(plugin.object, "name") || plugin.ipam().is_none_or(|(section, _)| is_text(section, "network_name"))
}
