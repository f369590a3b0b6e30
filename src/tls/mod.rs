//! TLS: server certificates and client authentication.

pub mod authority;
mod chain;
mod development;
mod files;
mod make;
mod sha256;
pub mod token;

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

pub use authority::Lifetimes;
pub use development::Development;
pub use files::{Files, POLL_INTERVAL};
pub use sha256::sha256_digits;

/// Why TLS could not be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}")]
    Read {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file has no certificate or key in it.
    #[error("cannot read PEM block of {what}")]
    Pem {
        /// The file, or what it is for.
        what: String,
        /// What is wrong.
        source: rustls::pki_types::pem::Error,
    },
    /// There is no certificate.
    #[error("{0} has no certificate")]
    Empty(String),
    /// The certificate cannot be understood.
    #[error("the certificate cannot be read: {0}")]
    Certificate(String),
    /// The key is not the certificate's, or of an unknown kind.
    #[error("certificate and key do not match")]
    Pair(#[from] rustls::Error),
    /// The client CA is invalid.
    #[error("cannot use the client CA: {0}")]
    ClientCa(String),
    /// A certificate could not be made.
    #[error("cannot create a certificate")]
    Make(#[from] rcgen::Error),
    /// The system gives no random bytes.
    #[error("cannot get random bytes for a token")]
    Random,
}

/// Certificate, key, and client CA, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Material {
    /// The chain, the server's own certificate first.
    pub chain: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
    /// The CA of the callers, where they must show a certificate.
    pub client_ca: Option<Vec<u8>>,
}

/// What is served, ready for use.
#[derive(Debug)]
pub struct Served {
    /// For the handshakes.
    pub config: Arc<ServerConfig>,
    /// When the first certificate of the chain expires, in seconds since 1970.
    pub expires: i64,
}

impl Material {
    /// Builds the TLS configuration; all errors in the texts are reported here.
    pub fn serve(&self) -> Result<Served, TlsError> {
        let chain = certificates(&self.chain, "the certificate")?;
        let expires = expiry(&chain)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|source| TlsError::Pem { what: "the key".to_owned(), source })?;
        let builder = ServerConfig::builder();
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let roots = client_roots(ca)?;
                // The kubelet probes health without a certificate, so the route decides who needs one.
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated().build();
                builder.with_client_cert_verifier(verifier.map_err(|error| TlsError::ClientCa(error.to_string()))?)
            }
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Served { config: Arc::new(config), expires })
    }
}

/// Whether callers can be asked for a certificate of this CA, PEM.
pub fn check_client_ca(pem: &[u8]) -> Result<(), TlsError> {
    client_roots(pem).map(drop)
}

fn client_roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "the client CA")? {
        roots.add(certificate).map_err(|error| TlsError::ClientCa(error.to_string()))?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = read.map_err(|source| TlsError::Pem { what: what.to_owned(), source })?;
    if chain.is_empty() { Err(TlsError::Empty(what.to_owned())) } else { Ok(chain) }
}

/// When the first of the chain expires.
fn expiry(chain: &[CertificateDer<'_>]) -> Result<i64, TlsError> {
    let mut expires = i64::MAX;
    for certificate in chain {
        let (_, parsed) =
            X509Certificate::from_der(certificate).map_err(|error| TlsError::Certificate(error.to_string()))?;
        expires = expires.min(parsed.validity().not_after.timestamp());
    }
    Ok(expires)
}

/// The TLS configuration in force; it may change between two connections.
#[derive(Debug)]
pub struct Tls {
    served: ArcSwap<Served>,
}

impl Tls {
    /// With an initial configuration.
    pub fn new(served: Served) -> Self {
        Self { served: ArcSwap::from_pointee(served) }
    }

    /// For the next handshake.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.served.load().config)
    }

    /// When the certificate in force expires.
    pub fn expires(&self) -> i64 {
        self.served.load().expires
    }

    /// Replaces the configuration.
    pub fn replace(&self, served: Served) {
        self.served.store(Arc::new(served));
    }
}

/// Whether a certificate is in that name: its common name, or one of its DNS names.
pub fn is_named(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return false };
    let is_common_name =
        parsed.subject().iter_common_name().any(|common| common.as_str().is_ok_and(|common| common == name));
    is_common_name
        || parsed.extensions().iter().any(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => {
                names.general_names.iter().any(|other| matches!(other, GeneralName::DNSName(dns) if *dns == name))
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    }

    #[test]
    fn rejects_mismatched_certificate_and_key() {
        provider();
        let (one, two) = (Development::make(&[]).unwrap(), Development::make(&[]).unwrap());
        assert!(one.material.serve().is_ok());
        let mixed = Material { key: two.material.key, ..one.material.clone() };
        assert!(matches!(mixed.serve(), Err(TlsError::Pair(_))), "{:?}", mixed.serve());
        for broken in [b"".as_slice(), b"nonsense", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"] {
            assert!(Material { chain: broken.to_vec(), ..one.material.clone() }.serve().is_err());
            assert!(Material { key: broken.to_vec(), ..one.material.clone() }.serve().is_err());
            assert!(Material { client_ca: Some(broken.to_vec()), ..one.material.clone() }.serve().is_err());
        }
    }

    #[test]
    fn chains_are_read_completely_and_expire_with_the_leaf() {
        provider();
        let made = Development::make(&[]).unwrap();
        let chain = [made.material.chain.as_slice(), made.ca.as_bytes()].concat();
        let chained = Material { chain, ..made.material.clone() }.serve().unwrap();
        let alone = made.material.serve().unwrap();
        assert_eq!(chained.expires, alone.expires);
        let now = jiff::Timestamp::now().as_second();
        assert!(alone.expires > now + 86_400 && alone.expires < now + 400 * 86_400);
    }

    #[test]
    fn matches_common_name_and_dns_names() {
        let made = Development::make(&["api.example".to_owned()]).unwrap();
        let leaf = certificates(&made.material.chain, "x").unwrap().remove(0);
        for (name, want) in [("localhost", true), ("api.example", true), ("nadmit", true), ("example", false)] {
            assert_eq!(is_named(&leaf, name), want, "{name}");
        }
    }
}
