//! `nadmit map`.

mod manifests;

use std::path::PathBuf;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::connection::{Connection, NamespaceArgs, block_on};
use super::output_args::{OutputParser, OutputTarget, no_repeated_target};
use super::outputs::write_whole;
use super::policy_args::PolicyArgs;
use super::progress::Progress;
use super::repository_args::{AssumptionArgs, RepositoryArgs};
use super::{EXIT_CLEAN, EXIT_UNUSABLE, print_error};
use crate::audit::map::NetworkMap;
use crate::cluster::map::MapScan;
use crate::output::MapPage;

/// Show the secondary networks as a page: NADs, addresses, VLANs, devices, and who uses them
///
/// Without a PATH it reads the cluster of your kubeconfig, with your permissions: what you may not read is shown as not known, with the
/// missing permission. It only reads. With PATHs it reads manifests, as `nadmit check` does.
///
/// The page is self-contained. It has a search, filters by namespace and node, what two objects have against each other, and for each NAD,
/// network and node policy what breaks if it is deleted.
///
/// Exit code 0: a map was made. 2: wrong arguments, an input that could not be read (the others are on the map), or nothing could be read.
#[derive(Debug, Args)]
#[command(name = "map")]
pub(super) struct MapCommand {
    /// Files and directories; - is standard input [default: the cluster]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The output format, and the file that it is written to instead of standard output; may be repeated with other files
    #[arg(long, short, value_parser = OutputParser::<MapFormat>::new(), default_value = "html", value_name = "FORMAT[=FILE]")]
    output: Vec<OutputTarget<MapFormat>>,
    #[command(flatten)]
    namespaces: NamespaceArgs,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    repository: RepositoryArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    assumptions: AssumptionArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MapFormat {
    /// A self-contained HTML page
    Html,
    /// One JSON document
    Json,
}

impl MapCommand {
    pub(super) fn run(&self) -> anyhow::Result<u8> {
        no_repeated_target(&self.output)?;
        let (map, code) = if self.paths.is_empty() {
            (block_on(self.of_cluster())?, EXIT_CLEAN)
        } else {
            ensure!(
                self.namespaces.only().is_none(),
                "--namespace is for a cluster; the page itself filters by namespace"
            );
            self.of_manifests()?
        };
        for part in &map.unknown {
            print_error(format_args!("nadmit: {} not known: {}", part.what, part.why));
        }
        let json = map.to_json();
        for target in &self.output {
            let text = match target.format {
                MapFormat::Html => MapPage { json: &json }.render(),
                MapFormat::Json => format!("{json}\n"),
            };
            write_whole(target.file.as_deref(), &text)?;
        }
        Ok(code)
    }

    async fn of_cluster(&self) -> anyhow::Result<NetworkMap> {
        let policy = self.policy.read()?;
        let cluster = self.connection.connect().await?;
        let mut progress = Progress::open("reading");
        let scan = MapScan {
            cluster: &cluster,
            policy: &policy,
            namespace: self.namespaces.only(),
            prefix: self.assumptions.prefix(),
        };
        let map = scan.run(Timestamp::now(), &mut |steps| progress.advance(steps)).await?;
        Ok(map)
    }

    fn of_manifests(&self) -> anyhow::Result<(NetworkMap, u8)> {
        let (map, unreadable) = manifests::read(self)?;
        ensure!(unreadable == 0 || !map.is_empty(), "nothing could be read");
        Ok((map, if unreadable == 0 { EXIT_CLEAN } else { EXIT_UNUSABLE }))
    }
}
