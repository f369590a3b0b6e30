//! The tokens in the paths that nadmit registers with the API server: who does not know one gets nothing for free.
//!
//! ```text
//!  current    old          old                  new                     new
//!  beside it               next: new            previous: old
//!             old is due ─► all replicas know ─► all webhooks carry new ─►
//! ```
//!
//! As with the CA, every step is one write that any replica may make. A token is registered only when all replicas have had the time
//! to read it, and dropped only when no webhook carries it any more. Nothing here reads a clock.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::SecureRandom;

use super::TlsError;

/// How many random bytes a token has.
const BYTES: usize = 32;

/// A token. It is secret: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one.
    pub fn make(random: &dyn SecureRandom) -> Result<Self, TlsError> {
        let mut bytes = [0; BYTES];
        random.fill(&mut bytes).map_err(|_| TlsError::Random)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// One that was kept; `None` where the text is none. API servers take only some characters in a path, so that others are no token.
    pub fn read(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (text.len() == BYTES * 2 && is_hex).then(|| Self(text.to_owned()))
    }

    /// The text, to be kept and registered.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether that is its text. How long it takes does not depend on how much of it is right.
    fn is(&self, text: &str) -> bool {
        let difference = |(own, other): (u8, u8)| own ^ other;
        let differences = self.0.bytes().zip(text.bytes()).map(difference).fold(0, |all, one| black_box(all | one));
        (differences == 0) & (self.0.len() == text.len())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The one to register.
    pub current: Token,
    /// When it was made, in seconds since 1970.
    pub made: i64,
    /// The one that comes next: replicas know it, webhooks do not carry it.
    pub next: Option<Token>,
    /// The one that was before: perhaps webhooks still carry it.
    pub previous: Option<Token>,
    /// The one for audit events. It stays: an administrator has put it into a file of the API server.
    pub audit: Token,
}

impl Tokens {
    /// All that open the paths of reviews.
    pub fn of_reviews(&self) -> impl Iterator<Item = &Token> {
        [Some(&self.current), self.next.as_ref(), self.previous.as_ref()].into_iter().flatten()
    }

    /// Whether it is one of those that open the paths of reviews.
    pub fn has(&self, token: &Token) -> bool {
        self.of_reviews().any(|known| known == token)
    }
}

/// What is found where tokens are kept: each may be missing or unreadable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// See [`Tokens::current`].
    pub current: Option<Token>,
    /// See [`Tokens::made`].
    pub made: Option<i64>,
    /// See [`Tokens::next`].
    pub next: Option<Token>,
    /// See [`Tokens::previous`].
    pub previous: Option<Token>,
    /// See [`Tokens::audit`].
    pub audit: Option<Token>,
}

impl Found {
    /// What is found, if nothing is missing from it.
    pub fn complete(self) -> Option<Tokens> {
        let Self { current, made, next, previous, audit } = self;
        Some(Tokens { current: current?, made: made?, next, previous, audit: audit? })
    }
}

/// What is known at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// What is kept, if there is anything.
    pub found: Option<&'a Found>,
    /// What this replica knew before.
    pub held: Option<&'a Tokens>,
    /// The token that all webhooks carry, as far as is known.
    pub registered: Option<&'a Token>,
    /// How long both have been as they are, by this replica's own watch.
    pub steady: Duration,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// How long tokens last.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// How long one is used. It is replaced after two thirds of that, as the certificate is.
    pub lifetime: Duration,
    /// How long all replicas may take to see what was written.
    pub settle: Duration,
}

impl Schedule {
    /// What is to be kept from now on; `None` where that is what is kept.
    pub fn step(
        &self,
        situation: &Situation<'_>,
        make: impl Fn() -> Result<Token, TlsError>,
    ) -> Result<Option<Tokens>, TlsError> {
        let Situation { held, registered, now, .. } = *situation;
        let found = situation.found.cloned().unwrap_or_default();
        let audit = match found.audit.clone().or_else(|| held.map(|held| held.audit.clone())) {
            Some(audit) => audit,
            None => make()?,
        };
        let Some(current) = found.current.clone() else {
            // What callers use now stays until all replicas know a new one: whoever deletes the Secret wants another token.
            let used = registered.cloned().or_else(|| held.map(|held| held.current.clone()));
            let (current, next) = match used {
                Some(used) => (used, Some(make()?)),
                None => (make()?, None),
            };
            return Ok(Some(Tokens { current, made: now, next, previous: None, audit }));
        };
        let kept = found.clone().complete();
        let is_steady = situation.steady >= self.settle;
        let Found { made, next, previous, .. } = found;
        let mut tokens = Tokens { current, made: made.unwrap_or(now), next, previous, audit };
        if kept.is_none() {
            return Ok(Some(tokens));
        }
        match (&tokens.next, &tokens.previous) {
            (Some(next), _) if is_steady => {
                let previous = std::mem::replace(&mut tokens.current, next.clone());
                (tokens.made, tokens.next, tokens.previous) = (now, None, Some(previous));
            }
            (None, Some(_)) if is_steady && registered == Some(&tokens.current) => tokens.previous = None,
            (None, None) if self.is_due(tokens.made, now) => tokens.next = Some(make()?),
            _ => return Ok(None),
        }
        Ok(Some(tokens))
    }

    fn is_due(&self, made: i64, now: i64) -> bool {
        let lifetime = i64::try_from(self.lifetime.as_secs()).unwrap_or(i64::MAX);
        now >= made.saturating_add(lifetime / 3 * 2 + lifetime % 3)
    }
}

/// What opens the paths now; it changes while requests come.
#[derive(Debug)]
pub struct Accepted {
    tokens: ArcSwap<Tokens>,
    /// Tokens that were kept until a while ago: API servers take a moment to see what is registered.
    retired: ArcSwap<Vec<Token>>,
    /// The token that webhooks carry, which may be one that was kept before the Secret was replaced.
    registered: ArcSwap<Option<Token>>,
    /// Whether webhooks still carry paths without a token: a version before tokens registered them.
    is_plain: AtomicBool,
}

impl Accepted {
    /// Begins with these.
    pub fn new(tokens: Tokens) -> Self {
        Self {
            tokens: ArcSwap::from_pointee(tokens),
            retired: ArcSwap::default(),
            registered: ArcSwap::default(),
            is_plain: AtomicBool::new(false),
        }
    }

    /// From now on, these, and those that were kept until a while ago.
    pub fn replace(&self, tokens: Tokens, retired: Vec<Token>) {
        // In this order, so that none is missing in between.
        self.retired.store(retired.into());
        self.tokens.store(tokens.into());
    }

    /// What webhooks carry: a token, and whether some have none.
    pub fn registered(&self, token: Option<Token>, is_plain: bool) {
        self.registered.store(token.into());
        self.is_plain.store(is_plain, Ordering::Relaxed);
    }

    /// Whether a path with that token is for reviews.
    pub fn opens_reviews(&self, token: Option<&str>) -> bool {
        let Some(text) = token else { return self.is_plain.load(Ordering::Relaxed) };
        let (tokens, retired, registered) = (self.tokens.load(), self.retired.load(), self.registered.load());
        // All are compared, so that the time does not depend on which one it is.
        let known = tokens.of_reviews().chain(retired.iter()).chain(registered.as_ref().as_ref());
        known.fold(false, |is_known, token| is_known | token.is(text))
    }

    /// Whether a path with that token is for audit events.
    pub fn opens_audit_events(&self, token: Option<&str>) -> bool {
        token.is_some_and(|text| self.tokens.load().audit.is(text))
    }
}

#[cfg(test)]
mod tests;
