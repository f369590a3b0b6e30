//! What is around the objects that an audit judges, read once.

use std::collections::HashMap;

use jiff::Timestamp;

use super::cache::home;
use super::collection::Id;
use super::kept::{Namespaces, Policies};
use super::prefix::{DEPLOYMENT, available};
use super::watch::Keep;
use super::{Cluster, Failed};
use crate::audit::around::Around;
use crate::policy::Policy;
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
            if let (Some(id), Some(state)) = (Id::of(text), Namespaces::read(text)) {
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

        let deployments = self.operators().await;
        let deployments = unread.or_noted("the operator's Deployments", deployments);
        let configs = self.configs().await;
        let configs = unread.or_noted("SriovOperatorConfigs", configs);
        around.operator_namespace = policy.operator.namespace.clone().or_else(|| {
            let (deployments, configs) = (deployments.as_ref()?, configs.as_ref()?);
            let places: Vec<&str> = deployments.iter().map(|(namespace, _)| namespace.as_str()).collect();
            let configs: Vec<&str> = configs.iter().map(String::as_str).collect();
            home(&places, &configs).map(str::to_owned)
        });
        if let Some(operators) = around.operator_namespace.clone() {
            let mine = deployments.iter().flatten().find(|(namespace, _)| *namespace == operators);
            around.operator_runs = mine.map(|(_, available)| *available > 0);
            let prefix = self.prefix(policy, &operators, None).await;
            around.prefix = unread.or_noted("the operator's resource prefix and all NADs", prefix).flatten();
        }
        around
    }

    /// The namespaces of the operator's Deployments, and how many pods of each are available.
    async fn operators(&self) -> Result<Vec<(String, i64)>, Failed> {
        let mut found = Vec::new();
        let selector = format!("&fieldSelector=metadata.name%3D{DEPLOYMENT}");
        let add = |text: &str| {
            if let (Some(id), Ok(deployment)) = (Id::of(text), serde_json::from_str(text)) {
                found.push((id.namespace.into_owned(), available(&deployment)));
            }
        };
        self.each("/apis/apps/v1/deployments", &selector, add).await?;
        Ok(found)
    }

    /// The namespaces with a configuration of the operator.
    async fn configs(&self) -> Result<Vec<String>, Failed> {
        let mut found = Vec::new();
        let path = format!("/apis/{NETWORK_GROUP}/v1/sriovoperatorconfigs");
        let add = |text: &str| found.extend(Id::of(text).map(|id| id.namespace.into_owned()));
        self.each(&path, "&fieldSelector=metadata.name%3Ddefault", add).await?;
        Ok(found)
    }
}
