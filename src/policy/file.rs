//! The policy file: the decisions of cluster administrators.

use std::collections::BTreeMap;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::FailurePolicies;
use super::pods::{MultusPolicy, PodPolicy, ResourceInjector};
use super::scope::NamespaceScope;
use super::status::GuardedStatus;
use super::{Action, AuditPolicy, DraMode, Rule, rules, unknown};
use crate::cni::releases::Versions;
use crate::yaml::Documents;

/// Whether findings have consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Objects are denied and repaired.
    #[default]
    Enforce,
    /// Nothing is denied or repaired; every response says what would have been done.
    Audit,
}

impl Mode {
    /// The name in policy files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Audit => "audit",
        }
    }
}

/// Where a resourceName is written when a NAD is repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteTarget {
    /// Into the annotation wherever it is missing; into the config too if the NAD belongs to a network or is repaired anyway.
    #[default]
    Auto,
    /// Into both, always.
    Both,
    /// Into the annotation only: the one place Multus reads.
    Annotation,
}

/// Whether devices may come from claims (DRA) instead of a resourceName.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dra {
    /// A NAD without a resourceName is valid if a claim or DeviceClass of the SR-IOV driver names it.
    #[default]
    Auto,
    /// It is always valid.
    Allow,
    /// It is never valid.
    Deny,
}

/// The log level of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// The name in log filters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The policy: every key is optional, and an empty file is the default policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "nadmit policy")]
pub struct Policy {
    /// Whether findings have consequences.
    pub mode: Mode,
    /// The action for each rule, by rule id.
    pub rules: BTreeMap<String, Action>,
    /// Overrides for some namespaces; of several that match, the last one wins.
    pub namespaces: Vec<NamespacePolicy>,
    /// Users and namespaces that are never denied.
    pub exempt: Exempt,
    /// The SR-IOV network operator.
    pub operator: OperatorPolicy,
    /// How resource names are determined and written.
    pub resource_name: ResourceName,
    /// Whether NADs may leave the resourceName out because pods claim their devices (DRA).
    pub dra: Dra,
    /// How the SR-IOV DRA driver is configured; if not set, it is read from the driver's DaemonSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dra_mode: Option<DraMode>,
    /// The oldest release in use of each program that reads a config, in quotes: `{sriov-cni: "2.10"}`. What a release rejects is
    /// denied then also if older ones accept it, and what it ignores is not judged.
    pub versions: Versions,
    /// CNI plugins, besides sriov and ib-sriov, that need a device of their own.
    pub device_plugins: Vec<String>,
    /// Whether pods, and the objects that make them, are judged in a cluster. `nadmit check` always judges them.
    pub pods: PodPolicy,
    /// How Multus is configured on the nodes.
    pub multus: MultusPolicy,
    /// Which requests for devices something adds to pods, as network-resources-injector does. If not set, it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_injector: Option<ResourceInjector>,
    /// What the API server does with a write while nadmit is unavailable, by webhook.
    pub failure_policy: FailurePolicies,
    /// Which statuses are guarded.
    pub status: GuardedStatus,
    /// How the cluster is audited.
    pub audit: AuditPolicy,
    /// Objects that a rule ignores for a limited time.
    pub exceptions: Vec<Exception>,
    /// Whether NADs that were stored incomplete while nadmit was unavailable stay incomplete. Otherwise the leader completes
    /// them.
    pub leave_incomplete: bool,
    /// The log level while this policy is in force; overrides the level given at startup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
}

/// Overrides for some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamespacePolicy {
    /// Names of namespaces; a trailing `*` matches any suffix.
    pub names: Vec<String>,
    /// Whether findings have consequences here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The action for each rule in these namespaces.
    #[serde(default)]
    pub rules: BTreeMap<String, Action>,
    /// Whether NADs here may leave the resourceName out because pods claim their devices; overrides the general `dra`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dra: Option<Dra>,
    /// The resource name for NADs here that have none and that no network owns: `openshift.io/mlxnics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_resource_name: Option<String>,
}

/// Users and namespaces that are never denied. Repairs are still made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Exempt {
    /// User names as the API server knows them: `system:serviceaccount:backup:velero`. A trailing `*` matches any suffix.
    pub users: Vec<String>,
    /// Namespaces. A trailing `*` matches any suffix.
    pub namespaces: Vec<String>,
}

/// The SR-IOV network operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OperatorPolicy {
    /// The namespace it runs in. By default, the namespace of a ServiceAccount that may create NADs in all namespaces, beside a
    /// SriovOperatorConfig `default` or a Deployment `sriov-network-operator`; without a cluster, one of the two usual
    /// namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its ServiceAccount. By default, any in that namespace that may create NADs in all namespaces, whatever its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

/// How resource names are determined and written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResourceName {
    /// Where a repair writes it.
    pub write: WriteTarget,
    /// The domain the operator prepends: `openshift.io`. By default, the RESOURCE_PREFIX of the operator's Deployment, or else
    /// the prefix on NADs that networks actually render.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// An object that a rule ignores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exception {
    /// The rule.
    pub rule: String,
    /// The object's kind; any kind by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The reason, for whoever reads this later.
    pub reason: String,
    /// The last day on which the exception holds.
    #[schemars(with = "String", extend("format" = "date"))]
    pub expires: Date,
}

/// Why a policy file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file is not YAML.
    #[error("line {line}, column {column}: {problem}")]
    Yaml {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser error.
        problem: String,
    },
    /// There is more than one document.
    #[error("line {0}: a policy file has one document, but a second one starts here")]
    Documents(usize),
    /// A value is not valid for its key.
    #[error("line {line}: `{path}`: {problem}")]
    Value {
        /// Line, from 1.
        line: usize,
        /// The key.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl Policy {
    /// Reads a policy file.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut documents = Documents::new(text);
        let Some(document) = documents.next() else { return Ok(Self::default()) };
        let node = document.node.map_err(|error| PolicyError::Yaml {
            line: error.line,
            column: error.column,
            problem: error.problem,
        })?;
        if let Some(second) = documents.next() {
            return Err(PolicyError::Documents(second.line));
        }
        if matches!(node.value, crate::yaml::YamlValue::Null) {
            return Ok(Self::default());
        }
        let json = node.to_json();
        let line_of = |pointer: &str| {
            let (node, entry, _) = node.follow(pointer);
            let offset = entry.map_or(node.span.start, |entry| entry.key_span.start);
            crate::json::line_column(text, offset).0
        };
        let mut reader = serde_json::Deserializer::from_str(&json);
        let policy: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let problem = error.inner().to_string();
            // Strip the position, which refers to our JSON and not to the file.
            let problem =
                unknown::explained(problem.rsplit_once(" at line ").map_or(problem.as_str(), |(before, _)| before));
            PolicyError::Value { line: line_of(&pointer_of(error.path())), path, problem }
        })?;
        policy.check(&|pointer, path, problem| PolicyError::Value { line: line_of(pointer), path, problem })?;
        Ok(policy)
    }

    /// The mode in a namespace.
    pub fn mode_in(&self, namespace: &str) -> Mode {
        self.scope(namespace).mode()
    }

    /// Whether that user or namespace is exempt from denials.
    pub fn is_exempt(&self, user: &str, namespace: &str) -> bool {
        matches_any(&self.exempt.users, user) || matches_any(&self.exempt.namespaces, namespace)
    }

    /// Whether a finding of a rule denies a write in a namespace: the mode is enforce, the rule's action denies (a fix that cannot be
    /// made denies, too), and the namespace is not exempt.
    pub(crate) fn denies(&self, rule: &Rule, namespace: &str) -> bool {
        let scope = self.scope(namespace);
        let action = scope.action(rule).unwrap_or(rule.default);
        scope.mode() == Mode::Enforce
            && matches!(action, Action::Deny | Action::Patch)
            && !matches_any(&self.exempt.namespaces, namespace)
    }

    /// The JSON schema of the file.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }

    fn check(&self, fail: &dyn Fn(&str, String, String) -> PolicyError) -> Result<(), PolicyError> {
        let check_rules = |rules: &BTreeMap<String, Action>, pointer: &str| {
            for (id, action) in rules {
                let pointer = format!("{pointer}/{}", crate::json::escape(id));
                let problem = match rules::find(id) {
                    None => unknown_rule(id),
                    Some(rule) if *action == Action::Patch && !rule.repairs => {
                        format!("this rule has no repair; use {}", rule.default.name())
                    }
                    Some(_) => continue,
                };
                return Err(fail(&pointer, id.clone(), problem));
            }
            Ok(())
        };
        check_rules(&self.rules, "/rules")?;
        for (index, namespace) in self.namespaces.iter().enumerate() {
            check_rules(&namespace.rules, &format!("/namespaces/{index}/rules"))?;
            if let Some(name) = &namespace.default_resource_name
                && let Some(problem) = super::resource_name::unusable(name)
            {
                let pointer = format!("/namespaces/{index}/defaultResourceName");
                return Err(fail(&pointer, "defaultResourceName".to_owned(), format!("`{name}` {problem}")));
            }
        }
        if let Some((key, problem)) = self.status.wrong_key() {
            let pointer = format!("/status/resources/{}", crate::json::escape(key));
            return Err(fail(&pointer, key.to_owned(), problem.to_owned()));
        }
        for (index, exception) in self.exceptions.iter().enumerate() {
            if rules::find(&exception.rule).is_none() {
                let pointer = format!("/exceptions/{index}/rule");
                return Err(fail(&pointer, "rule".to_owned(), unknown_rule(&exception.rule)));
            }
            if exception.reason.trim().is_empty() {
                let pointer = format!("/exceptions/{index}/reason");
                return Err(fail(&pointer, "reason".to_owned(), "an exception needs a reason".to_owned()));
            }
        }
        Ok(())
    }

    /// The plugin types that need a device of their own.
    pub(crate) fn device_kinds(&self) -> impl Iterator<Item = &str> {
        ["sriov", "ib-sriov"].into_iter().chain(self.device_plugins.iter().map(String::as_str))
    }

    /// The policy as it applies in a namespace.
    pub(crate) fn scope(&self, namespace: &str) -> NamespaceScope<'_> {
        let matching = self.namespaces.iter().filter(|entry| matches_any(&entry.names, namespace)).collect();
        NamespaceScope { policy: self, matching }
    }
}

/// The default namespaces of the operator.
pub(crate) const DEFAULT_OPERATOR_NAMESPACES: [&str; 2] =
    ["openshift-sriov-network-operator", "sriov-network-operator"];

/// Whether a namespace is a default namespace of the operator.
pub fn is_default_operator_namespace(namespace: &str) -> bool {
    DEFAULT_OPERATOR_NAMESPACES.contains(&namespace)
}

/// Whether one of the patterns matches: exactly, or as a prefix if it ends with `*`.
pub(crate) fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    })
}

fn unknown_rule(id: &str) -> String {
    match rules::closest(id) {
        Some(close) => format!("there is no such rule; did you mean `{}`?", close.id),
        None => "there is no such rule; `nadmit rules` lists them".to_owned(),
    }
}

/// The JSON pointer of a serde path.
fn pointer_of(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer += &format!("/{index}"),
            Segment::Map { key } => pointer += &format!("/{}", crate::json::escape(key)),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

#[cfg(test)]
mod tests;
