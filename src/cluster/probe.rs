//! Whether nadmit can be reached as the API server will reach it, and shows a certificate that the bundle vouches for.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::bundle;
use crate::deploy::Home;
use crate::deploy::webhooks::Address;

/// How long it may take: as long as the API server would wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why nadmit cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error("the bundle holds no CA certificate")]
    Bundle,
    #[error("`{0}` is no address")]
    Address(String),
    #[error("{0}: {1}")]
    Connection(String, #[source] std::io::Error),
    #[error("{0} did not answer in time")]
    Late(String),
    #[error("{0} answered `{1}`")]
    Answer(String, String),
}

/// Asks `/healthz`, as the API server would ask for a review.
pub(super) async fn probe(address: &Address, bundle: &str) -> Result<(), ProbeError> {
    let (host, port) = place(address)?;
    let shown = format!("{host}:{port}");
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(bundle::certificates(bundle).ok_or(ProbeError::Bundle)?);
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let asked = tokio::time::timeout(PATIENCE, ask(&host, port, tls)).await;
    let answer = asked.map_err(|_| ProbeError::Late(shown.clone()))?;
    let answer = answer.map_err(|error| ProbeError::Connection(shown.clone(), error))?;
    let status = answer.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    Err(ProbeError::Answer(shown, status.to_owned()))
}

async fn ask(host: &str, port: u16, tls: ClientConfig) -> std::io::Result<String> {
    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
    let stream = TcpStream::connect((host, port)).await?;
    let mut stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = vec![0; 512];
    let read = stream.read(&mut answer).await?;
    answer.truncate(read);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn place(address: &Address) -> Result<(String, u16), ProbeError> {
    match address {
        Address::Service(Home { namespace, service }) => Ok((format!("{service}.{namespace}.svc"), 443)),
        Address::Url(url) => {
            let uri: Option<http::Uri> = url.parse().ok();
            let place = uri.as_ref().and_then(|uri| Some((uri.host()?.to_owned(), uri.port_u16().unwrap_or(443))));
            place.ok_or_else(|| ProbeError::Address(url.clone()))
        }
    }
}
