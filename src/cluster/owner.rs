//! A network and its NAD: who owns it, and whether it is there.

use std::time::Duration;

use futures_util::future::{join_all, try_join, try_join_all};

use super::cache::Caches;
use super::facts::{Found, Question, Source, Unavailable};
use super::rights::{Right, Rights, User};
use super::{Cluster, Failed, address};
use crate::policy::rules::drift::is_rendering;
use crate::policy::{
    Facts, Lookup, Names, NetworkFact, Operators, Policy, Prefix, Wanted, account_of, is_usual_namespace,
};
use crate::resources::{Meta, NAD_GROUP, NADS, NETWORK_GROUP, Nad, NetworkId, NetworkKind, Object};

/// How many namespaces with a network of the wanted name are asked about, where no operator is known.
const MOST_NAMESPACES: usize = 8;

/// A cluster of which nothing is watched, and the operators that were found in it.
pub(super) struct Unwatched<'a> {
    /// Who is asked.
    pub(super) cluster: &'a Cluster,
    /// The operators.
    pub(super) operators: &'a Operators,
}

impl Source for Unwatched<'_> {
    fn known(&self, _: &Object<'_>) -> Facts {
        Facts { operators: self.operators.clone(), ..Facts::default() }
    }

    fn operators(&self) -> Operators {
        self.operators.clone()
    }

    fn find<'a>(&'a self, facts: Facts, question: Question<'a>, within: Duration) -> Found<'a> {
        self.cluster.find_beside(None, facts, question, within)
    }
}

impl Cluster {
    /// Finds what is wanted; what the caches know well enough is not asked for.
    pub(super) fn find_beside<'a>(
        &'a self,
        caches: Option<&'a Caches>,
        facts: Facts,
        question: Question<'a>,
        within: Duration,
    ) -> Found<'a> {
        Box::pin(async move {
            let asked = async {
                let _one = self.live_reads.acquire().await;
                self.ask(caches, facts, question).await
            };
            match tokio::time::timeout(within, asked).await {
                Ok(Ok(facts)) => Ok(Some(facts)),
                Ok(Err(failed)) => Err(failed.into()),
                Err(_) => Err(Unavailable(format!("the API server did not answer within {within:.1?}"))),
            }
        })
    }

    async fn ask(&self, caches: Option<&Caches>, facts: Facts, question: Question<'_>) -> Result<Facts, Failed> {
        let Question { subject, wanted, policy, .. } = question;
        let meta = subject.object.meta();
        match wanted {
            Wanted::Owner { named: Some(id), .. } => {
                // Whether the prefix is wanted too is known only with the owner; asking for both at once saves a round trip.
                let prefix = self.prefix(policy, &facts.operators, &id.namespace, caches);
                let (named_owner, prefix) = try_join(self.network(id), prefix).await?;
                Ok(Facts { named_owner, prefix, ..facts })
            }
            Wanted::Owner { named: None, kinds, .. } => {
                let mut homes = policy.operator_namespaces(&facts);
                if homes.is_empty() {
                    homes.extend(self.writers_home(&question, caches).await?);
                }
                let (networks_here, prefix) = if homes.is_empty() {
                    self.networks_anywhere(meta, kinds, policy, caches).await?
                } else {
                    let networks = self.networks_of(meta, kinds, &homes, caches);
                    // Of one operator the prefix can be asked for at once, too.
                    if let [home] = homes[..] {
                        try_join(networks, self.prefix(policy, &facts.operators, home, caches)).await?
                    } else {
                        self.with_prefix(networks.await?, policy, &facts.operators, caches).await?
                    }
                };
                Ok(Facts { networks_here, knows_networks: true, prefix, ..facts })
            }
            Wanted::LastNad { namespace } => Ok(Facts { last_nad: self.nad(namespace, &meta.name).await?, ..facts }),
            Wanted::Claimants { networks } => {
                let found = try_join_all(networks.iter().map(|id| self.network(id))).await?;
                let named = subject.object.meta().owner();
                let named = networks.iter().position(|id| Some(id) == named.as_ref());
                let named_owner = named.and_then(|at| found.get(at)).cloned().unwrap_or_default();
                let here = found.into_iter().filter_map(|network| match network {
                    Lookup::Found(network) => Some(network),
                    Lookup::Unknown | Lookup::Absent => None,
                });
                let mut claimants: Vec<_> = here
                    .filter(|found| found.target_namespace == meta.namespace && found.id.name == meta.name)
                    .collect();
                claimants.dedup();
                Ok(Facts { claimants: Some(claimants), claimants_read: true, named_owner, ..facts })
            }
            Wanted::Names(hidden) => {
                let Some(user) = question.user.and_then(User::of_review) else { return Ok(facts) };
                let unkept = Rights::default();
                let rights = caches.map_or(&unkept, Caches::rights);
                let mut named = Vec::new();
                for reference in hidden {
                    if rights.may(self, &user, &Right::to_read(reference)).await? {
                        named.push(reference.clone());
                    }
                }
                Ok(Facts { names: Names::Own(named), ..facts })
            }
        }
    }

    /// The namespace of the writer, where it has the right that an operator has.
    async fn writers_home<'q>(
        &self,
        question: &Question<'q>,
        caches: Option<&Caches>,
    ) -> Result<Option<&'q str>, Failed> {
        let home = question.subject.writer.and_then(account_of).map(|(namespace, _)| namespace);
        let (Some(home), Some(user), Some(caches)) = (home, question.user.and_then(User::of_review), caches) else {
            return Ok(None);
        };
        Ok(caches.rights().may(self, &user, &Right::RENDER).await?.then_some(home))
    }

    /// Whether a NAD is what a live network renders to: the one it names, or one that renders to its place.
    pub(super) async fn is_rendered(&self, nad: &Nad<'_>, facts: &Facts, policy: &Policy) -> Result<bool, Failed> {
        let owner = nad.meta.owner();
        let claimants = facts.renderers(policy, &nad.meta.namespace);
        let claimants = claimants.into_iter().map(|network| network.id.clone());
        for id in owner.clone().into_iter().chain(claimants.filter(|_| owner.is_none())) {
            let (Some(namespace), Some(name)) = (segment(&id.namespace), segment(&id.name)) else { continue };
            let Some(text) = self.get(&address(NETWORK_GROUP, id.kind.plural(), namespace, name)).await? else {
                continue;
            };
            if let Ok(Some(Object::Network(network))) = Object::read(&text)
                && network.target_namespace() == nad.meta.namespace
                && network.meta.name == nad.meta.name
                && policy.may_render(&NetworkFact::of(&network), &nad.meta.namespace, facts)
                && is_rendering(&network, nad, facts)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn network(&self, id: &NetworkId) -> Result<Lookup<NetworkFact>, Failed> {
        let (Some(namespace), Some(name)) = (segment(&id.namespace), segment(&id.name)) else {
            return Ok(Lookup::Absent);
        };
        let path = address(NETWORK_GROUP, id.kind.plural(), namespace, name);
        let Some(text) = self.get(&path).await? else { return Ok(Lookup::Absent) };
        match Object::read(&text) {
            // One that is being deleted still owns what was rendered from it.
            Ok(Some(Object::Network(network))) => Ok(Lookup::Found(NetworkFact::of(&network))),
            _ => Err(Failed::Unexpected),
        }
    }

    async fn nad(&self, namespace: &str, name: &str) -> Result<Lookup<()>, Failed> {
        let (Some(namespace), Some(name)) = (segment(namespace), segment(name)) else { return Ok(Lookup::Unknown) };
        let path = address(NAD_GROUP, NADS, namespace, name);
        Ok(self.get(&path).await?.map_or(Lookup::Absent, |_| Lookup::Found(())))
    }

    /// The networks in the NAD's namespace or the operator's that render it: only those in the operator's may render to another.
    /// Each is asked for by its name, as a list waits up to a tenth of a second until the API server's cache has caught up, and
    /// every write of the operator would wait with it. Where there is one in the operator's, and the caches know of none beside the
    /// NAD, nobody is asked for another.
    async fn networks_of(
        &self,
        nad: &Meta<'_>,
        kinds: &[NetworkKind],
        homes: &[&str],
        caches: Option<&Caches>,
    ) -> Result<Vec<NetworkFact>, Failed> {
        let homes: Vec<_> = homes.iter().copied().filter(|home| *home != nad.namespace).collect();
        if !homes.is_empty() && caches.is_some_and(|caches| caches.has_none_at(kinds, &nad.namespace, &nad.name)) {
            let found = self.networks_in(nad, kinds, &homes).await?;
            if !found.is_empty() {
                return Ok(found);
            }
            return self.networks_in(nad, kinds, &[&nad.namespace]).await;
        }
        let all: Vec<_> = std::iter::once(&*nad.namespace).chain(homes).collect();
        self.networks_in(nad, kinds, &all).await
    }

    /// The networks in those namespaces that render a NAD.
    async fn networks_in(
        &self,
        nad: &Meta<'_>,
        kinds: &[NetworkKind],
        namespaces: &[&str],
    ) -> Result<Vec<NetworkFact>, Failed> {
        let ids = namespaces.iter().flat_map(|namespace| {
            let id = |kind| NetworkId { kind, namespace: (*namespace).to_owned(), name: nad.name.clone().into_owned() };
            kinds.iter().copied().map(id)
        });
        let found = try_join_all(ids.map(|id| async move { self.network(&id).await })).await?;
        let networks = found.into_iter().filter_map(|network| match network {
            Lookup::Found(network) => Some(network),
            Lookup::Unknown | Lookup::Absent => None,
        });
        Ok(networks.filter(|network| network.target_namespace == nad.namespace).collect())
    }

    /// The same where no operator is known: networks of that name beside the NAD, and those elsewhere whose namespace has an account
    /// with the right that an operator has. Anybody may create a network that names this namespace.
    async fn networks_anywhere(
        &self,
        nad: &Meta<'_>,
        kinds: &[NetworkKind],
        policy: &Policy,
        caches: Option<&Caches>,
    ) -> Result<(Vec<NetworkFact>, Option<Prefix>), Failed> {
        let unkept = Rights::default();
        let rights = caches.map_or(&unkept, Caches::rights);
        let mut listed = self.listed(&nad.name, kinds).await?;
        listed.retain(|network| network.target_namespace == nad.namespace);
        listed.sort_by_key(|network| !is_usual_namespace(&network.id.namespace));
        let (mut networks, mut operators) = (Vec::new(), Vec::new());
        for network in listed.into_iter().take(MOST_NAMESPACES) {
            let operator = self.operator_in(&network.id.namespace, &[], rights).await?;
            if network.id.namespace == nad.namespace || operator.is_some() {
                networks.push(network);
            }
            operators.extend(operator);
        }
        let operators = Operators::Known(operators.into());
        self.with_prefix(networks, policy, &operators, caches).await
    }

    /// The networks, and the prefix for the first of them.
    async fn with_prefix(
        &self,
        networks: Vec<NetworkFact>,
        policy: &Policy,
        operators: &Operators,
        caches: Option<&Caches>,
    ) -> Result<(Vec<NetworkFact>, Option<Prefix>), Failed> {
        let prefix = match networks.first() {
            Some(network) => self.prefix(policy, operators, &network.id.namespace, caches).await?,
            None => None,
        };
        Ok((networks, prefix))
    }

    /// The networks of that name, wherever they are.
    pub(super) async fn listed(&self, name: &str, kinds: &[NetworkKind]) -> Result<Vec<NetworkFact>, Failed> {
        // Where the server still has to make a name up, no network can have it.
        let Some(name) = segment(name) else { return Ok(Vec::new()) };
        let lists = kinds.iter().map(|kind| async move {
            let path = format!("/apis/{NETWORK_GROUP}/v1/{}?fieldSelector=metadata.name%3D{name}", kind.plural());
            self.get(&path).await
        });
        let mut networks = Vec::new();
        for list in join_all(lists).await {
            let Some(text) = list? else { continue };
            let items = Object::read_list(&text).map_err(|_| Failed::Unexpected)?;
            networks.extend(items.iter().filter_map(|item| match item {
                Object::Network(network) => Some(NetworkFact::of(network)),
                Object::Nad(_) => None,
            }));
        }
        Ok(networks)
    }
}

/// A name as a part of an address, if it can be one: an owner reference is anybody's text.
pub(super) fn segment(name: &str) -> Option<&str> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_plain = !name.is_empty() && name.len() <= 253 && name.bytes().all(is_name) && !name.starts_with('.');
    is_plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_lead_elsewhere() {
        for good in ["a", "net-1", "a.b"] {
            assert!(segment(good).is_some(), "{good}");
        }
        for bad in ["", "..", "a/b", "a?b", "a%2fb", "a b", "é", &"a".repeat(300)] {
            assert!(segment(bad).is_none(), "{bad}");
        }
    }
}
