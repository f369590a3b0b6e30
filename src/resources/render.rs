//! The NAD the operator would render from a network.
//!
//! The operator pastes text into a YAML template, parses the result as YAML and indents the JSON in `config`. This module does
//! the same: the effect of a value is found by rendering, not by searching for suspicious characters.

use std::fmt::Write;
use std::ops::Range;

use super::{NAD_GROUP, Network, NetworkKind, OWNER_REF, RESOURCE_NAME};
use crate::json::{self, Document};
use crate::yaml::{self, Documents, YamlNode};

/// The rendering of a network.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The NAD as JSON; absent if the operator creates none, or not the intended one.
    pub nad: Option<String>,
    /// Its config, formatted as the operator formats it.
    pub config: String,
    /// What is wrong with the rendering.
    pub fault: Option<RenderFault>,
    /// Which field of the network each part of the config came from.
    fields: Vec<RenderedField>,
}

/// Why the operator does not create the intended NAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderFault {
    /// The filled template is not YAML.
    NotYaml(String),
    /// It contains not exactly one object.
    Documents(usize),
    /// A field of the NAD differs from the intended value; its JSON pointer.
    Differs(String),
    /// A name or namespace that YAML reads as something other than text: which, and what it was.
    NotText(&'static str, String),
    /// The config is not JSON.
    NotJson(json::Error),
}

/// A part of the config and the field of the network's spec it came from.
#[derive(Clone, Debug)]
struct RenderedField {
    /// The spec's field, or `name` for the network's own name.
    name: &'static str,
    /// The range of non-blank characters: the operator's formatting changes only blanks.
    ink: Range<usize>,
    /// How many of those precede the author's text (`"ipam":`).
    lead: usize,
}

/// Renders a network with the operator's resource prefix.
pub fn render(network: &Network<'_>, prefix: &str) -> Rendered {
    let template = Template::fill(network);
    let (name, namespace) = (network.meta.name.as_ref(), network.target_namespace());
    let resource = format!("{prefix}/{}", network.text("resourceName"));
    let owner = network.id().owner_ref();
    let manifest = format!(
        "apiVersion: \"{NAD_GROUP}/v1\"\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  \
         annotations:\n    {RESOURCE_NAME}: {resource}\n    {OWNER_REF}: {owner}\nspec:\n  config: '{}'\n",
        template.config
    );
    let meant = ExpectedNad { name, namespace: &namespace, resource: &resource, owner: &owner };
    let mut rendered = Rendered { nad: None, config: String::new(), fault: None, fields: template.fields };
    match read(&manifest, &meant) {
        Err(fault) => rendered.fault = Some(fault),
        Ok(config) => match indent(&config) {
            Err(error) => {
                rendered.fault = Some(RenderFault::NotJson(error));
                rendered.config = config;
            }
            Ok(config) => {
                rendered.nad = Some(meant.nad(&config));
                rendered.config = config;
            }
        },
    }
    rendered
}

impl Rendered {
    /// The field of the network that a byte of the config came from, and the place in that field's own text, counted in
    /// characters that are not blank.
    pub fn origin(&self, offset: usize) -> Option<(&'static str, usize)> {
        let ink = nonblank_before(&self.config, offset);
        let field = self.fields.iter().find(|field| field.ink.contains(&ink))?;
        Some((field.name, (ink - field.ink.start).saturating_sub(field.lead)))
    }
}

/// How many non-blank characters precede a byte of a text.
fn nonblank_before(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).chars().filter(|character| !character.is_whitespace()).count()
}

/// The places of those characters in a text that is yet to go through YAML, where a doubled quote becomes one.
fn nonblank_places(text: &str) -> impl Iterator<Item = usize> {
    let mut after_quote = false;
    text.char_indices().filter_map(move |(at, character)| {
        let is_second = character == '\'' && after_quote;
        after_quote = character == '\'' && !is_second;
        (!character.is_whitespace() && !is_second).then_some(at)
    })
}

/// The intended NAD.
struct ExpectedNad<'a> {
    name: &'a str,
    namespace: &'a str,
    resource: &'a str,
    owner: &'a str,
}

impl ExpectedNad<'_> {
    fn nad(&self, config: &str) -> String {
        serde_json::json!({
            "apiVersion": format!("{NAD_GROUP}/v1"),
            "kind": "NetworkAttachmentDefinition",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "annotations": { RESOURCE_NAME: self.resource, OWNER_REF: self.owner },
            },
            "spec": { "config": config },
        })
        .to_string()
    }
}

/// Reads the filled template as the operator does and returns the config, if all else is as it was meant.
fn read(manifest: &str, meant: &ExpectedNad<'_>) -> Result<String, RenderFault> {
    // The Go library accepts no other control characters.
    let printable = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{85}') || !c.is_control();
    if let Some(control) = manifest.chars().find(|c| !printable(*c)) {
        return Err(RenderFault::NotYaml(format!("it contains the control character U+{:04X}", control as u32)));
    }
    // The Kubernetes reader splits at every line that starts with three dashes.
    let documents = manifest.split("\n---").filter(|document| !document.trim().is_empty()).count();
    if documents != 1 {
        return Err(RenderFault::Documents(documents));
    }
    // The intended result has a dozen values and no alias.
    let mut nodes = Documents::small(manifest);
    let node = match nodes.next().map(|document| document.node) {
        Some(Ok(node)) => node,
        Some(Err(error)) => return Err(RenderFault::NotYaml(error.problem)),
        None => return Err(RenderFault::Documents(0)),
    };
    if let Some(more) = nodes.next() {
        return Err(more.node.map_or_else(|error| RenderFault::NotYaml(error.problem), |_| RenderFault::Documents(2)));
    }
    let differs = |pointer: &str| Err(RenderFault::Differs(pointer.to_owned()));
    for (pointer, keys) in [
        ("", &["apiVersion", "kind", "metadata", "spec"] as &[&str]),
        ("/metadata", &["name", "namespace", "annotations"]),
        ("/metadata/annotations", &[RESOURCE_NAME, OWNER_REF]),
        ("/spec", &["config"]),
    ] {
        match &node.follow(pointer).0.value {
            yaml::YamlValue::Map(entries) if entries.len() == keys.len() => {
                if let Some(other) = entries.iter().find(|entry| !keys.contains(&entry.key.as_ref())) {
                    return differs(&format!("{pointer}/{}", json::escape(&other.key)));
                }
            }
            yaml::YamlValue::Map(entries) => {
                let other = entries.iter().find(|entry| !keys.contains(&entry.key.as_ref()));
                return differs(&other.map_or(pointer.to_owned(), |o| format!("{pointer}/{}", json::escape(&o.key))));
            }
            _ => return differs(pointer),
        }
    }
    for (pointer, want) in [("/metadata/name", meant.name), ("/metadata/namespace", meant.namespace)] {
        let found = node.follow(pointer).0;
        match found.as_str() {
            Some(text) if text == want => {}
            Some(_) => return differs(pointer),
            // No namespace is given: `kubectl apply` uses that of the context.
            None if want.is_empty() => {}
            None => return Err(not_text(pointer, found)),
        }
    }
    for (key, want) in [(RESOURCE_NAME, meant.resource), (OWNER_REF, meant.owner)] {
        let pointer = format!("/metadata/annotations/{}", json::escape(key));
        if node.follow(&pointer).0.as_str() != Some(want) {
            return differs(&pointer);
        }
    }
    match node.follow("/spec/config").0.as_str() {
        Some(config) => Ok(config.to_owned()),
        None => differs("/spec/config"),
    }
}

fn not_text(pointer: &str, found: &YamlNode) -> RenderFault {
    let what = if pointer.ends_with("namespace") { "namespace" } else { "name" };
    RenderFault::NotText(what, found.to_json())
}

/// The filled config template, with the origin of each part.
struct Template {
    config: String,
    fields: Vec<RenderedField>,
}

impl Template {
    fn fill(network: &Network<'_>) -> Self {
        let mut template = Self { config: "{\n  \"cniVersion\":\"1.0.0\",\n  ".to_owned(), fields: Vec::new() };
        template.quoted("name", "name", &network.meta.name);
        let chain = network.text("metaPlugins");
        if !chain.is_empty() {
            template.config.push_str("\"plugins\": [\n    {");
        }
        let _ = write!(template.config, "\"type\":\"{}\",", network.kind.plugin());
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
            template.part("metaPlugins", "", &chain, "");
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
            None => self.quoted("logLevel", "logLevel", "info"),
            Some(level) if level.is_empty() => {}
            Some(level) => self.quoted("logLevel", "logLevel", &level),
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
        self.part("trunk", "\"trunk\":", &format!("[{ranges}]"), ",");
    }

    /// The operator removes all spaces from `ipam`, also inside strings.
    fn ipam(&mut self, ipam: &str) {
        let squeezed: String = ipam.split_whitespace().collect();
        let text = if ipam.is_empty() { "{}" } else { &squeezed };
        self.part("ipam", "\"ipam\":", text, "");
    }

    fn text(&mut self, key: &str, field: &'static str, network: &Network<'_>) {
        let text = network.text(field);
        if !text.is_empty() {
            self.quoted(key, field, &text);
        }
    }

    fn one_of(&mut self, key: &str, field: &'static str, network: &Network<'_>, known: &[&str]) {
        let text = network.text(field);
        if known.contains(&text.as_ref()) {
            self.quoted(key, field, &text);
        }
    }

    fn fragment(&mut self, key: &str, field: &'static str, network: &Network<'_>) {
        let text = network.text(field);
        if !text.is_empty() {
            self.part(field, &format!("\"{key}\":"), &text, ",");
        }
    }

    fn quoted(&mut self, key: &str, field: &'static str, text: &str) {
        self.part(field, &format!("\"{key}\":\""), text, "\",");
    }

    fn number(&mut self, key: &str, field: &'static str, number: Option<i64>) {
        if let Some(number) = number {
            self.part(field, &format!("\"{key}\":"), &number.to_string(), ",");
        }
    }

    fn part(&mut self, name: &'static str, lead: &str, text: &str, tail: &str) {
        let start = self.ink();
        self.config.push_str(lead);
        self.config.push_str(text);
        self.config.push_str(tail);
        self.fields.push(RenderedField { name, ink: start..self.ink(), lead: nonblank_before(lead, lead.len()) });
    }

    fn ink(&self) -> usize {
        nonblank_places(&self.config).count()
    }
}

/// Go's `json.Indent` with four spaces: every token stays, only the blanks between them change. A text with many values that are nested
/// deeply becomes many times as long, so that the limit on the length counts here once more.
fn indent(text: &str) -> Result<String, json::Error> {
    Document::parse(text)?;
    let too_large = json::Error { offset: 0, problem: json::Problem::TooLarge };
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0usize;
    let (mut in_string, mut escaped, mut opened) = (false, false, false);
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("    ", depth));
    };
    for character in text.chars() {
        if out.len() > json::MAX_BYTES {
            return Err(too_large);
        }
        if in_string {
            out.push(character);
            (in_string, escaped) = match character {
                '"' if !escaped => (false, false),
                '\\' => (true, !escaped),
                _ => (true, false),
            };
            continue;
        }
        if matches!(character, ' ' | '\t' | '\r' | '\n') {
            continue;
        }
        let closing = matches!(character, '}' | ']');
        if opened && !closing {
            depth += 1;
            newline(&mut out, depth);
        }
        match character {
            '}' | ']' if opened => out.push(character),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                in_string = true;
                out.push('"');
            }
            other => out.push(other),
        }
        opened = matches!(character, '{' | '[');
    }
    if out.len() > json::MAX_BYTES { Err(too_large) } else { Ok(out) }
}

/// The offset of the n-th non-blank character in the author's text.
pub(crate) fn offset_of_nonblank(text: &str, nth: usize) -> usize {
    nonblank_places(text).nth(nth).unwrap_or(text.len())
}
