//! What a reader filters by.

use crate::policy::Action;

/// Something that entries or their findings have, and that a reader can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Facet {
    /// The action of a finding.
    Severity,
    /// The rule of a finding.
    Rule,
    /// The namespace of an object.
    Namespace,
    /// The kind of an object.
    Kind,
    /// The resource of a write.
    Resource,
}

impl Facet {
    /// The name in attributes and in the fragment of the address.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Severity => "severity",
            Self::Rule => "rule",
            Self::Namespace => "namespace",
            Self::Kind => "kind",
            Self::Resource => "resource",
        }
    }

    /// The label of the filter.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Severity => "Severity",
            Self::Rule => "Rule",
            Self::Namespace => "Namespace",
            Self::Kind => "Kind",
            Self::Resource => "Resource",
        }
    }

    /// The label of several values.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Severity => "Severities",
            Self::Rule => "Rules",
            Self::Namespace => "Namespaces",
            Self::Kind => "Kinds",
            Self::Resource => "Resources",
        }
    }

    /// A value as readers see it.
    pub(super) fn shown(self, value: &str) -> String {
        if value.is_empty() { format!("(no {})", self.name()) } else { value.to_owned() }
    }
}

/// The severities, from the worst.
pub(super) const SEVERITIES: [Action; 4] = [Action::Deny, Action::Patch, Action::Warn, Action::Audit];

/// The findings of an action, as a figure or a column calls them.
pub(super) fn plural(action: Action) -> &'static str {
    match action {
        Action::Deny => "Denials",
        Action::Patch => "Repairs",
        Action::Warn => "Warnings",
        Action::Audit | Action::Off => "Recorded",
    }
}
