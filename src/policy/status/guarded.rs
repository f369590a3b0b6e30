//! The part of the policy file about statuses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Policy;
use crate::resources::NETWORK_GROUP;

/// The operator's field manager. It takes its fields back by force after somebody edited them.
const OPERATOR: &str = "sriov-network-operator";
/// The operator's kinds that have a status of their own.
const SRIOV: [&str; 7] = [
    "sriovnetworks",
    "sriovibnetworks",
    "ovsnetworks",
    "sriovnetworknodestates",
    "sriovnetworknodepolicies",
    "sriovnetworkpoolconfigs",
    "sriovoperatorconfigs",
];

/// Whose statuses are guarded against writers that overwrite each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GuardedStatus {
    /// The guarded resources, as `group/resource`: custom resources with a status subresource. Left out, those of the SR-IOV
    /// network operator; an empty map guards none.
    pub resources: BTreeMap<String, Guarded>,
}

/// How the status of a resource is guarded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Guarded {
    /// Whether every write must show that it was computed from what it overwrites: what `status/takeover` and
    /// `status/unproven` find is refused, unless `rules` says otherwise.
    pub strict: bool,
    /// The field managers that may take fields from others by server-side apply, also where this is strict.
    pub owners: Vec<String>,
}

impl Default for Guarded {
    fn default() -> Self {
        Self { strict: false, owners: vec![OPERATOR.to_owned()] }
    }
}

impl Default for GuardedStatus {
    fn default() -> Self {
        let guarded = |resource: &str| (format!("{NETWORK_GROUP}/{resource}"), Guarded::default());
        Self { resources: SRIOV.into_iter().map(guarded).collect() }
    }
}

impl GuardedStatus {
    /// How a resource is guarded, if it is.
    pub fn of(&self, group: &str, resource: &str) -> Option<&Guarded> {
        self.resources.get(&format!("{group}/{resource}"))
    }

    /// The guarded resources by their groups.
    pub fn by_group(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for (group, resource) in self.resources.keys().filter_map(|key| key.split_once('/')) {
            groups.entry(group).or_default().push(resource);
        }
        groups
    }

    /// The first key that names no resource, and what is wrong with it.
    pub(crate) fn wrong_key(&self) -> Option<(&str, &'static str)> {
        let is_name = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        let is_group = |text: &str| text.split('.').all(is_name);
        self.resources.keys().find_map(|key| {
            let problem = match key.split_once('/') {
                None => "write group/resource, for instance example.com/plans",
                Some((_, resource)) if resource.contains('/') => {
                    "write group/resource, without version and without /status"
                }
                Some((group, resource)) if !is_group(group) || !is_name(resource) => {
                    "write group/resource, the resource in the plural, as in an address of the API server"
                }
                Some(_) => return None,
            };
            Some((key.as_str(), problem))
        })
    }
}

impl Policy {
    /// What is allowed and yet will hardly be meant, for whoever wrote the policy.
    pub fn warnings(&self) -> Vec<String> {
        let key = format!("{NETWORK_GROUP}/sriovnetworknodestates");
        let is_strict = self.status.resources.get(&key).is_some_and(|guarded| guarded.strict);
        let warning = format!(
            "`status.resources` makes `{key}` strict: the operator's node daemon writes that status with an unconditional merge patch, \
             which is refused then, and nodes are not configured any more; exempt its user, or leave it out"
        );
        is_strict.then_some(warning).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_kinds_are_guarded_by_default() {
        let policy = Policy::parse("{}").unwrap();
        assert!(!policy.status.of(NETWORK_GROUP, "sriovnetworks").unwrap().strict);
        assert!(policy.status.of(NETWORK_GROUP, "pods").is_none() && policy.warnings().is_empty());
        assert_eq!(policy.status.by_group()[NETWORK_GROUP].len(), SRIOV.len());
        assert!(Policy::parse("status: {resources: {}}").unwrap().status.resources.is_empty());
    }

    #[test]
    fn resources_are_chosen_by_group_and_name() {
        let policy =
            Policy::parse("status: {resources: {example.com/plans: {strict: true, owners: [planner]}, b.io/c: {}}}");
        let status = policy.unwrap().status;
        let plans = status.of("example.com", "plans").unwrap();
        assert!(plans.strict && plans.owners == ["planner"]);
        assert_eq!(status.of("b.io", "c").unwrap().owners, [OPERATOR]);
        assert!(status.of(NETWORK_GROUP, "sriovnetworks").is_none());
        for key in [
            "plans",
            "example.com/v1/plans",
            "example.com/plans/status",
            "/pods",
            "example.com/",
            "a/Plans",
            "a..b/c",
            "*/*",
        ] {
            let error = Policy::parse(&format!("status: {{resources: {{\"{key}\": {{}}}}}}")).unwrap_err().to_string();
            assert!(error.contains("write group/resource"), "{key}: {error}");
        }
    }

    #[test]
    fn strict_node_states_are_warned_about() {
        for (strict, want) in [("true", 1), ("false", 0)] {
            let text =
                format!("status: {{resources: {{{NETWORK_GROUP}/sriovnetworknodestates: {{strict: {strict}}}}}}}");
            assert_eq!(Policy::parse(&text).unwrap().warnings().len(), want, "{text}");
        }
    }
}
