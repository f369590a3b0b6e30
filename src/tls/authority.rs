//! A self-managed CA and its certificate, shared by all replicas; decides the next rotation step.
//!
//! ```text
//!  bundle   old            new old              new old               new
//!  leaf     of old         of old               of new                of new
//!           the CA is due ─► callers know both ─► all replicas switched ─►
//! ```
//!
//! Every step is one write that any replica may make, decided only from what is stored. Nothing here reads a clock.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::time::Duration;

use rcgen::KeyPair;

use super::chain::{Authority, CertificateChain, authorities};
use super::{Material, TlsError, make};

/// The stored certificates and keys (PEM). No `Debug`, because keys are secret.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredCertificates {
    /// The CA bundle, the signing CA first.
    pub bundle: String,
    /// The key of the CA that signs.
    pub ca_key: String,
    /// The server's certificate.
    pub chain: String,
    /// Its key.
    pub key: String,
}

impl StoredCertificates {
    /// For the handshakes.
    pub fn material(&self, client_ca: Option<Vec<u8>>) -> Material {
        Material { chain: self.chain.clone().into_bytes(), key: self.key.clone().into_bytes(), client_ca }
    }
}

/// Lifetimes. Certificates are renewed after two thirds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// A CA.
    pub ca: Duration,
    /// A certificate of it.
    pub leaf: Duration,
    /// How long replicas and API servers may take to see a write. Steps are at least this far apart.
    pub propagation: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self {
            ca: Duration::from_secs(365 * DAY),
            leaf: Duration::from_secs(90 * DAY),
            propagation: Duration::from_secs(60),
        }
    }
}

/// The current state.
#[derive(Clone, Copy)]
pub struct CertificateState<'a> {
    /// The stored certificates, if readable.
    pub stored: Option<&'a StoredCertificates>,
    /// What this replica serves.
    pub served: Option<&'a StoredCertificates>,
    /// The registered bundle; `None` if nothing is registered.
    pub registered: Option<&'a str>,
    /// How long both are unchanged, on this replica's monotonic clock.
    pub steady: Duration,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Nothing.
    Keep,
    /// Create a CA and a certificate from scratch.
    MakeAll,
    /// Add a new CA to the bundle; the certificate is unchanged.
    AddAuthority(Base),
    /// Issue a certificate of the new CA, which callers now trust.
    SwitchLeaf,
    /// Remove the other CAs from the bundle.
    DropOld,
    /// Renew the certificate with the same CA.
    RenewLeaf,
}

/// The base for adding a new CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The stored certificates.
    StoredCertificates,
    /// What this replica serves: the stored ones were deleted or are invalid.
    Served,
}

/// Issues certificates with these names and lifetimes.
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

    /// The next step, and the flaws of the stored certificates.
    pub fn decide(&self, state: &CertificateState<'_>) -> (RotationStep, Vec<&'static str>) {
        let chain = state.stored.map(|stored| self.read(stored, state));
        let Some(chain) = chain else { return (self.replace_all(state), Vec::new()) };
        let is_steady = state.steady >= self.lifetimes.propagation;
        let step = match (chain.signing(), chain.leaf) {
            (Some(signing), Some(leaf)) if Some(leaf.issuer) == chain.signer => {
                if chain.authorities.len() > 1 && is_steady {
                    RotationStep::DropOld
                } else if chain.authorities.len() == 1 && signing.validity.is_due(state.now) {
                    RotationStep::AddAuthority(Base::StoredCertificates)
                } else if leaf.validity.is_due(state.now) {
                    RotationStep::RenewLeaf
                } else {
                    RotationStep::Keep
                }
            }
            (Some(signing), Some(_)) if is_steady && is_trusted(signing, state.registered) => RotationStep::SwitchLeaf,
            (Some(_), Some(_)) => RotationStep::Keep,
            (None, Some(_)) => RotationStep::AddAuthority(Base::StoredCertificates),
            (Some(signing), None) if is_trusted(signing, state.registered) => RotationStep::RenewLeaf,
            (Some(_), None) if !self.is_good(state.served, state) => RotationStep::RenewLeaf,
            (_, None) => self.replace_all(state),
        };
        (step, chain.flaws)
    }

    /// Executes a step; returns the new certificates to store.
    pub fn execute(
        &self,
        step: RotationStep,
        state: &CertificateState<'_>,
    ) -> Result<Option<StoredCertificates>, TlsError> {
        match (step, state.stored, state.served) {
            (RotationStep::MakeAll, _, _) => {
                let NewAuthority { bundle, ca_key, name, until } = self.make(state.now)?;
                let issuer = make::issuer(&name, KeyPair::from_pem(&ca_key)?)?;
                let until = self.leaf_end(state.now, until);
                let (chain, key) = make::leaf(&self.names, state.now, until, &issuer)?;
                Ok(Some(StoredCertificates { bundle, ca_key, chain, key }))
            }
            (RotationStep::AddAuthority(Base::StoredCertificates), Some(base), _)
            | (RotationStep::AddAuthority(Base::Served), _, Some(base)) => {
                let NewAuthority { mut bundle, ca_key, .. } = self.make(state.now)?;
                let chain = self.read(base, state);
                for old in chain.authorities.iter().filter(|old| old.validity.has(state.now)) {
                    bundle.push_str(&old.pem());
                }
                Ok(Some(StoredCertificates { bundle, ca_key, ..base.clone() }))
            }
            (RotationStep::SwitchLeaf | RotationStep::RenewLeaf, Some(stored), _) => {
                let chain = self.read(stored, state);
                let Some(signing) = chain.signing() else { return Ok(None) };
                let issuer = make::issuer(&signing.name, KeyPair::from_pem(&stored.ca_key)?)?;
                let until = self.leaf_end(state.now, signing.validity.until);
                let (chain, key) = make::leaf(&self.names, state.now, until, &issuer)?;
                Ok(Some(StoredCertificates { chain, key, ..stored.clone() }))
            }
            (RotationStep::DropOld, Some(stored), _) => {
                let bundle = self.read(stored, state).signing().map(Authority::pem);
                Ok(bundle.map(|bundle| StoredCertificates { bundle, ..stored.clone() }))
            }
            _ => Ok(None),
        }
    }

    /// What this replica serves: the stored certificate, unless callers do not trust it yet and still trust the current one.
    pub fn serve<'a>(&self, state: &CertificateState<'a>) -> Option<&'a StoredCertificates> {
        let Some(stored) = state.stored else { return state.served };
        let chain = self.read(stored, state);
        match chain.issuer() {
            Some(issuer) if is_trusted(issuer, state.registered) => Some(stored),
            Some(_) if !self.is_good(state.served, state) => Some(stored),
            _ => state.served,
        }
    }

    /// The bundle that callers must trust, if the stored certificates are valid.
    pub fn bundle(&self, state: &CertificateState<'_>) -> Option<String> {
        let chain = self.read(state.stored?, state);
        chain.issuer()?;
        Some(chain.authorities.iter().map(Authority::pem).collect())
    }

    /// The stored certificates are invalid. Deleting the Secret requests new keys; callers still need the old CA for a while.
    fn replace_all(&self, state: &CertificateState<'_>) -> RotationStep {
        if self.is_good(state.served, state) { RotationStep::AddAuthority(Base::Served) } else { RotationStep::MakeAll }
    }

    fn is_good(&self, served: Option<&StoredCertificates>, state: &CertificateState<'_>) -> bool {
        served.is_some_and(|served| self.read(served, state).leaf.is_some())
    }

    fn read(&self, stored: &StoredCertificates, state: &CertificateState<'_>) -> CertificateChain {
        CertificateChain::read(stored, &self.names, state.now)
    }

    /// Creates a CA. Its name contains the date: two CAs with the same name confuse clients.
    fn make(&self, now: i64) -> Result<NewAuthority, TlsError> {
        let date = jiff::Timestamp::from_second(now).map_err(|error| TlsError::Certificate(error.to_string()))?;
        let name = format!("nadmit CA of {date}");
        let until = after(now, self.lifetimes.ca);
        let (bundle, issuer) = make::authority(&name, now, until)?;
        Ok(NewAuthority { bundle, ca_key: issuer.key().serialize_pem(), name, until })
    }

    /// A certificate does not outlive its CA.
    fn leaf_end(&self, now: i64, ca_end: i64) -> i64 {
        after(now, self.lifetimes.leaf).min(ca_end)
    }
}

/// A CA that was made.
struct NewAuthority {
    bundle: String,
    ca_key: String,
    name: String,
    until: i64,
}

fn after(now: i64, time: Duration) -> i64 {
    now.saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

/// Whether callers trust that CA; true if nothing is registered.
fn is_trusted(authority: &Authority, registered: Option<&str>) -> bool {
    registered.is_none_or(|bundle| {
        authorities(bundle).is_ok_and(|known| known.iter().any(|known| known.der == authority.der))
    })
}

#[cfg(test)]
mod tests;
