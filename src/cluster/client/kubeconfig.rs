//! Finds a cluster as kubectl does: by one kubeconfig, by those of `$KUBECONFIG` merged, or by the one in the home directory.

use std::env;
use std::path::{Path, PathBuf};

use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::cluster::client::{Cluster, ClusterError};
use crate::policy::closest;

/// How many names are shown of a kubeconfig that does not have the one that was chosen.
const MAX_NAMED: usize = 8;

/// What the user chooses of the kubeconfigs. The rest is as they say.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigChoice {
    /// The only file to read.
    pub file: Option<PathBuf>,
    /// The context, instead of the current one.
    pub context: Option<String>,
    /// The cluster, instead of that of the context.
    pub cluster: Option<String>,
    /// The user, instead of that of the context.
    pub user: Option<String>,
}

impl KubeconfigChoice {
    /// The chosen file, or all others merged; `None` if there is none.
    fn read(&self) -> Result<Option<Kubeconfig>, ClusterError> {
        match &self.file {
            Some(file) => read(file).map(Some),
            None => merged(Self::usual_files()),
        }
    }

    /// Where kubectl looks for kubeconfigs if none is chosen.
    pub fn usual_files() -> Vec<PathBuf> {
        match env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
            Some(list) => env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
            None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
        }
    }

    async fn connect(&self, kubeconfig: Kubeconfig) -> Result<Cluster, ClusterError> {
        let Self { context, cluster, user, .. } = self.clone();
        let contexts = kubeconfig.contexts.iter().map(|known| known.name.as_str());
        exists("context", context.as_deref(), contexts)?;
        exists("cluster", cluster.as_deref(), kubeconfig.clusters.iter().map(|known| known.name.as_str()))?;
        // A user that does not exist would send its requests without credentials.
        exists("user", user.as_deref(), kubeconfig.auth_infos.iter().map(|known| known.name.as_str()))?;
        let name = context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
        let options = KubeConfigOptions { context, cluster, user };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(unusable)?;
        Cluster::new(config, &format!("context {name:?}"))
    }
}

impl Cluster {
    /// Connects with a kubeconfig.
    pub async fn by_kubeconfig(path: &Path) -> Result<Self, ClusterError> {
        KubeconfigChoice::default().connect(read(path)?).await
    }

    /// Connects with the kubeconfigs that kubectl would use, and what is chosen of them; `None` without a kubeconfig.
    pub async fn by_kubeconfigs(choice: &KubeconfigChoice) -> Result<Option<Self>, ClusterError> {
        match choice.read()? {
            Some(kubeconfig) => choice.connect(kubeconfig).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Merges those that exist, as client-go does: the first file that has a value or a name wins. `None` if none exists.
fn merged(paths: impl IntoIterator<Item = PathBuf>) -> Result<Option<Kubeconfig>, ClusterError> {
    let mut all: Option<Kubeconfig> = None;
    for path in paths.into_iter().filter(|path| path.exists()) {
        let next = read(&path)?;
        all = Some(match all {
            Some(all) => all.merge(next).map_err(unusable)?,
            None => next,
        });
    }
    Ok(all)
}

/// An error if what was chosen does not exist, with what does.
fn exists<'k>(
    what: &'static str,
    chosen: Option<&str>,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Result<(), ClusterError> {
    let Some(name) = chosen.filter(|name| !known.clone().any(|known| known == *name)) else { return Ok(()) };
    let quoted: Vec<String> = known.clone().take(MAX_NAMED).map(|name| format!("{name:?}")).collect();
    let more = known.clone().count() - quoted.len();
    let known = match (closest(name, known), quoted.as_slice()) {
        (Some(close), _) => format!("did you mean {close:?}?"),
        (None, []) => "it has none".to_owned(),
        (None, _) if more > 0 => format!("it has {} and {more} more", quoted.join(", ")),
        (None, _) => format!("it has {}", quoted.join(", ")),
    };
    Err(ClusterError::Missing { what, name: name.to_owned(), known })
}

fn read(path: &Path) -> Result<Kubeconfig, ClusterError> {
    let mut kubeconfig = Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(problem, path) => {
            ClusterError::Unreadable { path: path.display().to_string(), problem }
        }
        other => unusable(other),
    })?;
    // kubectl writes an empty name for none. It must not hide the current context of the next file.
    kubeconfig.current_context = kubeconfig.current_context.filter(|name| !name.is_empty());
    Ok(kubeconfig)
}

/// The message includes the file and all causes.
fn unusable(error: KubeconfigError) -> ClusterError {
    ClusterError::Kubeconfig(Box::new(error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// A kubeconfig with one context, whose cluster and user have the same name.
    fn kubeconfig(name: &str, server: &str, current: &str) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": current,
            "clusters": [{ "name": name, "cluster": { "server": server } }],
            "users": [{ "name": name, "user": { "token": "t" } }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name, "namespace": format!("of-{name}") } }],
        })
        .to_string()
    }

    #[test]
    fn several_files_are_merged_and_the_first_one_wins() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let one = file("one", &kubeconfig("a", "https://a.example:1", ""));
        let two = file("two", &kubeconfig("b", "https://b.example:1", "b"));
        let other = file("other", &kubeconfig("a", "https://other.example:1", "a"));
        let missing = directory.path().join("missing");
        for (paths, servers, current) in [
            (vec![&one, &two], vec!["https://a.example:1", "https://b.example:1"], Some("b")),
            (vec![&missing, &one, &other], vec!["https://a.example:1"], Some("a")),
            (vec![&other, &one], vec!["https://other.example:1"], Some("a")),
            (vec![&one, &missing], vec!["https://a.example:1"], None),
        ] {
            let found = merged(paths.iter().map(|path| path.to_path_buf())).unwrap().unwrap();
            let clusters = found.clusters.iter().filter_map(|named| named.cluster.as_ref()?.server.as_deref());
            assert_eq!(
                (clusters.collect::<Vec<_>>(), found.current_context.as_deref()),
                (servers, current),
                "{paths:?}"
            );
        }
        assert!(merged([missing.clone()]).unwrap().is_none(), "only a file that is named by itself must exist");
        assert!(read(&missing).is_err());
        let broken = file("broken", "clusters: 5\n");
        assert!(merged([one, broken]).is_err(), "a file that cannot be read is an error");
    }

    #[tokio::test]
    async fn context_cluster_and_user_can_be_chosen() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| directory.path().join(name));
        for (path, name) in paths.iter().zip(["a", "b"]) {
            fs::write(path, kubeconfig(name, &format!("https://{name}.example:1"), name)).unwrap();
        }
        let all = merged(paths).unwrap().unwrap();
        let choose = |context: Option<&str>, cluster: Option<&str>, user: Option<&str>| {
            let [context, cluster, user] = [context, cluster, user].map(|name| name.map(str::to_owned));
            KubeconfigChoice { file: None, context, cluster, user }
        };
        for (choice, description, namespace) in [
            (choose(None, None, None), "context \"a\" (https://a.example:1)", "of-a"),
            (choose(Some("b"), None, None), "context \"b\" (https://b.example:1)", "of-b"),
            (choose(Some("b"), Some("a"), Some("a")), "context \"b\" (https://a.example:1)", "of-b"),
        ] {
            let cluster = choice.connect(all.clone()).await.unwrap();
            assert_eq!((cluster.description(), cluster.default_namespace()), (description, namespace), "{choice:?}");
        }
        for (wrong, what) in [
            (choose(Some("c"), None, None), "context"),
            (choose(None, Some("c"), None), "cluster"),
            (choose(None, None, Some("c")), "user"),
        ] {
            let error = choose_error(&wrong, all.clone()).await;
            assert_eq!(error, format!("the kubeconfig has no {what} \"c\"; it has \"a\", \"b\""));
        }
        for (known, want) in [
            (vec!["production", "staging"], "did you mean \"production\"?"),
            (vec![], "it has none"),
            (vec!["a"; 10], "it has \"a\", \"a\", \"a\", \"a\", \"a\", \"a\", \"a\", \"a\" and 2 more"),
        ] {
            let error = exists("context", Some("producton"), known.iter().copied()).unwrap_err().to_string();
            assert_eq!(error, format!("the kubeconfig has no context \"producton\"; {want}"));
        }
    }

    async fn choose_error(choice: &KubeconfigChoice, kubeconfig: Kubeconfig) -> String {
        match choice.connect(kubeconfig).await {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }
}
