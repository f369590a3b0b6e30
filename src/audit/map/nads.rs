//! What a NAD says about its network, as its plugins read it.

use super::ranges::{self, RangeSpec};
use super::rows::MapNad;
use super::{MAX_PARTS, key, short};
use crate::cni::{Attachment, Config, OVN_PLUGIN, Plugin};
use crate::json::Document;
use crate::resources::{Nad, RESOURCE_NAME};

/// A NAD that was read.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadNad {
    pub(super) row: MapNad,
    pub(super) ranges: Vec<RangeSpec>,
    /// Topology and subnets of its network in OVN.
    pub(super) ovn: Option<(String, String)>,
}

impl ReadNad {
    pub(super) fn of(nad: &Nad<'_>, is_stored: bool, place: &str) -> Self {
        let mut row = MapNad {
            namespace: short(&nad.meta.namespace),
            name: short(&nad.meta.name),
            is_stored,
            owner: nad.meta.owner().map(|owner| short(&owner.to_string())),
            resource: nad.meta.annotation(RESOURCE_NAME).filter(|name| !name.is_empty()).map(|name| short(&name)),
            place: place.to_owned(),
            ..MapNad::default()
        };
        let Some(text) = nad.config.as_deref().filter(|text| !text.is_empty()) else {
            row.problem = Some("it has no config: a file on each node has it".to_owned());
            return Self { row, ..Self::default() };
        };
        let Ok(document) = Document::parse(text) else {
            row.problem = Some("its config is not JSON".to_owned());
            return Self { row, ..Self::default() };
        };
        let mut read = Self { row, ..Self::default() };
        match Config::of(&document) {
            Some(config) if !config.plugins.is_empty() => read.add_config(&config),
            _ => read.row.problem = Some("its config has no plugin".to_owned()),
        }
        read
    }

    fn add_config(&mut self, config: &Config<'_>) {
        let plugins = config.plugins.iter().take(MAX_PARTS);
        self.row.plugins = plugins.clone().map(|plugin| short(plugin.kind)).collect();
        let first = |of: &dyn Fn(&Plugin<'_>) -> Option<String>| config.plugins.iter().find_map(of);
        let resource = |plugin: &Plugin<'_>| plugin.object.text_of("resourceName").map(short);
        self.row.resource = self.row.resource.take().or_else(|| first(&resource));
        self.row.link = first(&link);
        self.row.vlan = config.plugins.iter().find_map(Plugin::vlan);
        if let Some((section, kind)) = plugins.clone().find_map(Plugin::ipam) {
            self.row.ipam = Some(short(kind));
            self.row.addresses = ranges::fixed_addresses(section);
        }
        self.ranges = ranges::of_config(config);
        if let Some(plugin) = config.plugins.iter().find(|plugin| plugin.kind == OVN_PLUGIN) {
            let of = |key: &str| plugin.object.text_of(key).map(short).unwrap_or_default();
            self.row.ovn = config.root.text_of("name").map(short);
            self.ovn = Some((of("topology"), of("subnets")));
        }
    }

    /// `namespace/name`.
    pub(super) fn key(&self) -> String {
        key(&self.row.namespace, &self.row.name)
    }
}

/// What a plugin attaches pods to.
fn link(plugin: &Plugin<'_>) -> Option<String> {
    let (what, name) = match plugin.attachment()? {
        Attachment::Master(name) => ("master", name),
        Attachment::Bridge(name) => ("bridge", name),
        Attachment::Device(name) => ("device", name),
        Attachment::OvnNetwork { physical_network, .. } => ("physical network", physical_network?),
        Attachment::Vrf(_) => return None,
    };
    Some(format!("{what} {}", short(name)))
}
