//! Findings as a map shows them.

use super::rows::MapFinding;
use super::{MAX_PARTS, object_name, short};
use crate::policy::{Finding, Verdict};
use crate::resources::Object;

/// How many findings of one object a map has.
const MAX_OF_OBJECT: usize = 16;
/// The rules about two objects. Their findings may leave out the name of the other object.
const ABOUT_TWO: [&str; 5] =
    ["ipam/overlap", "ipam/node-slice", "network/claimed", "network/link-type", "ovn/name-conflict"];

/// The findings about an object.
pub(crate) fn of_verdict(object: &Object<'_>, verdict: &Verdict) -> Vec<MapFinding> {
    let meta = object.meta();
    let name = object_name(object.kind(), &meta.namespace, &meta.name);
    verdict.findings.iter().take(MAX_OF_OBJECT).map(|finding| row(&name, finding)).collect()
}

fn row(object: &str, finding: &Finding) -> MapFinding {
    let id = finding.rule.id;
    let related = finding.related.iter().take(MAX_PARTS);
    MapFinding {
        object: object.to_owned(),
        action: finding.action.name(),
        rule: id,
        is_conflict: !finding.related.is_empty() || id.starts_with("node-policy/") || ABOUT_TWO.contains(&id),
        message: short(&finding.message),
        note: short(&finding.note),
        help: short(&finding.help),
        related: related.map(|other| object_name(other.kind, other.key.namespace(), other.key.name())).collect(),
    }
}
