//! Why a finding does not have the action of its rule.

use json_patch::Patch;

use super::{Action, Finding, Verdict};

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

/// What of an object may change before it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangedPart {
    /// Its name, namespace, labels and annotations.
    Metadata,
    /// Every field.
    Everything,
}

impl Verdict {
    /// Makes every finding that such a change may cure at most a warning, and repairs nothing. Whether that changed a finding.
    pub fn only_warn(&mut self, part: ChangedPart, because: &ExcuseReason) -> bool {
        self.patch = Patch::default();
        let is_open = |finding: &&mut Finding| part == ChangedPart::Everything || !finding.is_independent_of_metadata();
        let stronger = self.findings.iter_mut().filter(|finding| finding.action > Action::Warn);
        let mut excused = stronger.filter(is_open).peekable();
        let has_any = excused.peek().is_some();
        for finding in excused {
            finding.action = Action::Warn;
            finding.because = Some(because.clone());
        }
        has_any
    }
}

impl Finding {
    /// Whether it stays whatever name, namespace and annotations the object gets: what a plugin rejects in its own config, without
    /// another object.
    fn is_independent_of_metadata(&self) -> bool {
        let family = self.rule.id.split('/').next().unwrap_or_default();
        let is_of_config = match family {
            // The annotation that names a resource also gives this plugin its device.
            "plugin" if self.rule.id == "plugin/host-device" => false,
            "sriov" | "ib-sriov" | "ovs" | "meta" | "plugin" | "ipam" => true,
            "nad" => !self.rule.id.starts_with("nad/resource-name"),
            _ => false,
        };
        is_of_config && self.related.is_empty() && self.pointer.starts_with("/spec")
    }
}
