//! What the policy says about pods: whether they are judged in a cluster, and what of Multus and its companions nadmit cannot see.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::{Action, Facts, Finding, Policy};
use crate::resources::Object;

/// Whether pods, and the objects that make them, are judged in a cluster. They are never denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodPolicy {
    /// No: no pod is watched, and none reaches nadmit.
    #[default]
    Off,
    /// Findings are recorded, and their writer is not warned.
    Audit,
    /// Their writer is warned.
    Warn,
}

impl PodPolicy {
    /// Whether pods are judged.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    fn action(self) -> Action {
        match self {
            Self::Off => Action::Off,
            Self::Audit => Action::Audit,
            Self::Warn => Action::Warn,
        }
    }
}

impl<'de> Deserialize<'de> for PodPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PodWord;
        impl Visitor<'_> for PodWord {
            type Value = PodPolicy;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("off, audit or warn")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<PodPolicy, E> {
                match word {
                    "off" => Ok(PodPolicy::Off),
                    "audit" => Ok(PodPolicy::Audit),
                    "warn" => Ok(PodPolicy::Warn),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }

            /// YAML reads a bare `off` as false.
            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<PodPolicy, E> {
                if flag { Err(E::invalid_value(de::Unexpected::Bool(flag), &self)) } else { Ok(PodPolicy::Off) }
            }
        }
        deserializer.deserialize_any(PodWord)
    }
}

/// How Multus is configured on the nodes, where nadmit cannot see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MultusPolicy {
    /// Whether pods may select only NADs of their own namespace (`namespaceIsolation`). By default unknown, and not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_isolation: Option<bool>,
    /// The namespaces whose NADs every pod may select nevertheless (`globalNamespaces`). By default `default`, as for Multus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_namespaces: Option<Vec<String>>,
}

impl MultusPolicy {
    /// Whether Multus certainly keeps pods of other namespaces from selecting NADs of that one.
    pub(crate) fn isolates(&self, namespace: &str) -> bool {
        let is_global = self
            .global_namespaces
            .as_ref()
            .map_or(namespace == "default", |global| global.iter().any(|one| one == namespace));
        self.namespace_isolation == Some(true) && !is_global
    }
}

/// Which requests for the devices of NADs something adds to pods while they are created, as network-resources-injector does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResourceInjector {
    /// None: a pod has what it requests itself.
    None,
    /// Those for a resource that the pod does not request at all. That is the default of network-resources-injector.
    Missing,
    /// Those for every selected network, in addition to the pod's own (`--honor-resources`).
    All,
}

/// Limits the findings about a pod in a cluster, and about a NAD that pods use, to what the policy says about pods.
pub(super) fn limit(findings: &mut Vec<Finding>, object: &Object<'_>, facts: &Facts, policy: &Policy) {
    let is_about_pods = matches!(object, Object::Workload(_)) || facts.users_at_deletion.is_some();
    if facts.is_cluster && is_about_pods {
        let most = policy.pods.action();
        findings.iter_mut().for_each(|finding| finding.action = finding.action.min(most));
        findings.retain(|finding| finding.action != Action::Off);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_judged_only_if_the_policy_says_so() {
        for (text, want) in [
            ("{}", PodPolicy::Off),
            ("pods: off", PodPolicy::Off),
            ("pods: 'off'", PodPolicy::Off),
            ("pods: audit", PodPolicy::Audit),
            ("pods: warn", PodPolicy::Warn),
        ] {
            assert_eq!(Policy::parse(text).unwrap().pods, want, "{text}");
        }
        for wrong in ["pods: deny", "pods: true", "pods: {}"] {
            assert!(Policy::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn isolation_is_certain_only_where_the_policy_says_so() {
        for (text, namespace, want) in [
            ("{}", "other", false),
            ("multus: {namespaceIsolation: false}", "other", false),
            ("multus: {namespaceIsolation: true}", "other", true),
            ("multus: {namespaceIsolation: true}", "default", false),
            ("multus: {namespaceIsolation: true, globalNamespaces: [other]}", "other", false),
            ("multus: {namespaceIsolation: true, globalNamespaces: [other]}", "default", true),
        ] {
            assert_eq!(Policy::parse(text).unwrap().multus.isolates(namespace), want, "{text} {namespace}");
        }
    }
}
