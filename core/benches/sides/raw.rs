//! Raw sockets: the same bytes on plain sockets, with no library around them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::meter::{Span, Tally, cpu, report};
use crate::work::{Batch, Work};

/// One connection, one pair after the other.
pub fn one_at_a_time(url: &str, span: Duration, work: &Work) {
    let mut steps: Vec<Batch> = work.of_caller(0).steps.into_iter().map(Batch::new).collect();
    let mut link = Link::new(url);
    let span = Span::starting_now(span);
    let mut tally = Tally::new(span);
    let mut before = None;
    loop {
        for step in &mut steps {
            link.stream.write_all(step.now()).unwrap();
            (0..step.commands).for_each(|_| link.reply(work.is_done));
        }
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
pub fn pipelined(url: &str, span: Duration, work: &Work, connections: usize, depth: usize) {
    let mut links: Vec<(Batch, Link)> = (0..connections)
        .map(|connection| {
            let (mut batch, mut link) = (Vec::new(), Link::new(url));
            for at in 0..depth {
                let work = work.of_caller(connection * depth + at);
                batch.extend(work.steps.concat());
                if !work.first.is_empty() {
                    link.stream.write_all(Batch::new(work.first).now()).unwrap();
                    link.reply(|number| number >= 0);
                }
            }
            (Batch::new(batch), link)
        })
        .collect();
    let span = Span::starting_now(span);
    let mut tally = Tally::new(span);
    let mut before = None;
    for (batch, link) in &mut links {
        link.stream.write_all(batch.now()).unwrap();
    }
    'measured: loop {
        for (batch, link) in &mut links {
            (0..batch.commands).for_each(|_| link.reply(work.is_done));
            if !tally.count(depth) {
                break 'measured;
            }
            link.stream.write_all(batch.now()).unwrap();
        }
        if before.is_none() && span.begin.elapsed() > Duration::ZERO {
            before = Some(cpu());
        }
    }
    report(vec![tally], span, cpu() - before.unwrap());
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

    /// Reads one reply that something was done: a number, `OK` or `QUEUED`, or the array of a script or a transaction.
    fn reply(&mut self, is_done: fn(i64) -> bool) {
        let (kind, length) = self.line();
        if kind == b':' || kind == b'+' {
            return assert!(kind == b'+' || is_done(length), "the server refused");
        }
        assert_eq!(kind, b'*', "the server answered with an error");
        let (kind, first) = self.line();
        if kind != b'+' {
            let text = self.bulk(first);
            assert!(matches!(&self.buffer[text], b"vote" | b"ok"), "the server refused");
        }
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
