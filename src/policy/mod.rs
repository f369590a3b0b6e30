//! The judgement: `(Subject, &Facts, &Policy) -> Verdict`, pure and total.
//!
//! A rule is a small function in its family's file under `rules/`; one table lists them all. The rest of this module turns their
//! findings into a verdict: actions, exemptions, ratcheting, repairs.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod conditional;
mod excuse;
mod facts;
mod failure;
mod file;
mod finding;
mod finding_text;
mod fix;
mod judge;
mod names;
mod neighbours;
mod operators;
pub mod pod_errors;
mod pods;
mod ratchet;
mod related;
mod resource_name;
mod rule;
pub mod rules;
pub(crate) mod scope;
mod similar;
mod status;
mod stored;
mod unknown;

pub use crate::resources::DraMode;
pub use excuse::{ChangedPart, ExcuseReason};
pub use facts::{
    ClaimFacts, ClaimIndex, FactLookup, Facts, LinkType, Lookup, MAX_RENDERERS, MissingFact, NadFact, NadSummary,
    NadUsers, NamespaceState, NetworkCoverage, NetworkFact, NodePolicyFact, NodePolicyIndex, NodePolicyNeighbours,
    NodeStates, OfferedLinkTypes, OfferingPolicies, Prefix, SelectedNad, SharedPf, VfRange, one_mode, published_names,
    served_resource,
};
pub use failure::{FailurePolicies, FailurePolicy};
pub(crate) use file::DEFAULT_OPERATOR_NAMESPACES;
pub use file::{
    Dra, Exception, Exempt, LogLevel, Mode, NamespacePolicy, OperatorPolicy, Policy, PolicyError, ResourceName,
    WriteTarget, is_default_operator_namespace,
};
pub use finding::{ConfigPlace, Finding};
pub use fix::{Fix, ManifestChange, changed};
pub use judge::{Subject, Verdict, judge};
pub use names::{NameVisibility, Reference};
pub use neighbours::{
    AddressPool, MAX_NEIGHBOURS, NeighbourFact, NeighbourIndex, NetworkUse, OvnAcceptance, OvnNetwork, SliceUse,
};
pub(crate) use operators::{DEFAULT_OPERATOR_NAME, account_of};
pub use operators::{OperatorFact, Operators};
pub use pods::{MultusPolicy, PodPolicy, ResourceInjector};
pub use related::{RelatedObject, SourcePlace};
pub(crate) use resource_name::DeviceSource;
pub use rule::{Action, Rule};
pub(crate) use rules::ipam::is_run as runs_ipam;
pub use rules::ipam::{WrittenRange, written_ranges};
pub(crate) use rules::ipam::{address_number, numbered_address};
pub(crate) use similar::{closest, similar_name};
pub(crate) use status::is_fixed_by_retry;
pub use status::{
    Class, Guarded, GuardedStatus, Owner, PRECONDITION_PREFIX, StatusVerdict, StatusWrite, StatusWriter, WriterKind,
    judge_status,
};
pub use stored::{AuditPolicy, OperatorHealth, Reports, Rewrites, StoredState};

#[cfg(test)]
pub(crate) mod testing {
    //! For the tests of other modules.

    /// A repair.
    pub(crate) fn some_repair() -> super::finding::Repair {
        super::finding::Repair::RemoveAnnotation("a")
    }
}
