//! What one replica does for all: completion of stored objects, the audit, reports and Events.

pub mod audit;
mod cached_lookup;
pub(in crate::cluster) mod changes;
pub mod completion;
mod deferred;
pub mod denial_reports;
pub mod dry_run;
pub mod events;
pub mod fix;
pub mod full_scan;
mod neighbour_audits;
mod node_policy_audit;
pub mod object_audit;
pub mod observe;
pub(in crate::cluster) mod pods;
pub mod reports;
mod scan_neighbours;
pub mod scan_scope;
