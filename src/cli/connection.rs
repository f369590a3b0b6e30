//! Connects interactive commands to a cluster, like kubectl.

use std::future::Future;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::cluster::client::Cluster;

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
    /// Creates the client without sending a request.
    pub(super) async fn connect(&self) -> anyhow::Result<Cluster> {
        let (file, context) = (self.kubeconfig.as_deref(), self.context.as_deref());
        if let Some(cluster) = Cluster::by_kubeconfigs(file, context).await? {
            return Ok(cluster);
        }
        if context.is_some() {
            anyhow::bail!("--context: no kubeconfig found; pass --kubeconfig");
        }
        Cluster::by_pod()?.context("no cluster: no kubeconfig found and not running in a pod; pass --kubeconfig")
    }
}

/// Runs a future to completion on this thread.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    // Only one crypto provider is linked, and it is installed only here.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(work)
}
