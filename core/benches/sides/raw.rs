//! Raw sockets: the same bytes on plain sockets, with no library around them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use locktender::Client;

use crate::callers::name;
use crate::meter::{Span, Tally, cpu, report};

/// One connection, one pair after the other.
pub fn one_at_a_time(url: &str, span: Duration) {
    let pair = Pair::recorded(url).of_caller(0);
    let mut link = Link::new(url);
    let span = Span::starting_now(span);
    let mut tally = Tally::new(span);
    let mut before = None;
    loop {
        link.stream.write_all(&pair.acquire).unwrap();
        link.reply(b"vote");
        link.stream.write_all(&pair.release).unwrap();
        link.reply(b"ok");
        if !tally.count(1) {
            break;
        }
        if before.is_none() && span.begin.elapsed() > Duration::ZERO {
            before = Some(cpu());
        }
    }
    report(vec![tally], span, cpu() - before.unwrap());
}

/// Each connection sends `depth` pairs in one write, then reads their replies; one thread drives all, as the library does.
pub fn pipelined(url: &str, span: Duration, pair: &Pair, connections: usize, depth: usize) {
    let mut links: Vec<(Vec<u8>, Link)> = (0..connections)
        .map(|connection| {
            let pair = |at| pair.of_caller(connection * depth + at);
            let batch = (0..depth).flat_map(|at| [pair(at).acquire, pair(at).release].concat()).collect();
            (batch, Link::new(url))
        })
        .collect();
    let span = Span::starting_now(span);
    let mut tally = Tally::new(span);
    let mut before = None;
    for (batch, link) in &mut links {
        link.stream.write_all(batch).unwrap();
    }
    'measured: loop {
        for (batch, link) in &mut links {
            for _ in 0..depth {
                link.reply(b"vote");
                link.reply(b"ok");
            }
            if !tally.count(depth) {
                break 'measured;
            }
            link.stream.write_all(batch).unwrap();
        }
        if before.is_none() && span.begin.elapsed() > Duration::ZERO {
            before = Some(cpu());
        }
    }
    report(vec![tally], span, cpu() - before.unwrap());
}

/// What is sent for one acquire and one release.
pub struct Pair {
    acquire: Vec<u8>,
    release: Vec<u8>,
}

impl Pair {
    /// The least that any library sends for a lock with an owner: `SET NX PX`, and a script that compares and deletes.
    pub fn plain(url: &str) -> Self {
        const COMPARE_AND_DELETE: &str =
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
        let owner = "app=billing host=web-3 pid=4711 at=2026-11-21T02:22:10.123Z id=01a1fbe9-40cb-7c52-9d0e-1f6d2c3b4a59";
        let key = name(0);
        let mut link = Link::new(url);
        link.stream.write_all(&words(&["SCRIPT", "LOAD", COMPARE_AND_DELETE])).unwrap();
        let (_, length) = link.line();
        let text = link.bulk(length);
        let sha = String::from_utf8(link.buffer[text].to_vec()).unwrap();
        Self { acquire: words(&["SET", &key, owner, "NX", "PX", "10000"]), release: words(&["EVALSHA", &sha, "1", &key, owner]) }
    }

    /// Listens to the library through a relay.
    pub fn recorded(url: &str) -> Self {
        let address = url.trim_start_matches("redis://").to_owned();
        let relay = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = format!("redis://{}", relay.local_addr().unwrap());
        let sent = Arc::new(locktender::host::sync::Mutex::new(Vec::new()));
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
        let lock = client.lock(name(0));
        lock.acquire_blocking().unwrap().release().wait().unwrap();
        let before = sent.lock().len();
        let held = lock.acquire_blocking().unwrap();
        let middle = sent.lock().len();
        held.release().wait().unwrap();
        let bytes = sent.lock().clone();
        client.close_blocking().unwrap();
        Self { acquire: bytes[before..middle].to_vec(), release: bytes[middle..].to_vec() }
    }

    /// The same for the lock of another caller, as the library's sides have one each.
    fn of_caller(&self, caller: usize) -> Self {
        let (from, to) = (name(0), name(caller));
        let renamed = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().replace(&from, &to).into_bytes();
        Self { acquire: renamed(&self.acquire), release: renamed(&self.release) }
    }
}

/// A command in the form of the protocol.
fn words(words: &[&str]) -> Vec<u8> {
    let words: String = std::iter::once(format!("*{}\r\n", words.len()))
        .chain(words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())))
        .collect();
    words.into_bytes()
}

/// A connection, and what was read from it but not parsed yet.
struct Link {
    stream: TcpStream,
    buffer: Box<[u8]>,
    at: usize,
    filled: usize,
}

impl Link {
    fn new(url: &str) -> Self {
        let stream = TcpStream::connect(url.trim_start_matches("redis://")).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: vec![0; 65_536].into(), at: 0, filled: 0 }
    }

    /// Reads one reply: a number, `OK`, or an array of a script that begins with `tag`.
    fn reply(&mut self, tag: &[u8]) {
        let (kind, length) = self.line();
        if kind == b':' || kind == b'+' {
            return;
        }
        assert_eq!(kind, b'*', "the server answered with an error");
        let (_, first) = self.line();
        let text = self.bulk(first);
        assert_eq!(&self.buffer[text], tag);
        for _ in 1..length {
            if let (b'$', length @ 0..) = self.line() {
                self.bulk(length);
            }
        }
    }

    fn line(&mut self) -> (u8, i64) {
        loop {
            let unread = &self.buffer[self.at..self.filled];
            if let Some(length) = unread.iter().position(|byte| *byte == b'\n') {
                let parsed = (unread[0], std::str::from_utf8(&unread[1..length - 1]).unwrap().parse().unwrap_or(0));
                self.at += length + 1;
                return parsed;
            }
            self.more();
        }
    }

    fn bulk(&mut self, length: i64) -> std::ops::Range<usize> {
        let length = usize::try_from(length).unwrap();
        while self.filled - self.at < length + 2 {
            self.more();
        }
        self.at += length + 2;
        self.at - length - 2..self.at - 2
    }

    fn more(&mut self) {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        let count = self.stream.read(&mut self.buffer[self.filled..]).unwrap();
        assert!(count > 0, "the server hung up");
        self.filled += count;
    }
}
