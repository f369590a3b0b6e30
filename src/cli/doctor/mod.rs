//! `nadmit doctor`.

mod canary;
mod pod;
pub(super) mod show;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use tokio::time::{Instant, sleep};

use super::color::ColorArgs;
use super::connection::{Connection, NamespaceArgs, block_on};
use super::policy_args::PolicyArgs;
use super::serve::duration;
use super::{EXIT_CLEAN, EXIT_DENIED, EXIT_TIMEOUT, print};
use crate::audit::chain::{LinkHealth, NetworkChain};
use crate::cluster::client::{ApiError, Cluster};
use crate::cluster::doctor::NetworkChanges;
use crate::policy::Policy;
use crate::resources::{NetworkId, NetworkKind, Object};
use crate::visible;

/// The polling interval, because not everything is watched.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The minimum interval between two snapshots.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Check each link from a network to the device of a pod, and show where the chain breaks
///
/// The links: the network, its rendering, the target namespace, the operator, the NAD, the releases of the programs that read it, its
/// resourceName, the node policies that offer it, and the nodes that have it. What you may not read is unknown, with the missing
/// permission named.
///
/// Exit code 0: healthy. 1: not healthy. 2: wrong arguments, or the cluster cannot be reached. 3: not healthy within --wait.
///
/// With `pod`, the subject is a pod that does not start, or is stuck in Terminating.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Doctor {
    #[command(subcommand)]
    subject: Option<DoctorSubject>,
    /// The network: KIND/NAMESPACE/NAME, NAMESPACE/NAME for a SriovNetwork, or a NAME that is unique in its namespaces
    #[arg(required_unless_present = "canary", conflicts_with = "canary")]
    network: Option<NetworkArg>,
    #[command(flatten)]
    namespaces: NamespaceArgs,
    /// Wait this long for a healthy network, such as 60s or 2m; with --canary, for the operator's response [default: do not wait;
    /// with --canary 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    /// Create a throw-away network in its own namespace, time the operator's response, and delete both
    #[arg(long, conflicts_with_all = ["namespace", "all_namespaces"])]
    canary: bool,
    /// The resourceName of the canary [default: the first that a node policy offers]
    #[arg(long, value_name = "NAME", requires = "canary", conflicts_with = "network")]
    resource_name: Option<String>,
    /// Do not ask before the canary is created
    #[arg(long, short, requires = "canary", conflicts_with = "network")]
    yes: bool,
    #[command(flatten)]
    options: DoctorOptions,
}

/// The options for every subject.
#[derive(Debug, Args)]
struct DoctorOptions {
    /// The output format
    #[arg(long, short, value_enum, default_value_t = DoctorOutputFormat::Human)]
    output: DoctorOutputFormat,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    colours: ColorArgs,
}

/// What is examined instead of a network.
#[derive(Debug, Subcommand)]
enum DoctorSubject {
    Pod(Box<pod::DoctorPod>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DoctorOutputFormat {
    /// One line per link, with advice
    Human,
    /// One JSON document
    Json,
}

/// A network as it is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NetworkArg {
    kind: Option<NetworkKind>,
    namespace: Option<String>,
    name: String,
}

impl std::str::FromStr for NetworkArg {
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
            Some(kind) => Some(
                kind_of(kind)
                    .ok_or_else(|| format!("unknown kind `{kind}`: use SriovNetwork, SriovIBNetwork or OVSNetwork"))?,
            ),
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

impl NetworkArg {
    /// The network in a namespace, or in all.
    fn within(&self, only: Option<&str>) -> anyhow::Result<Self> {
        let namespace = namespace_of(self.namespace.as_deref(), only)?;
        Ok(Self { namespace: namespace.map(str::to_owned), ..self.clone() })
    }
}

/// The namespace of an object, as written before its name or with --namespace.
pub(super) fn namespace_of<'a>(written: Option<&'a str>, option: Option<&'a str>) -> anyhow::Result<Option<&'a str>> {
    match (written, option) {
        (Some(written), Some(option)) if written != option => {
            Err(anyhow!("`{written}/` and --namespace {option} name two namespaces; write one of them"))
        }
        _ => Ok(written.or(option)),
    }
}

/// A kind as people write it: `SriovNetwork`, `sriovnetwork`, `sriovnetworks`.
fn kind_of(text: &str) -> Option<NetworkKind> {
    let text = text.to_lowercase();
    NetworkKind::ALL.into_iter().find(|kind| text == kind.plural() || text == kind.name().to_lowercase())
}

impl Doctor {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        if let Some(DoctorSubject::Pod(pod)) = self.subject {
            return pod.run();
        }
        let policy = self.options.policy.read()?;
        block_on(async {
            let cluster = self.options.connection.connect().await?;
            match &self.network {
                Some(named) => self.examine(&cluster, &named.within(self.namespaces.only())?, &policy).await,
                None => self.run_canary(&cluster, &policy).await,
            }
        })
    }

    async fn examine(&self, cluster: &Cluster, named: &NetworkArg, policy: &Policy) -> anyhow::Result<u8> {
        let mut watch = NetworkWatch::new(cluster, policy);
        let began = Instant::now();
        watch.take_snapshot(named).await?;
        while let Some(wait) = self.wait
            && watch.state() != LinkHealth::Good
            && began.elapsed() < wait
        {
            watch.rest(wait.saturating_sub(began.elapsed())).await;
            // It existed a moment ago and may exist again before the timeout.
            if let Err(error) = watch.take_snapshot(named).await {
                watch.print_progress(&format!("{error:#}"));
            }
        }
        watch.clear();
        let chain = watch.chain.as_ref().context("no state was read")?;
        print(&match self.options.output {
            DoctorOutputFormat::Human => show::human(chain, self.options.colours.is_on()),
            DoctorOutputFormat::Json => show::json(chain, None),
        })?;
        Ok(match (chain.state(), self.wait) {
            (LinkHealth::Good, _) => EXIT_CLEAN,
            (_, Some(_)) => EXIT_TIMEOUT,
            (_, None) => EXIT_DENIED,
        })
    }
}

/// A network that is polled until it is healthy.
struct NetworkWatch<'c> {
    cluster: &'c Cluster,
    policy: &'c Policy,
    began: Instant,
    chain: Option<NetworkChain>,
    /// The current watches, and their network.
    network_changes: Option<((NetworkId, String), NetworkChanges)>,
    place: Option<(NetworkId, String)>,
    /// Whether a terminal is attached.
    is_watched: bool,
}

impl<'c> NetworkWatch<'c> {
    fn new(cluster: &'c Cluster, policy: &'c Policy) -> Self {
        let is_watched = io::stderr().is_terminal();
        Self { cluster, policy, began: Instant::now(), chain: None, network_changes: None, place: None, is_watched }
    }

    fn state(&self) -> LinkHealth {
        self.chain.as_ref().map_or(LinkHealth::Unknown, NetworkChain::state)
    }

    /// Takes a snapshot.
    async fn take_snapshot(&mut self, named: &NetworkArg) -> anyhow::Result<()> {
        let chain = match find(self.cluster, named).await? {
            Some(id) => {
                let snapshot = self.cluster.network_snapshot(&id, self.policy).await?;
                let target = snapshot.network.as_deref().and_then(target_of).unwrap_or_else(|| id.namespace.clone());
                let chain = NetworkChain::follow(&id, &snapshot, self.policy, jiff::Timestamp::now());
                self.place = Some((id, target));
                chain
            }
            None => NetworkChain::missing(&NetworkId {
                kind: named.kind.unwrap_or(NetworkKind::Sriov),
                namespace: named.namespace.clone().unwrap_or_default(),
                name: named.name.clone(),
            }),
        };
        let before = self.chain.replace(chain);
        if let (true, Some(now)) = (self.is_watched && before.is_some(), &self.chain) {
            for line in show::changes(before.as_ref(), now) {
                self.print_progress(&line);
            }
        }
        Ok(())
    }

    /// Waits for a change or the next polling interval.
    async fn rest(&mut self, most: Duration) {
        if self.is_watched {
            let words = self.chain.as_ref().map(show::summary).unwrap_or_default();
            let _ = write!(io::stderr(), "\r\x1b[Kwaiting {} s: {words}", self.began.elapsed().as_secs());
        }
        sleep(MIN_INTERVAL.min(most)).await;
        let most = most.saturating_sub(MIN_INTERVAL).min(POLL_INTERVAL);
        let Some(place) = &self.place else { return sleep(most).await };
        if self.network_changes.as_ref().is_none_or(|(watched, _)| watched != place) {
            self.network_changes = Some((place.clone(), self.cluster.network_changes(&place.0, &place.1).await));
        }
        if let Some((_, network_changes)) = &mut self.network_changes {
            network_changes.next(most).await;
        }
    }

    /// Prints a progress line.
    fn print_progress(&self, line: &str) {
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

/// The named network; `None` if it does not exist.
async fn find(cluster: &Cluster, named: &NetworkArg) -> anyhow::Result<Option<NetworkId>> {
    if let (Some(kind), Some(namespace)) = (named.kind, &named.namespace) {
        return Ok(Some(NetworkId { kind, namespace: namespace.clone(), name: named.name.clone() }));
    }
    let namespace = named.namespace.as_deref();
    let found = cluster.networks_named(&named.name, named.kind, namespace).await;
    let mut found = found.map_err(|failed| match failed {
        ApiError::Forbidden(missing) if namespace.is_none() => {
            anyhow!("cannot find network `{}`: {missing}; pass --namespace NAME", named.name)
        }
        failed => anyhow!(failed),
    })?;
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|id| format!("{}/{}/{}", id.kind.name(), id.namespace, id.name)).collect();
        anyhow::bail!("several networks have the name `{}`; write {}", named.name, names.join(" or "));
    }
    Ok(found.pop())
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
    fn a_namespace_is_named_once() {
        for (written, option, want) in [
            (None, None, Some(None)),
            (Some("a"), None, Some(Some("a"))),
            (None, Some("a"), Some(Some("a"))),
            (Some("a"), Some("a"), Some(Some("a"))),
            (Some("a"), Some("b"), None),
        ] {
            assert_eq!(namespace_of(written, option).ok(), want, "{written:?} {option:?}");
        }
    }

    #[test]
    fn network_argument_has_three_forms() {
        let named = |kind, namespace: Option<&str>, name: &str| {
            Ok(NetworkArg { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() })
        };
        for (text, want) in [
            ("net", named(None, None, "net")),
            ("op/net", named(Some(NetworkKind::Sriov), Some("op"), "net")),
            ("SriovIBNetwork/op/net", named(Some(NetworkKind::SriovIb), Some("op"), "net")),
            ("ovsnetworks/op/net.1", named(Some(NetworkKind::Ovs), Some("op"), "net.1")),
        ] {
            assert_eq!(text.parse::<NetworkArg>(), want, "{text}");
        }
        for bad in ["", "a/", "/a", "a//b", "Pod/a/b", "SriovNetwork/a/b/c", "a?b", "../a", "a b", "op/N"] {
            assert!(bad.parse::<NetworkArg>().is_err(), "{bad}");
        }
    }
}
