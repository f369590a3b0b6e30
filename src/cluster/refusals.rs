//! Who refuses a NAD that does not come: the API server is asked by a dry run, which stores nothing.
//!
//! What was said of a network is kept until it is asked about again, so that what a report says does not depend on who had a turn;
//! and there are only so many questions in a while, as an answer may take as long as a webhook that is away.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Cluster;
use super::owner::segment;
use crate::audit::around::Around;
use crate::audit::moments::Kept;
use crate::policy::shortened;
use crate::resources::{NAD_GROUP, NADS, Object, render};

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
    /// Whether one of which nothing is known had no turn in this while, and whether that was so in the one before.
    missed: bool,
    missed_before: bool,
}

impl Refusals {
    /// Who refuses a network's NAD, and in which words, if anybody does. Whoever may not create NADs never knows.
    pub(super) async fn of(&mut self, cluster: &Cluster, network: &Kept, around: &Around) -> Option<String> {
        let now = Instant::now();
        if self.has_turn(&network.moments.uid, now) {
            let answer = timeout(LONGEST, cluster.who_refuses(&network.text, around)).await;
            if now.elapsed() >= SLOW {
                self.asked = MOST;
            }
            if let Ok(answer) = answer {
                self.said.insert(network.moments.uid.clone(), (now, answer));
            }
        }
        self.said.get(&network.moments.uid)?.1.clone()
    }

    /// Whether there is a question left for a network. Those of which something is known wait while others have had no turn at all.
    fn has_turn(&mut self, uid: &str, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= WHILE) {
            (self.since, self.asked) = (Some(now), 0);
            self.missed_before = std::mem::take(&mut self.missed);
            self.said.retain(|_, (at, _)| now.duration_since(*at) < LASTS);
        }
        let is_known = self.said.contains_key(uid);
        let has_turn = self.asked < MOST && !(is_known && self.missed_before);
        self.asked += usize::from(has_turn);
        self.missed |= !has_turn && !is_known;
        has_turn
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

    /// However many wait, each is asked about in the end, and then again.
    #[test]
    fn all_have_their_turn() {
        let mut refusals = Refusals::default();
        let mut look = |now: Instant| {
            let mut asked = Vec::new();
            for number in 0..2 * MOST + 5 {
                let uid = number.to_string();
                if refusals.has_turn(&uid, now) {
                    refusals.said.insert(uid.into(), (now, None));
                    asked.push(number);
                }
            }
            asked
        };
        let start = Instant::now();
        let (first, second, rest) = (0..MOST, MOST..2 * MOST, 2 * MOST..2 * MOST + 5);
        for (minute, turns) in [
            (0, &first),
            (10, &second),
            (20, &rest),
            // All are known. Who comes first is asked again, until what was said of the others is too old.
            (30, &first),
            (40, &first),
            (80, &first),
            (90, &second),
            (100, &rest),
        ] {
            assert_eq!(look(start + Duration::from_secs(60 * minute)), Vec::from_iter(turns.clone()), "{minute}");
        }
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
