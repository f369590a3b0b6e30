//! The networks that a pod selects, as Multus reads them from its annotation.
//!
//! Multus takes the text for JSON as soon as it has one of `[`, `{` and `"`, and otherwise for names between commas. It decodes the
//! whole text before it looks for any NAD, so that one mistake fails the pod.

mod addresses;
mod json_form;
mod requested;

use std::collections::BTreeSet;
use std::ops::Range;

pub use requested::RequestedValues;

use super::{LONGEST_NAME, ObjectKey};
use crate::cni::arguments::Arguments;

/// The annotation of a pod that lists its networks.
pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// The annotation of a pod that replaces the cluster's default network.
pub const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";

/// The longest name that the kernel gives an interface, in bytes.
pub const LONGEST_INTERFACE: usize = 15;

/// One element of the annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedNetwork {
    /// The namespace of the NAD: the one it names, or that of the pod.
    pub namespace: String,
    /// The name of the NAD; empty where it names none.
    pub name: String,
    /// Whether the element names the namespace itself.
    pub is_qualified: bool,
    /// The name of the interface; empty where Multus chooses it.
    pub interface: String,
    /// What it asks of the plugins.
    pub arguments: Arguments,
    /// The bytes of the element in the text.
    pub span: Range<usize>,
}

impl SelectedNetwork {
    /// The NAD that a text `name` or `namespace/name` names, which is no part of an annotation.
    pub(super) fn named(text: &str, namespace: &str) -> Self {
        let given = text.split_once('/');
        let (namespace, name) = given.unwrap_or((namespace, text));
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            is_qualified: given.is_some(),
            interface: String::new(),
            arguments: Arguments::NONE,
            span: 0..text.len(),
        }
    }

    /// The key of the NAD; `None` if no object can have such a key.
    pub fn nad(&self) -> Option<ObjectKey> {
        let can_be = |word: &str| !word.contains('/') && word.len() <= LONGEST_NAME;
        let is_name = !self.name.is_empty() && can_be(&self.name) && can_be(&self.namespace);
        is_name.then(|| ObjectKey::new(&self.namespace, &self.name))
    }
}

/// Why Multus cannot read the annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectionError {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// What is wrong there.
    pub problem: String,
    /// The words of Multus for it, which the Events of the pod show.
    pub words: &'static str,
    /// How to fix it.
    pub help: String,
}

/// The result of reading the annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Multus reads these.
    Read(Vec<SelectedNetwork>),
    /// Multus cannot read it.
    Wrong(SelectionError),
    /// nadmit cannot say: the text is larger or deeper than what it reads.
    Unknown,
}

impl Selection {
    /// Reads the text of the annotation, for a pod in that namespace.
    pub fn read(text: &str, namespace: &str) -> Self {
        if text.is_empty() {
            return Self::Read(Vec::new());
        }
        let read = if is_json(text) { json_form::read(text, namespace) } else { comma_form(text, namespace) };
        match read {
            Ok(networks) => Self::Read(networks),
            Err(Some(error)) => Self::Wrong(error),
            Err(None) => Self::Unknown,
        }
    }

    /// The selected networks; none if the annotation cannot be read.
    pub fn networks(&self) -> &[SelectedNetwork] {
        match self {
            Self::Read(networks) => networks,
            Self::Wrong(_) | Self::Unknown => &[],
        }
    }
}

/// Whether Multus takes the text for JSON.
fn is_json(text: &str) -> bool {
    text.contains(['[', '{', '"'])
}

/// The NADs in the text of that annotation, each once, for a pod in that namespace. `None` if it cannot be read.
pub fn selected_nads(text: &str, namespace: &str) -> Option<Vec<ObjectKey>> {
    let Selection::Read(networks) = Selection::read(text, namespace) else { return None };
    let mut seen = BTreeSet::new();
    let nads = networks.iter().filter_map(SelectedNetwork::nad);
    Some(nads.filter(|nad| seen.insert(nad.clone())).collect())
}

/// The elements, an error, or `None` where it is not known whether Multus would read them.
type ReadResult = Result<Vec<SelectedNetwork>, Option<SelectionError>>;

/// Names between commas: `namespace/name@interface`.
fn comma_form(text: &str, namespace: &str) -> ReadResult {
    let mut start = 0;
    let mut networks = Vec::new();
    for part in text.split(',') {
        let item = part.trim();
        let from = start + (part.len() - part.trim_start().len());
        networks.push(comma_item(item, from..from + item.len(), namespace).map_err(Some)?);
        start += part.len() + 1;
    }
    Ok(networks)
}

fn comma_item(item: &str, span: Range<usize>, namespace: &str) -> Result<SelectedNetwork, SelectionError> {
    let wrong = |problem: String, words: &'static str, help: &str| SelectionError {
        span: span.clone(),
        problem,
        words,
        help: help.to_owned(),
    };
    let form = "write `namespace/name@interface`; namespace and interface may be left out";
    let mut parts = item.split('/');
    let (given, rest) = match (parts.next(), parts.next(), parts.next()) {
        (Some(namespace), Some(name), None) => (namespace.trim(), name),
        (Some(name), None, None) => ("", name),
        _ => {
            let problem = format!("`{item}` has more than one `/`");
            return Err(wrong(problem, "Invalid network object (failed at '/')", form));
        }
    };
    let mut parts = rest.split('@');
    let name = parts.next().unwrap_or_default().trim();
    let interface = parts.next().unwrap_or_default().trim();
    if parts.next().is_some() {
        let problem = format!("`{item}` has more than one `@`");
        return Err(wrong(problem, "Invalid network object (failed at '@')", form));
    }
    for (word, what) in [(given, "namespace"), (name, "name")] {
        if !word.is_empty() && !is_label(word) {
            let problem = format!("`{word}` is not a {what} that the short form allows");
            let words = "one or more items did not match comma-delimited format";
            let help = if word.contains('.') && is_label(&word.replace('.', "-")) {
                format!("write the JSON form, which allows dots: [{{\"name\": \"{name}\"}}]")
            } else {
                "use only lower-case letters, digits and `-`, with a letter or digit at both ends".to_owned()
            };
            return Err(SelectionError { help, ..wrong(problem, words, "") });
        }
    }
    let is_spaced = interface.contains([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    if interface.len() > LONGEST_INTERFACE || is_spaced {
        let problem = if is_spaced {
            format!("interface name `{interface}` contains a space")
        } else {
            format!("interface name `{interface}` is longer than {LONGEST_INTERFACE} bytes")
        };
        return Err(wrong(problem, "Failed to parse interface name", "use a name of at most 15 letters and digits"));
    }
    Ok(SelectedNetwork {
        namespace: if given.is_empty() { namespace } else { given }.to_owned(),
        name: name.to_owned(),
        is_qualified: !given.is_empty(),
        interface: interface.to_owned(),
        arguments: Arguments::NONE,
        span,
    })
}

/// Whether a word is a DNS label, but of any length: the pattern of Multus.
fn is_label(word: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = word.as_bytes();
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

#[cfg(test)]
mod tests;
