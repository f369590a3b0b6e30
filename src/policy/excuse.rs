//! Why a finding does not have the action of its rule.

use json_patch::Patch;

use super::{Action, Verdict};

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
    /// A kustomization changes the object before it is applied.
    Kustomization,
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
            Self::Kustomization => "kustomization",
        }
    }
}

impl Verdict {
    /// Makes every finding at most a warning, and repairs nothing. Whether that changed a finding.
    pub fn only_warn(&mut self, because: &ExcuseReason) -> bool {
        self.patch = Patch::default();
        let mut stronger = self.findings.iter_mut().filter(|finding| finding.action > Action::Warn).peekable();
        let has_any = stronger.peek().is_some();
        for finding in stronger {
            finding.action = Action::Warn;
            finding.because = Some(because.clone());
        }
        has_any
    }
}
