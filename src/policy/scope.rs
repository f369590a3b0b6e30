//! The policy as it applies in one namespace.

use super::{Action, Dra, Facts, Mode, NamespacePolicy, Policy, Rule};

/// The prefix of resource names, and whether it is only the default.
pub(crate) struct KnownPrefix<'f> {
    pub(crate) value: &'f str,
    pub(crate) assumed: bool,
}

/// The policy as it applies in one namespace.
pub(crate) struct NamespaceScope<'p> {
    pub(crate) policy: &'p Policy,
    pub(super) matching: Vec<&'p NamespacePolicy>,
}

impl NamespaceScope<'_> {
    /// The action the policy sets for a rule; `None` if the rule's default applies.
    pub(crate) fn action(&self, rule: &Rule) -> Option<Action> {
        let here = self.matching.iter().rev().find_map(|entry| entry.rules.get(rule.id));
        here.or_else(|| self.policy.rules.get(rule.id)).copied()
    }

    /// The mode.
    pub(crate) fn mode(&self) -> Mode {
        self.matching.iter().rev().find_map(|entry| entry.mode).unwrap_or(self.policy.mode)
    }

    /// The policy's setting for devices by claim.
    pub(crate) fn dra(&self) -> Dra {
        self.matching.iter().rev().find_map(|entry| entry.dra).unwrap_or(self.policy.dra)
    }

    /// The resource name for NADs that have none.
    pub(crate) fn default_resource_name(&self) -> Option<&str> {
        self.matching.iter().rev().find_map(|entry| entry.default_resource_name.as_deref())
    }

    /// The prefix of resource names: from the policy, or else discovered.
    pub(crate) fn prefix<'f>(&'f self, facts: &'f Facts) -> Option<KnownPrefix<'f>> {
        let chosen = self.policy.resource_name.prefix.as_deref().map(|value| KnownPrefix { value, assumed: false });
        chosen.or_else(|| {
            facts.prefix.as_ref().map(|prefix| KnownPrefix { value: &prefix.value, assumed: prefix.assumed })
        })
    }

    /// Whether a plugin type needs a device.
    pub(crate) fn needs_device(&self, kind: &str) -> bool {
        self.policy.device_kinds().any(|known| known == kind)
    }
}
