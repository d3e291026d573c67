//! A network between client and server that fails on command.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Connection;
use crate::link::{Fault, Link, Sky};

/// A TCP proxy on 127.0.0.1 in front of one port. Everything can be changed while connections are open.
pub struct Proxy {
    upstream: u16,
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
    /// Passes everything to the port until told otherwise.
    pub fn to(upstream: u16) -> Self {
        let mut proxy = Self { upstream, port: 0, sky: Arc::default(), door: None };
        proxy.accept();
        proxy
    }

    /// Its own port, the same for its whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, for a server without password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A raw connection through it.
    pub fn connect(&self) -> Connection {
        Connection::tcp(self.port).expect("the proxy refuses")
    }

    /// Delays everything that arrives from now on; what is under way keeps its order and rate.
    pub fn latency(&self, to_server: Duration, to_client: Duration) {
        self.sky.change(|weather| {
            weather.to_server = to_server;
            weather.to_client = to_client;
        });
    }

    /// Closes all connections there are; new ones are accepted.
    pub fn cut(&self) {
        self.sky.change(|weather| weather.links.iter().for_each(|link| link.close()));
    }

    /// Refuses new connections; those that are open stay.
    pub fn refuse(&mut self) {
        if let Some(door) = self.door.take() {
            door.open.store(false, SeqCst);
            // The listener only looks up when somebody knocks.
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
        let (sky, upstream, still_open) = (Arc::clone(&self.sky), self.upstream, Arc::clone(&open));
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if !still_open.load(SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                sky.change(|weather| weather.connections += 1);
                // If the server can't be reached the client's connection is closed, which is how it learns of that.
                let _ = Link::open(client, upstream, &sky);
            }
        });
        self.door = Some(Door { open, thread });
    }

    /// Passes everything to another port from now on, on new connections: a failover.
    pub fn redirect(&mut self, upstream: u16) {
        self.refuse();
        self.upstream = upstream;
        self.accept();
        self.cut();
    }

    /// Passes nothing in either direction any more: connections stay open, new ones are accepted, and all are silent.
    pub fn black_hole(&self) {
        self.sky.change(|weather| weather.black_hole = true);
    }

    /// Ends the black hole; what was held back arrives now.
    pub fn restore(&self) {
        self.sky.change(|weather| weather.black_hole = false);
    }

    /// Holds back what the server says from now on: it gets every request, and the client no answer until they are let go.
    pub fn hold_answers(&self) {
        self.sky.change(|weather| weather.answers_held = true);
    }

    /// Lets the answers go that are held; they arrive now.
    pub fn let_answers_go(&self) {
        self.sky.change(|weather| weather.answers_held = false);
    }

    /// Brings the fault on the connections of the next `requests` writes that contain `needle` (in any case; empty for
    /// any). A request is what one read gets, so a pipeline counts once; replies to earlier requests that are still
    /// under way are lost with it.
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

    /// How many of the faults ordered last are still to come.
    pub fn faults_left(&self) -> usize {
        self.sky.weather().fault.as_ref().map_or(0, |(_, left, _)| *left)
    }

    /// How many connections were ever accepted.
    pub fn connections(&self) -> usize {
        self.sky.weather().connections
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.sky.weather().links.len()
    }

    /// How many bytes the clients have sent.
    pub fn client_bytes(&self) -> usize {
        self.sky.weather().client_bytes
    }

    /// How many pieces they came in: about the number of the clients' writes, fewer if the proxy can't keep up.
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
