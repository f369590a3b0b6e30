//! The judgement: `(Subject, &Facts, &Policy) -> Verdict`, pure and total.
//!
//! A rule is a small function in its family's file under `rules/`; one table lists them all. Here is what turns their
//! findings into a verdict: the policy's actions, the exemptions, the ratchet, the repairs.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod facts;
mod failure;
mod file;
mod finding;
mod judge;
mod names;
mod operators;
mod ratchet;
mod resource_name;
mod rule;
pub mod rules;
mod similar;
mod status;
mod stored;

pub use facts::{Facts, Lookup, NadFact, NamespaceState, NetworkFact, Prefix, Wanted};
pub use failure::{FailurePolicies, FailurePolicy};
pub(crate) use file::USUAL_NAMESPACES;
pub use file::{
    Dra, Exception, Exempt, LogLevel, Mode, NamespacePolicy, Operator, Policy, PolicyError, ResourceName, Write,
    is_usual_namespace,
};
pub(crate) use finding::shortened;
pub use finding::{Because, ConfigPlace, Finding};
pub use judge::{Subject, Verdict, judge};
pub use names::{Names, Reference};
pub use operators::{OperatorFact, Operators};
pub(crate) use operators::{USUAL_NAME, account_of};
pub use rule::{Action, Rule};
pub(crate) use status::is_cured_by_retry;
pub use status::{
    Class, Guarded, GuardedStatus, Owner, STATED, StatusVerdict, StatusWrite, Writer, WriterKind, judge_status,
};
pub use stored::{Audit, OperatorLife, Reports, Rewrites, Stored};
