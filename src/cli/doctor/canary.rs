//! A network that is there only to be answered.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::show::{self, CanaryJson};
use super::{Doctor, Named, Output, Patient};
use crate::audit::chain::{Chain, Link, State};
use crate::cli::{CLEAN, DENIED, TOO_LATE, complain, print};
use crate::cluster::{Canary, Cluster};
use crate::policy::Policy;
use crate::visible;

/// How long the operator has.
const USUAL_WAIT: Duration = Duration::from_secs(30);

/// How far it came.
#[derive(Default)]
struct Times {
    nad: Option<Duration>,
    complete: Option<Duration>,
}

impl Doctor {
    pub(super) async fn send_canary(&self, cluster: &Cluster, policy: &Policy) -> anyhow::Result<u8> {
        let home = match (cluster.operator(policy, "").await?, &policy.operator.namespace) {
            (Ok(Some(operator)), _) => operator.namespace,
            (_, Some(namespace)) => namespace.clone(),
            (Err(missing), None) => bail!("{missing}; the policy's operator.namespace says where the operator is"),
            (Ok(None), None) => {
                bail!("no operator is known; the policy's operator.namespace says where it is")
            }
        };
        let resource = self.resource(cluster, &home).await?;
        let mut canary = Canary::new(cluster, &home);
        self.ask(&canary, &resource)?;

        // From here on nothing ends this but its end.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut patient = Patient::new(cluster, policy);
        let mut times = Times::default();
        let started = canary.start(&resource).await;
        let is_interrupted = match &started {
            Err(_) => false,
            Ok(()) => tokio::select! {
                () = self.follow(&canary, &mut patient, &mut times) => false,
                () = asked_to_end(&mut interrupt, &mut terminate) => true,
            },
        };
        patient.clear();
        let left = canary.remove().await;
        for what in &left {
            complain(format_args!("error: could not be removed: {what}"));
        }
        started.with_context(|| format!("{} cannot be created", canary.id))?;
        if is_interrupted {
            bail!("ended before the operator had answered");
        }
        let chain = patient.chain.as_ref().context("nothing was seen")?;
        self.report(chain, &times, left)?;
        Ok(match times.complete {
            Some(_) => CLEAN,
            // It is there, and not as it should be.
            None if times.nad.is_some() => DENIED,
            None => TOO_LATE,
        })
    }

    async fn follow(&self, canary: &Canary, patient: &mut Patient<'_>, times: &mut Times) {
        let (began, wait) = (Instant::now(), self.wait.unwrap_or(USUAL_WAIT));
        let id = &canary.id;
        let named = Named { kind: Some(id.kind), namespace: Some(id.namespace.clone()), name: id.name.clone() };
        loop {
            match patient.look(&named).await {
                Ok(()) => {}
                Err(error) => patient.tell(&format!("{error:#}")),
            }
            let is_good = |link| {
                let step = patient.chain.as_ref().and_then(|chain| chain.step(link));
                step.is_some_and(|step| step.state == State::Good)
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
            patient.rest(wait.saturating_sub(began.elapsed())).await;
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
        name.context("no node policy offers a resourceName; --resource-name gives one")
    }

    fn ask(&self, canary: &Canary, resource: &str) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            bail!("--canary creates {} and namespace {}: --yes says that this is wanted", canary.id, canary.namespace);
        }
        let question = format!("create {} for `{resource}` and namespace {}", canary.id, canary.namespace);
        eprint!("{}, and remove both? [y/N] ", visible::line(&question));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => bail!("nothing was created"),
        }
    }

    fn report(&self, chain: &Chain, times: &Times, left: Vec<String>) -> anyhow::Result<()> {
        let seconds = |time: Option<Duration>| time.map(|time| (time.as_secs_f64() * 1000.0).round() / 1000.0);
        let canary = CanaryJson { nad_after: seconds(times.nad), complete_after: seconds(times.complete), left };
        if self.output == Output::Json {
            return print(&show::json(chain, Some(&canary))).map(drop);
        }
        let mut text = show::human(chain, self.colours.is_on());
        text += &match (canary.nad_after, canary.complete_after) {
            (Some(nad), Some(complete)) => {
                format!("\nthe operator answered: its NAD came after {nad} s, complete after {complete} s\n")
            }
            (Some(nad), None) => format!("\nthe operator answered after {nad} s, and the NAD is not complete\n"),
            (None, _) => "\nthe operator did not answer\n".to_owned(),
        };
        text += if canary.left.is_empty() { "everything was removed\n" } else { "not everything could be removed\n" };
        print(&text).map(drop)
    }
}

async fn asked_to_end(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
