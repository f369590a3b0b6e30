//! What the API server does with a write while nadmit is unavailable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Mode, Policy};

/// What the API server does with a write while nadmit is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// It rejects the write.
    Fail,
    /// It accepts the write, unjudged.
    Ignore,
}

impl FailurePolicy {
    /// The name in the Kubernetes API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// The failure policy of each webhook. If left out, the default applies: only reviews of NADs with a device plugin fail closed, and
/// not in audit mode, where nothing is repaired. NADs without a device plugin are always accepted.
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
    /// The failure policy for NADs that should have been repaired. The operator retries, and an incomplete NAD is worse than a
    /// late one; in audit mode nothing is repaired, so nothing is waited for.
    pub(crate) fn failure_of_repairs(&self) -> FailurePolicy {
        let is_enforced = |mode: Option<Mode>| mode == Some(Mode::Enforce);
        let repairs = is_enforced(Some(self.mode)) || self.namespaces.iter().any(|entry| is_enforced(entry.mode));
        let default = if repairs { FailurePolicy::Fail } else { FailurePolicy::Ignore };
        self.failure_policy.mutate_nads.unwrap_or(default)
    }

    /// The failure policy for the judgement of the same NADs, which comes after the repair: if nadmit stops in between, the write
    /// fails as it would have a moment later.
    pub(crate) fn failure_of_judgements(&self) -> FailurePolicy {
        self.failure_policy.validate_nads.unwrap_or_else(|| self.failure_of_repairs())
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
            let policy = Policy::parse(text).unwrap();
            assert_eq!((policy.failure_of_repairs(), policy.failure_of_judgements()), (want, want), "{text}");
        }
        let chosen = Policy::parse("failurePolicy: {validateNads: Ignore}").unwrap();
        assert_eq!(chosen.failure_of_judgements(), FailurePolicy::Ignore);
        assert_eq!(chosen.failure_of_repairs(), FailurePolicy::Fail);
        assert!(Policy::parse("failurePolicy: {mutateNads: ignore}").is_err());
        assert_eq!([FailurePolicy::Fail, FailurePolicy::Ignore].map(FailurePolicy::name), ["Fail", "Ignore"]);
    }
}
