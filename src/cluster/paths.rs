//! The paths that stored webhook configurations carry, and the one that is to be registered.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::token::Registrable;
use crate::tls::token::Token;

/// What is in the paths of all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Paths {
    /// The token that all of them carry; `None` where they carry none, or not the same.
    pub(super) token: Option<Token>,
    /// Whether some carry none.
    pub(super) is_plain: bool,
    /// Whether all carry none: a version before tokens registered them.
    pub(super) is_all_plain: bool,
}

impl Paths {
    /// Reads both configurations as they are stored.
    pub(super) fn of(stored: &[Option<Value>]) -> Self {
        let entries = stored.iter().flatten().filter_map(|stored| stored.get("webhooks")?.as_array()).flatten();
        let paths: Vec<_> = entries.filter_map(|entry| entry.pointer("/clientConfig/service/path")?.as_str()).collect();
        let is_plain = |path: &str| ["/mutate", "/validate", "/status"].contains(&path);
        let token = |path: &str| Token::read(path.strip_prefix('/')?.split_once('/')?.1);
        let first = paths.first().and_then(|first| token(first));
        Self {
            token: first.filter(|first| paths.iter().all(|path| token(path).as_ref() == Some(first))),
            is_plain: paths.iter().any(|path| is_plain(path)),
            is_all_plain: !paths.is_empty() && paths.iter().all(|path| is_plain(path)),
        }
    }
}

/// What is remembered from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Upgrade {
    /// Since when every replica that was asked knows the token.
    known_since: Option<Instant>,
    /// When webhooks last carried no token.
    plain: Option<Instant>,
}

/// Which token to register.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The one that webhooks carry, or none as they do.
    Keep(Option<Token>),
    /// Another one, if a replica knows it.
    Change(Token),
    /// Another one if all replicas know it; until then paths stay without.
    Upgrade(Token),
}

/// Chooses the token. One that another replica may have registered before this one does is left alone.
pub(super) fn choose(paths: &Paths, own: &Registrable) -> Choice {
    match &paths.token {
        Some(token) if *token == own.current || own.others.contains(token) => Choice::Keep(Some(token.clone())),
        _ if paths.is_all_plain => Choice::Upgrade(own.current.clone()),
        _ => Choice::Change(own.current.clone()),
    }
}

impl Upgrade {
    /// Replicas of a version before tokens answer beside this one for as long as a rollout takes, and the Service picks one for each
    /// connection. So the token is registered when for a while everyone who was asked knew it.
    pub(super) fn is_over(&mut self, is_known: bool, now: Instant, settle: Duration) -> bool {
        if !is_known {
            self.known_since = None;
            return false;
        }
        now.duration_since(*self.known_since.get_or_insert(now)) >= settle
    }

    /// Whether paths without a token are still asked for: API servers take a while to see what was registered.
    pub(super) fn accepts_plain(&mut self, paths: &Paths, now: Instant, settle: Duration) -> bool {
        if paths.is_plain {
            self.plain = Some(now);
        }
        self.plain.is_some_and(|last| now.duration_since(last) < settle)
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
    fn paths_are_read_from_all_entries() {
        let (a, b) = (format!("/mutate/{}", token("a").text()), format!("/validate/{}", token("a").text()));
        let other = format!("/validate/{}", token("b").text());
        let none = Paths::default();
        for (mutating, validating, want) in [
            (None, None, none.clone()),
            (stored(&[]), Some(json!({})), none.clone()),
            (stored(&[&a]), stored(&[&b]), Paths { token: Some(token("a")), ..none.clone() }),
            (stored(&[&a]), stored(&[&other]), none.clone()),
            (
                stored(&["/mutate", "/status"]),
                stored(&["/validate"]),
                Paths { is_plain: true, is_all_plain: true, ..none.clone() },
            ),
            (stored(&[&a]), stored(&["/validate"]), Paths { is_plain: true, ..none.clone() }),
            (stored(&["/x"]), stored(&["/validate/short"]), none),
        ] {
            let shown = format!("{mutating:?} {validating:?}");
            assert_eq!(Paths::of(&[mutating, validating]), want, "{shown}");
        }
    }

    #[test]
    fn a_token_that_others_register_first_is_left_alone() {
        let own = Registrable { current: token("a"), others: vec![token("b")] };
        let carries = |token: Option<Token>| Paths { token, ..Paths::default() };
        let plain = Paths { is_plain: true, is_all_plain: true, ..Paths::default() };
        for (paths, want) in [
            (carries(Some(token("a"))), Choice::Keep(Some(token("a")))),
            (carries(Some(token("b"))), Choice::Keep(Some(token("b")))),
            (carries(Some(token("c"))), Choice::Change(token("a"))),
            (carries(None), Choice::Change(token("a"))),
            (Paths { is_plain: true, ..Paths::default() }, Choice::Change(token("a"))),
            (plain, Choice::Upgrade(token("a"))),
        ] {
            assert_eq!(choose(&paths, &own), want, "{paths:?}");
        }
    }

    #[test]
    fn an_upgrade_is_over_when_nobody_is_left_who_does_not_know_the_token() {
        let (mut upgrade, start) = (Upgrade::default(), Instant::now());
        let settle = Duration::from_secs(60);
        for (is_known, after, want) in [
            (true, 0, false),
            (true, 59, false),
            (false, 60, false),
            (true, 62, false),
            (true, 121, false),
            (true, 122, true),
        ] {
            assert_eq!(upgrade.is_over(is_known, start + Duration::from_secs(after), settle), want, "after {after} s");
        }
        let plain = Paths { is_plain: true, is_all_plain: true, ..Paths::default() };
        for (paths, after, want) in [
            (Paths::default(), 0, false),
            (plain, 1, true),
            (Paths::default(), 60, true),
            (Paths::default(), 61, false),
        ] {
            assert_eq!(
                upgrade.accepts_plain(&paths, start + Duration::from_secs(after), settle),
                want,
                "after {after} s"
            );
        }
    }
}
