//! The load, and the bare server it is compared with.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use nadmit::tls::Material;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// What nadmit answers to the operator's NAD, or nearly so.
const ANSWER: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2Fubm90YXRpb25zL2s4cy52MS5jbmkuY25jZi5pb34xcmVzb3VyY2VOYW1lIiwidmFsdWUiOiJvcGVuc2hpZnQuaW8vY3g3YW5sMjQ0In1d","patchType":"JSONPatch","auditAnnotations":{"mode":"enforce","decision":"patch","rules":"nad/resource-name-missing=patch","would":""}}}"#;

const UID: &str = "705ab4f5-6393-11e8-b7cc-42010a800002";

#[derive(Deserialize)]
struct LoadAnswer<'a> {
    #[serde(borrow)]
    response: Response<'a>,
}

#[derive(Deserialize)]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    patch: &'a str,
}

/// A server to ask.
#[derive(Clone)]
pub struct LoadTarget {
    address: SocketAddr,
    tls: TlsConnector,
    body: Bytes,
}

/// How it went: the time each review took.
#[derive(Default)]
pub struct LoadResult {
    times: Vec<f64>,
    length: f64,
    /// The processor time the server used.
    pub cpu: f64,
}

impl LoadResult {
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.length
    }

    /// The server's processor time for one review, in seconds.
    pub fn cpu_each(&self) -> f64 {
        self.cpu / self.times.len() as f64
    }

    /// In seconds. The times are sorted.
    pub fn quantile(&self, quantile: f64) -> f64 {
        self.times[((self.times.len() - 1) as f64 * quantile) as usize]
    }
}

/// What is sent.
pub struct Load {
    pub connections: usize,
    /// Reviews a second; `None`: as many as go.
    pub rate: Option<f64>,
    pub length: Duration,
}

impl LoadTarget {
    pub fn new(address: SocketAddr, ca: &str) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("a CA")).expect("a CA");
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let review: serde_json::Value = serde_json::from_str(include_str!("../../examples/review.json")).expect("JSON");
        // The API server sends no blanks.
        Self { address, tls: TlsConnector::from(Arc::new(config)), body: review.to_string().into() }
    }

    pub async fn connect(&self) -> std::io::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = self.tls.connect(name, stream).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn ask(&self, sender: &mut SendRequest<Full<Bytes>>) {
        let request = Request::post("/mutate?timeout=10s").header("host", "localhost");
        let request = request.header("content-type", "application/json").body(Full::new(self.body.clone()));
        sender.ready().await.expect("a connection");
        let response = sender.send_request(request.expect("a request")).await.expect("an answer");
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        // As the API server does: an answer that is not to this review, or whose patch cannot be read, is none.
        let answer: LoadAnswer<'_> = serde_json::from_slice(&body).expect("an answer");
        assert_eq!((answer.response.uid, answer.response.allowed), (UID, true));
        let patch = STANDARD.decode(answer.response.patch).expect("base64");
        serde_json::from_slice::<json_patch::Patch>(&patch).expect("a patch");
    }
}

impl Load {
    pub async fn run(&self, target: &LoadTarget) -> LoadResult {
        let begin = Instant::now();
        let end = begin + self.length;
        let mut senders = Vec::new();
        let tasks: Vec<_> = (0..self.connections)
            .map(|_| {
                let target = target.clone();
                let due = self.rate.map(|_| {
                    let (sender, due) = unbounded_channel();
                    senders.push(sender);
                    due
                });
                tokio::spawn(async move { one(&target, end, due).await })
            })
            .collect();
        if let Some(rate) = self.rate {
            std::thread::spawn(move || pace(rate, begin, end, &senders));
        }
        let mut outcome = LoadResult::default();
        for task in tasks {
            outcome.times.extend(task.await.expect("a connection's times"));
        }
        outcome.length = begin.elapsed().as_secs_f64();
        outcome.times.sort_by(f64::total_cmp);
        outcome
    }
}

/// Tells one connection after the other to ask, at equal distances. It has a thread of its own because tokio's clock ticks once
/// in a millisecond, and would send in bursts. What comes late counts from when it was due.
fn pace(rate: f64, begin: Instant, end: Instant, connections: &[UnboundedSender<Instant>]) {
    let mut due = begin;
    for (connection, number) in connections.iter().cycle().zip(1_u32..) {
        if due > end {
            return;
        }
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            std::thread::sleep(early);
        }
        let _ = connection.send(if early.is_zero() { due } else { Instant::now() });
        due = begin + Duration::from_secs_f64(f64::from(number) / rate);
    }
}

/// One connection: what each review took, from when it was due.
async fn one(target: &LoadTarget, end: Instant, mut due: Option<UnboundedReceiver<Instant>>) -> Vec<f64> {
    let mut sender = target.connect().await.expect("a connection");
    let mut times = Vec::new();
    loop {
        let from = match &mut due {
            None => Some(Instant::now()).filter(|now| *now < end),
            Some(due) => due.recv().await,
        };
        let Some(from) = from else { return times };
        target.ask(&mut sender).await;
        times.push(from.elapsed().as_secs_f64());
    }
}

/// Sends that many reviews, and tells how many they were.
pub async fn send(target: &LoadTarget, connections: usize, count: u64) -> u64 {
    let each = count / connections as u64;
    let tasks: Vec<_> = (0..connections)
        .map(|_| {
            let target = target.clone();
            tokio::spawn(async move {
                let mut sender = target.connect().await.expect("a connection");
                for _ in 0..each {
                    target.ask(&mut sender).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a connection");
    }
    each * connections as u64
}

/// Sends that many of one review, so many at once; how many were answered.
pub async fn flood(target: &LoadTarget, connections: usize, count: usize, body: &Bytes) -> usize {
    let tasks: Vec<_> = (0..connections)
        .map(|_| {
            let (target, body) = (target.clone(), body.clone());
            tokio::spawn(async move {
                let mut sender = target.connect().await.expect("a connection");
                let mut answered = 0;
                for _ in 0..count / connections {
                    let request = Request::post("/validate?timeout=30s").header("host", "localhost");
                    sender.ready().await.expect("a connection");
                    let response = sender.send_request(request.body(Full::new(body.clone())).expect("a request")).await;
                    let response = response.expect("an answer");
                    answered += usize::from(response.status() == 200);
                    response.into_body().collect().await.expect("a body");
                }
                answered
            })
        })
        .collect();
    let mut answered = 0;
    for task in tasks {
        answered += task.await.expect("a connection");
    }
    answered
}

/// What any webhook does at least: decodes the review and makes an answer to it.
fn decoded(body: &[u8]) -> String {
    let review: serde_json::Value = serde_json::from_slice(body).expect("a review");
    let patch = STANDARD.encode(r#"[{"op":"add","path":"/metadata/labels","value":{}}]"#);
    let response = serde_json::json!({ "uid": review["request"]["uid"], "allowed": true, "patch": patch, "patchType": "JSONPatch" });
    serde_json::json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
        .to_string()
}

/// The bare server: the same stack, the whole body read, a fixed answer.
pub async fn bare() {
    let variable = |name| std::env::var(name).expect("a variable").into_bytes();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let material = Material { chain: variable("BARE_CHAIN"), key: variable("BARE_KEY"), client_ca: None };
    let acceptor = TlsAcceptor::from(material.serve().expect("a certificate").config);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("https://{}", listener.local_addr().expect("an address"));
    let decodes = std::env::var_os("BARE_DECODES").is_some();
    let router = Router::new().route(
        "/mutate",
        post(move |body: Body| async move {
            let body = body.collect().await.expect("a body").to_bytes();
            assert!(!body.is_empty());
            let answer = if decodes { Cow::Owned(decoded(&body)) } else { Cow::Borrowed(ANSWER) };
            ([("content-type", "application/json")], answer)
        }),
    );
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = TowerToHyperService::new(router);
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
