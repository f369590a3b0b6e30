//! Checks that nadmit can be reached like the API server does, with a certificate that the bundle verifies.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tracing::debug;

use crate::cluster::client::{ApiError, ApiPath, ApiResource, Cluster};
use crate::cluster::identity::ca_bundle;
use crate::deploy::webhooks::Address;
use crate::resources::ObjectKey;

/// The timeout of the probe. Two of them fit into one attempt to register, so that its outcome says what is wrong.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// The timeout for reading the Service; without an answer its DNS name is used.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(2);

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

/// Where nadmit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum ProbeTarget {
    /// At an address: the given one, or the cluster IP of the Service.
    At(SocketAddr),
    /// By the DNS name of the Service, which has no cluster IP or cannot be read.
    Dns,
}

impl ProbeTarget {
    /// The given address, else the Service's cluster IP: a cluster without working DNS can still be served. API servers do not use
    /// the cluster DNS either.
    pub(in crate::cluster) async fn find(cluster: &Cluster, address: &Address) -> Self {
        if let Some(at) = address.at {
            return Self::At(at);
        }
        let key = ObjectKey::new(&address.home.namespace, &address.home.service);
        let read = async { cluster.read(&ApiPath::object(ApiResource::SERVICES, &key)?).await };
        match timeout(SERVICE_TIMEOUT, read).await.unwrap_or(Err(ApiError::Timeout)) {
            Ok(service) => match service.as_ref().and_then(cluster_ip) {
                Some(ip) => Self::At(SocketAddr::new(ip, address.port())),
                None => Self::Dns,
            },
            Err(error) => {
                debug!(%error, "failed to read the Service, using its DNS name");
                Self::Dns
            }
        }
    }

    fn shown(self, address: &Address) -> String {
        let (name, port) = (address.name(), address.port());
        match self {
            Self::At(at) => format!("{name}:{port} at {at}"),
            Self::Dns => format!("{name}:{port} by DNS, as the Service has no cluster IP or cannot be read"),
        }
    }
}

/// The cluster IP of a Service. A headless one has `None` there, and an external name nothing that counts.
fn cluster_ip(service: &Value) -> Option<IpAddr> {
    let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str);
    if text("/spec/type") == Some("ExternalName") {
        return None;
    }
    text("/spec/clusterIP")?.parse().ok()
}

/// Requests the health of a replica like an API server would, and whether it knows the token if there is one.
pub(in crate::cluster) async fn probe(address: &Address, target: &ProbeTarget, bundle: &str) -> Result<(), ProbeError> {
    let shown = target.shown(address);
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(ca_bundle::certificates(bundle).ok_or(ProbeError::Bundle)?);
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let asked = timeout(REQUEST_TIMEOUT, ask(address, target, tls)).await;
    let answer = asked.map_err(|_| ProbeError::Late(shown.clone()))?;
    let answer = answer.map_err(|error| ProbeError::Connection(shown.clone(), error))?;
    let status = answer.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    Err(ProbeError::Answer(shown, status.to_owned()))
}

async fn ask(address: &Address, target: &ProbeTarget, tls: ClientConfig) -> std::io::Result<String> {
    let host = address.name();
    let name = ServerName::try_from(host.clone()).map_err(std::io::Error::other)?;
    let stream = match target {
        ProbeTarget::At(at) => TcpStream::connect(at).await?,
        ProbeTarget::Dns => TcpStream::connect((host.as_str(), address.port())).await?,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_address_is_a_cluster_ip() {
        for (spec, want) in [
            (json!({ "type": "ClusterIP", "clusterIP": "10.96.0.7" }), Some("10.96.0.7")),
            (json!({ "clusterIP": "fd00::7", "clusterIPs": ["fd00::7", "10.96.0.7"] }), Some("fd00::7")),
            (json!({ "type": "ClusterIP", "clusterIP": "None" }), None),
            (json!({ "type": "ExternalName", "externalName": "a.example", "clusterIP": "10.96.0.7" }), None),
            (json!({ "clusterIP": "" }), None),
            (json!({ "clusterIP": "10.96.0.7:80" }), None),
            (json!({ "clusterIP": "evil.example" }), None),
            (json!({ "clusterIP": 7 }), None),
            (json!({}), None),
        ] {
            let ip = cluster_ip(&json!({ "kind": "Service", "spec": spec }));
            assert_eq!(ip.map(|ip| ip.to_string()).as_deref(), want, "{spec}");
        }
    }
}
