//! Proxy: a network between client and server that fails on command.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Connection;
use crate::link::{Fault, Link, Sky};

/// A TCP proxy on 127.0.0.1 in front of one port. Everything can be changed while connections are open.
pub struct Proxy {
    upstream: Arc<AtomicU16>,
    port: u16,
    sky: Arc<Sky>,
    door: Option<Door>,
}

/// The listener's thread, while connections are accepted.
struct Door {
    open: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Proxy {
    /// Passes all bytes to the port until a fault is set.
    pub fn to(upstream: u16) -> Self {
        let mut proxy = Self { upstream: Arc::new(AtomicU16::new(upstream)), port: 0, sky: Arc::default(), door: None };
        proxy.accept();
        proxy
    }

    /// The proxy's own port, the same for its whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The proxy's URL, for a server without password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A raw connection through the proxy.
    pub fn connect(&self) -> Connection {
        Connection::tcp(self.port).expect("the proxy refuses")
    }

    /// Delays all bytes that arrive from now on. Bytes under way keep their order and rate.
    pub fn latency(&self, to_server: Duration, to_client: Duration) {
        self.sky.change(|weather| {
            weather.to_server = to_server;
            weather.to_client = to_client;
        });
    }

    /// Closes all open connections; new ones are accepted.
    pub fn cut(&self) {
        self.sky.change(|weather| weather.links.iter().for_each(|link| link.close()));
    }

    /// Refuses new connections; those that are open stay.
    pub fn refuse(&mut self) {
        if let Some(door) = self.door.take() {
            door.open.store(false, SeqCst);
            // The listener only looks up when a client connects.
            drop(TcpStream::connect(("127.0.0.1", self.port)));
            door.thread.join().unwrap();
        }
    }

    /// Accepts new connections again.
    pub fn accept(&mut self) {
        if self.door.is_some() {
            return;
        }
        let listener = TcpListener::bind(("127.0.0.1", self.port)).expect("the proxy's port is taken");
        self.port = listener.local_addr().unwrap().port();
        let open = Arc::new(AtomicBool::new(true));
        let (sky, upstream, still_open) = (Arc::clone(&self.sky), Arc::clone(&self.upstream), Arc::clone(&open));
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if !still_open.load(SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                sky.change(|weather| weather.connections += 1);
                // If the server can't be reached the client's connection is closed, which is how it learns of that.
                let _ = Link::open(client, upstream.load(SeqCst), &sky);
            }
        });
        self.door = Some(Door { open, thread });
    }

    /// Passes new connections to another port from now on, and cuts the others: a failover.
    pub fn redirect(&mut self, upstream: u16) {
        self.lead_to(upstream);
        self.cut();
    }

    /// Passes new connections to another port from now on. The others stay as they are.
    pub fn lead_to(&mut self, upstream: u16) {
        // The listener stays: between two listeners another test could take the port.
        self.upstream.store(upstream, SeqCst);
        self.accept();
    }

    /// Begins a black hole: passes no byte in either direction. Connections stay open, new ones are accepted, and all are silent.
    pub fn black_hole(&self) {
        self.sky.change(|weather| weather.black_hole = true);
    }

    /// Ends the black hole; the bytes that were held back arrive now.
    pub fn restore(&self) {
        self.sky.change(|weather| weather.black_hole = false);
    }

    /// Holds back the server's answers from now on. The server gets every request, and the client no answer until they are
    /// released.
    pub fn hold_answers(&self) {
        self.sky.change(|weather| weather.answers_held = true);
    }

    /// Releases the answers that were held back; they arrive now.
    pub fn let_answers_go(&self) {
        self.sky.change(|weather| weather.answers_held = false);
    }

    /// Applies the fault to the connections of the next `requests` writes that contain `needle` (in any case; empty for any). A
    /// request is the content of one read, so a pipeline counts once. Replies to earlier requests that are still under way are
    /// lost with it.
    pub fn fault(&self, fault: Fault, requests: usize, needle: &str) {
        let needle = needle.to_ascii_lowercase().into_bytes();
        let faults = (requests > 0).then_some((fault, requests, needle));
        self.sky.change(|weather| weather.fault = faults);
    }

    /// `fault(Fault::CutBeforeApply, …)`
    pub fn cut_before_apply(&self, requests: usize, needle: &str) {
        self.fault(Fault::CutBeforeApply, requests, needle);
    }

    /// `fault(Fault::CutAfterApply, …)`
    pub fn cut_after_apply(&self, requests: usize, needle: &str) {
        self.fault(Fault::CutAfterApply, requests, needle);
    }

    /// `fault(Fault::SilenceAfterApply, …)`
    pub fn silence_after_apply(&self, requests: usize, needle: &str) {
        self.fault(Fault::SilenceAfterApply, requests, needle);
    }

    /// `fault(Fault::Stall, …)`
    pub fn stall(&self, requests: usize, needle: &str) {
        self.fault(Fault::Stall, requests, needle);
    }

    /// Ends the stalls of all connections; what was held back arrives now.
    pub fn end_stalls(&self) {
        self.sky.change(|weather| weather.links.iter().for_each(|link| link.end_stall()));
    }

    /// The number of faults ordered last that are still to come.
    pub fn faults_left(&self) -> usize {
        self.sky.weather().fault.as_ref().map_or(0, |(_, left, _)| *left)
    }

    /// The number of connections that were ever accepted.
    pub fn connections(&self) -> usize {
        self.sky.weather().connections
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        self.sky.weather().links.len()
    }

    /// The number of bytes that the clients have sent.
    pub fn client_bytes(&self) -> usize {
        self.sky.weather().client_bytes
    }

    /// The number of pieces of these bytes: about the number of the clients' writes, fewer if the proxy is slow.
    pub fn client_reads(&self) -> usize {
        self.sky.weather().client_reads
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.refuse();
        self.cut();
    }
}
