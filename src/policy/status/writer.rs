//! The writer of a status, by its field manager.

/// The field manager that makes a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusWriter {
    /// Its name; empty if neither the request nor the changed fields reveal it.
    pub manager: String,
}

/// Kinds of field managers, for metrics that need a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriterKind {
    /// The SR-IOV network operator.
    Operator,
    /// Its daemon on the nodes.
    Daemon,
    /// A person using kubectl.
    Kubectl,
    /// Another controller.
    Other,
    /// Unknown.
    Unknown,
}

impl StatusWriter {
    /// What kind of manager it is.
    pub fn kind(&self) -> WriterKind {
        match self.manager.as_str() {
            "" => WriterKind::Unknown,
            "sriov-network-operator" => WriterKind::Operator,
            "sriov-network-config-daemon" => WriterKind::Daemon,
            kubectl if kubectl.starts_with("kubectl") => WriterKind::Kubectl,
            _ => WriterKind::Other,
        }
    }
}

impl WriterKind {
    /// As metrics spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Daemon => "daemon",
            Self::Kubectl => "kubectl",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_follows_from_the_name_of_the_manager() {
        for (manager, want) in [
            ("", "unknown"),
            ("sriov-network-operator", "operator"),
            ("sriov-network-config-daemon", "daemon"),
            ("kubectl", "kubectl"),
            ("kubectl-edit", "kubectl"),
            ("helm", "other"),
        ] {
            assert_eq!(StatusWriter { manager: manager.to_owned() }.kind().name(), want, "{manager}");
        }
    }
}
