//! A network and its NAD: who owns it, and whether it is there.

use std::time::Duration;

use futures_util::future::{join_all, try_join};

use super::facts::{Found, Question, Source, Unavailable};
use super::{Cluster, Failed};
use crate::policy::{Facts, Lookup, NetworkFact, Wanted};
use crate::resources::{NAD_GROUP, NETWORK_GROUP, NetworkId, NetworkKind, Object};

impl Source for Cluster {
    fn known(&self, _: &Object<'_>) -> Facts {
        Facts::default()
    }

    fn find<'a>(&'a self, facts: Facts, question: Question<'a>, within: Duration) -> Found<'a> {
        Box::pin(async move {
            match tokio::time::timeout(within, self.ask(facts, question)).await {
                Ok(Ok(facts)) => Ok(Some(facts)),
                Ok(Err(failed)) => Err(Unavailable(failed.to_string())),
                Err(_) => Err(Unavailable(format!("the API server did not answer within {within:.1?}"))),
            }
        })
    }
}

impl Cluster {
    async fn ask(&self, facts: Facts, question: Question<'_>) -> Result<Facts, Failed> {
        let Question { object, wanted, policy } = question;
        match wanted {
            Wanted::Owner { named: Some(id), .. } => {
                // Whether the prefix is wanted too is known only with the owner; asking for both at once saves a round trip.
                let prefix = self.prefix(policy, &id.namespace);
                let (named_owner, prefix) = try_join(self.network(id), prefix).await?;
                Ok(Facts { named_owner, prefix, ..facts })
            }
            Wanted::Owner { named: None, .. } => {
                let meta = object.meta();
                let networks_here = self.networks_of(&meta.name, &meta.namespace).await?;
                let prefix = match networks_here.first() {
                    Some(network) => self.prefix(policy, &network.id.namespace).await?,
                    None => None,
                };
                Ok(Facts { networks_here, knows_networks: true, prefix, ..facts })
            }
            Wanted::LastNad { namespace } => {
                Ok(Facts { last_nad: self.nad(namespace, &object.meta().name).await?, ..facts })
            }
        }
    }

    async fn network(&self, id: &NetworkId) -> Result<Lookup<NetworkFact>, Failed> {
        let (Some(namespace), Some(name)) = (segment(&id.namespace), segment(&id.name)) else {
            return Ok(Lookup::Absent);
        };
        let path = format!("/apis/{NETWORK_GROUP}/v1/namespaces/{namespace}/{}/{name}", id.kind.plural());
        let Some(text) = self.get(&path).await? else { return Ok(Lookup::Absent) };
        match Object::read(&text) {
            // One that is being deleted still owns what was rendered from it.
            Ok(Some(Object::Network(network))) => Ok(Lookup::Found(NetworkFact::of(&network))),
            _ => Err(Failed::Unexpected),
        }
    }

    async fn nad(&self, namespace: &str, name: &str) -> Result<Lookup<()>, Failed> {
        let (Some(namespace), Some(name)) = (segment(namespace), segment(name)) else { return Ok(Lookup::Unknown) };
        let path = format!("/apis/{NAD_GROUP}/v1/namespaces/{namespace}/network-attachment-definitions/{name}");
        Ok(self.get(&path).await?.map_or(Lookup::Absent, |_| Lookup::Found(())))
    }

    /// The networks of that name that render to that namespace, wherever they are.
    async fn networks_of(&self, name: &str, namespace: &str) -> Result<Vec<NetworkFact>, Failed> {
        // Where the server still has to make a name up, no network can have it.
        let Some(name) = segment(name) else { return Ok(Vec::new()) };
        let lists = NetworkKind::ALL.map(|kind| async move {
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
        networks.retain(|network| network.target_namespace == namespace);
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
