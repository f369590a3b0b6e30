//! Checks that nadmit can be reached like the API server does, with a certificate that the bundle verifies.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::cluster::identity::ca_bundle;
use crate::deploy::webhooks::Address;

/// The timeout: as long as the API server would wait.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Why nadmit cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(in crate::cluster) enum ProbeError {
    #[error("the bundle has no CA certificate")]
    Bundle,
    #[error("{0}: {1}")]
    Connection(String, #[source] std::io::Error),
    #[error("{0} did not respond before the deadline")]
    Late(String),
    #[error("{0} answered `{1}`")]
    Answer(String, String),
}

/// Requests the health of a replica like an API server would, and whether it knows the token if there is one.
pub(in crate::cluster) async fn probe(address: &Address, bundle: &str) -> Result<(), ProbeError> {
    let shown = format!("{}:{}", address.name(), address.port());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(ca_bundle::certificates(bundle).ok_or(ProbeError::Bundle)?);
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let asked = tokio::time::timeout(REQUEST_TIMEOUT, ask(address, tls)).await;
    let answer = asked.map_err(|_| ProbeError::Late(shown.clone()))?;
    let answer = answer.map_err(|error| ProbeError::Connection(shown.clone(), error))?;
    let status = answer.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    Err(ProbeError::Answer(shown, status.to_owned()))
}

async fn ask(address: &Address, tls: ClientConfig) -> std::io::Result<String> {
    let host = address.name();
    let name = ServerName::try_from(host.clone()).map_err(std::io::Error::other)?;
    let stream = match address.at {
        Some(at) => TcpStream::connect(at).await?,
        None => TcpStream::connect((host.as_str(), address.port())).await?,
    };
    let mut stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
    let path = address.path("/healthz");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = vec![0; 512];
    let read = stream.read(&mut answer).await?;
    answer.truncate(read);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
