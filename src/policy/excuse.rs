//! Why a finding does not have the action of its rule.

/// Why a finding has a weaker action than its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExcuseReason {
    /// The object is being deleted.
    Deleting,
    /// The object had the same finding before this write.
    Ratchet,
    /// The writer or the namespace is exempt.
    Exempt,
    /// The operator wrote it; a denial would only make it retry indefinitely.
    Operator,
    /// The policy excepts this object from this rule, for this reason.
    Exception(String),
}

impl ExcuseReason {
    /// The name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Deleting => "deleting",
            Self::Ratchet => "ratchet",
            Self::Exempt => "exempt",
            Self::Operator => "operator",
            Self::Exception(_) => "exception",
        }
    }
}
