//! Which operators a cluster has: proven by what their accounts may do, never by what anything is called.
//!
//! ```text
//!  SriovOperatorConfig `default` ─┐
//!  Deployment of the usual name  ─┴► namespaces ─► their accounts ─► may they create NADs in all namespaces?
//! ```
//!
//! All of that can be made by a tenant, but for the last answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::collection::Id;
use super::owner::segment;
use super::prefix::{available, stated};
use super::rights::{Right, Rights, User};
use super::witness::Witness;
use super::{Cluster, Failed};
use crate::policy::{OperatorFact, Operators, Policy, USUAL_NAME, account_of, is_usual_namespace};
use crate::resources::NETWORK_GROUP;

/// Rights change without anybody telling.
const REFRESH: Duration = Duration::from_secs(30);
/// However often something changes.
const APART: Duration = Duration::from_secs(2);
/// How many Deployments and accounts of one namespace are listed, and how many of those accounts are asked about. A tenant may have
/// made any number of them; those that a Deployment with a prefix runs with come first.
const MOST_LISTED: usize = 100;
const MOST_ACCOUNTS: usize = 16;
/// How many namespaces are looked at. Those where an operator was found before come first.
const MOST_NAMESPACES: usize = 32;
/// How long an account that proved its right while writing counts as an operator's without proving it again.
const LEARNED: Duration = Duration::from_secs(600);

/// A Deployment, as far as it matters here.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Deployed {
    pub(super) name: String,
    pub(super) account: String,
    pub(super) prefix: Option<String>,
    pub(super) available: i64,
}

impl Deployed {
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

/// The Deployment that is the operator's: the one with a proven account that states a prefix, else one that states a prefix, else one
/// with a proven account. Whoever may create a Deployment in this namespace may also let it run with the operator's account.
pub(super) fn operators_own<'d>(deployed: &'d [Deployed], accounts: &[String]) -> Option<&'d Deployed> {
    let rank = |one: &Deployed| (one.prefix.is_some(), accounts.contains(&one.account), one.name == USUAL_NAME);
    let best = deployed.iter().max_by_key(|one| rank(one)).filter(|best| best.prefix.is_some() || rank(best).1)?;
    // Where two that are equally likely contradict each other, nobody knows.
    let is_same = |one: &Deployed| rank(one) != rank(best) || one.prefix == best.prefix;
    deployed.iter().all(is_same).then_some(best)
}

impl Cluster {
    /// The Deployments of a namespace.
    pub(super) async fn deployed(&self, namespace: &str) -> Result<Vec<Deployed>, Failed> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        let mut deployed = Vec::new();
        self.first(MOST_LISTED, &path, "", |text| deployed.extend(Deployed::read(text))).await?;
        Ok(deployed)
    }

    /// The operator in a namespace, if one of the accounts there has the right; `proven` have proven it already.
    pub(super) async fn operator_in(
        &self,
        namespace: &str,
        proven: &[String],
        rights: &Rights,
    ) -> Result<Option<OperatorFact>, Failed> {
        let Some(namespace) = segment(namespace) else { return Ok(None) };
        let mut deployed = self.deployed(namespace).await?;
        deployed.sort_by_key(|one| (one.prefix.is_none(), one.name != USUAL_NAME));
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let mut listed = Vec::new();
        self.first(MOST_LISTED, &path, "", |text| listed.extend(Id::of(text).map(|id| id.name.into_owned()))).await?;
        // Those that something runs with come first: an operator does.
        let mut candidates: Vec<String> = deployed.iter().map(|one| one.account.clone()).chain(listed).collect();
        let mut seen = BTreeSet::new();
        candidates.retain(|account| seen.insert(account.clone()) && !proven.contains(account));
        candidates.truncate(MOST_ACCOUNTS);
        let mut accounts = proven.to_vec();
        for account in candidates {
            if rights.may(self, &User::account(namespace, &account), &Right::RENDER).await? {
                accounts.push(account);
            }
        }
        accounts.sort_unstable();
        let own = operators_own(&deployed, &accounts);
        let (deployment, prefix) = (own.map(|own| own.name.clone()), own.and_then(|own| own.prefix.clone()));
        let operator = OperatorFact { namespace: namespace.to_owned(), accounts, deployment, prefix };
        Ok(Some(operator).filter(|operator| !operator.accounts.is_empty()))
    }

    /// The operators in those namespaces.
    async fn operators_in<'n>(
        &self,
        namespaces: impl IntoIterator<Item = &'n str>,
        proven: &BTreeMap<String, Vec<String>>,
        rights: &Rights,
    ) -> Result<Operators, Failed> {
        let mut found = Vec::new();
        for namespace in namespaces {
            let proven = proven.get(namespace).map_or(&[][..], Vec::as_slice);
            found.extend(self.operator_in(namespace, proven, rights).await?);
        }
        Ok(Operators::Known(found.into()))
    }

    /// The operator in the namespace that the policy names: its word needs no proof.
    async fn operator_named(&self, home: &str, policy: &Policy) -> Result<Operators, Failed> {
        let account = policy.operator.service_account.clone().unwrap_or_else(|| USUAL_NAME.to_owned());
        let deployed = match segment(home) {
            Some(home) => self.deployed(home).await?,
            None => Vec::new(),
        };
        let accounts = vec![account];
        let own = operators_own(&deployed, &accounts);
        let (deployment, prefix) = (own.map(|own| own.name.clone()), own.and_then(|own| own.prefix.clone()));
        Ok(Operators::Known([OperatorFact { namespace: home.to_owned(), accounts, deployment, prefix }].into()))
    }

    /// The operators as they are now, for whoever watches nothing.
    pub async fn operators(&self, policy: &Policy) -> Result<Operators, Failed> {
        if let Some(home) = &policy.operator.namespace {
            return self.operator_named(home, policy).await;
        }
        let mut namespaces = BTreeSet::new();
        let collections = [
            (format!("/apis/{NETWORK_GROUP}/v1/sriovoperatorconfigs"), "default"),
            ("/apis/apps/v1/deployments".to_owned(), USUAL_NAME),
        ];
        for (address, name) in collections {
            let add = |text: &str| namespaces.extend(Id::of(text).map(|id| id.namespace.into_owned()));
            self.each(&address, &format!("&fieldSelector=metadata.name%3D{name}"), add).await?;
        }
        let namespaces = namespaces.iter().map(String::as_str);
        self.operators_in(namespaces, &BTreeMap::new(), &Rights::default()).await
    }
}

/// The operators as they are known to a server, and what users may do.
#[derive(Default)]
pub(super) struct Discovery {
    found: ArcSwap<Operators>,
    /// Accounts that proved their right while writing, by namespace, and when.
    learned: Mutex<BTreeMap<String, BTreeMap<String, Instant>>>,
    pub(super) rights: Rights,
    bell: Arc<Bell>,
    /// Whether the cluster was asked once.
    asked: CancellationToken,
}

impl Discovery {
    pub(super) fn new() -> Self {
        Self { found: ArcSwap::from_pointee(Operators::Unknown), ..Self::default() }
    }

    /// What was found last.
    pub(super) fn found(&self) -> Operators {
        Operators::clone(&self.found.load())
    }

    /// Waits until the cluster was asked once.
    pub(super) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Who is to see changes that may concern operators.
    pub(super) fn bell(&self) -> Arc<dyn Witness> {
        Arc::clone(&self.bell) as _
    }

    /// Keeps what is found up to date. `candidates` are the namespaces that may have an operator, `None` while that is not known.
    pub(super) async fn follow(&self, cluster: &Cluster, candidates: impl Fn() -> Option<Vec<String>> + Send + Sync) {
        let mut is_told = false;
        loop {
            if let Some(candidates) = candidates() {
                let candidates = self.first_of(candidates);
                match cluster.operators_in(candidates.iter().map(String::as_str), &self.learned(), &self.rights).await {
                    Ok(found) => {
                        self.take(found);
                        is_told = false;
                    }
                    Err(error) if is_told => debug!(%error, "failed to look for operators again"),
                    Err(error) => {
                        warn!(%error, "failed to look for operators; retrying");
                        is_told = true;
                    }
                }
                self.asked.cancel();
            }
            sleep(APART).await;
            let _ = timeout(REFRESH, self.bell.0.notified()).await;
        }
    }

    /// The namespaces that are looked at, of those that may have an operator. Their order is that of their names in the end, so that
    /// what is found is the same each time.
    fn first_of(&self, mut candidates: Vec<String>) -> Vec<String> {
        let found = self.found.load();
        candidates.sort_by_key(|namespace| (found.in_namespace(namespace).is_none(), !is_usual_namespace(namespace)));
        candidates.truncate(MOST_NAMESPACES);
        candidates.sort_unstable();
        candidates
    }

    fn take(&self, found: Operators) {
        if **self.found.load() != found {
            let namespaces: Vec<_> = found.known().iter().map(|operator| operator.namespace.as_str()).collect();
            let accounts: Vec<_> = found.known().iter().flat_map(|operator| &operator.accounts).cloned().collect();
            info!(namespaces = namespaces.join(", "), accounts = accounts.join(", "), "operators found");
            self.found.store(Arc::new(found));
        }
    }

    fn learned(&self) -> BTreeMap<String, Vec<String>> {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.retain(|_, accounts| {
            accounts.retain(|_, at| at.elapsed() < LEARNED);
            !accounts.is_empty()
        });
        learned.iter().map(|(namespace, accounts)| (namespace.clone(), accounts.keys().cloned().collect())).collect()
    }

    /// Whether a writer may be an operator that was not found yet: an account in a namespace that may have one.
    pub(super) fn may_be_new(&self, user: &str, is_candidate: impl FnOnce(&str) -> bool) -> bool {
        let Some((namespace, account)) = account_of(user) else { return false };
        let found = self.found.load();
        let is_known = found
            .in_namespace(namespace)
            .is_some_and(|operator| operator.accounts.iter().any(|known| known == account));
        !is_known && is_candidate(namespace)
    }

    /// Asks whether a writer has the operator's right, and knows it from now on.
    pub(super) async fn learn(&self, cluster: &Cluster, user: &str, info: &User) -> Result<(), Failed> {
        let Some((namespace, account)) = account_of(user) else { return Ok(()) };
        if !self.rights.may(cluster, info, &Right::RENDER).await? {
            return Ok(());
        }
        let proven = {
            let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
            let accounts = learned.entry(namespace.to_owned()).or_default();
            accounts.insert(account.to_owned(), Instant::now());
            accounts.keys().cloned().collect::<Vec<_>>()
        };
        let Some(operator) = cluster.operator_in(namespace, &proven, &self.rights).await? else { return Ok(()) };
        let found = self.found();
        let others = found.known().iter().filter(|other| other.namespace != namespace).cloned();
        let mut all: Vec<OperatorFact> = others.chain([operator]).collect();
        all.sort_by(|one, other| one.namespace.cmp(&other.namespace));
        self.take(Operators::Known(all.into()));
        Ok(())
    }
}

/// Rings when something changes that may concern operators.
#[derive(Default)]
struct Bell(Notify);

impl Witness for Bell {
    fn saw(&self, _: &'static str, _: &str, _: &str, _: &str) {
        self.0.notify_one();
    }

    fn lost(&self, _: &'static str, _: &str, _: &str, _: &str) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployed(name: &str, account: &str, prefix: Option<&str>) -> Deployed {
        Deployed { name: name.to_owned(), account: account.to_owned(), prefix: prefix.map(str::to_owned), available: 0 }
    }

    #[test]
    fn the_operators_deployment_is_the_one_with_its_account_and_a_prefix() {
        let accounts = ["op".to_owned()];
        type Own = Option<(&'static str, Option<&'static str>)>;
        let table: [(&[Deployed], Own); 7] = [
            (&[], None),
            (&[deployed("web", "default", None)], None),
            (&[deployed("x", "op", None), deployed("web", "default", None)], Some(("x", None))),
            // NVIDIA's: two programs in one namespace, of which one states the prefix.
            (
                &[
                    deployed("network-operator", "op", None),
                    deployed("network-operator-sriov", "op", Some("nvidia.com")),
                ],
                Some(("network-operator-sriov", Some("nvidia.com"))),
            ),
            (
                &[deployed("other", "default", Some("b.io")), deployed("x", "op", Some("a.io"))],
                Some(("x", Some("a.io"))),
            ),
            (&[deployed("x", "default", Some("a.io"))], Some(("x", Some("a.io")))),
            (&[deployed("x", "op", Some("a.io")), deployed("y", "op", Some("b.io"))], None),
        ];
        for (all, want) in table {
            let own = operators_own(all, &accounts);
            assert_eq!(own.map(|own| (own.name.as_str(), own.prefix.as_deref())), want, "{all:?}");
        }
    }

    #[test]
    fn of_a_deployment_its_account_and_its_prefix_are_read() {
        let text = r#"{"metadata":{"name":"x"},"spec":{"template":{"spec":{"serviceAccountName":"op","containers":[
            {"env":[{"name":"RESOURCE_PREFIX","value":"a.io"}]}]}}},"status":{"availableReplicas":1}}"#;
        let want = Deployed { available: 1, ..deployed("x", "op", Some("a.io")) };
        assert_eq!(Deployed::read(text), Some(want));
        assert_eq!(Deployed::read(r#"{"metadata":{"name":"x"}}"#), Some(deployed("x", "default", None)));
        assert_eq!(Deployed::read("{}"), None);
    }
}
