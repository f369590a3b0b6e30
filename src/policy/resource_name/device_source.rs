//! Where a NAD's device comes from: a device plugin, which needs the resourceName, or a claim (DRA), which may not.

use crate::policy::scope::NamespaceScope;
use crate::policy::{Dra, DraMode, Facts};

/// Where the device of a NAD comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceSource {
    /// From a device plugin, through Multus: the NAD needs its resourceName.
    Plugin,
    /// From a claim; the driver reads the NAD and adds the device.
    Claim,
    /// From a claim, through Multus: the NAD needs the resourceName under which the driver publishes the device.
    ClaimByMultus,
    /// From either: the driver is there, but no claim names the NAD, or the other way round.
    Either,
}

impl DeviceSource {
    /// By the policy and what is known about claims. A claim alone proves nothing where the driver is not installed.
    pub(crate) fn of(facts: &Facts, scope: &NamespaceScope<'_>) -> Self {
        let claims = &facts.claims;
        if scope.dra() == Dra::Deny {
            return Self::Plugin;
        }
        if claims.is_named_by_class || (claims.is_named_by_claim && claims.has_driver == Some(true)) {
            return match scope.policy.dra_mode.or(claims.mode) {
                Some(DraMode::Multus) => Self::ClaimByMultus,
                // Only in this mode the driver uses the name of a NAD.
                Some(DraMode::Standalone) | None => Self::Claim,
            };
        }
        match (claims.is_named_by_claim, claims.has_driver) {
            (true, None) | (false, Some(true)) => Self::Either,
            _ => Self::Plugin,
        }
    }

    /// Whether a missing resourceName can be a reason to deny. The mode of the driver is certain only if the policy states it: anybody
    /// may create a DaemonSet that looks like the driver's.
    pub(super) fn needs_name(self, scope: &NamespaceScope<'_>) -> bool {
        match self {
            Self::Plugin => true,
            Self::ClaimByMultus => scope.policy.dra_mode.is_some(),
            Self::Claim | Self::Either => false,
        }
    }

    /// Whether a name without a domain is one that the driver publishes.
    pub(super) fn accepts_unqualified(facts: &Facts, scope: &NamespaceScope<'_>) -> bool {
        match scope.dra() {
            Dra::Allow => true,
            Dra::Auto => facts.claims.is_published == Some(true),
            Dra::Deny => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ClaimFacts, Policy};

    #[test]
    fn source_by_policy_and_facts() {
        use DeviceSource::{Claim, ClaimByMultus, Either, Plugin};
        let unknown = ClaimFacts::default();
        let driver = ClaimFacts { has_driver: Some(true), ..unknown };
        let none = ClaimFacts { has_driver: Some(false), ..unknown };
        let claim = |facts| ClaimFacts { is_named_by_claim: true, ..facts };
        let class = |facts| ClaimFacts { is_named_by_class: true, ..facts };
        let multus = |facts| ClaimFacts { mode: Some(DraMode::Multus), ..facts };
        for (policy, facts, want) in [
            ("{}", unknown, Plugin),
            ("{}", none, Plugin),
            ("{}", driver, Either),
            ("{}", claim(unknown), Either),
            ("{}", claim(none), Plugin),
            ("{}", claim(driver), Claim),
            ("{}", class(unknown), Claim),
            ("{}", multus(claim(driver)), ClaimByMultus),
            ("{}", multus(class(driver)), ClaimByMultus),
            ("{}", multus(driver), Either),
            ("{draMode: MULTUS}", claim(driver), ClaimByMultus),
            ("{draMode: STANDALONE}", multus(claim(driver)), Claim),
            ("{dra: deny}", class(driver), Plugin),
            ("{dra: allow}", none, Plugin),
            ("{dra: allow}", class(driver), Claim),
            ("{dra: allow}", driver, Either),
            ("{dra: deny, namespaces: [{names: [apps], dra: auto}]}", class(driver), Claim),
            ("{namespaces: [{names: [apps], dra: deny}]}", class(driver), Plugin),
            ("{namespaces: [{names: [other], dra: deny}]}", class(driver), Claim),
        ] {
            let policy = Policy::parse(policy).unwrap();
            let facts = Facts { claims: facts, ..Facts::default() };
            assert_eq!(DeviceSource::of(&facts, &policy.scope("apps")), want, "{policy:?} {facts:?}");
        }
    }
}
