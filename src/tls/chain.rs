//! Validates the stored certificates.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{KeyPair, PublicKeyData};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::authority::StoredCertificates;
use super::{certificates, make};

/// The validity period of a certificate, in Unix time.
#[derive(Clone, Copy)]
pub(super) struct Validity {
    pub(super) from: i64,
    pub(super) until: i64,
}

impl Validity {
    pub(super) fn has(self, now: i64) -> bool {
        self.from <= now && now <= self.until
    }

    /// Whether two thirds of the lifetime are over. Certificates are backdated.
    pub(super) fn is_due(self, now: i64) -> bool {
        let made = self.from.saturating_add(make::BACKDATED);
        let life = self.until.saturating_sub(made).max(0);
        now >= made.saturating_add(life / 3 * 2 + life % 3)
    }
}

/// A CA of the bundle.
#[derive(Clone)]
pub(super) struct Authority {
    pub(super) der: CertificateDer<'static>,
    pub(super) name: String,
    pub(super) validity: Validity,
    public_key: Vec<u8>,
}

impl Authority {
    pub(super) fn pem(&self) -> String {
        pem(&self.der)
    }
}

/// The server certificate, if valid now.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    /// Which of the CAs signed it.
    pub(super) issuer: usize,
    pub(super) validity: Validity,
}

/// The valid parts of the stored certificates.
pub(super) struct CertificateChain {
    /// All CAs of the bundle.
    pub(super) authorities: Vec<Authority>,
    /// Which of them can sign now.
    pub(super) signer: Option<usize>,
    /// The server's certificate, if it would convince a client that has the bundle.
    pub(super) leaf: Option<Leaf>,
    /// What is wrong. These texts are logged, so they contain nothing from the Secret.
    pub(super) flaws: Vec<&'static str>,
}

impl CertificateChain {
    /// Reads all of it as a client would that calls the server by each of these names.
    pub(super) fn read(stored: &StoredCertificates, names: &[String], now: i64) -> Self {
        let bundle = authorities(&stored.bundle);
        let mut flaws: Vec<_> = bundle.as_ref().err().copied().into_iter().collect();
        let authorities = bundle.unwrap_or_default();
        let (signer, leaf) = (signer(stored, &authorities, now), leaf(stored, &authorities, names, now));
        flaws.extend(signer.err());
        flaws.extend(leaf.as_ref().err());
        Self { authorities, signer: signer.ok(), leaf: leaf.ok(), flaws }
    }

    /// The CA that signed the server's certificate, where that is good.
    pub(super) fn issuer(&self) -> Option<&Authority> {
        self.leaf.and_then(|leaf| self.authorities.get(leaf.issuer))
    }

    /// The CA that signs.
    pub(super) fn signing(&self) -> Option<&Authority> {
        self.signer.and_then(|signer| self.authorities.get(signer))
    }
}

/// The CAs of a bundle.
pub(super) fn authorities(bundle: &str) -> Result<Vec<Authority>, &'static str> {
    let read = certificates(bundle.as_bytes(), "the bundle").map_err(|_| "ca.crt has no readable certificates")?;
    let authority = |der: CertificateDer<'static>| {
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|_| "ca.crt has an invalid certificate")?;
        if !parsed.is_ca() {
            return Err("ca.crt has a certificate that is not a CA");
        }
        let name = parsed.subject().iter_common_name().next().and_then(|name| name.as_str().ok()).unwrap_or_default();
        let (name, validity, public_key) = (name.to_owned(), validity(&parsed), parsed.public_key().raw.to_vec());
        Ok(Authority { der, name, validity, public_key })
    };
    read.into_iter().map(authority).collect()
}

fn signer(stored: &StoredCertificates, authorities: &[Authority], now: i64) -> Result<usize, &'static str> {
    let key = KeyPair::from_pem(&stored.ca_key).map_err(|_| "ca.key is not a key")?.subject_public_key_info();
    let found = authorities.iter().position(|authority| authority.public_key == key);
    let found = found.ok_or("ca.key does not match a CA in ca.crt")?;
    let is_good = authorities.get(found).is_some_and(|authority| authority.validity.has(now));
    if is_good { Ok(found) } else { Err("the CA is expired, or not valid yet") }
}

fn leaf(
    stored: &StoredCertificates,
    authorities: &[Authority],
    names: &[String],
    now: i64,
) -> Result<Leaf, &'static str> {
    let chain = certificates(stored.chain.as_bytes(), "the certificate").map_err(|_| "tls.crt has no certificate")?;
    let [certificate] = chain.as_slice() else { return Err("tls.crt has more than one certificate") };
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| "tls.crt has an invalid certificate")?;
    let key = KeyPair::from_pem(&stored.key).map_err(|_| "tls.key is not a key")?;
    if key.subject_public_key_info() != parsed.public_key().raw {
        return Err("tls.key does not match tls.crt");
    }
    let validity = validity(&parsed);
    if !validity.has(now) {
        return Err("tls.crt is expired, or not valid yet");
    }
    let convinces = |authority: &Authority| authority.validity.has(now) && verifies(certificate, authority, names, now);
    let issuer = authorities.iter().position(convinces);
    let issuer = issuer.ok_or("tls.crt is not issued by a valid CA in ca.crt, or not for the names of the Service")?;
    Ok(Leaf { issuer, validity })
}

/// Whether the certificate verifies against that CA for every name.
fn verifies(certificate: &CertificateDer<'_>, authority: &Authority, names: &[String], now: i64) -> bool {
    let mut roots = RootCertStore::empty();
    if roots.add(authority.der.clone()).is_err() {
        return false;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).unwrap_or_default()));
    names.iter().all(|name| {
        ServerName::try_from(name.as_str())
            .is_ok_and(|name| verifier.verify_server_cert(certificate, &[], &name, &[], now).is_ok())
    })
}

fn validity(certificate: &X509Certificate<'_>) -> Validity {
    let validity = certificate.validity();
    Validity { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() }
}

/// A certificate as text, in lines of 64 characters.
fn pem(der: &[u8]) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----".to_owned();
    for (index, character) in BASE64_STANDARD.encode(der).chars().enumerate() {
        if index % 64 == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text.push_str("\n-----END CERTIFICATE-----\n");
    text
}
