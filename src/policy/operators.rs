//! Identifies the SR-IOV operator and the networks it renders.
//!
//! Names prove nothing: anybody may name a Deployment, a ServiceAccount or a SriovOperatorConfig like the operator's. So the
//! operator is the account that the policy names, or one that may create NADs in all namespaces according to the API server. The
//! default names count only without a cluster.

use std::sync::Arc;

use super::file::{Policy, is_default_operator_namespace};
use super::{Facts, NameVisibility, NetworkFact};
use crate::resources::Network;

/// The default name of the operator's account and Deployment.
pub(crate) const DEFAULT_OPERATOR_NAME: &str = "sriov-network-operator";

/// An operator of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorFact {
    /// The namespace that it runs in.
    pub namespace: String,
    /// The ServiceAccounts there that may create NADs in all namespaces.
    pub accounts: Vec<String>,
    /// The Deployment that states its resource prefix, or that runs with one of the accounts.
    pub deployment: Option<String>,
    /// Its RESOURCE_PREFIX.
    pub prefix: Option<String>,
}

/// The operators of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Operators {
    /// There is no cluster: the default names count.
    #[default]
    Unasked,
    /// The cluster could not be read.
    Unknown,
    /// All operators.
    Known(Arc<[OperatorFact]>),
}

impl Operators {
    /// The operators that are known.
    pub fn known(&self) -> &[OperatorFact] {
        match self {
            Self::Known(operators) => operators,
            Self::Unasked | Self::Unknown => &[],
        }
    }

    /// The operator in a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Option<&OperatorFact> {
        self.known().iter().find(|operator| operator.namespace == namespace)
    }

    /// The operator responsible for a namespace: the one in it, else the only one, else the first of several with the same prefix.
    pub fn responsible_for(&self, namespace: &str) -> Option<&OperatorFact> {
        self.in_namespace(namespace).or_else(|| {
            let (first, others) = self.known().split_first()?;
            others.iter().all(|other| other.prefix == first.prefix).then_some(first)
        })
    }

    fn has(&self, namespace: &str, account: &str) -> bool {
        self.in_namespace(namespace).is_some_and(|operator| operator.accounts.iter().any(|known| known == account))
    }
}

/// The namespace and the name of a ServiceAccount, by its user name.
pub(crate) fn account_of(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}

impl Policy {
    /// Whether a user is the operator.
    pub fn is_operator(&self, user: &str, facts: &Facts) -> bool {
        facts.written_by_unknown_operator || self.operator_namespace_of(user, facts).is_some()
    }

    /// The operator's namespace, where that user is the operator.
    pub(crate) fn operator_namespace_of<'u>(&self, user: &'u str, facts: &Facts) -> Option<&'u str> {
        let (namespace, account) = account_of(user)?;
        let chosen = self.operator.service_account.as_deref();
        let is_one = match (self.operator.namespace.as_deref(), &facts.operators) {
            (Some(home), operators) => {
                let is_account = chosen.map_or_else(
                    || account == DEFAULT_OPERATOR_NAME || operators.has(namespace, account),
                    |chosen| account == chosen,
                );
                home == namespace && is_account
            }
            // An account of that name can be created in any namespace, so it must have the permission as well.
            (None, operators @ Operators::Known(_)) => {
                operators.has(namespace, account) && chosen.is_none_or(|chosen| account == chosen)
            }
            (None, Operators::Unknown) => false,
            (None, Operators::Unasked) => {
                let home = facts.operator_namespace.as_deref();
                account == chosen.unwrap_or(DEFAULT_OPERATOR_NAME)
                    && home.map_or_else(|| is_default_operator_namespace(namespace), |home| home == namespace)
            }
        };
        is_one.then_some(namespace)
    }

    /// Whether a namespace is an operator's; `None` where no operator is known.
    pub fn is_operator_namespace(&self, namespace: &str, facts: &Facts) -> Option<bool> {
        if let Some(home) = &self.operator.namespace {
            return Some(home == namespace);
        }
        match &facts.operators {
            Operators::Unasked => facts.operator_namespace.as_deref().map(|home| home == namespace),
            Operators::Known(operators) if !operators.is_empty() => {
                Some(operators.iter().any(|operator| operator.namespace == namespace))
            }
            Operators::Known(_) | Operators::Unknown => None,
        }
    }

    /// The known namespaces whose networks may target other namespaces.
    pub(crate) fn operator_namespaces<'f>(&'f self, facts: &'f Facts) -> Vec<&'f str> {
        match (&self.operator.namespace, &facts.operators) {
            (Some(home), _) => vec![home],
            (None, Operators::Unasked) => facts.operator_namespace.as_deref().into_iter().collect(),
            (None, operators) => operators.known().iter().map(|operator| operator.namespace.as_str()).collect(),
        }
    }

    /// Whether the operator may render that network to a namespace: it accepts a foreign target only in its own namespace.
    pub(crate) fn may_render(&self, network: &NetworkFact, namespace: &str, facts: &Facts) -> bool {
        network.id.namespace == namespace || self.is_operator_namespace(&network.id.namespace, facts) != Some(false)
    }

    /// Whether a network has a target namespace that the operator does not render it to. Its author must then learn nothing about
    /// that namespace, unless they read the cluster with their own permissions.
    pub(crate) fn has_foreign_target(&self, network: &Network<'_>, facts: &Facts) -> bool {
        facts.names != NameVisibility::All
            && network.target_namespace() != network.meta.namespace
            && self.is_operator_namespace(&network.meta.namespace, facts) != Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(operators: &[(&str, &[&str])]) -> Facts {
        let fact = |(namespace, accounts): &(&str, &[&str])| OperatorFact {
            namespace: (*namespace).to_owned(),
            accounts: accounts.iter().map(|account| (*account).to_owned()).collect(),
            ..OperatorFact::default()
        };
        Facts { operators: Operators::Known(operators.iter().map(fact).collect()), ..Facts::default() }
    }

    fn policy(text: &str) -> Policy {
        Policy::parse(text).unwrap()
    }

    #[test]
    fn operator_is_identified_by_permissions_not_names() {
        let (op, usual) = ("system:serviceaccount:op:", "sriov-network-operator");
        let two = known(&[("op", &["network-operator"]), ("second", &["x"])]);
        let unknown = Facts { operators: Operators::Unknown, ..Facts::default() };
        let both = "operator: {namespace: op, serviceAccount: mine}";
        let table = [
            ("{}", &two, format!("{op}network-operator"), true),
            ("{}", &two, "system:serviceaccount:second:x".to_owned(), true),
            ("{}", &two, format!("{op}{usual}"), false),
            ("{}", &two, format!("system:serviceaccount:{usual}:{usual}"), false),
            ("{}", &two, "network-operator".to_owned(), false),
            // The cluster could not be read: no account is the operator by its name.
            ("{}", &unknown, format!("system:serviceaccount:{usual}:{usual}"), false),
            ("{}", &known(&[]), format!("system:serviceaccount:{usual}:{usual}"), false),
            // There is no cluster.
            ("{}", &Facts::default(), format!("system:serviceaccount:{usual}:{usual}"), true),
            ("{}", &Facts::default(), format!("{op}{usual}"), false),
            // The policy names it.
            (both, &unknown, format!("{op}mine"), true),
            (both, &two, format!("{op}network-operator"), false),
            ("operator: {namespace: op}", &unknown, format!("{op}{usual}"), true),
            ("operator: {namespace: op}", &two, format!("{op}network-operator"), true),
            ("operator: {namespace: op}", &two, "system:serviceaccount:second:x".to_owned(), false),
            ("operator: {serviceAccount: x}", &two, "system:serviceaccount:second:x".to_owned(), true),
            ("operator: {serviceAccount: x}", &two, "system:serviceaccount:tenant:x".to_owned(), false),
        ];
        for (text, facts, user, want) in table {
            assert_eq!(policy(text).is_operator(&user, facts), want, "{text} {facts:?} {user}");
        }
    }

    #[test]
    fn supports_several_operator_namespaces() {
        let two = known(&[("op", &["a"]), ("second", &["b"])]);
        let policy = Policy::default();
        for (facts, namespace, want) in [
            (&two, "op", Some(true)),
            (&two, "second", Some(true)),
            (&two, "tenant", Some(false)),
            (&known(&[]), "op", None),
            (&Facts { operators: Operators::Unknown, ..Facts::default() }, "op", None),
            (&Facts::default(), "op", None),
            (&Facts { operator_namespace: Some("op".to_owned()), ..Facts::default() }, "tenant", Some(false)),
        ] {
            assert_eq!(policy.is_operator_namespace(namespace, facts), want, "{facts:?} {namespace}");
        }
        assert_eq!(policy.operator_namespaces(&two), ["op", "second"]);
    }

    #[test]
    fn the_operator_in_the_same_namespace_is_responsible() {
        let operator = |namespace: &str, prefix: &str| OperatorFact {
            namespace: namespace.to_owned(),
            prefix: Some(prefix.to_owned()),
            ..OperatorFact::default()
        };
        let two = Operators::Known([operator("a", "a.io"), operator("b", "b.io")].into());
        let agreed = Operators::Known([operator("a", "a.io"), operator("b", "a.io")].into());
        for (operators, namespace, want) in [
            (&two, "b", Some("b")),
            (&two, "apps", None),
            (&agreed, "apps", Some("a")),
            (&Operators::Unknown, "a", None),
        ] {
            let found = operators.responsible_for(namespace).map(|operator| operator.namespace.as_str());
            assert_eq!(found, want, "{operators:?} {namespace}");
        }
    }
}
