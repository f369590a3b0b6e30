//! `nadmit audit`.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::connection::{Connection, wait_for};
use super::progress::Progress;
use super::serve::duration;
use super::showing::{Showing, judged, read_policy};
use super::{DENIED, complain};
use crate::cluster::Cluster;
use crate::cluster::fix::{Fixed, Incomplete};
use crate::cluster::observe::Observed;
use crate::cluster::refusals::Refusals;
use crate::cluster::survey::{Looked, Sink, Survey};
use crate::deploy::yaml;
use crate::json::Lines;
use crate::manifests::{Document, documents};
use crate::output::{Format, Summary};
use crate::policy::{Names, Operators, Policy, Rewrites};
use crate::resources::Object;
use crate::supervise::Panicked;

/// The shortest time to watch.
const SHORTEST: Duration = Duration::from_secs(1);

/// Judge what is stored in a cluster
///
/// Looks once at every NetworkAttachmentDefinition and at every network of the SR-IOV operator, with the rules of admission and those
/// that only a cluster can break: NADs that never came, that drifted from their networks or were stored without nadmit, deletions that
/// hang, orphans, an operator gone deaf. It reads only, but for --fix; for a NAD that is not there the API server is also asked, by a
/// dry run that stores nothing, who refuses it. `nadmit install --audit-only` prints the rights that it needs.
///
/// Exit code 0: nothing denied. 1: something denied, or, with --fix, a NAD that could not be completed. 2: wrong arguments, or a cluster
/// that could not be read.
#[derive(Debug, Args)]
pub(super) struct Audit {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    showing: Showing,
    /// The policy file
    #[arg(long, env = "NADMIT_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Watch the cluster for that long first, to find what is written again and again: 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    observe: Option<Duration>,
    /// Complete the NADs that were stored incomplete: each with the resourceVersion that was read, and through admission
    #[arg(long)]
    fix: bool,
    /// Do not ask before --fix
    #[arg(long, requires = "fix")]
    yes: bool,
}

impl Audit {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        self.showing.check()?;
        anyhow::ensure!(
            !self.fix || self.yes || io::stdin().is_terminal(),
            "--fix asks before it writes, and there is nobody to ask; --yes says yes"
        );
        anyhow::ensure!(
            self.observe.is_none_or(|time| time >= SHORTEST),
            "--observe: in less than a second nothing can be seen"
        );
        let policy = read_policy(self.policy.as_deref())?;
        wait_for(self.audit(&policy))
    }

    async fn audit(&self, policy: &Policy) -> anyhow::Result<u8> {
        let cluster = self.connection.connect().await?;
        let mut shown = Shown {
            format: self.showing.format("nadmit audit"),
            progress: Progress::open("auditing"),
            summary: Summary::default(),
            out: BufWriter::new(Box::new(io::stdout())),
            is_first: true,
            incomplete: Vec::new(),
            observed: None,
            failed: None,
        };
        shown.begin()?;
        match self.observe {
            Some(time) => shown.observed = Some(observe(&cluster, time).await),
            None => shown.format.note(
                "Nobody watched, so that what is written again and again was not found: --observe 30s".to_owned(),
            ),
        }
        let survey = Survey { cluster: &cluster, policy, names: Names::All };
        let surveyed = survey
            .run(Timestamp::now(), &mut Refusals::default(), &mut shown)
            .await
            .context("the cluster could not be read")?;
        for note in surveyed.unread {
            shown.say(note);
        }
        let (mut summary, incomplete) = shown.end()?;
        let mut code = 0;
        if self.fix {
            let (fixed, failed) = self.fix(&cluster, policy, &surveyed.around.operators, &incomplete).await?;
            summary.patch = summary.patch.saturating_sub(fixed);
            code = if failed { DENIED } else { code };
        }
        Ok(code.max(self.showing.exit_code(&summary)))
    }

    /// Completes what is incomplete: how many are complete now, and whether one could not be completed.
    async fn fix(
        &self,
        cluster: &Cluster,
        policy: &Policy,
        operators: &Operators,
        nads: &[Incomplete],
    ) -> anyhow::Result<(usize, bool)> {
        if nads.is_empty() {
            eprintln!("nothing to complete");
            return Ok((0, false));
        }
        if !self.yes && !is_wanted(nads.len())? {
            eprintln!("nothing was written");
            return Ok((0, false));
        }
        let is_guarded = cluster.is_guarded().await.context("whether nadmit is registered could not be read")?;
        let mut progress = Progress::new("completing", nads.len(), 50);
        let [mut completed, mut settled, mut left, mut failed] = [0; 4];
        for nad in nads {
            let place = format!("{}/{}", nad.namespace, nad.name);
            match cluster.fix(nad, is_guarded, operators, policy).await {
                Fixed::Completed => completed += 1,
                Fixed::Settled => settled += 1,
                Fixed::Left(why) => {
                    left += 1;
                    progress.clear();
                    complain(format_args!("left alone: NAD {place}: {why}"));
                }
                Fixed::Failed(why) => {
                    failed += 1;
                    progress.clear();
                    complain(format_args!("error: NAD {place} stays incomplete: {why}"));
                }
            }
            progress.advance(1);
        }
        drop(progress);
        eprintln!(
            "of {} incomplete NADs {completed} were completed, {settled} were complete by then, {left} were left alone, {failed} failed",
            nads.len()
        );
        Ok((completed + settled, left + failed > 0))
    }
}

async fn observe(cluster: &Cluster, time: Duration) -> Observed {
    let tenths = |time: Duration| time.as_millis() as usize / 100;
    let mut progress = Progress::new("watching", tenths(time), 20);
    cluster.observe(time, |passed| progress.advance(tenths(passed))).await
}

/// Asks whoever sits at the terminal.
fn is_wanted(nads: usize) -> anyhow::Result<bool> {
    eprint!("complete {nads} NADs? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// What is shown of a cluster while it is looked at.
struct Shown {
    format: Box<dyn Format + Send>,
    progress: Progress,
    summary: Summary,
    out: BufWriter<Box<dyn Write + Send>>,
    is_first: bool,
    incomplete: Vec<Incomplete>,
    observed: Option<Observed>,
    /// Why nothing more can be written.
    failed: Option<io::Error>,
}

impl Shown {
    fn begin(&mut self) -> io::Result<()> {
        let begin = self.format.begin();
        self.out.write_all(begin.as_bytes())
    }

    /// Something that whoever reads the report must know.
    fn say(&mut self, note: String) {
        self.progress.clear();
        complain(format_args!("nadmit: {note}"));
        self.format.note(note);
    }

    fn show(&mut self, looked: &Looked<'_>) -> io::Result<()> {
        let text = readable(looked.text);
        let lines = Lines::of(&text);
        let meta = looked.object.meta();
        let source = format!("{}/{}/{}", looked.object.kind(), meta.namespace, meta.name);
        let mut chunk = String::new();
        documents(&lines, &mut |document| {
            if let Document::Manifest(manifest) = document {
                let json = manifest.node.to_json();
                let judged = judged((&source, &lines), &manifest, (meta, &json), &looked.verdict);
                chunk = self.format.document(&judged);
            }
        });
        if chunk.is_empty() {
            return Ok(());
        }
        self.progress.clear();
        if !self.is_first {
            self.out.write_all(self.format.between().as_bytes())?;
        }
        self.is_first = false;
        self.out.write_all(chunk.as_bytes())
    }

    fn end(mut self) -> anyhow::Result<(Summary, Vec<Incomplete>)> {
        self.progress.clear();
        if let Some(failed) = self.failed {
            return Err(failed.into());
        }
        self.format.rewritten(self.observed.map(|observed| observed.rewritten()).unwrap_or_default());
        let end = self.format.end(&self.summary);
        self.out.write_all(end.as_bytes())?;
        self.out.flush()?;
        Ok((self.summary, self.incomplete))
    }
}

impl Sink for Shown {
    fn expects(&mut self, objects: usize) {
        self.progress.expect(objects);
    }

    fn rewrites(&self, kind: &str, namespace: &str, name: &str) -> Option<Rewrites> {
        self.observed.as_ref()?.rewrites(kind, namespace, name)
    }

    fn skipped(&mut self, object: &str, panicked: &Panicked) {
        self.summary.unreadable += 1;
        self.say(format!("{object} could not be judged: it {panicked}"));
    }

    async fn looked(&mut self, looked: Looked<'_>) {
        self.summary.count(&looked.verdict);
        self.progress.advance(1);
        let meta = looked.object.meta();
        if matches!(looked.object, Object::Nad(_)) && !looked.verdict.patch.is_empty() {
            let (namespace, name) = (meta.namespace.to_string(), meta.name.to_string());
            self.incomplete.push(Incomplete { namespace, name, is_rendered: looked.is_rendered });
        }
        if !looked.verdict.findings.is_empty() && self.failed.is_none() {
            self.failed = self.show(&looked).err();
        }
    }
}

/// What people wrote of an object, as they would write it: without what the API server adds.
fn readable(text: &str) -> String {
    let mut object: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
        if let Some(Value::Object(meta)) = object.get_mut("metadata") {
            for added in ["managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"] {
                meta.remove(added);
            }
        }
    }
    yaml::stream(&[object])
}
