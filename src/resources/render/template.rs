//! The operator's template of a config, filled with the fields of a network.

use std::ops::Range;

use super::NonblankCounter;
use crate::resources::{Network, NetworkKind};

/// Enough for most configs.
const USUAL_LENGTH: usize = 1024;
const USUAL_FIELDS: usize = 16;

/// A part of the config and the field of the network's spec it came from.
#[derive(Clone, Debug)]
pub(super) struct RenderedField {
    /// The spec's field, or `name` for the network's own name.
    pub(super) name: &'static str,
    /// The range of non-blank characters: the operator's formatting changes only blanks.
    pub(super) ink: Range<usize>,
    /// How many of those precede the author's text (`"ipam":`).
    pub(super) lead: usize,
}

/// The filled config template, with the origin of each part.
pub(super) struct Template {
    pub(super) config: String,
    pub(super) fields: Vec<RenderedField>,
    /// The non-blank characters so far, and how many bytes of the config they are in.
    ink: NonblankCounter,
    counted: usize,
}

impl Template {
    pub(super) fn fill(network: &Network<'_>) -> Self {
        let mut config = String::with_capacity(USUAL_LENGTH);
        config.push_str("{\n  \"cniVersion\":\"1.0.0\",\n  ");
        let fields = Vec::with_capacity(USUAL_FIELDS);
        let mut template = Self { config, fields, ink: NonblankCounter::default(), counted: 0 };
        template.string("name", "name", &network.meta.name);
        let chain = network.text("metaPlugins");
        if !chain.is_empty() {
            template.config.push_str("\"plugins\": [\n    {");
        }
        template.config.push_str("\"type\":\"");
        template.config.push_str(network.kind.plugin());
        template.config.push_str("\",");
        match network.kind {
            NetworkKind::Sriov => template.sriov(network),
            NetworkKind::SriovIb => {
                template.fragment("capabilities", "capabilities", network);
                template.one_of("link_state", "linkState", network, &["enable", "disable", "auto"]);
            }
            NetworkKind::Ovs => template.ovs(network),
        }
        template.ipam(&network.text("ipam"));
        template.config.push_str("\n}");
        if !chain.is_empty() {
            template.config.push_str(",\n  ");
            template.part("metaPlugins", None, "", &chain, "");
            template.config.push_str("\n  ]\n}");
        }
        template
    }

    fn sriov(&mut self, network: &Network<'_>) {
        self.number("vlan", "vlan", Some(network.integer("vlan").unwrap_or(0)));
        self.one_of("spoofchk", "spoofChk", network, &["off", "on"]);
        self.one_of("trust", "trust", network, &["on", "off"]);
        let qos = network.integer("vlanQoS").unwrap_or(0);
        self.number("vlanQoS", "vlanQoS", (0..=7).contains(&qos).then_some(qos));
        self.text("vlanProto", "vlanProto", network);
        self.number("min_tx_rate", "minTxRate", network.integer("minTxRate").filter(|rate| *rate >= 0));
        self.number("max_tx_rate", "maxTxRate", network.integer("maxTxRate").filter(|rate| *rate >= 0));
        self.fragment("capabilities", "capabilities", network);
        self.one_of("link_state", "linkState", network, &["enable", "disable", "auto"]);
        // The CRD's default; a manifest on its way to the API server does not have it yet.
        match network.spec.text("logLevel").value() {
            None => self.string("logLevel", "logLevel", "info"),
            Some(level) if level.is_empty() => {}
            Some(level) => self.string("logLevel", "logLevel", &level),
        }
        self.text("logFile", "logFile", network);
    }

    fn ovs(&mut self, network: &Network<'_>) {
        self.fragment("capabilities", "capabilities", network);
        self.text("bridge", "bridge", network);
        self.number("vlan", "vlan", network.integer("vlan").filter(|vlan| *vlan != 0));
        self.number("mtu", "mtu", network.integer("mtu").filter(|mtu| *mtu != 0));
        self.trunk(network);
        self.text("interface_type", "interfaceType", network);
    }

    fn trunk(&mut self, network: &Network<'_>) {
        let ranges = network.spec.objects("trunk").value().unwrap_or_default();
        if ranges.is_empty() {
            return;
        }
        let ranges = ranges.iter().map(|range| {
            let ids = ["minID", "maxID", "id"].into_iter().filter_map(|key| Some((key, range.integer(key).value()?)));
            ids.map(|(key, id)| format!("\"{key}\":{id}")).collect::<Vec<_>>().join(",")
        });
        let ranges = ranges.map(|range| format!("{{{range}}}")).collect::<Vec<_>>().join(",");
        self.part("trunk", Some("trunk"), "", &format!("[{ranges}]"), ",");
    }

    /// The operator removes all spaces from `ipam`, also inside strings.
    fn ipam(&mut self, ipam: &str) {
        let squeezed: String = ipam.split_whitespace().collect();
        let text = if ipam.is_empty() { "{}" } else { &squeezed };
        self.part("ipam", Some("ipam"), "", text, "");
    }

    fn text(&mut self, key: &str, field: &'static str, network: &Network<'_>) {
        let text = network.text(field);
        if !text.is_empty() {
            self.string(key, field, &text);
        }
    }

    fn one_of(&mut self, key: &str, field: &'static str, network: &Network<'_>, known: &[&str]) {
        let text = network.text(field);
        if known.contains(&text.as_ref()) {
            self.string(key, field, &text);
        }
    }

    fn fragment(&mut self, key: &str, field: &'static str, network: &Network<'_>) {
        let text = network.text(field);
        if !text.is_empty() {
            self.part(field, Some(key), "", &text, ",");
        }
    }

    fn string(&mut self, key: &str, field: &'static str, text: &str) {
        self.part(field, Some(key), "\"", text, "\",");
    }

    fn number(&mut self, key: &str, field: &'static str, number: Option<i64>) {
        if let Some(number) = number {
            self.part(field, Some(key), "", &number.to_string(), ",");
        }
    }

    /// The text of a field, behind its key and whatever opens it, if anything.
    fn part(&mut self, name: &'static str, key: Option<&str>, open: &str, text: &str, tail: &str) {
        let start = self.ink();
        if let Some(key) = key {
            self.config.push('"');
            self.config.push_str(key);
            self.config.push_str("\":");
        }
        self.config.push_str(open);
        // None of it is blank.
        let lead = key.map_or(0, |key| key.len() + "\"\":".len()) + open.len();
        self.config.push_str(text);
        self.config.push_str(tail);
        let ink = start..self.ink();
        self.fields.push(RenderedField { name, ink, lead });
    }

    fn ink(&mut self) -> usize {
        self.ink.add(self.config.get(self.counted..).unwrap_or_default());
        self.counted = self.config.len();
        self.ink.count
    }
}
