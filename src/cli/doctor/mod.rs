//! `nadmit doctor`.

mod canary;
mod show;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tokio::time::{Instant, sleep};

use super::colour::Colours;
use super::connection::{Connection, wait_for};
use super::serve::duration;
use super::showing::read_policy;
use super::{CLEAN, DENIED, TOO_LATE, print};
use crate::audit::chain::{Chain, State};
use crate::cluster::{Cluster, Failed, Stirs};
use crate::policy::Policy;
use crate::resources::{NetworkId, NetworkKind, Object};
use crate::visible;

/// How long after a look comes the next where nothing stirs: not everything is watched.
const LOOK: Duration = Duration::from_secs(2);
/// The shortest time between two looks, however much stirs.
const BREATH: Duration = Duration::from_millis(250);

/// Follow the chain from a network to the device that a pod gets, and say where it breaks
///
/// The network, what the operator makes of it, the namespace that goes to, the operator, the NAD, its resourceName, the node policies that
/// offer it, and the nodes that have it. What this user may not read is unknown, and the right that is missing is named.
///
/// Exit code 0: healthy. 1: not healthy. 2: wrong arguments, or the cluster cannot be asked. 3: not healthy within --wait.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// The network: KIND/NAMESPACE/NAME, NAMESPACE/NAME for a SriovNetwork, or a NAME that only one has
    #[arg(required_unless_present = "canary", conflicts_with = "canary")]
    network: Option<Named>,
    /// Wait so long for a healthy network, such as 60s or 2m; with --canary, for the operator's answer [default: do not wait; with
    /// --canary 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    /// Create a throw-away network in a namespace of its own, time the operator's answer, and remove both
    #[arg(long)]
    canary: bool,
    /// The resourceName of the canary [default: the first that a node policy offers]
    #[arg(long, value_name = "NAME", requires = "canary", conflicts_with = "network")]
    resource_name: Option<String>,
    /// Do not ask before the canary is created
    #[arg(long, short, requires = "canary", conflicts_with = "network")]
    yes: bool,
    /// How to show what was found
    #[arg(long, short, value_enum, default_value_t = Output::Human)]
    output: Output,
    /// The policy file
    #[arg(long, env = "NADMIT_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    colours: Colours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line for each link, and what to do where it breaks
    Human,
    /// One JSON document
    Json,
}

/// A network as it is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    kind: Option<NetworkKind>,
    namespace: Option<String>,
    name: String,
}

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_name = |part: &&str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
        };
        let (kind, names) = match parts.as_slice() {
            [kind, names @ ..] if names.len() == 2 => (Some(*kind), names),
            names => (None, names),
        };
        let kind = match kind {
            Some(kind) => Some(kind_of(kind).ok_or_else(|| {
                format!("`{kind}` is no kind of network: write SriovNetwork, SriovIBNetwork or OVSNetwork")
            })?),
            None => None,
        };
        match names {
            [namespace, name] if names.iter().all(is_name) => {
                let kind = kind.or(Some(NetworkKind::Sriov));
                Ok(Self { kind, namespace: Some((*namespace).to_owned()), name: (*name).to_owned() })
            }
            [name] if is_name(name) => Ok(Self { kind, namespace: None, name: (*name).to_owned() }),
            _ => Err("write KIND/NAMESPACE/NAME, NAMESPACE/NAME or NAME".to_owned()),
        }
    }
}

/// A kind as people write it: `SriovNetwork`, `sriovnetwork`, `sriovnetworks`.
fn kind_of(text: &str) -> Option<NetworkKind> {
    let text = text.to_lowercase();
    NetworkKind::ALL.into_iter().find(|kind| text == kind.plural() || text == kind.name().to_lowercase())
}

impl Doctor {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let policy = read_policy(self.policy.as_deref())?;
        wait_for(async {
            let cluster = self.connection.connect().await?;
            match &self.network {
                Some(named) => self.examine(&cluster, named, &policy).await,
                None => self.send_canary(&cluster, &policy).await,
            }
        })
    }

    async fn examine(&self, cluster: &Cluster, named: &Named, policy: &Policy) -> anyhow::Result<u8> {
        let mut patient = Patient::new(cluster, policy);
        let began = Instant::now();
        patient.look(named).await?;
        while let Some(wait) = self.wait
            && patient.state() != State::Good
            && began.elapsed() < wait
        {
            patient.rest(wait.saturating_sub(began.elapsed())).await;
            // It was there a moment ago: while there is time, it may be so again.
            if let Err(error) = patient.look(named).await {
                patient.tell(&format!("{error:#}"));
            }
        }
        patient.clear();
        let chain = patient.chain.as_ref().context("nothing was seen")?;
        print(&match self.output {
            Output::Human => show::human(chain, self.colours.is_on()),
            Output::Json => show::json(chain, None),
        })?;
        Ok(match (chain.state(), self.wait) {
            (State::Good, _) => CLEAN,
            (_, Some(_)) => TOO_LATE,
            (_, None) => DENIED,
        })
    }
}

/// A network that is looked at again and again.
struct Patient<'c> {
    cluster: &'c Cluster,
    policy: &'c Policy,
    began: Instant,
    chain: Option<Chain>,
    /// What is watched, and around whom.
    stirs: Option<((NetworkId, String), Stirs)>,
    place: Option<(NetworkId, String)>,
    /// Whether somebody looks on.
    is_watched: bool,
}

impl<'c> Patient<'c> {
    fn new(cluster: &'c Cluster, policy: &'c Policy) -> Self {
        let is_watched = io::stderr().is_terminal();
        Self { cluster, policy, began: Instant::now(), chain: None, stirs: None, place: None, is_watched }
    }

    fn state(&self) -> State {
        self.chain.as_ref().map_or(State::Unknown, Chain::state)
    }

    /// Looks once.
    async fn look(&mut self, named: &Named) -> anyhow::Result<()> {
        let chain = match find(self.cluster, named).await? {
            Some(id) => {
                let sight = self.cluster.look(&id, self.policy).await?;
                let target = sight.network.as_deref().and_then(target_of).unwrap_or_else(|| id.namespace.clone());
                let chain = Chain::follow(&id, &sight, self.policy, jiff::Timestamp::now());
                self.place = Some((id, target));
                chain
            }
            None => Chain::missing(&NetworkId {
                kind: named.kind.unwrap_or(NetworkKind::Sriov),
                namespace: named.namespace.clone().unwrap_or_default(),
                name: named.name.clone(),
            }),
        };
        let before = self.chain.replace(chain);
        if let (true, Some(now)) = (self.is_watched && before.is_some(), &self.chain) {
            for line in show::changes(before.as_ref(), now) {
                self.tell(&line);
            }
        }
        Ok(())
    }

    /// Waits until something stirs, or it is time for another look.
    async fn rest(&mut self, most: Duration) {
        if self.is_watched {
            let words = self.chain.as_ref().map(show::summary).unwrap_or_default();
            let _ = write!(io::stderr(), "\r\x1b[Kwaiting {} s: {words}", self.began.elapsed().as_secs());
        }
        sleep(BREATH.min(most)).await;
        let most = most.saturating_sub(BREATH).min(LOOK);
        let Some(place) = &self.place else { return sleep(most).await };
        if self.stirs.as_ref().is_none_or(|(around, _)| around != place) {
            self.stirs = Some((place.clone(), self.cluster.stirs(&place.0, &place.1).await));
        }
        if let Some((_, stirs)) = &mut self.stirs {
            stirs.next(most).await;
        }
    }

    /// Says something to somebody who waits.
    fn tell(&self, line: &str) {
        if self.is_watched {
            let line = visible::line(line);
            let _ = writeln!(io::stderr(), "\r\x1b[K{:6.1} s  {line}", self.began.elapsed().as_secs_f64());
        }
    }

    fn clear(&self) {
        if self.is_watched {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// The network that is meant; `None` where there is none of that name.
async fn find(cluster: &Cluster, named: &Named) -> anyhow::Result<Option<NetworkId>> {
    if let (Some(kind), Some(namespace)) = (named.kind, &named.namespace) {
        return Ok(Some(NetworkId { kind, namespace: namespace.clone(), name: named.name.clone() }));
    }
    let mut found = cluster.networks_named(&named.name, named.kind).await.map_err(unreachable)?;
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|id| format!("{}/{}/{}", id.kind.name(), id.namespace, id.name)).collect();
        anyhow::bail!("several networks have the name `{}`; write {}", named.name, names.join(" or "));
    }
    Ok(found.pop())
}

fn unreachable(failed: Failed) -> anyhow::Error {
    anyhow::Error::new(failed)
}

fn target_of(network: &str) -> Option<String> {
    match Object::read(network) {
        Ok(Some(Object::Network(network))) => Some(network.target_namespace().into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_named_in_three_ways() {
        let named = |kind, namespace: Option<&str>, name: &str| {
            Ok(Named { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() })
        };
        for (text, want) in [
            ("net", named(None, None, "net")),
            ("op/net", named(Some(NetworkKind::Sriov), Some("op"), "net")),
            ("SriovIBNetwork/op/net", named(Some(NetworkKind::SriovIb), Some("op"), "net")),
            ("ovsnetworks/op/net.1", named(Some(NetworkKind::Ovs), Some("op"), "net.1")),
        ] {
            assert_eq!(text.parse::<Named>(), want, "{text}");
        }
        for bad in ["", "a/", "/a", "a//b", "Pod/a/b", "SriovNetwork/a/b/c", "a?b", "../a", "a b", "op/N"] {
            assert!(bad.parse::<Named>().is_err(), "{bad}");
        }
    }
}
