//! How a command that a person runs reaches a cluster: as kubectl does.

use std::future::Future;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::cluster::Cluster;

/// Which cluster.
#[derive(Debug, Args)]
pub(super) struct Connection {
    /// The kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, and in a pod its service account]
    #[arg(long, env = "NADMIT_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one]
    #[arg(long, env = "NADMIT_CONTEXT", value_name = "NAME")]
    context: Option<String>,
}

impl Connection {
    /// The cluster. Nobody has been asked yet.
    pub(super) async fn connect(&self) -> anyhow::Result<Cluster> {
        let (file, context) = (self.kubeconfig.as_deref(), self.context.as_deref());
        if let Some(cluster) = Cluster::by_kubeconfigs(file, context).await? {
            return Ok(cluster);
        }
        if context.is_some() {
            anyhow::bail!("--context: there is no kubeconfig; --kubeconfig names one");
        }
        Cluster::by_pod()?.context("there is no cluster: no kubeconfig, and this is no pod; --kubeconfig names one")
    }
}

/// Runs what waits for a cluster to its end, on this thread.
pub(super) fn wait_for<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    // The only provider there is, and nobody has set one before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("no threads")?.block_on(work)
}
