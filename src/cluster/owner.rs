//! A network and its NAD: who owns it, and whether it is there.

use std::time::Duration;

use futures_util::future::{join_all, try_join, try_join_all};

use super::cache::Caches;
use super::facts::{Found, Question, Source, Unavailable};
use super::{Cluster, Failed, address};
use crate::policy::{Facts, Lookup, NetworkFact, Policy, Prefix, USUAL_NAMESPACES, Wanted};
use crate::resources::{Meta, NAD_GROUP, NADS, NETWORK_GROUP, NetworkId, NetworkKind, Object};

impl Source for Cluster {
    fn known(&self, _: &Object<'_>) -> Facts {
        Facts::default()
    }

    fn find<'a>(&'a self, facts: Facts, question: Question<'a>, within: Duration) -> Found<'a> {
        self.find_beside(None, facts, question, within)
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
            match tokio::time::timeout(within, self.ask(caches, facts, question)).await {
                Ok(Ok(facts)) => Ok(Some(facts)),
                Ok(Err(failed)) => Err(Unavailable(failed.to_string())),
                Err(_) => Err(Unavailable(format!("the API server did not answer within {within:.1?}"))),
            }
        })
    }

    async fn ask(&self, caches: Option<&Caches>, facts: Facts, question: Question<'_>) -> Result<Facts, Failed> {
        let Question { subject, wanted, policy } = question;
        let meta = subject.object.meta();
        match wanted {
            Wanted::Owner { named: Some(id), .. } => {
                // Whether the prefix is wanted too is known only with the owner; asking for both at once saves a round trip.
                let prefix = self.prefix(policy, &id.namespace, caches);
                let (named_owner, prefix) = try_join(self.network(id), prefix).await?;
                Ok(Facts { named_owner, prefix, ..facts })
            }
            Wanted::Owner { named: None, kinds, .. } => {
                let discovered = facts.operator_namespace.as_deref();
                let home = policy.operator.namespace.as_deref().or(discovered);
                let home = home.or_else(|| policy.home_of(subject.writer?, None));
                let (networks_here, prefix) = match home {
                    Some(home) => {
                        let homes = [home];
                        let networks = self.networks_of(meta, kinds, &homes, caches);
                        try_join(networks, self.prefix(policy, home, caches)).await?
                    }
                    None => self.networks_anywhere(meta, kinds, policy, caches).await?,
                };
                Ok(Facts { networks_here, knows_networks: true, prefix, ..facts })
            }
            Wanted::LastNad { namespace } => Ok(Facts { last_nad: self.nad(namespace, &meta.name).await?, ..facts }),
        }
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

    /// The same where nobody knows the operator's namespace: the usual ones are looked at first, then all there are.
    async fn networks_anywhere(
        &self,
        nad: &Meta<'_>,
        kinds: &[NetworkKind],
        policy: &Policy,
        caches: Option<&Caches>,
    ) -> Result<(Vec<NetworkFact>, Option<Prefix>), Failed> {
        let mut networks = self.networks_of(nad, kinds, &USUAL_NAMESPACES, caches).await?;
        if networks.is_empty() {
            networks = self.listed(&nad.name, kinds).await?;
            networks.retain(|network| network.target_namespace == nad.namespace);
        }
        let prefix = match networks.first() {
            Some(network) => self.prefix(policy, &network.id.namespace, caches).await?,
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
