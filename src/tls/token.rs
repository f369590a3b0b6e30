//! The tokens in the registered webhook paths: requests without one are rejected early.
//!
//! ```text
//!  current    old          old                  new                     new
//!  beside it               next: new            previous: old
//!             old is due ─► all replicas know ─► all webhooks carry new ─►
//! ```
//!
//! As with the CA, every step is one write that any replica may make. A token is registered only after all replicas had time to
//! read it, and dropped only when no webhook uses it any more. Nothing here reads a clock.
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

    /// Parses a stored token; `None` if invalid. API servers allow only some characters in a path.
    pub fn read(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (text.len() == BYTES * 2 && is_hex).then(|| Self(text.to_owned()))
    }

    /// The text, to be kept and registered.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Constant-time comparison.
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

/// The stored tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The one to register.
    pub current: Token,
    /// When it was made, in seconds since 1970.
    pub made: i64,
    /// The next token: replicas know it, webhooks do not use it yet.
    pub next: Option<Token>,
    /// The previous token: webhooks may still use it.
    pub previous: Option<Token>,
    /// The token for audit events. It is not rotated: an administrator has put it into a file of the API server.
    pub audit: Token,
}

impl Tokens {
    /// All tokens for reviews.
    pub fn of_reviews(&self) -> impl Iterator<Item = &Token> {
        [Some(&self.current), self.next.as_ref(), self.previous.as_ref()].into_iter().flatten()
    }

    /// Whether a token is accepted for reviews.
    pub fn has(&self, token: &Token) -> bool {
        self.of_reviews().any(|known| known == token)
    }
}

/// The stored tokens: each may be missing or invalid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredTokens {
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

impl StoredTokens {
    /// What is found, if nothing is missing from it.
    pub fn complete(self) -> Option<Tokens> {
        let Self { current, made, next, previous, audit } = self;
        Some(Tokens { current: current?, made: made?, next, previous, audit: audit? })
    }
}

/// The current state.
#[derive(Clone, Copy, Debug)]
pub struct TokenState<'a> {
    /// The stored tokens, if any.
    pub found: Option<&'a StoredTokens>,
    /// What this replica knew before.
    pub known: Option<&'a Tokens>,
    /// The token in all webhook entries, if known.
    pub registered: Option<&'a Token>,
    /// How long both are unchanged, on this replica's monotonic clock.
    pub steady: Duration,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// How long tokens last.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The lifetime of a token. It is replaced after two thirds, like the certificate.
    pub lifetime: Duration,
    /// How long all replicas may take to see what was written.
    pub propagation: Duration,
}

impl Schedule {
    /// The tokens to store; `None` if unchanged.
    pub fn step(
        &self,
        state: &TokenState<'_>,
        make: impl Fn() -> Result<Token, TlsError>,
    ) -> Result<Option<Tokens>, TlsError> {
        let TokenState { known, registered, now, .. } = *state;
        let found = state.found.cloned().unwrap_or_default();
        let audit = match found.audit.clone().or_else(|| known.map(|known| known.audit.clone())) {
            Some(audit) => audit,
            None => make()?,
        };
        let Some(current) = found.current.clone() else {
            // The registered token stays until all replicas know a new one: deleting the Secret requests a new token.
            let used = registered.cloned().or_else(|| known.map(|known| known.current.clone()));
            let (current, next) = match used {
                Some(used) => (used, Some(make()?)),
                None => (make()?, None),
            };
            return Ok(Some(Tokens { current, made: now, next, previous: None, audit }));
        };
        let kept = found.clone().complete();
        let is_steady = state.steady >= self.propagation;
        let StoredTokens { made, next, previous, .. } = found;
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

/// The currently accepted tokens.
#[derive(Debug)]
pub struct AcceptedTokens {
    tokens: ArcSwap<Tokens>,
    /// Recently retired tokens: API servers take a moment to see a new registration.
    retired: ArcSwap<Vec<Token>>,
    /// The registered tokens, now or a moment ago, which may be from before the Secret was replaced.
    registered: ArcSwap<Vec<Token>>,
    /// Whether webhooks still carry paths without a token: a version before tokens registered them.
    is_plain: AtomicBool,
}

impl AcceptedTokens {
    /// Begins with these.
    pub fn new(tokens: Tokens) -> Self {
        Self {
            tokens: ArcSwap::from_pointee(tokens),
            retired: ArcSwap::default(),
            registered: ArcSwap::default(),
            is_plain: AtomicBool::new(false),
        }
    }

    /// Replaces the tokens, keeping recently retired ones.
    pub fn replace(&self, tokens: Tokens, retired: Vec<Token>) {
        // In this order, so that none is missing in between.
        self.retired.store(retired.into());
        self.tokens.store(tokens.into());
    }

    /// Sets the registered tokens, and whether some entries have none.
    pub fn registered(&self, tokens: Vec<Token>, is_plain: bool) {
        self.registered.store(tokens.into());
        self.is_plain.store(is_plain, Ordering::Relaxed);
    }

    /// Whether a path with that token is for reviews.
    pub fn allows_reviews(&self, token: Option<&str>) -> bool {
        let Some(text) = token else { return self.is_plain.load(Ordering::Relaxed) };
        let (tokens, retired, registered) = (self.tokens.load(), self.retired.load(), self.registered.load());
        // All are compared, for constant time.
        let known = tokens.of_reviews().chain(retired.iter()).chain(registered.iter());
        known.fold(false, |is_known, token| is_known | token.is(text))
    }

    /// Whether a path with that token is for audit events.
    pub fn allows_audit_events(&self, token: Option<&str>) -> bool {
        token.is_some_and(|text| self.tokens.load().audit.is(text))
    }
}

#[cfg(test)]
mod tests;
