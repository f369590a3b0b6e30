//! Reads the audit context once per scan.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::audit::context::AuditContext;
use crate::cluster::cache::operators::OPERATOR_RIGHTS;
use crate::cluster::cache::stores::{NamespaceStore, NodePolicyStore};
use crate::cluster::cache::watch::Summarize;
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster, missing};
use crate::policy::{NamespaceState, NodeStates, Operators, Policy};
use crate::resources::NodeInterfaces;

/// Descriptions of what could not be read.
#[derive(Debug, Default)]
pub(in crate::cluster) struct UnreadFacts(pub(in crate::cluster) Vec<String>);

impl UnreadFacts {
    /// The value; an error is recorded, with the permission that it needs.
    fn or_record<T>(&mut self, what: &str, right: &str, read: Result<T, ApiError>) -> Option<T> {
        let note = |failed: ApiError| {
            let failed = failed.naming(right);
            self.0.push(format!("{what} could not be read; rules that depend on them were not checked: {failed}"));
        };
        read.map_err(note).ok()
    }
}

impl Cluster {
    /// Reads the audit context, and the namespaces. What may not be read is unknown. `namespace` is the only one that is audited;
    /// `each_policy` gets every node policy, so that a scan that judges them needs no second list.
    pub(in crate::cluster) async fn audit_context(
        &self,
        policy: &Policy,
        now: Timestamp,
        namespace: Option<&str>,
        mut each_policy: impl FnMut(&str) + Send,
        unread: &mut UnreadFacts,
    ) -> (AuditContext, Option<HashMap<Box<str>, NamespaceState>>) {
        let mut context = AuditContext { now, ..AuditContext::default() };
        let mut namespaces = HashMap::new();
        let path = ApiPath::all(ApiResource::NAMESPACES);
        let each = self.for_each_object(&path, |text| {
            if let Some(object) = ApiObject::read(text)
                && let Some(namespace) = NamespaceStore::read(&object)
            {
                namespaces.insert(object.key.name().into(), namespace.state);
            }
        });
        let listed = each.await;
        let namespaces = unread.or_record("namespaces", "list namespaces", listed).map(|_| namespaces);

        let mut policies = NodePolicyStore::default();
        let path = ApiPath::all(ApiResource::NODE_POLICIES);
        let each = self.for_each_object(&path, |text| {
            each_policy(text);
            if let Some(object) = ApiObject::read(text)
                && let Some(policy) = NodePolicyStore::read(&object)
            {
                policies.put(&object.key, policy);
            }
        });
        let listed = each.await;
        let right = format!("list {} in all namespaces", ApiResource::NODE_POLICIES.plural());
        let is_there = unread.or_record("SriovNetworkNodePolicies", &right, listed);
        if is_there == Some(true) {
            context.offered = Some(policies.offered());
            let states = self.node_states(policies.count(), unread).await;
            context.node_policies = Some(policies.indexed(states).into());
        }

        // A scan goes on without the claims that may not be read.
        let claims = self.claim_index(namespace).await;
        if claims.as_ref().is_ok_and(|index| !index.knows_classes) {
            unread.0.push(format!(
                "DeviceClasses could not be read; only a claim in the namespace of a NAD shows that its device comes by claim (DRA): {}",
                missing("list deviceclasses")
            ));
        }
        let claims = unread.or_record("claims of devices (DRA)", "list deviceclasses", claims);
        context.device_claims = claims.unwrap_or_default().into();

        let operators = self.operators(policy).await;
        let what = "the operator's Deployments, its ServiceAccounts and what those may do";
        context.operators = unread.or_record(what, OPERATOR_RIGHTS, operators).unwrap_or(Operators::Unknown);
        let homes: Vec<_> = context.operators.known().to_vec();
        if !homes.is_empty() {
            let runs = self.is_operator_running(&homes).await;
            let right = "get deployments in the operator's namespace";
            context.is_operator_running = unread.or_record("the operator's Deployments", right, runs).flatten();
        }
        // If several operators state different prefixes, none applies to everything.
        let operators = context.operators.clone();
        let responsible = operators.responsible_for("").map(|operator| operator.namespace.as_str());
        if let Some(home) = policy.operator.namespace.as_deref().or(responsible) {
            let prefix = self.prefix(policy, &operators, home, None).await;
            let right = format!("get deployments and list networks in namespace {home}, and get their NADs");
            context.prefix = unread.or_record("the operator's resource prefix and all NADs", &right, prefix).flatten();
        }
        (context, namespaces)
    }

    /// The PFs of the nodes, if there are policies to compare. No watch has them: each state holds all VFs of its node and is rewritten
    /// whenever one of them is configured, which is more traffic than all other kinds together. An audit lists them once, and keeps what
    /// tells PFs apart.
    async fn node_states(&self, policies: usize, unread: &mut UnreadFacts) -> NodeStates {
        let mut states = NodeStates::default();
        if policies > 1 {
            let path = ApiPath::all(ApiResource::NODE_STATES);
            let listed = self.for_each_object(&path, |text| {
                if let Some(state) = NodeInterfaces::read(text) {
                    states.add(state);
                }
            });
            let listed = listed.await;
            let right = format!("list {} in all namespaces", ApiResource::NODE_STATES.plural());
            if unread.or_record("SriovNetworkNodeStates", &right, listed).is_none() {
                return NodeStates::default();
            }
        }
        states
    }
}
