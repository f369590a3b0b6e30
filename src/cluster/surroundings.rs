//! What is around the objects that an audit judges, read once.

use std::collections::HashMap;

use jiff::Timestamp;

use super::collection::Id;
use super::kept::{Namespaces, Policies};
use super::watch::Keep;
use super::{Cluster, Failed};
use crate::audit::around::Around;
use crate::policy::{Operators, Policy};
use crate::resources::NETWORK_GROUP;

/// What could not be read, in words.
#[derive(Debug, Default)]
pub(super) struct Unread(pub(super) Vec<String>);

impl Unread {
    /// What was read; what was not is noted.
    fn or_noted<T>(&mut self, what: &str, read: Result<T, Failed>) -> Option<T> {
        let note = |failed: Failed| {
            self.0.push(format!("{what} could not be read, and what depends on them was not checked: {failed}"));
        };
        read.map_err(note).ok()
    }
}

impl Cluster {
    /// What is around everything. It needs more rights than some have: what may not be read is unknown.
    pub(super) async fn surroundings(&self, policy: &Policy, now: Timestamp, unread: &mut Unread) -> Around {
        let mut around = Around { now, ..Around::default() };
        let mut namespaces = HashMap::new();
        let each = self.each("/api/v1/namespaces", "", |text| {
            if let (Some(id), Some((state, _))) = (Id::of(text), Namespaces::read(text)) {
                namespaces.insert(id.name.as_ref().into(), state);
            }
        });
        let listed = each.await;
        around.namespaces = unread.or_noted("namespaces", listed).map(|_| namespaces);

        let mut policies = Policies::default();
        let path = format!("/apis/{NETWORK_GROUP}/v1/sriovnetworknodepolicies");
        let each = self.each(&path, "", |text| {
            if let (Some(id), Some(name)) = (Id::of(text), Policies::read(text)) {
                policies.put(&id, name);
            }
        });
        let listed = each.await;
        let is_there = unread.or_noted("SriovNetworkNodePolicies", listed);
        around.offered = is_there.filter(|is_there| *is_there).map(|_| policies.offered());

        let operators = self.operators(policy).await;
        around.operators = unread
            .or_noted("the operator's Deployments, its ServiceAccounts and what those may do", operators)
            .unwrap_or(Operators::Unknown);
        let homes: Vec<_> = around.operators.known().to_vec();
        if !homes.is_empty() {
            let runs = self.operator_runs(&homes).await;
            around.operator_runs = unread.or_noted("the operator's Deployments", runs).flatten();
        }
        // Of several operators that state different ones, none counts for everything.
        let home = policy.operator.namespace.as_deref().or(homes.first().map(|operator| operator.namespace.as_str()));
        let agree = homes.windows(2).all(|two| matches!(two, [one, other] if one.prefix == other.prefix));
        if let Some(home) = home.filter(|_| agree || policy.operator.namespace.is_some()) {
            let prefix = self.prefix(policy, &around.operators, home, None).await;
            around.prefix = unread.or_noted("the operator's resource prefix and all NADs", prefix).flatten();
        }
        around
    }
}
