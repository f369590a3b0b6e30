//! The policy file: what the people who run a cluster decide.

use std::collections::BTreeMap;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::FailurePolicies;
use super::status::GuardedStatus;
use super::{Action, Audit, Facts, Rule, rules};
use crate::yaml::Documents;

/// Whether findings have consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Objects are refused and repaired.
    #[default]
    Enforce,
    /// Nothing is refused and nothing repaired; every answer says what would have been done.
    Audit,
}

impl Mode {
    /// As policy files and reports spell it.
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
pub enum Write {
    /// Into the annotation wherever it is missing; into the config too where the NAD belongs to a network, and wherever
    /// something had to be repaired anyway.
    #[default]
    Auto,
    /// Into both, always.
    Both,
    /// Into the annotation only: the one place Multus reads.
    Annotation,
}

/// Whether devices may come by claims instead of a resourceName.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dra {
    /// A NAD without a resourceName is right here.
    Allow,
    /// It is not.
    Deny,
}

/// How much the server logs.
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
    /// As log filters spell it.
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
    /// What is done about each rule's findings, by rule id.
    pub rules: BTreeMap<String, Action>,
    /// What is different in some namespaces; of several that match, the later one wins.
    pub namespaces: Vec<NamespacePolicy>,
    /// Who is never refused anything.
    pub exempt: Exempt,
    /// The SR-IOV network operator.
    pub operator: Operator,
    /// How resource names are found and written.
    pub resource_name: ResourceName,
    /// CNI plugins, besides sriov and ib-sriov, that need a device of their own.
    pub device_plugins: Vec<String>,
    /// What becomes of a write while nadmit cannot be asked, by webhook.
    pub failure_policy: FailurePolicies,
    /// Whose statuses are guarded.
    pub status: GuardedStatus,
    /// How the cluster is audited.
    pub audit: Audit,
    /// Objects that a rule leaves alone for a while.
    pub exceptions: Vec<Exception>,
    /// Whether NADs that were stored incomplete, while nadmit was away, are left so. The leader completes them otherwise.
    pub leave_incomplete: bool,
    /// How much the server logs while this is in force, instead of what it was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
}

/// What is different in some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamespacePolicy {
    /// Names of namespaces; a `*` at the end stands for any rest.
    pub names: Vec<String>,
    /// Whether findings have consequences here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What is done about each rule's findings here.
    #[serde(default)]
    pub rules: BTreeMap<String, Action>,
    /// Whether NADs here may leave the resourceName out because pods claim their devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dra: Option<Dra>,
    /// The resource name for NADs here that have none and that no network owns: `openshift.io/mlxnics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_resource_name: Option<String>,
}

/// Who is never refused anything. Repairs are still made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Exempt {
    /// User names, as the API server has them: `system:serviceaccount:backup:velero`. A `*` at the end stands for any rest.
    pub users: Vec<String>,
    /// Namespaces. A `*` at the end stands for any rest.
    pub namespaces: Vec<String>,
}

/// The SR-IOV network operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Operator {
    /// The namespace it runs in. Left out, it is where a ServiceAccount may create NADs in all namespaces, beside a SriovOperatorConfig
    /// `default` or a Deployment `sriov-network-operator`; without a cluster to ask, one of the usual two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its ServiceAccount. Left out, any in that namespace that may create NADs in all namespaces, whatever it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

/// How resource names are found and written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResourceName {
    /// Where a repair writes it.
    pub write: Write,
    /// The domain the operator puts in front: `openshift.io`. Left out, it is the RESOURCE_PREFIX of the operator's Deployment, else what
    /// is on the NADs that networks really render.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// An object that a rule leaves alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exception {
    /// The rule.
    pub rule: String,
    /// The object's kind; left out, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Why. Whoever reads this in a year wants to know.
    pub reason: String,
    /// The last day on which the exception holds.
    #[schemars(with = "String", extend("format" = "date"))]
    pub expires: Date,
}

/// Why a policy file is refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file is not YAML.
    #[error("line {line}, column {column}: {problem}")]
    Yaml {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the reader says.
        problem: String,
    },
    /// There is more than one document.
    #[error("line {0}: a policy file holds one document, and a second one begins here")]
    Documents(usize),
    /// A value is not what the key wants.
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
        if matches!(node.value, crate::yaml::Value::Null) {
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
            // The position is one in our JSON, not in the file.
            let problem = problem.rsplit_once(" at line ").map_or(problem.as_str(), |(before, _)| before).to_owned();
            PolicyError::Value { line: line_of(&pointer_of(error.path())), path, problem }
        })?;
        policy.check(&|pointer, path, problem| PolicyError::Value { line: line_of(pointer), path, problem })?;
        Ok(policy)
    }

    /// The mode in a namespace.
    pub fn mode_in(&self, namespace: &str) -> Mode {
        self.scope(namespace).mode()
    }

    /// Whether denials are warnings for that user, or in that namespace.
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
                        format!("this rule knows no repair; use {}", rule.default.name())
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

    /// The parts of the policy that hold in a namespace.
    pub(crate) fn scope(&self, namespace: &str) -> Scope<'_> {
        let matching = self.namespaces.iter().filter(|entry| matches_any(&entry.names, namespace)).collect();
        Scope { policy: self, matching }
    }
}

/// Where the operator is usually installed.
pub(crate) const USUAL_NAMESPACES: [&str; 2] = ["openshift-sriov-network-operator", "sriov-network-operator"];

/// Whether a namespace is one the operator is usually installed in.
pub fn is_usual_namespace(namespace: &str) -> bool {
    USUAL_NAMESPACES.contains(&namespace)
}

/// Whether one of the patterns matches: exactly, or up to a `*` at its end.
pub(crate) fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    })
}

/// The domain in front of resource names, and whether it is only the usual one.
pub(crate) struct KnownPrefix<'f> {
    pub(crate) value: &'f str,
    pub(crate) assumed: bool,
}

/// The policy as it holds in one namespace.
pub(crate) struct Scope<'p> {
    pub(crate) policy: &'p Policy,
    matching: Vec<&'p NamespacePolicy>,
}

impl Scope<'_> {
    /// The action somebody chose for a rule; `None` where the rule's default holds.
    pub(crate) fn action(&self, rule: &Rule) -> Option<Action> {
        let here = self.matching.iter().rev().find_map(|entry| entry.rules.get(rule.id));
        here.or_else(|| self.policy.rules.get(rule.id)).copied()
    }

    /// The mode.
    pub(crate) fn mode(&self) -> Mode {
        self.matching.iter().rev().find_map(|entry| entry.mode).unwrap_or(self.policy.mode)
    }

    /// Whether a NAD may leave its resourceName out.
    pub(crate) fn allows_dra(&self) -> bool {
        self.dra() == Some(Dra::Allow)
    }

    /// What the policy says about devices by claim, where it says anything.
    pub(crate) fn dra(&self) -> Option<Dra> {
        self.matching.iter().rev().find_map(|entry| entry.dra)
    }

    /// The resource name for NADs that have none.
    pub(crate) fn default_resource_name(&self) -> Option<&str> {
        self.matching.iter().rev().find_map(|entry| entry.default_resource_name.as_deref())
    }

    /// The domain in front of resource names: the policy's word, else what was found out.
    pub(crate) fn prefix<'f>(&'f self, facts: &'f Facts) -> Option<KnownPrefix<'f>> {
        let chosen = self.policy.resource_name.prefix.as_deref().map(|value| KnownPrefix { value, assumed: false });
        chosen.or_else(|| {
            facts.prefix.as_ref().map(|prefix| KnownPrefix { value: &prefix.value, assumed: prefix.assumed })
        })
    }

    /// Whether a plugin type needs a device of its own.
    pub(crate) fn needs_device(&self, kind: &str) -> bool {
        self.policy.device_kinds().any(|known| known == kind)
    }
}

fn unknown_rule(id: &str) -> String {
    match rules::closest(id) {
        Some(close) => format!("there is no such rule; did you mean `{}`?", close.id),
        None => "there is no such rule; `nadmit rules` lists them".to_owned(),
    }
}

/// The JSON pointer of a path that serde walked.
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
