//! A Service in front of nadmit: one address for any number of replicas, which start and stop.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to its endpoints in turn.
pub struct Service {
    /// Its address.
    pub address: SocketAddr,
    behind: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Service {
    /// Without endpoints, connections are closed.
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    /// The same at an address.
    pub fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let behind = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&behind);
        // The thread ends with the tests.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = choose(&known).and_then(|address| TcpStream::connect(address).ok());
                if let Some(server) = server {
                    let _ = join(client, server);
                }
            }
        });
        Self { address, behind }
    }

    /// Adds an endpoint for new connections.
    pub fn add(&self, address: SocketAddr) {
        self.behind.lock().unwrap().push(address);
    }

    /// Removes an endpoint for new connections.
    pub fn remove(&self, address: SocketAddr) {
        self.behind.lock().unwrap().retain(|known| *known != address);
    }
}

fn choose(known: &Mutex<Vec<SocketAddr>>) -> Option<SocketAddr> {
    let mut known = known.lock().unwrap();
    if !known.is_empty() {
        known.rotate_left(1);
    }
    known.first().copied()
}

/// Copies bytes in both directions until one side closes.
fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        to.set_nodelay(true)?;
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
