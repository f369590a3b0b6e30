//! A CA of our own and the certificate it signs, kept where all replicas find them; and what is to be done about them next.
//!
//! ```text
//!  bundle   old            new old              new old               new
//!  leaf     of old         of old               of new                of new
//!           the CA is due ─► callers know both ─► all replicas switched ─►
//! ```
//!
//! Every step is one write, which any replica may make, and each is decided from what is kept alone. Nothing here reads a clock.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::time::Duration;

use rcgen::KeyPair;

use super::chain::{Authority, Chain, authorities};
use super::{Material, TlsError, make};

/// What is kept: PEM texts. Two of them are secret, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// The certificates of all CAs that callers must trust, that of the CA that signs first.
    pub bundle: String,
    /// The key of the CA that signs.
    pub ca_key: String,
    /// The server's certificate.
    pub chain: String,
    /// Its key.
    pub key: String,
}

impl Stored {
    /// For the handshakes.
    pub fn material(&self, client_ca: Option<Vec<u8>>) -> Material {
        Material { chain: self.chain.clone().into_bytes(), key: self.key.clone().into_bytes(), client_ca }
    }
}

/// How long things last. What is over by two thirds is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// A CA.
    pub ca: Duration,
    /// A certificate of it.
    pub leaf: Duration,
    /// How long all replicas and all API servers may take to see what was written. No step follows another sooner.
    pub settle: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self {
            ca: Duration::from_secs(365 * DAY),
            leaf: Duration::from_secs(90 * DAY),
            settle: Duration::from_secs(60),
        }
    }
}

/// What is known at a moment.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// What is kept, if it could be read at all.
    pub stored: Option<&'a Stored>,
    /// What this replica serves.
    pub held: Option<&'a Stored>,
    /// The bundle that callers were told; `None` if nobody calls as far as is known.
    pub registered: Option<&'a str>,
    /// How long both have been as they are, by this replica's own watch.
    pub steady: Duration,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// A CA and a certificate, where there is nothing to build on.
    MakeAll,
    /// A new CA joins the bundle; the certificate stays as it is.
    AddAuthority(Base),
    /// A certificate of the new CA, which callers trust by now.
    SwitchLeaf,
    /// The other CAs leave the bundle.
    DropOld,
    /// A certificate of the same CA.
    RenewLeaf,
}

/// What a new CA is put beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// What is kept.
    Stored,
    /// What this replica serves: what is kept was deleted, or is of no use.
    Held,
}

/// Who makes certificates: for which names, and how long they last.
#[derive(Clone, Debug)]
pub struct Rotation {
    names: Vec<String>,
    lifetimes: Lifetimes,
}

impl Rotation {
    /// For a Service.
    pub fn new(service: &str, namespace: &str, lifetimes: Lifetimes) -> Self {
        let names = ["", ".svc", ".svc.cluster.local"].map(|end| format!("{service}.{namespace}{end}"));
        Self { names: names.to_vec(), lifetimes }
    }

    /// The next step, and what is wrong with what is kept, in words.
    pub fn decide(&self, situation: &Situation<'_>) -> (Step, Vec<&'static str>) {
        let chain = situation.stored.map(|stored| self.read(stored, situation));
        let Some(chain) = chain else { return (self.anew(situation), Vec::new()) };
        let is_steady = situation.steady >= self.lifetimes.settle;
        let step = match (chain.signing(), chain.leaf) {
            (Some(signing), Some(leaf)) if Some(leaf.issuer) == chain.signer => {
                if chain.authorities.len() > 1 && is_steady {
                    Step::DropOld
                } else if chain.authorities.len() == 1 && signing.span.is_due(situation.now) {
                    Step::AddAuthority(Base::Stored)
                } else if leaf.span.is_due(situation.now) {
                    Step::RenewLeaf
                } else {
                    Step::Keep
                }
            }
            (Some(signing), Some(_)) if is_steady && is_trusted(signing, situation.registered) => Step::SwitchLeaf,
            (Some(_), Some(_)) => Step::Keep,
            (None, Some(_)) => Step::AddAuthority(Base::Stored),
            (Some(signing), None) if is_trusted(signing, situation.registered) => Step::RenewLeaf,
            (Some(_), None) if !self.is_good(situation.held, situation) => Step::RenewLeaf,
            (_, None) => self.anew(situation),
        };
        (step, chain.flaws)
    }

    /// Takes a step: what is to be kept from now on.
    pub fn take(&self, step: Step, situation: &Situation<'_>) -> Result<Option<Stored>, TlsError> {
        match (step, situation.stored, situation.held) {
            (Step::MakeAll, _, _) => {
                let Made { bundle, ca_key, name, until } = self.make(situation.now)?;
                let issuer = make::issuer(&name, KeyPair::from_pem(&ca_key)?)?;
                let until = self.leaf_end(situation.now, until);
                let (chain, key) = make::leaf(&self.names, situation.now, until, &issuer)?;
                Ok(Some(Stored { bundle, ca_key, chain, key }))
            }
            (Step::AddAuthority(Base::Stored), Some(base), _) | (Step::AddAuthority(Base::Held), _, Some(base)) => {
                let Made { mut bundle, ca_key, .. } = self.make(situation.now)?;
                let chain = self.read(base, situation);
                for old in chain.authorities.iter().filter(|old| old.span.has(situation.now)) {
                    bundle.push_str(&old.pem());
                }
                Ok(Some(Stored { bundle, ca_key, ..base.clone() }))
            }
            (Step::SwitchLeaf | Step::RenewLeaf, Some(stored), _) => {
                let chain = self.read(stored, situation);
                let Some(signing) = chain.signing() else { return Ok(None) };
                let issuer = make::issuer(&signing.name, KeyPair::from_pem(&stored.ca_key)?)?;
                let until = self.leaf_end(situation.now, signing.span.until);
                let (chain, key) = make::leaf(&self.names, situation.now, until, &issuer)?;
                Ok(Some(Stored { chain, key, ..stored.clone() }))
            }
            (Step::DropOld, Some(stored), _) => {
                let bundle = self.read(stored, situation).signing().map(Authority::pem);
                Ok(bundle.map(|bundle| Stored { bundle, ..stored.clone() }))
            }
            _ => Ok(None),
        }
    }

    /// What this replica is to serve: what is kept, unless callers do not trust it yet and still trust what is served now.
    pub fn serve<'a>(&self, situation: &Situation<'a>) -> Option<&'a Stored> {
        let Some(stored) = situation.stored else { return situation.held };
        let chain = self.read(stored, situation);
        match chain.issuer() {
            Some(issuer) if is_trusted(issuer, situation.registered) => Some(stored),
            Some(_) if !self.is_good(situation.held, situation) => Some(stored),
            _ => situation.held,
        }
    }

    /// The bundle that callers must have, if what is kept is good.
    pub fn bundle(&self, situation: &Situation<'_>) -> Option<String> {
        let chain = self.read(situation.stored?, situation);
        chain.issuer()?;
        Some(chain.authorities.iter().map(Authority::pem).collect())
    }

    /// What is kept is of no use. Whoever deletes it wants other keys; callers still want the old ones for a while.
    fn anew(&self, situation: &Situation<'_>) -> Step {
        if self.is_good(situation.held, situation) { Step::AddAuthority(Base::Held) } else { Step::MakeAll }
    }

    fn is_good(&self, held: Option<&Stored>, situation: &Situation<'_>) -> bool {
        held.is_some_and(|held| self.read(held, situation).leaf.is_some())
    }

    fn read(&self, stored: &Stored, situation: &Situation<'_>) -> Chain {
        Chain::read(stored, &self.names, situation.now)
    }

    /// A new CA. Its name says when it was made: two CAs of one name confuse clients.
    fn make(&self, now: i64) -> Result<Made, TlsError> {
        let date = jiff::Timestamp::from_second(now).map_err(|error| TlsError::Certificate(error.to_string()))?;
        let name = format!("nadmit CA of {date}");
        let until = after(now, self.lifetimes.ca);
        let (bundle, issuer) = make::authority(&name, now, until)?;
        Ok(Made { bundle, ca_key: issuer.key().serialize_pem(), name, until })
    }

    /// A certificate does not outlive its CA.
    fn leaf_end(&self, now: i64, ca_end: i64) -> i64 {
        after(now, self.lifetimes.leaf).min(ca_end)
    }
}

/// A CA that was made.
struct Made {
    bundle: String,
    ca_key: String,
    name: String,
    until: i64,
}

fn after(now: i64, time: Duration) -> i64 {
    now.saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

/// Whether callers were told of that CA. Where nobody calls, nobody is disappointed.
fn is_trusted(authority: &Authority, registered: Option<&str>) -> bool {
    registered.is_none_or(|bundle| {
        authorities(bundle).is_ok_and(|known| known.iter().any(|known| known.der == authority.der))
    })
}

#[cfg(test)]
mod tests;
