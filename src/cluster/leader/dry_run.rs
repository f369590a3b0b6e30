//! Who denies a NAD that the operator fails to create: a dry run, which stores nothing, shows it.
//!
//! The result for a network is kept until the next dry run, so that a report does not depend on whose turn it was. The number of
//! dry runs is limited, because each may take as long as an unreachable webhook.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::audit::context::AuditContext;
use crate::cluster::client::{ApiPath, ApiResource, Cluster};
use crate::cluster::leader::deferred::DeferredObject;
use crate::resources::{Object, render};
use crate::supervise::contained_async;
use crate::visible::truncated;

/// How many dry runs are made per window.
const MAX_QUESTIONS: usize = 20;
const WINDOW: Duration = Duration::from_secs(30);
/// A slower dry run ends the window.
const SLOW_ANSWER: Duration = Duration::from_secs(2);
/// The timeout of a dry run: the API server itself waits ten seconds for most webhooks.
const DRY_RUN_TIMEOUT: Duration = Duration::from_secs(12);
/// How long a result is kept without a new dry run.
const KEEP_ANSWER: Duration = Duration::from_secs(3600);
/// The maximum length of a stored message.
const MAX_MESSAGE_CHARS: usize = 600;

/// The results so far.
#[derive(Debug, Default)]
pub struct DryRunDenials {
    /// By network UID, with the time.
    denial: HashMap<Box<str>, (Instant, Option<String>)>,
    /// The start of the window, and the dry runs in it.
    since: Option<Instant>,
    asked: usize,
    /// Whether no dry run is made at all.
    is_off: bool,
}

impl DryRunDenials {
    /// Makes no dry runs: nothing but reads is sent.
    pub fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// Makes dry runs for networks, within the limit: first those never or longest ago tried.
    pub(in crate::cluster) async fn ask(
        &mut self,
        cluster: &Cluster,
        networks: Vec<(&DeferredObject, Box<str>)>,
        context: &AuditContext,
    ) {
        for (network, uid) in self.next_turns(networks, Instant::now()) {
            let now = Instant::now();
            self.asked += 1;
            let asked = async {
                let network = network.load(cluster).await.ok()??;
                cluster.dry_run_denial(&network.text, context).await
            };
            let answer = timeout(DRY_RUN_TIMEOUT, contained_async(asked)).await;
            // On timeout the previous result stays, and the turn counts.
            let words = answer.map_or_else(|_| self.denial(&uid).map(str::to_owned), |asked| asked.ok().flatten());
            self.denial.insert(uid, (now, words));
            if now.elapsed() >= SLOW_ANSWER {
                self.asked = MAX_QUESTIONS;
                return;
            }
        }
    }

    /// The denial of a network's NAD, if any. Unknown without the permission to create NADs.
    pub(in crate::cluster) fn denial(&self, uid: &str) -> Option<&str> {
        self.denial.get(uid)?.1.as_deref()
    }

    /// Those that are asked about now, each with its UID.
    fn next_turns<T>(&mut self, mut networks: Vec<(T, Box<str>)>, now: Instant) -> Vec<(T, Box<str>)> {
        if self.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            (self.since, self.asked) = (Some(now), 0);
            self.denial.retain(|_, (at, _)| now.duration_since(*at) < KEEP_ANSWER);
        }
        networks.sort_by_key(|(_, uid)| self.denial.get(uid).map(|(at, _)| *at));
        let most = if self.is_off { 0 } else { MAX_QUESTIONS };
        networks.truncate(most.saturating_sub(self.asked));
        networks
    }

    /// Removes a network that has its NAD or was deleted.
    pub(in crate::cluster) fn forget(&mut self, uid: &str) {
        self.denial.remove(uid);
    }
}

impl Cluster {
    async fn dry_run_denial(&self, network: &str, context: &AuditContext) -> Option<String> {
        let Ok(Some(Object::Network(network))) = Object::read(network) else { return None };
        let nad = render(&network, &context.prefix.as_ref()?.value).nad_json()?;
        let path = ApiPath::in_namespace(ApiResource::NADS, &network.target_namespace()).ok()?;
        stable_message(&self.dry_run_error(&path.dry_run(), nad).await?)
    }
}

/// The stable part of a denial message. For an unreachable webhook the API server adds times, addresses and ports, so only its
/// name is kept. nadmit's own webhooks never deny the operator.
fn stable_message(words: &str) -> Option<String> {
    if words.contains(".nadmit.io\"") {
        return None;
    }
    if let Some((_, rest)) = words.split_once("failed calling webhook \"") {
        let name = rest.split('"').next().unwrap_or_default();
        return Some(format!("the webhook \"{name}\" cannot be called"));
    }
    Some(truncated(words, MAX_MESSAGE_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every waiting network gets a turn, also if others are checked in between.
    #[test]
    fn every_network_gets_a_turn() {
        let waiting: Vec<((), Box<str>)> =
            (0..2 * MAX_QUESTIONS + 5).map(|number| ((), number.to_string().into())).collect();
        let mut denials = DryRunDenials::default();
        let start = Instant::now();
        let mut turns_at = |minute: u64, at: &[((), Box<str>)]| {
            let now = start + Duration::from_secs(60 * minute);
            let turns = denials.next_turns(at.to_vec(), now);
            denials.asked += turns.len();
            let asked = turns.into_iter().map(|((), uid)| {
                denials.denial.insert(uid.clone(), (now, None));
                uid.parse::<usize>().unwrap()
            });
            asked.collect::<Vec<_>>()
        };
        assert_eq!(turns_at(0, &waiting), Vec::from_iter(0..MAX_QUESTIONS));
        assert_eq!(turns_at(0, &waiting[..1]), [0; 0], "the limit is reached");
        assert_eq!(turns_at(1, &waiting[..1]), [0]);
        assert_eq!(turns_at(10, &waiting), Vec::from_iter(MAX_QUESTIONS..2 * MAX_QUESTIONS));
        // Those without a result first, then the oldest; the first was tried again since.
        let third = (2 * MAX_QUESTIONS..2 * MAX_QUESTIONS + 5).chain(1..MAX_QUESTIONS - 4);
        assert_eq!(turns_at(20, &waiting), Vec::from_iter(third));
        assert_eq!(denials.denial.len(), waiting.len());
        // Results expire.
        denials.next_turns::<()>(Vec::new(), start + Duration::from_secs(60 * 20) + KEEP_ANSWER);
        assert!(denials.denial.is_empty());
    }

    #[test]
    fn stable_message_has_no_times_or_addresses() {
        let away = r#"Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post "https://x.y.svc:443/?timeout=10s": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-17T04:28:15Z is after 2026-11-16T00:00:00Z"#;
        assert_eq!(stable_message(away).as_deref(), Some("the webhook \"x.example.com\" cannot be called"));
        let denied = r#"admission webhook "x.example.com" denied the request: no"#;
        assert_eq!(stable_message(denied).as_deref(), Some(denied));
        for ours in [
            r#"admission webhook "nads.nadmit.io" denied the request: no"#,
            r#"Internal error occurred: failed calling webhook "nads.nadmit.io": failed to call webhook: EOF"#,
        ] {
            assert_eq!(stable_message(ours), None);
        }
        assert_eq!(stable_message(&"é".repeat(5000)).unwrap().chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
