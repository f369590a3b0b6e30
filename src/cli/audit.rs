//! `nadmit audit`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;

use super::connection::{Connection, NamespaceArgs, block_on};
use super::output_args::OutputArgs;
use super::outputs::{Destination, Outputs};
use super::policy_args::PolicyArgs;
use super::progress::Progress;
use super::serve::duration;
use super::{EXIT_DENIED, confirm, print_error, stored};
use crate::cluster::client::{ApiError, Cluster};
use crate::cluster::leader::dry_run::DryRunDenials;
use crate::cluster::leader::fix::{FixResult, IncompleteNad};
use crate::cluster::leader::full_scan::FullScan;
use crate::cluster::leader::object_audit::{ScanSink, Scanned};
use crate::cluster::leader::observe::Observation;
use crate::cluster::leader::scan_scope::ScanScope;
use crate::output::Summary;
use crate::policy::{NameVisibility, Operators, Policy, Rewrites};
use crate::resources::{Object, ObjectKey};
use crate::supervise::Panicked;

/// The shortest time to observe.
const MIN_OBSERVE: Duration = Duration::from_secs(1);

/// Judge the objects stored in a cluster
///
/// Scans every NetworkAttachmentDefinition and every network of the SR-IOV operator once, with the rules of admission and those
/// that need a cluster: missing NADs, NADs that drifted from their networks or were stored without nadmit, stuck deletions,
/// orphans, an operator that stopped reconciling. It only reads, except with --fix; for a missing NAD it makes a dry run, which
/// stores nothing, to find who denies it. `nadmit install --audit-only` prints the permissions it needs.
///
/// With --namespace or --selector, only those objects are judged, by the same facts: a finding does not depend on what else is judged.
/// With --namespace, the permission to list them in that namespace is enough: what may not be read is skipped, and named with
/// the missing permission.
///
/// Exit code 0: nothing denied. 1: something denied, or, with --fix, a NAD that could not be completed. 2: wrong arguments, or a
/// cluster that could not be read.
#[derive(Debug, Args)]
pub(super) struct Audit {
    #[command(flatten)]
    namespaces: NamespaceArgs,
    /// Only objects with these labels, such as app=web,tier!=test
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output_args: OutputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Observe the cluster for this long first, to find write loops: 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    observe: Option<Duration>,
    /// Complete NADs that were stored incomplete: each with the resourceVersion that was read, and through admission
    #[arg(long)]
    fix: bool,
    /// Do not ask before --fix
    #[arg(long, short, requires = "fix")]
    yes: bool,
}

impl Audit {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        self.output_args.check()?;
        anyhow::ensure!(
            !self.fix || self.yes || io::stdin().is_terminal(),
            "--fix asks for confirmation, but there is no terminal; pass --yes"
        );
        anyhow::ensure!(self.observe.is_none_or(|time| time >= MIN_OBSERVE), "--observe needs at least one second");
        let policy = self.policy.read()?;
        block_on(self.audit(&policy))
    }

    async fn audit(&self, policy: &Policy) -> anyhow::Result<u8> {
        let outputs = self.output_args.open("nadmit audit", &Destination::Stdout)?;
        let cluster = self.connection.connect().await?;
        let mut shown = AuditOutput {
            outputs,
            progress: Progress::open("auditing"),
            summary: Summary::default(),
            incomplete: Vec::new(),
            observed: None,
            failed: None,
        };
        shown.outputs.begin()?;
        match self.observe {
            Some(time) => {
                let observed = observe(&cluster, time, self.namespaces.only()).await;
                let mut observed = observed.context("cannot observe the cluster")?;
                std::mem::take(&mut observed.unobserved).into_iter().for_each(|line| shown.say(&line));
                shown.observed = Some(observed);
            }
            None => shown.outputs.note("Write loops were not checked; pass --observe 30s"),
        }
        let scope = ScanScope {
            namespace: self.namespaces.only().map(str::to_owned),
            selector: self.selector.clone().filter(|selector| !selector.is_empty()),
        };
        let scan = FullScan { cluster: &cluster, policy, names: NameVisibility::All, scope, caches: None };
        let scan_result = match scan.run(Timestamp::now(), &mut DryRunDenials::default(), &mut shown).await {
            Err(ApiError::Forbidden(missing)) if scan.scope.namespace.is_none() => {
                bail!("cannot audit all namespaces: {missing}; pass --namespace NAME to audit one")
            }
            scanned => scanned.context("cannot read the cluster")?,
        };
        for note in scan_result.unread {
            shown.say(&note);
        }
        let (mut summary, incomplete) = shown.end()?;
        let mut code = 0;
        if self.fix {
            let (fixed, failed) = self.fix(&cluster, policy, &scan_result.context.operators, &incomplete).await?;
            summary.patch = summary.patch.saturating_sub(fixed);
            code = if failed { EXIT_DENIED } else { code };
        }
        Ok(code.max(self.output_args.exit_code(&summary)))
    }

    /// Completes incomplete NADs; returns how many were completed, and whether one failed.
    async fn fix(
        &self,
        cluster: &Cluster,
        policy: &Policy,
        operators: &Operators,
        nads: &[IncompleteNad],
    ) -> anyhow::Result<(usize, bool)> {
        if nads.is_empty() {
            eprintln!("nothing to complete");
            return Ok((0, false));
        }
        if !self.yes && !confirm(&format!("complete {} NADs?", nads.len()))? {
            eprintln!("nothing was written");
            return Ok((0, false));
        }
        let is_registered = match cluster.is_registered().await {
            Err(failed) if failed.is_forbidden() => {
                let right = "get mutatingwebhookconfigurations";
                print_error(format_args!(
                    "nadmit: whether nadmit is registered is unknown: missing permission: {right}"
                ));
                false
            }
            answer => answer.context("cannot read whether nadmit is registered")?,
        };
        let mut progress = Progress::new("completing", nads.len(), 50);
        let [mut completed, mut already, mut left, mut failed] = [0; 4];
        for nad in nads {
            let place = &nad.key;
            match cluster.fix(nad, is_registered, operators, policy).await {
                FixResult::Completed => completed += 1,
                FixResult::AlreadyComplete => already += 1,
                FixResult::Left(why) => {
                    left += 1;
                    progress.clear();
                    print_error(format_args!("skipped: NAD {place}: {why}"));
                }
                FixResult::Failed(why) => {
                    failed += 1;
                    progress.clear();
                    print_error(format_args!("error: cannot complete NAD {place}: {why}"));
                }
            }
            progress.advance(1);
        }
        drop(progress);
        eprintln!(
            "of {} incomplete NADs {completed} were completed, {already} were already complete, {left} were skipped, {failed} failed",
            nads.len()
        );
        Ok((completed + already, left + failed > 0))
    }
}

async fn observe(cluster: &Cluster, time: Duration, namespace: Option<&str>) -> Result<Observation, ApiError> {
    let tenths = |time: Duration| time.as_millis() as usize / 100;
    let mut progress = Progress::new("watching", tenths(time), 20);
    cluster.observe(time, namespace, |passed| progress.advance(tenths(passed))).await
}

/// Writes the output during a scan.
struct AuditOutput {
    outputs: Outputs,
    progress: Progress,
    summary: Summary,
    incomplete: Vec<IncompleteNad>,
    observed: Option<Observation>,
    /// The write error, after which output stops.
    failed: Option<io::Error>,
}

impl AuditOutput {
    /// A note for readers of the report.
    fn say(&mut self, note: &str) {
        self.progress.clear();
        print_error(format_args!("nadmit: {note}"));
        self.outputs.note(note);
    }

    fn show(&mut self, scanned: &Scanned<'_>) -> io::Result<()> {
        let mut rendered = Vec::new();
        stored::judged(scanned.text, scanned.object, &scanned.verdict, |judged| {
            rendered = self.outputs.render(judged);
        });
        if rendered.iter().any(|chunk| !chunk.is_empty()) {
            self.progress.clear();
        }
        self.outputs.write(&rendered)
    }

    fn end(mut self) -> anyhow::Result<(Summary, Vec<IncompleteNad>)> {
        self.progress.clear();
        if let Some(failed) = self.failed {
            return Err(failed.into());
        }
        self.outputs.rewritten(&self.observed.map(|observed| observed.rewritten_objects()).unwrap_or_default());
        self.outputs.end(&self.summary)?;
        Ok((self.summary, self.incomplete))
    }
}

impl ScanSink for AuditOutput {
    fn expect(&mut self, objects: usize) {
        self.progress.expect(objects);
    }

    fn rewrites(&self, kind: &'static str, key: &ObjectKey) -> Option<Rewrites> {
        self.observed.as_ref()?.rewrites(kind, key)
    }

    fn skipped(&mut self, object: &str, panicked: &Panicked) {
        self.summary.unreadable += 1;
        self.say(&format!("{object} could not be judged: nadmit {panicked}"));
    }

    async fn scanned(&mut self, scanned: Scanned<'_>) {
        self.summary.count(&scanned.verdict);
        self.progress.advance(1);
        if matches!(scanned.object, Object::Nad(_)) && !scanned.verdict.patch.is_empty() {
            let key = scanned.object.key();
            self.incomplete.push(IncompleteNad { key, is_rendered: scanned.is_rendered });
        }
        if !scanned.verdict.findings.is_empty() && self.failed.is_none() {
            self.failed = self.show(&scanned).err();
        }
    }
}
