//! Discovers the operators of a cluster: by the permissions of their accounts, never by names.
//!
//! ```text
//!  SriovOperatorConfig `default` ─┐
//!  Deployment of the usual name  ─┴► namespaces ─► their accounts ─► may they create NADs in all namespaces?
//! ```
//!
//! A tenant can create all of these, except for the permission.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::cluster::cache::observer::{ChangeNotifier, WatchObserver};
use crate::cluster::cache::prefix::{available, stated};
use crate::cluster::client::collection::ApiObject;
use crate::cluster::client::permissions::{Permission, PermissionCache, UserInfo};
use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::policy::{
    DEFAULT_OPERATOR_NAME, OperatorFact, Operators, Policy, account_of, is_default_operator_namespace,
};
use crate::resources::ObjectKey;

/// The name of the operator's SriovOperatorConfig.
pub(in crate::cluster) const OPERATOR_CONFIG: &str = "default";
/// The permissions that finding the operators needs.
pub(in crate::cluster) const OPERATOR_RIGHTS: &str =
    "list sriovoperatorconfigs, deployments and serviceaccounts and to create subjectaccessreviews";
/// The refresh interval: permissions change without an event.
const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// The minimum interval between two discoveries.
const MIN_INTERVAL: Duration = Duration::from_secs(2);
/// How many Deployments and accounts of one namespace are listed, and for how many accounts permissions are checked. A tenant may
/// create any number; accounts of a Deployment with a prefix come first.
const MAX_LISTED: usize = 100;
const MAX_ACCOUNTS: usize = 16;
/// How many namespaces are checked. Those with a known operator come first.
const MAX_NAMESPACES: usize = 32;
/// How long an account that proved its permission counts as an operator without a new check.
const PROOF_LIFETIME: Duration = Duration::from_secs(600);

/// A summary of a Deployment.
#[derive(Debug, Default, PartialEq)]
pub(in crate::cluster) struct DeploymentSummary {
    pub(in crate::cluster) name: String,
    pub(in crate::cluster) account: String,
    pub(in crate::cluster) prefix: Option<String>,
    pub(in crate::cluster) available: i64,
}

impl DeploymentSummary {
    fn read(text: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(text).ok()?;
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        Some(Self {
            name: text("/metadata/name")?.to_owned(),
            account: text("/spec/template/spec/serviceAccountName").unwrap_or("default").to_owned(),
            prefix: stated(&object),
            available: available(&object),
        })
    }
}

/// The operator's Deployment: one with a proven account and a prefix, else one with a prefix, else one with a proven account.
/// Whoever may create a Deployment in this namespace may also use the operator's account.
pub(in crate::cluster) fn find_operator_deployment<'d>(
    deployed: &'d [DeploymentSummary],
    accounts: &[String],
) -> Option<&'d DeploymentSummary> {
    let rank = |one: &DeploymentSummary| {
        (one.prefix.is_some(), accounts.contains(&one.account), one.name == DEFAULT_OPERATOR_NAME)
    };
    let best = deployed.iter().max_by_key(|one| rank(one)).filter(|best| best.prefix.is_some() || rank(best).1)?;
    // If two equally likely ones contradict each other, there is no answer.
    let is_same = |one: &DeploymentSummary| rank(one) != rank(best) || one.prefix == best.prefix;
    deployed.iter().all(is_same).then_some(best)
}

impl Cluster {
    /// The Deployments of a namespace; none of one that cannot exist.
    pub(in crate::cluster) async fn deployments_in(&self, namespace: &str) -> Result<Vec<DeploymentSummary>, ApiError> {
        let Ok(path) = ApiPath::in_namespace(ApiResource::DEPLOYMENTS, namespace) else { return Ok(Vec::new()) };
        let mut deployed = Vec::new();
        self.first(MAX_LISTED, &path, |text| deployed.extend(DeploymentSummary::read(text))).await?;
        Ok(deployed)
    }

    /// An operator's Deployment; `None` if none is known, or it was deleted.
    pub(in crate::cluster) async fn operator_deployment(
        &self,
        operator: &OperatorFact,
    ) -> Result<Option<DeploymentSummary>, ApiError> {
        let Some(name) = &operator.deployment else { return Ok(None) };
        let path = ApiPath::object(ApiResource::DEPLOYMENTS, &ObjectKey::new(&operator.namespace, name))?;
        Ok(self.get(&path).await?.and_then(|text| DeploymentSummary::read(&text)))
    }

    /// The operator in a namespace, if one of its accounts has the permission; `proven` accounts need no check.
    pub(in crate::cluster) async fn operator_in(
        &self,
        namespace: &str,
        proven: &[String],
        permissions: &PermissionCache,
    ) -> Result<Option<OperatorFact>, ApiError> {
        let Ok(path) = ApiPath::in_namespace(ApiResource::SERVICE_ACCOUNTS, namespace) else { return Ok(None) };
        let mut deployed = self.deployments_in(namespace).await?;
        deployed.sort_by_key(|one| (one.prefix.is_none(), one.name != DEFAULT_OPERATOR_NAME));
        let mut listed = Vec::new();
        self.first(MAX_LISTED, &path, |text| {
            listed.extend(ApiObject::read(text).map(|object| object.key.name().to_owned()));
        })
        .await?;
        // Accounts used by a Deployment come first.
        let mut candidates: Vec<String> = deployed.iter().map(|one| one.account.clone()).chain(listed).collect();
        let mut seen = BTreeSet::new();
        candidates.retain(|account| seen.insert(account.clone()) && !proven.contains(account));
        candidates.truncate(MAX_ACCOUNTS);
        let mut accounts = proven.to_vec();
        for account in candidates {
            if permissions.may(self, &UserInfo::account(namespace, &account), &Permission::RENDER).await? {
                accounts.push(account);
            }
        }
        accounts.sort_unstable();
        let own = find_operator_deployment(&deployed, &accounts);
        let (deployment, prefix) = (own.map(|own| own.name.clone()), own.and_then(|own| own.prefix.clone()));
        let operator = OperatorFact { namespace: namespace.to_owned(), accounts, deployment, prefix };
        Ok(Some(operator).filter(|operator| !operator.accounts.is_empty()))
    }

    /// The operators in those namespaces.
    async fn operators_in<'n>(
        &self,
        namespaces: impl IntoIterator<Item = &'n str>,
        proven: &BTreeMap<String, Vec<String>>,
        permissions: &PermissionCache,
    ) -> Result<Operators, ApiError> {
        let mut found = Vec::new();
        for namespace in namespaces {
            let proven = proven.get(namespace).map_or(&[][..], Vec::as_slice);
            found.extend(self.operator_in(namespace, proven, permissions).await?);
        }
        Ok(Operators::Known(found.into()))
    }

    /// The operator in the namespace named by the policy, which needs no check.
    async fn operator_named(&self, home: &str, policy: &Policy) -> Result<Operators, ApiError> {
        let account = policy.operator.service_account.clone().unwrap_or_else(|| DEFAULT_OPERATOR_NAME.to_owned());
        let deployed = self.deployments_in(home).await?;
        let accounts = vec![account];
        let own = find_operator_deployment(&deployed, &accounts);
        let (deployment, prefix) = (own.map(|own| own.name.clone()), own.and_then(|own| own.prefix.clone()));
        Ok(Operators::Known([OperatorFact { namespace: home.to_owned(), accounts, deployment, prefix }].into()))
    }

    /// Discovers the operators live, without caches.
    pub async fn operators(&self, policy: &Policy) -> Result<Operators, ApiError> {
        if let Some(home) = &policy.operator.namespace {
            return self.operator_named(home, policy).await;
        }
        let mut namespaces = BTreeSet::new();
        let collections = [
            ApiPath::all(ApiResource::OPERATOR_CONFIGS).well_known(OPERATOR_CONFIG),
            ApiPath::all(ApiResource::DEPLOYMENTS).well_known(DEFAULT_OPERATOR_NAME),
        ];
        for path in collections {
            let add = |text: &str| {
                namespaces.extend(ApiObject::read(text).map(|object| object.key.namespace().to_owned()));
            };
            self.for_each_object(&path, add).await?;
        }
        let namespaces = namespaces.iter().map(String::as_str);
        self.operators_in(namespaces, &BTreeMap::new(), &PermissionCache::default()).await
    }
}

/// The discovered operators and the permission cache of a server.
#[derive(Default)]
pub(in crate::cluster) struct Discovery {
    found: ArcSwap<Operators>,
    /// Accounts that proved their permission while writing, by namespace, with the time.
    proven_accounts: Mutex<BTreeMap<String, BTreeMap<String, Instant>>>,
    pub(in crate::cluster) permissions: PermissionCache,
    notifier: Arc<ChangeNotifier>,
    /// Whether discovery has run once.
    asked: CancellationToken,
}

impl Discovery {
    pub(in crate::cluster) fn new() -> Self {
        Self { found: ArcSwap::from_pointee(Operators::Unknown), ..Self::default() }
    }

    /// The last discovered operators.
    pub(in crate::cluster) fn found(&self) -> Operators {
        Operators::clone(&self.found.load())
    }

    /// Waits until discovery has run once.
    pub(in crate::cluster) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// The observer for changes that may affect operators.
    pub(in crate::cluster) fn notifier(&self) -> Arc<dyn WatchObserver> {
        Arc::clone(&self.notifier) as _
    }

    /// Keeps the operators up to date. `candidates` are namespaces that may have an operator, `None` while unknown.
    pub(in crate::cluster) async fn follow(
        &self,
        cluster: &Cluster,
        candidates: impl Fn() -> Option<Vec<String>> + Send + Sync,
    ) {
        let mut is_logged = false;
        loop {
            if let Some(candidates) = candidates() {
                let candidates = self.first_of(candidates);
                match cluster
                    .operators_in(candidates.iter().map(String::as_str), &self.proven_accounts(), &self.permissions)
                    .await
                {
                    Ok(found) => {
                        self.publish(found);
                        is_logged = false;
                    }
                    Err(error) if is_logged => debug!(%error, "failed to look for operators again"),
                    Err(error) => {
                        warn!(%error, "failed to look for operators; retrying");
                        is_logged = true;
                    }
                }
                self.asked.cancel();
            }
            sleep(MIN_INTERVAL).await;
            let _ = timeout(REFRESH_INTERVAL, self.notifier.notified()).await;
        }
    }

    /// The namespaces to check. Sorted by name at the end, so that the result is deterministic.
    fn first_of(&self, mut candidates: Vec<String>) -> Vec<String> {
        let found = self.found.load();
        candidates.sort_by_key(|namespace| {
            (found.in_namespace(namespace).is_none(), !is_default_operator_namespace(namespace))
        });
        candidates.truncate(MAX_NAMESPACES);
        candidates.sort_unstable();
        candidates
    }

    fn publish(&self, found: Operators) {
        if **self.found.load() != found {
            let namespaces: Vec<_> = found.known().iter().map(|operator| operator.namespace.as_str()).collect();
            let accounts: Vec<_> = found.known().iter().flat_map(|operator| &operator.accounts).cloned().collect();
            info!(namespaces = namespaces.join(", "), accounts = accounts.join(", "), "operators found");
            self.found.store(Arc::new(found));
        }
    }

    fn proven_accounts(&self) -> BTreeMap<String, Vec<String>> {
        let mut proven_accounts = self.proven_accounts.lock().unwrap_or_else(PoisonError::into_inner);
        proven_accounts.retain(|_, accounts| {
            accounts.retain(|_, at| at.elapsed() < PROOF_LIFETIME);
            !accounts.is_empty()
        });
        proven_accounts
            .iter()
            .map(|(namespace, accounts)| (namespace.clone(), accounts.keys().cloned().collect()))
            .collect()
    }

    /// Whether a writer may be an undiscovered operator: an account in a candidate namespace.
    pub(in crate::cluster) fn may_be_unknown_operator(
        &self,
        user: &str,
        is_candidate: impl FnOnce(&str) -> bool,
    ) -> bool {
        let Some((namespace, account)) = account_of(user) else { return false };
        let found = self.found.load();
        let is_known = found
            .in_namespace(namespace)
            .is_some_and(|operator| operator.accounts.iter().any(|known| known == account));
        !is_known && is_candidate(namespace)
    }

    /// Checks whether a writer has the operator's permission, and caches the answer.
    pub(in crate::cluster) async fn learn_operator(
        &self,
        cluster: &Cluster,
        user: &str,
        info: &UserInfo,
    ) -> Result<(), ApiError> {
        let Some((namespace, account)) = account_of(user) else { return Ok(()) };
        if !self.permissions.may(cluster, info, &Permission::RENDER).await? {
            return Ok(());
        }
        let proven = {
            let mut proven_accounts = self.proven_accounts.lock().unwrap_or_else(PoisonError::into_inner);
            let accounts = proven_accounts.entry(namespace.to_owned()).or_default();
            accounts.insert(account.to_owned(), Instant::now());
            accounts.keys().cloned().collect::<Vec<_>>()
        };
        let Some(operator) = cluster.operator_in(namespace, &proven, &self.permissions).await? else { return Ok(()) };
        let found = self.found();
        let others = found.known().iter().filter(|other| other.namespace != namespace).cloned();
        let mut all: Vec<OperatorFact> = others.chain([operator]).collect();
        all.sort_by(|one, other| one.namespace.cmp(&other.namespace));
        self.publish(Operators::Known(all.into()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployments_in(name: &str, account: &str, prefix: Option<&str>) -> DeploymentSummary {
        DeploymentSummary {
            name: name.to_owned(),
            account: account.to_owned(),
            prefix: prefix.map(str::to_owned),
            available: 0,
        }
    }

    #[test]
    fn operator_deployment_has_the_account_and_a_prefix() {
        let accounts = ["op".to_owned()];
        type Own = Option<(&'static str, Option<&'static str>)>;
        let table: [(&[DeploymentSummary], Own); 7] = [
            (&[], None),
            (&[deployments_in("web", "default", None)], None),
            (&[deployments_in("x", "op", None), deployments_in("web", "default", None)], Some(("x", None))),
            // NVIDIA's: two programs in one namespace, of which one sets the prefix.
            (
                &[
                    deployments_in("network-operator", "op", None),
                    deployments_in("network-operator-sriov", "op", Some("nvidia.com")),
                ],
                Some(("network-operator-sriov", Some("nvidia.com"))),
            ),
            (
                &[deployments_in("other", "default", Some("b.io")), deployments_in("x", "op", Some("a.io"))],
                Some(("x", Some("a.io"))),
            ),
            (&[deployments_in("x", "default", Some("a.io"))], Some(("x", Some("a.io")))),
            (&[deployments_in("x", "op", Some("a.io")), deployments_in("y", "op", Some("b.io"))], None),
        ];
        for (all, want) in table {
            let own = find_operator_deployment(all, &accounts);
            assert_eq!(own.map(|own| (own.name.as_str(), own.prefix.as_deref())), want, "{all:?}");
        }
    }

    #[test]
    fn summarizes_a_deployment_by_account_and_prefix() {
        let text = r#"{"metadata":{"name":"x"},"spec":{"template":{"spec":{"serviceAccountName":"op","containers":[
            {"env":[{"name":"RESOURCE_PREFIX","value":"a.io"}]}]}}},"status":{"availableReplicas":1}}"#;
        let want = DeploymentSummary { available: 1, ..deployments_in("x", "op", Some("a.io")) };
        assert_eq!(DeploymentSummary::read(text), Some(want));
        assert_eq!(DeploymentSummary::read(r#"{"metadata":{"name":"x"}}"#), Some(deployments_in("x", "default", None)));
        assert_eq!(DeploymentSummary::read("{}"), None);
    }
}
