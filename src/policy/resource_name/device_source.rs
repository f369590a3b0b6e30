//! Where a NAD's device comes from: a device plugin, which needs the resourceName, or a claim (DRA), which may not.

use super::name::is_unqualified;
use crate::policy::scope::NamespaceScope;
use crate::policy::{Dra, DraMode, Facts};

/// Where the device of a NAD comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceSource {
    /// From a device plugin, through Multus: the NAD needs its resourceName.
    Plugin,
    /// From a claim; the driver reads the NAD and adds the device.
    Claim,
    /// From a device plugin or, in its mode MULTUS, from the driver of claims: Multus finds the device by the resourceName alone.
    ByResourceName,
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
        if scope.policy.dra_mode.or(claims.mode) == Some(DraMode::Multus) {
            // In this mode the driver does not use the names of NADs.
            let is_absent = claims.has_driver == Some(false) && !claims.is_named_by_class;
            return if is_absent { Self::Plugin } else { Self::ByResourceName };
        }
        if claims.is_named_by_class || (claims.is_named_by_claim && claims.has_driver == Some(true)) {
            return Self::Claim;
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
            Self::ByResourceName => scope.policy.dra_mode.is_some(),
            Self::Claim | Self::Either => false,
        }
    }

    /// Whether a name that no device plugin can offer is, or may be, one that the driver publishes.
    pub(super) fn accepts_any_name(name: &str, facts: &Facts, scope: &NamespaceScope<'_>) -> bool {
        let is_published = facts.claims.is_published == Some(true);
        match scope.dra() {
            Dra::Allow => is_published || is_unqualified(name),
            Dra::Auto => is_published,
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
        use DeviceSource::{ByResourceName, Claim, Either, Plugin};
        let unknown = ClaimFacts::default();
        let of_driver = |has_driver| ClaimFacts { has_driver: Some(has_driver), ..ClaimFacts::default() };
        let (driver, none) = (of_driver(true), of_driver(false));
        let claim = |facts: &ClaimFacts| ClaimFacts { is_named_by_claim: true, ..facts.clone() };
        let class = |facts: &ClaimFacts| ClaimFacts { is_named_by_class: true, ..facts.clone() };
        let multus = |facts: &ClaimFacts| ClaimFacts { mode: Some(DraMode::Multus), ..facts.clone() };
        for (policy, facts, want) in [
            ("{}", &unknown, Plugin),
            ("{}", &none, Plugin),
            ("{}", &driver, Either),
            ("{}", &claim(&unknown), Either),
            ("{}", &claim(&none), Plugin),
            ("{}", &claim(&driver), Claim),
            ("{}", &class(&unknown), Claim),
            ("{}", &multus(&claim(&driver)), ByResourceName),
            ("{}", &multus(&class(&driver)), ByResourceName),
            ("{}", &multus(&driver), ByResourceName),
            ("{dra: allow}", &multus(&driver), ByResourceName),
            ("{dra: deny}", &multus(&driver), Plugin),
            ("{draMode: MULTUS}", &claim(&driver), ByResourceName),
            ("{draMode: MULTUS}", &driver, ByResourceName),
            ("{draMode: MULTUS}", &class(&unknown), ByResourceName),
            ("{draMode: MULTUS}", &unknown, ByResourceName),
            ("{draMode: MULTUS}", &none, Plugin),
            ("{draMode: STANDALONE}", &multus(&driver), Either),
            ("{draMode: STANDALONE}", &multus(&claim(&driver)), Claim),
            ("{dra: deny}", &class(&driver), Plugin),
            ("{dra: allow}", &none, Plugin),
            ("{dra: allow}", &class(&driver), Claim),
            ("{dra: allow}", &driver, Either),
            ("{dra: deny, namespaces: [{names: [apps], dra: auto}]}", &class(&driver), Claim),
            ("{namespaces: [{names: [apps], dra: deny}]}", &class(&driver), Plugin),
            ("{namespaces: [{names: [other], dra: deny}]}", &class(&driver), Claim),
        ] {
            let policy = Policy::parse(policy).unwrap();
            let facts = Facts { claims: facts.clone(), ..Facts::default() };
            assert_eq!(DeviceSource::of(&facts, &policy.scope("apps")), want, "{policy:?} {facts:?}");
        }
    }
}
