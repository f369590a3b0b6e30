//! `nadmit doctor --canary`: times the operator with a throw-away network.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::show::{self, CanaryJson};
use super::{Doctor, DoctorOutputFormat, NetworkArg, NetworkWatch};
use crate::audit::chain::{Link, LinkHealth, NetworkChain};
use crate::cli::confirm;
use crate::cli::{EXIT_CLEAN, EXIT_DENIED, EXIT_TIMEOUT, print, print_error};
use crate::cluster::client::Cluster;
use crate::cluster::doctor::canary::Canary;
use crate::policy::Policy;

/// The default timeout.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Measured times.
#[derive(Default)]
struct CanaryTimes {
    nad: Option<Duration>,
    complete: Option<Duration>,
}

impl Doctor {
    pub(super) async fn run_canary(&self, cluster: &Cluster, policy: &Policy) -> anyhow::Result<u8> {
        let home = match (cluster.operator(policy, "").await?, &policy.operator.namespace) {
            (Ok(Some(operator)), _) => operator.namespace,
            (_, Some(namespace)) => namespace.clone(),
            (Err(missing), None) => bail!("{missing}; set operator.namespace in the policy"),
            (Ok(None), None) => {
                bail!("no operator found; set operator.namespace in the policy")
            }
        };
        let resource = self.resource(cluster, &home).await?;
        let mut canary = Canary::new(cluster, &home);
        self.ask(&canary, &resource)?;

        // From here on, signals only trigger the cleanup.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut watch = NetworkWatch::new(cluster, policy);
        let mut times = CanaryTimes::default();
        let started = canary.start(&resource).await;
        let is_interrupted = match &started {
            Err(_) => false,
            Ok(()) => tokio::select! {
                () = self.follow(&canary, &mut watch, &mut times) => false,
                () = termination_signal(&mut interrupt, &mut terminate) => true,
            },
        };
        watch.clear();
        let left = canary.remove().await;
        for what in &left {
            print_error(format_args!("error: could not delete: {what}"));
        }
        started.with_context(|| format!("cannot create {}", canary.id))?;
        if is_interrupted {
            bail!("interrupted before the operator responded");
        }
        let chain = watch.chain.as_ref().context("no state was read")?;
        self.report(chain, &times, left)?;
        Ok(match times.complete {
            Some(_) => EXIT_CLEAN,
            // The NAD exists, but is not healthy.
            None if times.nad.is_some() => EXIT_DENIED,
            None => EXIT_TIMEOUT,
        })
    }

    async fn follow(&self, canary: &Canary, watch: &mut NetworkWatch<'_>, times: &mut CanaryTimes) {
        let (began, wait) = (Instant::now(), self.wait.unwrap_or(DEFAULT_WAIT));
        let id = &canary.id;
        let named = NetworkArg { kind: Some(id.kind), namespace: Some(id.namespace.clone()), name: id.name.clone() };
        loop {
            match watch.take_snapshot(&named).await {
                Ok(()) => {}
                Err(error) => watch.print_progress(&format!("{error:#}")),
            }
            let is_good = |link| {
                let step = watch.chain.as_ref().and_then(|chain| chain.step(link));
                step.is_some_and(|step| step.state == LinkHealth::Good)
            };
            if is_good(Link::Nad) {
                times.nad.get_or_insert(began.elapsed());
                if is_good(Link::ResourceName) {
                    times.complete = Some(began.elapsed());
                    return;
                }
            }
            if began.elapsed() >= wait {
                return;
            }
            watch.rest(wait.saturating_sub(began.elapsed())).await;
        }
    }

    /// The name that was given, or the first that a policy offers.
    async fn resource(&self, cluster: &Cluster, home: &str) -> anyhow::Result<String> {
        if let Some(name) = &self.resource_name {
            return Ok(name.clone());
        }
        let policies = cluster.node_policies(home).await?.map_err(anyhow::Error::msg)?;
        let mut names: Vec<_> = policies.into_iter().map(|policy| policy.resource_name).collect();
        names.sort_unstable();
        let name = names.into_iter().find(|name| !name.is_empty());
        name.context("no node policy offers a resource; pass --resource-name")
    }

    fn ask(&self, canary: &Canary, resource: &str) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            bail!("--canary creates {} and namespace {}; pass --yes to confirm", canary.id, canary.namespace);
        }
        let Canary { id, namespace, .. } = canary;
        if !confirm(&format!("create {id} for `{resource}` and namespace {namespace}, and remove both?"))? {
            bail!("nothing was created");
        }
        Ok(())
    }

    fn report(&self, chain: &NetworkChain, times: &CanaryTimes, left: Vec<String>) -> anyhow::Result<()> {
        let seconds = |time: Option<Duration>| time.map(|time| (time.as_secs_f64() * 1000.0).round() / 1000.0);
        let canary = CanaryJson { nad_after: seconds(times.nad), complete_after: seconds(times.complete), left };
        if self.options.output == DoctorOutputFormat::Json {
            return print(&show::json(chain, Some(&canary))).map(drop);
        }
        let mut text = show::human(chain, self.options.colours.is_on());
        text += &match (canary.nad_after, canary.complete_after) {
            (Some(nad), Some(complete)) => {
                format!("\nthe operator responded: NAD created after {nad} s, complete after {complete} s\n")
            }
            (Some(nad), None) => format!("\nthe operator responded after {nad} s, but the NAD is not complete\n"),
            (None, _) => "\nthe operator did not respond\n".to_owned(),
        };
        text += if canary.left.is_empty() { "cleanup complete\n" } else { "cleanup incomplete\n" };
        print(&text).map(drop)
    }
}

async fn termination_signal(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
