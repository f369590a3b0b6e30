//! The NAD the operator would render from a network.
//!
//! The operator pastes text into a YAML template, parses the result as YAML and indents the JSON in `config`. This module does
//! the same: the effect of a value is found by rendering, not by searching for suspicious characters.

mod indent;
mod read;
mod template;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::indent::indent;
use self::template::{RenderedField, Template};
use super::meta::Meta;
use super::raw::RawFields;
use super::{NAD_GROUP, Nad, Network, OWNER_REF, RESOURCE_NAME};
use crate::json::{self, write::json_string};

/// The rendering of a network.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The config of the NAD, formatted as the operator formats it.
    pub config: String,
    /// Why the operator creates no NAD, or not the intended one.
    pub fault: Option<RenderFault>,
    name: String,
    namespace: String,
    /// The values of its two annotations, as JSON strings.
    annotations: [String; 2],
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

/// Renders a network with the operator's resource prefix.
pub fn render(network: &Network<'_>, prefix: &str) -> Rendered {
    let Template { config: filled, fields, .. } = Template::fill(network);
    let (name, namespace) = (network.meta.name.as_ref(), network.target_namespace());
    let resource = [prefix, "/", &network.text("resourceName")].concat();
    let owner = network.id().owner_ref();
    let meant = ExpectedNad { name, namespace: &namespace, resource: &resource, owner: &owner };
    let (config, fault) = match read::config(&filled, &meant) {
        Err(fault) => (String::new(), Some(fault)),
        Ok(config) => match indent(&config) {
            Err(error) => (config, Some(RenderFault::NotJson(error))),
            Ok(config) => (config, None),
        },
    };
    let annotations = [meant.resource, meant.owner].map(json_string);
    Rendered { config, fault, name: name.to_owned(), namespace: namespace.into_owned(), annotations, fields }
}

impl Rendered {
    /// The NAD, if the operator creates the intended one.
    pub fn nad(&self) -> Option<Nad<'_>> {
        if self.fault.is_some() {
            return None;
        }
        let [resource, owner] = self.annotations.each_ref().map(String::as_str);
        let annotations = RawFields::of([(RESOURCE_NAME, resource), (OWNER_REF, owner)]).ok()?;
        let meta = Meta::rendered(&self.name, &self.namespace, annotations);
        Some(Nad { meta, config: Some(Cow::Borrowed(&self.config)), unknown: Vec::new(), misshapen: Vec::new() })
    }

    /// The same as JSON.
    pub fn nad_json(&self) -> Option<String> {
        let nad = self.nad()?;
        let json = serde_json::json!({
            "apiVersion": format!("{NAD_GROUP}/v1"),
            "kind": "NetworkAttachmentDefinition",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "annotations": {
                    RESOURCE_NAME: nad.meta.annotation(RESOURCE_NAME)?,
                    OWNER_REF: nad.meta.annotation(OWNER_REF)?,
                },
            },
            "spec": { "config": self.config },
        });
        Some(json.to_string())
    }

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

/// Counts those characters in a text that is yet to go through YAML, where a doubled quote becomes one.
#[derive(Debug, Default)]
struct NonblankCounter {
    count: usize,
    after_quote: bool,
}

impl NonblankCounter {
    fn add(&mut self, text: &str) {
        self.count += text.chars().filter(|character| self.counts(*character)).count();
    }

    /// Whether the next character counts.
    fn counts(&mut self, character: char) -> bool {
        let is_second = character == '\'' && self.after_quote;
        self.after_quote = character == '\'' && !is_second;
        !character.is_whitespace() && !is_second
    }
}

/// The intended NAD.
struct ExpectedNad<'a> {
    name: &'a str,
    namespace: &'a str,
    resource: &'a str,
    owner: &'a str,
}

impl ExpectedNad<'_> {
    /// The operator's template of the NAD, filled.
    fn manifest(&self, config: &str) -> String {
        let Self { name, namespace, resource, owner } = self;
        format!(
            "apiVersion: \"{NAD_GROUP}/v1\"\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: {name}\n  \
             namespace: {namespace}\n  annotations:\n    {RESOURCE_NAME}: {resource}\n    {OWNER_REF}: {owner}\nspec:\n  \
             config: '{config}'\n"
        )
    }
}

/// The offset of the n-th non-blank character in the author's text.
pub(crate) fn offset_of_nonblank(text: &str, nth: usize) -> usize {
    let mut counter = NonblankCounter::default();
    let mut places = text.char_indices().filter(|(_, character)| counter.counts(*character));
    places.nth(nth).map_or(text.len(), |(at, _)| at)
}
