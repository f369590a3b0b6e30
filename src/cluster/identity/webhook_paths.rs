//! The paths in stored webhook configurations, and the choice of the token to register.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::identity::token::Registrable;
use crate::tls::token::Token;

/// The tokens in the paths of all webhook entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster) struct RegisteredPaths {
    /// The token of all entries; `None` if there is none, or not the same.
    pub(in crate::cluster) token: Option<Token>,
    /// All tokens that some entry has.
    pub(in crate::cluster) tokens: Vec<Token>,
    /// Whether some entries have no token.
    pub(in crate::cluster) is_plain: bool,
    /// Whether no entry has a token: registered by a version before tokens.
    pub(in crate::cluster) is_all_plain: bool,
}

impl RegisteredPaths {
    /// Reads both configurations as they are stored.
    pub(in crate::cluster) fn of(stored: &[Option<Value>]) -> Self {
        let entries = stored.iter().flatten().filter_map(|stored| stored.get("webhooks")?.as_array()).flatten();
        let paths: Vec<_> = entries.filter_map(|entry| entry.pointer("/clientConfig/service/path")?.as_str()).collect();
        let is_plain = |path: &str| ["/mutate", "/validate", "/status"].contains(&path);
        let token = |path: &str| Token::read(path.strip_prefix('/')?.split_once('/')?.1);
        let first = paths.first().and_then(|first| token(first));
        let mut tokens: Vec<Token> = Vec::new();
        for token in paths.iter().filter_map(|path| token(path)) {
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        Self {
            token: first.filter(|first| paths.iter().all(|path| token(path).as_ref() == Some(first))),
            tokens,
            is_plain: paths.iter().any(|path| is_plain(path)),
            is_all_plain: !paths.is_empty() && paths.iter().all(|path| is_plain(path)),
        }
    }
}

/// The state between two reconciles.
#[derive(Debug, Default)]
pub(in crate::cluster) struct TokenRollout {
    /// Since when every replica that was asked knows the token.
    known_since: Option<Instant>,
    /// When an entry last had no token.
    plain: Option<Instant>,
    /// The tokens that entries had, and when they last did.
    tokens: Vec<(Token, Instant)>,
}

/// Which token to register.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cluster) enum TokenChoice {
    /// The registered one, or none.
    Keep(Option<Token>),
    /// A new one, if a replica knows it.
    Change(Token),
    /// A new one if all replicas know it; until then paths have no token.
    Upgrade(Token),
}

/// Chooses the token. If some entries have a newer one, another replica is in the middle of a change, which is completed and not undone.
pub(in crate::cluster) fn choose(paths: &RegisteredPaths, own: &Registrable) -> TokenChoice {
    if let Some(newer) = own.others.iter().find(|other| paths.tokens.contains(other)) {
        return TokenChoice::Keep(Some(newer.clone()));
    }
    match paths.token.as_ref().or(paths.tokens.first()) {
        Some(token) if !own.may_replace => TokenChoice::Keep(Some(token.clone())),
        Some(token) if paths.token.as_ref() == Some(&own.current) => TokenChoice::Keep(Some(token.clone())),
        _ if paths.is_all_plain => TokenChoice::Upgrade(own.current.clone()),
        _ => TokenChoice::Change(own.current.clone()),
    }
}

impl TokenRollout {
    /// During a rollout, replicas of a version before tokens also receive requests, and the Service picks one per connection. So
    /// the token is registered once all replicas knew it for a while.
    pub(in crate::cluster) fn is_complete(&mut self, is_known: bool, now: Instant, propagation: Duration) -> bool {
        if !is_known {
            self.known_since = None;
            return false;
        }
        now.duration_since(*self.known_since.get_or_insert(now)) >= propagation
    }

    /// The tokens of entries, now or a moment ago: API servers take a while to see a new registration, and the Secret may no
    /// longer have them.
    pub(in crate::cluster) fn registered_tokens(
        &mut self,
        paths: &RegisteredPaths,
        now: Instant,
        propagation: Duration,
    ) -> Vec<Token> {
        self.tokens.retain(|(token, last)| !paths.tokens.contains(token) && now.duration_since(*last) < propagation);
        self.tokens.extend(paths.tokens.iter().map(|token| (token.clone(), now)));
        self.tokens.iter().map(|(token, _)| token.clone()).collect()
    }

    /// Whether paths without a token are still accepted: API servers take a while to see a new registration.
    pub(in crate::cluster) fn accepts_plain(
        &mut self,
        paths: &RegisteredPaths,
        now: Instant,
        propagation: Duration,
    ) -> bool {
        if paths.is_plain {
            self.plain = Some(now);
        }
        self.plain.is_some_and(|last| now.duration_since(last) < propagation)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(digit: &str) -> Token {
        Token::read(&digit.repeat(64)).unwrap()
    }

    fn stored(paths: &[&str]) -> Option<Value> {
        let entries: Vec<_> =
            paths.iter().map(|path| json!({ "clientConfig": { "service": { "path": path } } })).collect();
        Some(json!({ "webhooks": entries }))
    }

    #[test]
    fn token_is_read_from_all_webhook_entries() {
        let (a, b) = (format!("/mutate/{}", token("a").text()), format!("/validate/{}", token("a").text()));
        let other = format!("/validate/{}", token("b").text());
        let none = RegisteredPaths::default();
        for (mutating, validating, want) in [
            (None, None, none.clone()),
            (stored(&[]), Some(json!({})), none.clone()),
            (
                stored(&[&a]),
                stored(&[&b]),
                RegisteredPaths { token: Some(token("a")), tokens: vec![token("a")], ..none.clone() },
            ),
            (
                stored(&[&a]),
                stored(&[&other]),
                RegisteredPaths { tokens: vec![token("a"), token("b")], ..none.clone() },
            ),
            (
                stored(&["/mutate", "/status"]),
                stored(&["/validate"]),
                RegisteredPaths { is_plain: true, is_all_plain: true, ..none.clone() },
            ),
            (
                stored(&[&a]),
                stored(&["/validate"]),
                RegisteredPaths { tokens: vec![token("a")], is_plain: true, ..none.clone() },
            ),
            (stored(&["/x"]), stored(&["/validate/short"]), none),
        ] {
            let shown = format!("{mutating:?} {validating:?}");
            assert_eq!(RegisteredPaths::of(&[mutating, validating]), want, "{shown}");
        }
    }

    #[test]
    fn keeps_a_token_registered_by_another_replica() {
        let own = Registrable { current: token("a"), may_replace: true, others: vec![token("b")] };
        let carries = |token: Option<Token>| RegisteredPaths {
            tokens: token.iter().cloned().collect(),
            token,
            ..RegisteredPaths::default()
        };
        let mixed = |digits: [&str; 2]| RegisteredPaths {
            tokens: digits.iter().map(|digit| token(digit)).collect(),
            ..RegisteredPaths::default()
        };
        let plain = RegisteredPaths { is_plain: true, is_all_plain: true, ..RegisteredPaths::default() };
        for (paths, want) in [
            (carries(Some(token("a"))), TokenChoice::Keep(Some(token("a")))),
            (carries(Some(token("b"))), TokenChoice::Keep(Some(token("b")))),
            (carries(Some(token("c"))), TokenChoice::Change(token("a"))),
            (carries(None), TokenChoice::Change(token("a"))),
            (mixed(["a", "b"]), TokenChoice::Keep(Some(token("b")))),
            (mixed(["b", "c"]), TokenChoice::Keep(Some(token("b")))),
            (mixed(["a", "c"]), TokenChoice::Change(token("a"))),
            (RegisteredPaths { is_plain: true, ..RegisteredPaths::default() }, TokenChoice::Change(token("a"))),
            (plain, TokenChoice::Upgrade(token("a"))),
        ] {
            assert_eq!(choose(&paths, &own), want, "{paths:?}");
        }
        // The Secret was replaced just now: the registered token stays, but the rollout of a newer token is completed.
        let own = Registrable { may_replace: false, others: vec![token("c"), token("b")], ..own };
        for (paths, want) in [
            (carries(Some(token("d"))), TokenChoice::Keep(Some(token("d")))),
            (mixed(["d", "e"]), TokenChoice::Keep(Some(token("d")))),
            (mixed(["b", "c"]), TokenChoice::Keep(Some(token("c")))),
            (carries(None), TokenChoice::Change(token("a"))),
        ] {
            assert_eq!(choose(&paths, &own), want, "{paths:?}");
        }
    }

    #[test]
    fn rollout_completes_when_all_replicas_know_the_token() {
        let (mut upgrade, start) = (TokenRollout::default(), Instant::now());
        let propagation = Duration::from_secs(60);
        for (is_known, after, want) in [
            (true, 0, false),
            (true, 59, false),
            (false, 60, false),
            (true, 62, false),
            (true, 121, false),
            (true, 122, true),
        ] {
            assert_eq!(
                upgrade.is_complete(is_known, start + Duration::from_secs(after), propagation),
                want,
                "after {after} s"
            );
        }
        let plain = RegisteredPaths { is_plain: true, is_all_plain: true, ..RegisteredPaths::default() };
        for (paths, after, want) in [
            (RegisteredPaths::default(), 0, false),
            (plain, 1, true),
            (RegisteredPaths::default(), 60, true),
            (RegisteredPaths::default(), 61, false),
        ] {
            assert_eq!(
                upgrade.accepts_plain(&paths, start + Duration::from_secs(after), propagation),
                want,
                "after {after} s"
            );
        }
    }

    /// API servers may still use the previous paths, even if the Secret was replaced since.
    #[test]
    fn replaced_tokens_are_accepted_for_a_while() {
        let (mut rollout, start, propagation) = (TokenRollout::default(), Instant::now(), Duration::from_secs(60));
        let carries = |digits: &[&str]| RegisteredPaths {
            tokens: digits.iter().map(|digit| token(digit)).collect(),
            ..RegisteredPaths::default()
        };
        for (paths, after, want) in [
            (carries(&["a"]), 0, &["a"][..]),
            (carries(&["a", "b"]), 10, &["a", "b"]),
            (carries(&["b"]), 20, &["a", "b"]),
            (carries(&["b"]), 69, &["a", "b"]),
            (carries(&["b"]), 70, &["b"]),
            (carries(&[]), 100, &["b"]),
            (carries(&[]), 130, &[]),
        ] {
            let accepted = rollout.registered_tokens(&paths, start + Duration::from_secs(after), propagation);
            assert_eq!(accepted, want.iter().map(|digit| token(digit)).collect::<Vec<_>>(), "after {after} s");
        }
    }
}
