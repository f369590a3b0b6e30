//! What becomes of a write while nadmit cannot be asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Mode, Policy};

/// What the API server does with a write while nadmit cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// It refuses the write.
    Fail,
    /// It lets the write pass, unjudged.
    Ignore,
}

impl FailurePolicy {
    /// As the API server spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// The same for each webhook. What is left out has its default: only the repair of NADs fails, and not in audit mode, where
/// nothing is repaired. NADs without a device plugin always pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FailurePolicies {
    /// The repair of NADs with a device plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutate_nads: Option<FailurePolicy>,
    /// The judgement of NADs with a device plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate_nads: Option<FailurePolicy>,
    /// The repair of networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutate_networks: Option<FailurePolicy>,
    /// The judgement of networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate_networks: Option<FailurePolicy>,
    /// The judgement of writes to guarded statuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<FailurePolicy>,
}

impl Policy {
    /// What becomes of a NAD that should have been repaired. The operator tries again, and an incomplete NAD is worse than a
    /// late one; where nothing is ever repaired, there is nothing to wait for.
    pub(crate) fn failure_of_repairs(&self) -> FailurePolicy {
        let is_enforced = |mode: Option<Mode>| mode == Some(Mode::Enforce);
        let repairs = is_enforced(Some(self.mode)) || self.namespaces.iter().any(|entry| is_enforced(entry.mode));
        let default = if repairs { FailurePolicy::Fail } else { FailurePolicy::Ignore };
        self.failure_policy.mutate_nads.unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_fail_closed_only_where_there_are_any() {
        for (text, want) in [
            ("{}", FailurePolicy::Fail),
            ("mode: audit", FailurePolicy::Ignore),
            ("{mode: audit, namespaces: [{names: [a], mode: enforce}]}", FailurePolicy::Fail),
            ("{mode: audit, failurePolicy: {mutateNads: Fail}}", FailurePolicy::Fail),
            ("failurePolicy: {mutateNads: Ignore}", FailurePolicy::Ignore),
        ] {
            assert_eq!(Policy::parse(text).unwrap().failure_of_repairs(), want, "{text}");
        }
        assert!(Policy::parse("failurePolicy: {mutateNads: ignore}").is_err());
    }
}
