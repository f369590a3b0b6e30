//! Who refuses a NAD that does not come: the API server is asked by a dry run, which stores nothing.
//!
//! What was said of a network is kept until it is asked about again, so that what a report says does not depend on who had a turn;
//! and there are only so many questions in a while, as an answer may take as long as a webhook that is away.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Cluster;
use super::later::Later;
use super::owner::segment;
use crate::audit::around::Around;
use crate::policy::shortened;
use crate::resources::{NAD_GROUP, NADS, Object, render};
use crate::supervise::contained_async;

/// How many questions there are in a while.
const MOST: usize = 20;
const WHILE: Duration = Duration::from_secs(30);
/// An answer that took longer is the last for a while.
const SLOW: Duration = Duration::from_secs(2);
/// How long an answer may take: the API server itself waits ten seconds for most webhooks.
const LONGEST: Duration = Duration::from_secs(12);
/// How long an answer is kept that there was no turn to ask for again.
const LASTS: Duration = Duration::from_secs(3600);
/// The longest words that are kept.
const MOST_WORDS: usize = 600;

/// What was said so far.
#[derive(Debug, Default)]
pub struct Refusals {
    /// By the UID of the network, and when.
    said: HashMap<Box<str>, (Instant, Option<String>)>,
    /// Since when questions are counted, and how many there were.
    since: Option<Instant>,
    asked: usize,
}

impl Refusals {
    /// Asks about networks, as far as there are questions left: first about those that were asked about longest ago, or never.
    pub(super) async fn ask(&mut self, cluster: &Cluster, networks: Vec<(&Later, Box<str>)>, around: &Around) {
        for (network, uid) in self.turns(networks, Instant::now()) {
            let now = Instant::now();
            self.asked += 1;
            let asked = async {
                let network = network.whole(cluster).await.ok()??;
                cluster.who_refuses(&network.text, around).await
            };
            let answer = timeout(LONGEST, contained_async(asked)).await;
            // Where none came what was said before stays, and the turn is over all the same.
            let words = answer.map_or_else(|_| self.said(&uid).map(str::to_owned), |asked| asked.ok().flatten());
            self.said.insert(uid, (now, words));
            if now.elapsed() >= SLOW {
                self.asked = MOST;
                return;
            }
        }
    }

    /// Who refuses a network's NAD, and in which words, if anybody does. Whoever may not create NADs never knows.
    pub(super) fn said(&self, uid: &str) -> Option<&str> {
        self.said.get(uid)?.1.as_deref()
    }

    /// Those that are asked about now, each with its UID.
    fn turns<T>(&mut self, mut networks: Vec<(T, Box<str>)>, now: Instant) -> Vec<(T, Box<str>)> {
        if self.since.is_none_or(|since| now.duration_since(since) >= WHILE) {
            (self.since, self.asked) = (Some(now), 0);
            self.said.retain(|_, (at, _)| now.duration_since(*at) < LASTS);
        }
        networks.sort_by_key(|(_, uid)| self.said.get(uid).map(|(at, _)| *at));
        networks.truncate(MOST.saturating_sub(self.asked));
        networks
    }

    /// It has its NAD, or is gone.
    pub(super) fn forget(&mut self, uid: &str) {
        self.said.remove(uid);
    }
}

impl Cluster {
    async fn who_refuses(&self, network: &str, around: &Around) -> Option<String> {
        let Ok(Some(Object::Network(network))) = Object::read(network) else { return None };
        let nad = render(&network, &around.prefix.as_ref()?.value).nad?;
        let target = network.target_namespace();
        let path = format!("/apis/{NAD_GROUP}/v1/namespaces/{}/{NADS}?dryRun=All", segment(&target)?);
        lasting(&self.refusal(&path, nad).await?)
    }
}

/// What of a refusal's words stays the same from one time to the next. That a webhook cannot be called is said with times, addresses and
/// ports, of which only its name is kept. Our own refuse nothing that the operator writes.
fn lasting(words: &str) -> Option<String> {
    if words.contains(".nadmit.io\"") {
        return None;
    }
    if let Some((_, rest)) = words.split_once("failed calling webhook \"") {
        let name = rest.split('"').next().unwrap_or_default();
        return Some(format!("the webhook \"{name}\" cannot be called"));
    }
    Some(shortened(words, MOST_WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many wait, each is asked about in its turn, also where others are looked at in between.
    #[test]
    fn all_have_their_turn() {
        let waiting: Vec<((), Box<str>)> = (0..2 * MOST + 5).map(|number| ((), number.to_string().into())).collect();
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let mut look = |minute: u64, at: &[((), Box<str>)]| {
            let now = start + Duration::from_secs(60 * minute);
            let turns = refusals.turns(at.to_vec(), now);
            refusals.asked += turns.len();
            let asked = turns.into_iter().map(|((), uid)| {
                refusals.said.insert(uid.clone(), (now, None));
                uid.parse::<usize>().unwrap()
            });
            asked.collect::<Vec<_>>()
        };
        assert_eq!(look(0, &waiting), Vec::from_iter(0..MOST));
        assert_eq!(look(0, &waiting[..1]), [0; 0], "there is no question left");
        assert_eq!(look(1, &waiting[..1]), [0]);
        assert_eq!(look(10, &waiting), Vec::from_iter(MOST..2 * MOST));
        // Those of which nothing is known, then the oldest; the first was asked about once more since.
        let third = (2 * MOST..2 * MOST + 5).chain(1..MOST - 4);
        assert_eq!(look(20, &waiting), Vec::from_iter(third));
        assert_eq!(refusals.said.len(), waiting.len());
        // What was said is not kept for ever.
        refusals.turns::<()>(Vec::new(), start + Duration::from_secs(60 * 20) + LASTS);
        assert!(refusals.said.is_empty());
    }

    #[test]
    fn no_clock_and_no_address_stays_in_a_refusal() {
        let away = r#"Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post "https://x.y.svc:443/?timeout=10s": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-17T04:28:15Z is after 2026-11-16T00:00:00Z"#;
        assert_eq!(lasting(away).as_deref(), Some("the webhook \"x.example.com\" cannot be called"));
        let denied = r#"admission webhook "x.example.com" denied the request: no"#;
        assert_eq!(lasting(denied).as_deref(), Some(denied));
        for ours in [
            r#"admission webhook "nads.nadmit.io" denied the request: no"#,
            r#"Internal error occurred: failed calling webhook "nads.nadmit.io": failed to call webhook: EOF"#,
        ] {
            assert_eq!(lasting(ours), None);
        }
        assert_eq!(lasting(&"é".repeat(5000)).unwrap().chars().count(), MOST_WORDS + 1);
    }
}
