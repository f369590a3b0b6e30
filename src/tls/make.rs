//! Making certificates: ECDSA P-256, with a validity period.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::OffsetDateTime;

use super::TlsError;

/// How far certificates are backdated, in seconds, for clock skew.
pub(super) const BACKDATED: i64 = 3600;

/// A new CA of that name: its certificate, PEM, and what signs. It is good from an hour before `now`, until then.
pub(super) fn authority(name: &str, now: i64, until: i64) -> Result<(String, Issuer<'static, KeyPair>), TlsError> {
    let mut params = authority_params(name)?;
    bound(&mut params, now, until)?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), Issuer::new(params, key)))
}

/// What signs for a CA of that name that was made before.
pub(super) fn issuer(name: &str, key: KeyPair) -> Result<Issuer<'static, KeyPair>, TlsError> {
    Ok(Issuer::new(authority_params(name)?, key))
}

/// A server's certificate with these names, and its key, both PEM.
pub(super) fn leaf(
    names: &[String],
    now: i64,
    until: i64,
    issuer: &Issuer<'static, KeyPair>,
) -> Result<(String, String), TlsError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = subject("nadmit");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    bound(&mut params, now, until)?;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn authority_params(name: &str) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = subject(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(params)
}

/// CA and leaf must not have one subject, or clients take the leaf for self-signed.
fn subject(common_name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, common_name);
    subject
}

fn bound(params: &mut CertificateParams, now: i64, until: i64) -> Result<(), TlsError> {
    let date = |seconds| {
        OffsetDateTime::from_unix_timestamp(seconds).map_err(|error| TlsError::Certificate(error.to_string()))
    };
    params.not_before = date(now.saturating_sub(BACKDATED))?;
    params.not_after = date(until)?;
    Ok(())
}
