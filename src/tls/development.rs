//! A certificate for a laptop: made anew at each start and kept in memory. Only the CA's own certificate, which is no secret, is
//! written to disk, so that clients can be told to trust it.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

use super::{Material, TlsError};

/// How long it is good for: longer than any server on a laptop runs.
const DAYS: i64 = 365;

/// A CA and the certificate it signed.
pub struct Development {
    /// What the server needs.
    pub material: Material,
    /// What clients need, as PEM text.
    pub ca: String,
}

impl Development {
    /// Makes both. The certificate is good for this machine's own addresses and for the given names.
    pub fn make(names: &[String]) -> Result<Self, TlsError> {
        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let names: Vec<String> = own.into_iter().chain(names.iter().cloned()).collect();
        let ca_key = KeyPair::generate()?;
        let mut ca = params("nadmit development CA", Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate()?;
        let mut leaf = params("nadmit", names)?;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        leaf.use_authority_key_identifier_extension = true;
        let certificate = leaf.signed_by(&key, &issuer)?;
        let material =
            Material { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes(), client_ca: None };
        Ok(Self { material, ca: ca_certificate.pem() })
    }

    /// Writes the CA's certificate into a directory, and tells where it is.
    pub fn publish(&self, directory: &Path) -> Result<PathBuf, TlsError> {
        let path = directory.join("ca.crt");
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, &self.ca));
        written.map_err(|source| TlsError::Read { path: path.display().to_string(), source })?;
        Ok(path)
    }
}

/// CA and leaf must not have one subject, or clients take the leaf for self-signed.
fn params(common_name: &str, names: Vec<String>) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    // A little into the past, for clocks that differ.
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::hours(1);
    params.not_after = now + Duration::days(DAYS);
    Ok(params)
}
