//! Connects interactive commands to a cluster, like kubectl.

use std::future::Future;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::cluster::client::{Cluster, KubeconfigChoice};

/// Which cluster.
#[derive(Debug, Args)]
pub(super) struct Connection {
    /// The kubeconfig of the cluster [default: the files of $KUBECONFIG, merged; ~/.kube/config; in a pod its service account]
    #[arg(long, env = "NADMIT_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one]
    #[arg(long, env = "NADMIT_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    /// The cluster in the kubeconfig [default: that of the context]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The user in the kubeconfig [default: that of the context]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

impl Connection {
    /// Creates the client without sending a request.
    pub(super) async fn connect(&self) -> anyhow::Result<Cluster> {
        let choice = KubeconfigChoice {
            file: self.kubeconfig.clone(),
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        if let Some(cluster) = Cluster::by_kubeconfigs(&choice).await? {
            return Ok(cluster);
        }
        let tried: Vec<_> = KubeconfigChoice::usual_files().iter().map(|path| path.display().to_string()).collect();
        let none = if tried.is_empty() {
            "no kubeconfig found".to_owned()
        } else {
            format!("no kubeconfig found at {}", tried.join(" or "))
        };
        for (option, value) in [("context", &self.context), ("cluster", &self.cluster), ("user", &self.user)] {
            anyhow::ensure!(value.is_none(), "--{option}: {none}; pass --kubeconfig");
        }
        Cluster::by_pod()?.with_context(|| format!("no cluster: {none}, and not running in a pod; pass --kubeconfig"))
    }
}

/// Which namespaces.
#[derive(Debug, Args)]
pub(super) struct NamespaceArgs {
    /// Only this namespace [default: all]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// All namespaces, which is the default
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
}

impl NamespaceArgs {
    /// The only namespace; `None` for all.
    pub(super) fn only(&self) -> Option<&str> {
        // kubectl, too, takes an empty name as none.
        self.namespace.as_deref().filter(|name| !self.all_namespaces && !name.is_empty())
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
