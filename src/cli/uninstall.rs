//! `nadmit uninstall`.

use std::io::{self, IsTerminal};

use anyhow::bail;
use clap::Args;

use super::connection::{Connection, block_on};
use super::install::InstallTarget;
use super::{EXIT_CLEAN, confirm, print};
use crate::cluster::client::Cluster;
use crate::visible;

/// Remove nadmit from a cluster
///
/// First the webhook configurations, so that no write waits for a stopped server, then everything that `nadmit install` prints,
/// then the reports. It shows the cluster and what it would delete, and asks.
#[derive(Debug, Args)]
pub(super) struct Uninstall {
    #[command(flatten)]
    place: InstallTarget,
    #[command(flatten)]
    connection: Connection,
    /// Only delete the webhook configurations, which no replica can recreate; keep everything else
    #[arg(long)]
    registration_only: bool,
    /// Only show what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask, and do not show what will be deleted: the permission to delete is enough
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
}

impl Uninstall {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        if !self.yes && !self.dry_run && !io::stdin().is_terminal() {
            bail!(
                "nadmit uninstall asks before it deletes anything, but there is no terminal; pass --dry-run to see what it would \
                 delete, or --yes to delete it"
            );
        }
        block_on(self.uninstall())
    }

    async fn uninstall(self) -> anyhow::Result<u8> {
        let cluster = self.connection.connect().await?;
        if !self.yes && !self.is_wanted(&cluster).await? {
            return Ok(EXIT_CLEAN);
        }
        if self.registration_only {
            cluster.unregister().await?;
            return print("webhook configurations deleted\n");
        }
        cluster.uninstall(&self.place.home()).await?;
        print("nadmit removed\n")
    }

    /// Shows what would be deleted, and asks whether to delete it, unless it is a dry run.
    async fn is_wanted(&self, cluster: &Cluster) -> anyhow::Result<bool> {
        let place = visible::line(cluster.description()).into_owned();
        let found = cluster.installed(&self.place.home(), self.registration_only).await?;
        if found.is_empty() {
            print(&format!("nothing of nadmit is installed in {place}\n"))?;
            return Ok(false);
        }
        let mut text = format!("in {place}, this would be deleted:\n");
        for line in &found {
            text += &format!("  {}\n", visible::line(line));
        }
        print(&text)?;
        if self.dry_run {
            return Ok(false);
        }
        if !confirm(&format!("delete these {} from {place}?", found.len()))? {
            bail!("nothing was deleted");
        }
        Ok(true)
    }
}
