//! A client that sends exactly what a test specifies: HTTP/1.1 or HTTP/2 on one connection, or raw bytes.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificates::Identity;

/// Runs a future on threads that all tests share, so that a connection outlives the test that opened it.
pub fn block_on<F: Future>(future: F) -> F::Output {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap()).block_on(future)
}

/// The version of HTTP, negotiated in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    One,
    Two,
}

impl Http {
    fn protocol(self) -> &'static [u8] {
        match self {
            Self::One => b"http/1.1",
            Self::Two => b"h2",
        }
    }
}

/// The CA that the client trusts, and the certificate that it presents.
#[derive(Clone)]
pub struct Trust {
    roots: RootCertStore,
    identity: Option<Identity>,
    versions: Vec<&'static SupportedProtocolVersion>,
    /// The name that the server's certificate must be valid for.
    name: &'static str,
}

impl Trust {
    /// Trusts the certificates in a PEM text.
    pub fn in_ca(pem: &[u8]) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.unwrap()).unwrap();
        }
        Self { roots, identity: None, versions: rustls::ALL_VERSIONS.to_vec(), name: "127.0.0.1" }
    }

    /// Presents a client certificate.
    pub fn showing(self, identity: &Identity) -> Self {
        Self { identity: Some(identity.clone()), ..self }
    }

    /// Offers only this version of TLS.
    pub fn only(self, version: &'static SupportedProtocolVersion) -> Self {
        Self { versions: vec![version], ..self }
    }

    /// Expects the server's certificate for another name than its address.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    fn config(&self, http: Http) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = CertificateDer::pem_slice_iter(identity.chain.as_bytes()).map(Result::unwrap).collect();
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![http.protocol().to_vec()];
        config
    }

    /// A TLS connection, for tests that send raw bytes.
    pub async fn open(&self, address: SocketAddr, http: Http) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::new(self.config(http)));
        let stream = connector.connect(ServerName::try_from(self.name).unwrap(), stream).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(http.protocol()), "the server negotiated another protocol");
        Ok(stream)
    }
}

/// A response.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl HttpAnswer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The text of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// One connection.
pub struct Client {
    sender: Sender,
    address: SocketAddr,
}

impl Client {
    /// Opens a connection over TLS.
    pub async fn connect(address: SocketAddr, trust: &Trust, http: Http) -> io::Result<Self> {
        let stream = TokioIo::new(trust.open(address, http).await?);
        let sender = match http {
            Http::One => {
                let (sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
                tokio::spawn(connection);
                Sender::One(sender)
            }
            Http::Two => {
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), stream).await.map_err(io::Error::other)?;
                tokio::spawn(connection);
                Sender::Two(sender)
            }
        };
        Ok(Self { sender, address })
    }

    /// A POST of JSON.
    pub async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> hyper::Result<HttpAnswer> {
        self.send("POST", path, &[("content-type", "application/json")], body).await
    }

    /// Any request.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> hyper::Result<HttpAnswer> {
        let mut request = Request::builder().method(method);
        request = match self.sender {
            Sender::One(_) => request.uri(path).header("host", self.address.to_string()),
            Sender::Two(_) => request.uri(format!("https://{}{path}", self.address)),
        };
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        collect(response).await
    }
}

async fn collect(response: http::Response<Incoming>) -> hyper::Result<HttpAnswer> {
    let (parts, body) = response.into_parts();
    Ok(HttpAnswer { status: parts.status, headers: parts.headers, body: body.collect().await?.to_bytes() })
}

/// A GET without TLS.
pub async fn plain_get(address: SocketAddr, path: &str) -> HttpAnswer {
    plain("GET", address, path).await
}

/// A request without TLS and without a body.
pub async fn plain(method: &str, address: SocketAddr, path: &str) -> HttpAnswer {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri(path).header("host", address.to_string());
    collect(sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap()).await.unwrap()
}

/// Sends bytes to a server that expects TLS, and returns its response until it closes the connection.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut back = Vec::new();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.read_to_end(&mut back).await;
    back
}
