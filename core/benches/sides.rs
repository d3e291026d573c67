//! One side of a comparison a process: `sides <side> <url> <seconds>` prints what it measured as `name=value` fields.
//!
//! `tests/bench/compare.py` starts the servers, runs the sides in shuffled rounds and prints the ratios. The raw sides send
//! the very bytes the library sends: they are recorded through a relay first, so a change of the wire moves both.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic, missing_docs)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use locktender::Client;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [side, url, seconds] = arguments.as_slice() else {
        return println!("usage: sides <side> <redis://host:port> <seconds>; sides are compared by tests/bench/compare.py");
    };
    let span = Duration::from_secs_f64(seconds.parse().unwrap());
    match side.as_str() {
        "async-1" => report(callers(url, span, 1)),
        "async-256" => report(callers(url, span, 256)),
        "blocking-1" => report(blocking(url, span)),
        "raw-1" => report(raw_blocking(url, span)),
        "raw-50x16" => report(raw_pipelined(url, span, 50, 16)),
        "holds-1000" => holds(url, span, 1_000),
        other => panic!("no side {other}"),
    }
}

/// Pairs of acquire and release, and how long they took.
fn report((pairs, took): (u64, Duration)) {
    let user = cpu();
    println!("pairs={pairs} seconds={} us_per_pair={:.2} cpu_seconds={user:.3}", took.as_secs_f64(), took.as_secs_f64() * 1e6 / pairs as f64);
}

/// Processor time of this process, seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// `callers` tasks of one ordinary current-thread runtime, each with its own lock.
fn callers(url: &str, span: Duration, callers: usize) -> (u64, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::open(url).unwrap();
        client.lock("warm").acquire().await.unwrap().release().await.unwrap();
        let start = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let lock = client.lock(format!("bench:{caller}"));
                tokio::spawn(async move {
                    let mut pairs = 0;
                    while start.elapsed() < span {
                        let held = lock.acquire().await.unwrap();
                        held.release().await.unwrap();
                        pairs += 1;
                    }
                    pairs
                })
            })
            .collect();
        let mut pairs = 0;
        for task in tasks {
            pairs += task.await.unwrap();
        }
        (pairs, start.elapsed())
    })
}

fn blocking(url: &str, span: Duration) -> (u64, Duration) {
    let client = Client::open(url).unwrap();
    let lock = client.lock("bench:blocking");
    lock.acquire_blocking().unwrap().release().wait().unwrap();
    let start = Instant::now();
    let mut pairs = 0;
    while start.elapsed() < span {
        lock.acquire_blocking().unwrap().release().wait().unwrap();
        pairs += 1;
    }
    (pairs, start.elapsed())
}

/// What the library sends for one acquire and one release.
fn recorded(url: &str) -> (Vec<u8>, Vec<u8>) {
    let address = url.trim_start_matches("redis://").to_owned();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = format!("redis://{}", relay.local_addr().unwrap());
    let sent = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let record = Arc::clone(&sent);
    std::thread::spawn(move || {
        let (mut client, _) = relay.accept().unwrap();
        let mut server = TcpStream::connect(address).unwrap();
        let (mut back, mut forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            record.lock().extend_from_slice(&buffer[..count]);
            server.write_all(&buffer[..count]).unwrap();
        }
    });
    let client = Client::open(&front).unwrap();
    let lock = client.lock("bench:raw");
    lock.acquire_blocking().unwrap().release().wait().unwrap();
    let before = sent.lock().len();
    let held = lock.acquire_blocking().unwrap();
    let middle = sent.lock().len();
    held.release().wait().unwrap();
    let bytes = sent.lock().clone();
    (bytes[before..middle].to_vec(), bytes[middle..].to_vec())
}

/// Reads replies until `count` have come; scripts answer with flat arrays.
struct Replies {
    stream: TcpStream,
    buffer: Vec<u8>,
    at: usize,
}

impl Replies {
    fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::with_capacity(65_536), at: 0 }
    }

    fn line(&mut self) -> (u8, i64) {
        loop {
            if let Some(length) = self.buffer[self.at..].windows(2).position(|pair| pair == b"\r\n") {
                let line = &self.buffer[self.at..self.at + length];
                let parsed = (line[0], std::str::from_utf8(&line[1..]).unwrap().parse().unwrap_or(0));
                self.at += length + 2;
                return parsed;
            }
            self.more();
        }
    }

    fn more(&mut self) {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        }
        let mut chunk = [0; 16_384];
        let count = self.stream.read(&mut chunk).unwrap();
        assert!(count > 0, "the server hung up");
        self.buffer.extend_from_slice(&chunk[..count]);
    }

    fn one(&mut self) {
        match self.line() {
            (b'*', length) => (0..length.max(0)).for_each(|_| self.one()),
            (b'$', length) if length >= 0 => {
                let length = usize::try_from(length).unwrap() + 2;
                while self.buffer.len() - self.at < length {
                    let mut chunk = [0; 16_384];
                    let count = self.stream.read(&mut chunk).unwrap();
                    self.buffer.extend_from_slice(&chunk[..count]);
                }
                self.at += length;
            }
            (b'-', _) => panic!("the server answered with an error"),
            _ => (),
        }
    }
}

fn raw_blocking(url: &str, span: Duration) -> (u64, Duration) {
    let (acquire, release) = recorded(url);
    let mut stream = TcpStream::connect(url.trim_start_matches("redis://")).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut replies = Replies::new(stream.try_clone().unwrap());
    let start = Instant::now();
    let mut pairs = 0;
    while start.elapsed() < span {
        stream.write_all(&acquire).unwrap();
        replies.one();
        stream.write_all(&release).unwrap();
        replies.one();
        pairs += 1;
    }
    (pairs, start.elapsed())
}

/// Each connection sends `depth` pairs in one write, then reads their replies; one thread drives all, as the library does.
fn raw_pipelined(url: &str, span: Duration, connections: usize, depth: usize) -> (u64, Duration) {
    let (acquire, release) = recorded(url);
    let batch: Vec<u8> = (0..depth).flat_map(|_| [acquire.clone(), release.clone()].concat()).collect();
    let mut links: Vec<(TcpStream, Replies)> = (0..connections)
        .map(|_| {
            let stream = TcpStream::connect(url.trim_start_matches("redis://")).unwrap();
            stream.set_nodelay(true).unwrap();
            let replies = Replies::new(stream.try_clone().unwrap());
            (stream, replies)
        })
        .collect();
    let start = Instant::now();
    let mut pairs = 0;
    for (stream, _) in &mut links {
        stream.write_all(&batch).unwrap();
    }
    while start.elapsed() < span {
        for (stream, replies) in &mut links {
            (0..depth * 2).for_each(|_| replies.one());
            pairs += depth as u64;
            stream.write_all(&batch).unwrap();
        }
    }
    (pairs, start.elapsed())
}

/// Many holds with a ttl of 3 s: what renewing them costs, and whether one is lost.
fn holds(url: &str, span: Duration, count: usize) {
    let client = Client::open(url).unwrap();
    let lost = Arc::new(AtomicU64::new(0));
    let going = Arc::new(AtomicBool::new(true));
    let held: Vec<_> = (0..count)
        .map(|number| {
            let lock = client.lock(format!("bench:hold:{number}")).ttl(Duration::from_secs(3));
            let held = lock.acquire_blocking().unwrap();
            let lost = Arc::clone(&lost);
            let going = Arc::clone(&going);
            held.on_lost(move |_| {
                lost.fetch_add(u64::from(going.load(Ordering::SeqCst)), Ordering::SeqCst);
            });
            held
        })
        .collect();
    let (before, writes, start) = (cpu(), written(), Instant::now());
    std::thread::sleep(span);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "holds={count} seconds={seconds:.1} cpu_percent={:.2} writes_per_second={:.1} lost={}",
        (cpu() - before) / seconds * 100.0,
        (written() - writes) / seconds,
        lost.load(Ordering::SeqCst),
    );
    going.store(false, Ordering::SeqCst);
    drop(held);
    client.close_blocking().unwrap();
}

/// Write calls of this process, those of waking threads (eventfd) included.
fn written() -> f64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("syscw: ")).and_then(|count| count.parse().ok()).unwrap_or(0.0)
}
