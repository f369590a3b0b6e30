//! A development certificate: created at each start and kept in memory. Only the CA certificate, which is not secret, is written
//! to disk, so that clients can trust it.

use std::path::{Path, PathBuf};

use super::{Material, TlsError, make};

/// Its lifetime in seconds.
const LIFETIME: i64 = 365 * 86_400;

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
        let now = jiff::Timestamp::now().as_second();
        let (ca, issuer) = make::authority("nadmit development CA", now, now + LIFETIME)?;
        let (chain, key) = make::leaf(&names, now, now + LIFETIME, &issuer)?;
        let material = Material { chain: chain.into_bytes(), key: key.into_bytes(), client_ca: None };
        Ok(Self { material, ca })
    }

    /// Writes the CA certificate into a directory, and returns its path.
    pub fn publish(&self, directory: &Path) -> Result<PathBuf, TlsError> {
        let path = directory.join("ca.crt");
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, &self.ca));
        written.map_err(|source| TlsError::Read { path: path.display().to_string(), source })?;
        Ok(path)
    }
}
