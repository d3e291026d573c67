//! A connection without a task: whoever has it sends and reads, nobody waits.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{RedisError, Value};

use super::codec::{self, Form};
use super::link::Job;
use super::plain::Plain;
use super::resp;
use crate::clock::Tick;

/// An operation that was sent. Without a job it only keeps the place of an answer that is still to come.
struct Sent {
    job: Option<Job>,
    at: Tick,
    reads: u64,
}

/// What came for an operation.
pub(super) struct Landed {
    pub(super) job: Job,
    pub(super) value: Value,
}

/// The connection, and what is in flight on it, in order.
pub(super) struct Wire {
    socket: Arc<Plain>,
    unsent: Vec<u8>,
    /// A buffer that is only ever grown, and how much of it is filled.
    unread: Vec<u8>,
    filled: usize,
    sent: VecDeque<Sent>,
    /// How often something arrived.
    reads: u64,
    pub(super) run_id: Option<Arc<str>>,
    pub(super) answered: bool,
}

/// What is read at once.
const CHUNK: usize = 16 * 1024;

impl Wire {
    pub(super) fn new(socket: Plain, run_id: Option<String>) -> Self {
        Self {
            socket: Arc::new(socket),
            unsent: Vec::with_capacity(1024),
            unread: Vec::new(),
            filled: 0,
            sent: VecDeque::new(),
            reads: 0,
            run_id: run_id.map(Arc::from),
            answered: false,
        }
    }

    pub(super) fn socket(&self) -> &Arc<Plain> {
        &self.socket
    }

    /// Puts an operation behind those before it. Whether it is the first to be flushed.
    pub(super) fn push(&mut self, job: Job, form: Form, now: Tick) -> bool {
        let first = self.unsent.is_empty();
        codec::command(&job.request.op, self.run_id.as_deref(), form).write_packed_command(&mut self.unsent);
        self.sent.push_back(Sent { job: Some(job), at: now, reads: self.reads });
        first
    }

    /// Sends as much as the socket takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut done = 0;
        let result = loop {
            if done == self.unsent.len() {
                break Ok(());
            }
            match self.socket.write(&self.unsent[done..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.unsent.drain(..done);
        result
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Reads what has arrived: what it answers goes to `landed`, also before an error.
    pub(super) fn read(&mut self, landed: &mut Vec<Landed>) -> Result<(), RedisError> {
        let ended = self.receive();
        let mut at = 0;
        while let Some((value, taken)) = resp::first(&self.unread[at..self.filled])? {
            at += taken;
            self.answered = true;
            // An answer that nobody asked for means nothing.
            if let Some(job) = self.sent.pop_front().and_then(|sent| sent.job) {
                landed.push(Landed { job, value });
            }
        }
        self.unread.copy_within(at..self.filled, 0);
        self.filled -= at;
        ended.map_err(RedisError::from)
    }

    fn receive(&mut self) -> io::Result<()> {
        loop {
            if self.unread.len() < self.filled + CHUNK {
                self.unread.resize(self.filled + CHUNK, 0);
            }
            let room = &mut self.unread[self.filled..];
            let all = room.len();
            match self.socket.read(room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.reads += 1;
                    self.filled += count;
                    // Less than there was room for: that was all.
                    if count < all {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// When the oldest operation in flight was put in.
    pub(super) fn oldest(&self) -> Option<Tick> {
        self.sent.iter().find(|sent| sent.job.is_some()).map(|sent| sent.at)
    }

    /// Gives up what has waited for longer than `patience`, and says whether the connection was silent all that time: half-open.
    pub(super) fn overdue(&mut self, now: Tick, patience: Duration) -> (Vec<Job>, bool) {
        let reads = self.reads;
        let (mut late, mut silent) = (Vec::new(), false);
        for sent in self.sent.iter_mut().take_while(|sent| sent.at.after(patience) <= now) {
            if let Some(job) = sent.job.take() {
                silent |= sent.reads == reads;
                late.push(job);
            }
        }
        (late, silent)
    }

    /// Takes all that is in flight, in order, and ends the connection.
    pub(super) fn take(&mut self) -> Vec<Job> {
        self.socket.shutdown();
        self.sent.drain(..).filter_map(|sent| sent.job).collect()
    }
}

/// Whoever watches the socket finds it at its end.
impl Drop for Wire {
    fn drop(&mut self) {
        self.socket.shutdown();
    }
}
