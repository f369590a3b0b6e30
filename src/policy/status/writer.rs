//! Who writes a status, as far as field managers tell.

/// The field manager that makes a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    /// Its name; empty where neither the request nor the changed fields tell it.
    pub manager: String,
}

/// The kinds of field managers that are told apart where a name would be one of too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriterKind {
    /// The SR-IOV network operator.
    Operator,
    /// Its daemon on the nodes.
    Daemon,
    /// Somebody at a terminal.
    Kubectl,
    /// Another controller.
    Other,
    /// Nobody knows.
    Unknown,
}

impl Writer {
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
