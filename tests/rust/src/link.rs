//! A link: one connection through the proxy, with two directions, and a reader and a writer thread for each.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{io, thread};

/// The fault for the connection of a request that was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed, and the server never sees the request.
    CutBeforeApply,
    /// The connection is closed after the server has answered. The client gets no byte of the answer.
    CutAfterApply,
    /// The connection stays open and the server has answered, but the client never gets another byte.
    SilenceAfterApply,
    /// The connection stands still before the request, and stays open. What the client wrote arrives when the stalls end, also if
    /// the client has closed by then.
    Stall,
}

/// The proxy's state for every link, shared with its commander.
#[derive(Default)]
pub(crate) struct Weather {
    pub(crate) to_server: Duration,
    pub(crate) to_client: Duration,
    pub(crate) black_hole: bool,
    pub(crate) answers_held: bool,
    /// The fault for the next requests, their number, and the text that they contain (in lower case).
    pub(crate) fault: Option<(Fault, usize, Vec<u8>)>,
    pub(crate) links: Vec<Arc<Link>>,
    pub(crate) connections: usize,
    pub(crate) client_bytes: usize,
    pub(crate) client_reads: usize,
}

/// The network's weather, and the notice of its change.
#[derive(Default)]
pub(crate) struct Sky {
    weather: Mutex<Weather>,
    changed: Condvar,
}

impl Sky {
    pub(crate) fn weather(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.weather());
        self.changed.notify_all();
    }

    /// Waits until the weather lets bytes of the link pass.
    fn wait_while_dark(&self, link: &Link, is_dark: impl Fn(&Weather) -> bool) {
        let dark = |weather: &mut Weather| is_dark(weather) && !link.closed.load(SeqCst);
        drop(self.changed.wait_while(self.weather(), dark).unwrap());
    }
}

const CLEAN: u8 = 0;
const DOOMED: u8 = 1;
const SILENT: u8 = 2;

/// A command that no server knows, and whose name is in the error. When the error arrives, all requests before it were applied.
const MARKER: &[u8] = b"locktender-proxy-marker";

pub(crate) struct Link {
    client: TcpStream,
    server: TcpStream,
    closed: AtomicBool,
    stalled: AtomicBool,
    fate: AtomicU8,
}

impl Link {
    /// Connects a client to the server's port and starts to pass bytes.
    pub(crate) fn open(client: TcpStream, port: u16, sky: &Arc<Sky>) -> io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", port))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let link = Arc::new(Self {
            client,
            server,
            closed: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            fate: AtomicU8::new(CLEAN),
        });
        sky.change(|weather| weather.links.push(Arc::clone(&link)));
        link.pass(sky, Self::read_client, Self::write_server);
        link.pass(sky, Self::read_server, Self::write_client);
        Ok(())
    }

    fn pass(
        self: &Arc<Self>,
        sky: &Arc<Sky>,
        read: fn(&Self, &Sky, Sender<Chunk>) -> io::Result<()>,
        write: fn(&Self, &Sky, Receiver<Chunk>) -> io::Result<()>,
    ) {
        let (sender, receiver) = channel();
        let (link, seen) = (Arc::clone(self), Arc::clone(sky));
        // A broken socket ends a link like a closed one.
        thread::spawn(move || read(&link, &seen, sender));
        let (link, sky) = (Arc::clone(self), Arc::clone(sky));
        thread::spawn(move || {
            let _ = write(&link, &sky, receiver);
            link.close();
            sky.change(|weather| weather.links.retain(|other| !Arc::ptr_eq(other, &link)));
        });
    }

    /// Lets the bytes pass that stand still. The caller announces a change of the weather.
    pub(crate) fn end_stall(&self) {
        self.stalled.store(false, SeqCst);
    }

    /// Closes both sides at once. The caller announces a change of the weather, because writers may be waiting for one.
    pub(crate) fn close(&self) {
        self.closed.store(true, SeqCst);
        // They may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn read_client(&self, sky: &Sky, chunks: Sender<Chunk>) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let length = (&self.client).read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            let mut bytes = buffer[..length].to_vec();
            let mut weather = sky.weather();
            weather.client_bytes += length;
            weather.client_reads += 1;
            let due = Instant::now() + weather.to_server;
            match pick(&mut weather.fault, &bytes) {
                None => {}
                Some(Fault::CutBeforeApply) => {
                    drop(weather);
                    self.close();
                    sky.change(|_| {});
                    return Ok(());
                }
                Some(Fault::Stall) => self.stalled.store(true, SeqCst),
                Some(fault) => {
                    let silent = fault == Fault::SilenceAfterApply;
                    self.fate.store(if silent { SILENT } else { DOOMED }, SeqCst);
                    bytes.extend_from_slice(format!("*1\r\n${}\r\n", MARKER.len()).as_bytes());
                    bytes.extend_from_slice(MARKER);
                    bytes.extend_from_slice(b"\r\n");
                }
            }
            drop(weather);
            if chunks.send(Chunk { due, bytes }).is_err() {
                return Ok(());
            }
        }
    }

    fn read_server(&self, sky: &Sky, chunks: Sender<Chunk>) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        let mut swallowed = Vec::new();
        loop {
            let length = (&self.server).read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            let fate = self.fate.load(SeqCst);
            if fate == CLEAN {
                let due = Instant::now() + sky.weather().to_client;
                let bytes = buffer[..length].to_vec();
                if chunks.send(Chunk { due, bytes }).is_err() {
                    return Ok(());
                }
            } else if fate == DOOMED {
                swallowed.extend_from_slice(&buffer[..length]);
                if contains(&swallowed, MARKER) {
                    self.close();
                    sky.change(|_| {});
                    return Ok(());
                }
            }
        }
    }

    fn write_server(&self, sky: &Sky, chunks: Receiver<Chunk>) -> io::Result<()> {
        let is_dark = |weather: &Weather| weather.black_hole || self.stalled.load(SeqCst);
        self.write(&self.server, &chunks, || sky.wait_while_dark(self, is_dark))
    }

    fn write_client(&self, sky: &Sky, chunks: Receiver<Chunk>) -> io::Result<()> {
        let is_dark = |weather: &Weather| weather.black_hole || weather.answers_held;
        self.write(&self.client, &chunks, || sky.wait_while_dark(self, is_dark))
    }

    fn write(&self, mut target: &TcpStream, chunks: &Receiver<Chunk>, wait_while_dark: impl Fn()) -> io::Result<()> {
        for chunk in chunks {
            thread::sleep(chunk.due.saturating_duration_since(Instant::now()));
            wait_while_dark();
            target.write_all(&chunk.bytes)?;
        }
        // The other side closed; while it is dark nobody learns of that either.
        wait_while_dark();
        Ok(())
    }
}

/// Bytes on their way, and their time of arrival.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// The fault for these bytes, which is then counted off.
fn pick(fault: &mut Option<(Fault, usize, Vec<u8>)>, bytes: &[u8]) -> Option<Fault> {
    let (kind, left, needle) = fault.as_mut()?;
    if !contains(bytes, needle) {
        return None;
    }
    let kind = *kind;
    *left -= 1;
    if *left == 0 {
        *fault = None;
    }
    Some(kind)
}

/// Whether the bytes contain the needle, which is in lower case, in any case.
fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || bytes.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
}
