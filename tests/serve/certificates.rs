//! Certificate authorities for the tests.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate with its chain, and its key, as PEM.
#[derive(Clone)]
pub struct Identity {
    pub chain: String,
    pub key: String,
}

/// A certificate authority.
pub struct TestAuthority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    /// The certificates between this one and the root.
    between: String,
}

impl TestAuthority {
    /// A root CA.
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = authority(name);
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, issuer: Issuer::new(params, key), between: String::new() }
    }

    /// An intermediate CA below this one.
    pub fn intermediate(&self, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = authority(name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let between = certificate.pem() + &self.between;
        Self { certificate, issuer: Issuer::new(params, key), between }
    }

    /// Its own certificate as PEM.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate for servers and clients: the common name, and the names that it is valid for.
    pub fn issue(&self, common_name: &str, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { chain: certificate.pem() + &self.between, key: key.serialize_pem() }
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}
