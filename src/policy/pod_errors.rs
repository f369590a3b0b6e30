//! What pods show when a NAD, or the selection of one, is wrong: the words of Multus, libcni and the plugins, and the rules that explain
//! them.
//!
//! Most rows were seen in an Event of a real pod, for each of their rules. The node tests attach the bad examples of the rules and other
//! mistakes to pods, compare, and write docs/errors.md. What needs hardware is in there too, and says so.

mod table;
#[cfg(test)]
mod tests;

pub use table::POD_ERRORS;

use super::Rule;
use super::rules::RULES;

/// An error, and the rules that find its cause before a pod does.
#[derive(Debug)]
pub struct PodError {
    /// The words, with `…` for everything that differs from case to case.
    pub words: &'static str,
    /// The ids of the rules, the most likely first.
    pub rules: &'static [&'static str],
    /// How the words are known.
    pub evidence: ErrorEvidence,
    /// What else causes the error: it is not in the NAD, so no rule can see it. Says what to do.
    pub cause: Option<&'static str>,
}

/// How an error is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorEvidence {
    /// A pod on a node of the tests shows it.
    Pod,
    /// The plugin rejected a config with it, called by hand without its hardware.
    Recorded,
    /// It is in the source of the program, and needs hardware or a setting that the tests do not have.
    Source,
}

impl PodError {
    /// Whether a message has these words, in this order.
    pub fn is_in(&self, message: &str) -> bool {
        let mut rest = message;
        self.words.split('…').all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    }

    /// The row that a message fits.
    pub fn of(message: &str) -> Option<&'static Self> {
        POD_ERRORS.iter().find(|error| error.is_in(message))
    }

    /// The rules that find its cause.
    pub fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        self.rules.iter().filter_map(|id| RULES.iter().find(|rule| rule.id == *id).copied())
    }

    /// The rules that explain a message; none if no row fits.
    pub fn explain(message: &str) -> impl Iterator<Item = &'static Rule> {
        Self::of(message).into_iter().flat_map(Self::rules)
    }
}

/// What comes before the error, the outermost first: what the kubelet says, and then Multus, whose words have the pod's UID.
const PREAMBLES: [&[&str]; 2] = [
    &["name=\"multus-cni-network\" failed (add): ", "name=\\\"multus-cni-network\\\" failed (delete): "],
    &[
        "failed getting the delegate: ",
        "error in getting k8s network for pod: ",
        "error loading k8s delegates k8s args: ",
    ],
];

/// What differs from pod to pod is not part of an error: the sandbox, the pod's UID, and what the kubelet and Multus say in front.
pub fn without_preamble(message: &str) -> &str {
    let mut rest = message;
    for preambles in PREAMBLES {
        let cut = preambles.iter().find_map(|preamble| Some(rest.split_once(preamble)?.1));
        rest = cut.unwrap_or(rest);
    }
    let named = rest.split_once("error adding container to network \"").and_then(|(_, rest)| rest.split_once("\": "));
    named.map_or(rest, |(_, rest)| rest)
}
