//! `nadmit policy`.

use anyhow::Context;
use clap::Args;

use super::connection::{Connection, block_on};
use super::{EXIT_CLEAN, EXIT_DENIED, print};
use crate::cluster::cache::policy_config_map::{ConfigMapName, PolicyConfigMapError, read_policy};
use crate::cluster::doctor::replica_policies::{PolicyState, ReplicaPolicy};
use crate::deploy::{NAME, POLICY};
use crate::manifests::LoadedPolicy;
use crate::resources::ObjectKey;
use crate::visible;

/// Show which policy each replica judges by
///
/// One line for the ConfigMap as it is now, and one for each replica, with the first 12 digits of the SHA-256 of the policy's
/// text. It reads the metrics of the pods through the API server: you need the permissions to list pods, to get pods/proxy, and
/// to get the ConfigMap.
///
/// Exit code 0: all replicas have the policy of the ConfigMap. 1: not all. 2: wrong arguments, or the cluster cannot be reached.
#[derive(Debug, Args)]
pub(super) struct PolicyCommand {
    /// The namespace that nadmit runs in
    #[arg(long, short, default_value = NAME, value_name = "NAME")]
    namespace: String,
    /// The ConfigMap with the policy; without a namespace it is in nadmit's own
    #[arg(long, default_value = POLICY, value_name = "[NAMESPACE/]NAME")]
    policy_configmap: ConfigMapName,
    #[command(flatten)]
    connection: Connection,
}

impl PolicyCommand {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        block_on(self.show())
    }

    async fn show(self) -> anyhow::Result<u8> {
        let cluster = self.connection.connect().await?;
        let key = self.policy_configmap.key(&self.namespace);
        let configured = read_policy(&cluster, &key).await.with_context(|| format!("ConfigMap {key}"))?;
        let replicas = cluster.replica_policies(&self.namespace).await.context("the pods of nadmit")?;
        let (text, is_same) = report(&key, &configured, &replicas);
        print(&text)?;
        Ok(if is_same { EXIT_CLEAN } else { EXIT_DENIED })
    }
}

/// The lines, and whether all replicas have the configured policy.
fn report(
    key: &ObjectKey,
    configured: &Result<LoadedPolicy, PolicyConfigMapError>,
    replicas: &[ReplicaPolicy],
) -> (String, bool) {
    let wanted = configured.as_ref().ok().map(|loaded| loaded.hash.as_str());
    let width = replicas.iter().map(|replica| replica.pod.len()).max().unwrap_or(0).max(key.to_string().len());
    let mut text = match configured {
        Ok(loaded) => format!("{:width$}  {:12}  the ConfigMap\n", key.to_string(), loaded.hash),
        Err(error) => format!("{:width$}  {:12}  {}\n", key.to_string(), "-", visible::line(&error.to_string())),
    };
    let mut is_same = wanted.is_some() && !replicas.is_empty();
    for ReplicaPolicy { pod, state } in replicas {
        let (hash, words) = match state {
            Ok(state) => (state.hash.as_deref().unwrap_or("-"), sentence(state, wanted)),
            Err(error) => ("?", error.clone()),
        };
        is_same &= state.as_ref().is_ok_and(|state| state.hash.as_deref() == wanted && !state.is_rejected);
        text += &format!("{:width$}  {:12}  {}\n", visible::line(pod), visible::line(hash), visible::line(&words));
    }
    if replicas.is_empty() {
        text += "no replicas found\n";
    }
    let mut hashes: Vec<_> = replicas.iter().filter_map(|replica| replica.state.as_ref().ok()?.hash.as_ref()).collect();
    hashes.sort();
    hashes.dedup();
    if hashes.len() > 1 {
        text += &format!("the replicas differ: they judge by {} policies\n", hashes.len());
    }
    (text, is_same)
}

fn sentence(state: &PolicyState, wanted: Option<&str>) -> String {
    let since = state.since.and_then(|since| jiff::Timestamp::from_second(since as i64).ok());
    let since = since.map_or_else(String::new, |since| format!(" since {since}"));
    match &state.hash {
        None => "not ready: waits for a valid policy".to_owned(),
        Some(_) if state.is_rejected => {
            format!("in force{since}; the ConfigMap is missing or was rejected, see the log")
        }
        Some(hash) if wanted == Some(hash) => format!("in force{since}"),
        Some(_) => format!("in force{since}; not the policy of the ConfigMap"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(pod: &str, hash: &str, is_rejected: bool) -> ReplicaPolicy {
        let state = PolicyState { hash: Some(hash.to_owned()), since: Some(1.7e9), is_rejected };
        ReplicaPolicy { pod: pod.to_owned(), state: Ok(state) }
    }

    #[test]
    fn differences_are_shown() {
        let key = ObjectKey::new("nadmit", "nadmit-policy");
        let good = LoadedPolicy::parse("", "{}\n").unwrap();
        let hash = good.hash.clone();
        let configured = Ok(good);
        let (text, is_same) = report(&key, &configured, &[replica("a", &hash, false), replica("b", &hash, false)]);
        assert!(is_same);
        let line = format!("a                     {hash}  in force since 2023-11-14T22:13:20Z\n");
        assert!(
            text.contains(&line) && text.starts_with(&format!("nadmit/nadmit-policy  {hash}  the ConfigMap\n")),
            "{text}"
        );
        let absent = Err(PolicyConfigMapError::Absent(key.clone()));
        let lost = ReplicaPolicy { pod: "c".to_owned(), state: Err("gone".to_owned()) };
        let waiting = PolicyState { is_rejected: true, ..PolicyState::default() };
        let waiting = ReplicaPolicy { pod: "d".to_owned(), state: Ok(waiting) };
        for (configured, replicas, words) in [
            (&configured, vec![replica("a", "other", false)], "not the policy of the ConfigMap"),
            (
                &configured,
                vec![replica("a", &hash, false), replica("b", "x", false)],
                "differ: they judge by 2 policies",
            ),
            (&configured, vec![replica("a", "other", true)], "missing or was rejected"),
            (&configured, vec![replica("a", &hash, false), lost], "gone"),
            (&configured, vec![waiting], "waits for a valid policy"),
            (&configured, Vec::new(), "no replicas found"),
            (&absent, vec![replica("a", &hash, false)], "the ConfigMap nadmit/nadmit-policy does not exist"),
        ] {
            let (text, is_same) = report(&key, configured, &replicas);
            assert!(!is_same && text.contains(words), "{text}");
        }
    }
}
