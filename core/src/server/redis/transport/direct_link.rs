//! One live connection that threads read and write without a runtime.

use std::io::{self, Read, Write};
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};
use redis::{RedisError, RedisResult, Value};
use rustls::{ClientConnection, StreamOwned};

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::codec::{self, Form};
use crate::server::redis::commands::replies::Replies;
use crate::server::redis::connection::connection::Wire;
use crate::server::redis::connection::outbox::Outbox;
use crate::server::redis::connection::pipeline::{Job, Sent};
use crate::server::redis::transport::handshake::Greeted;
use crate::server::redis::transport::socket::{Pulse, Socket};

/// How long nobody has to look whether a connection still lives. Looking costs a system call.
const TRUSTED: Duration = Duration::from_millis(5);

/// Any kind of connected socket, without a runtime.
enum Plug {
    Tcp(mio::net::TcpStream),
    Tls(Box<StreamOwned<ClientConnection, mio::net::TcpStream>>),
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
}

impl Plug {
    fn new(socket: Socket) -> io::Result<Self> {
        Ok(match socket {
            Socket::Tcp(stream) => Self::Tcp(mio::net::TcpStream::from_std(stream.into_std()?)),
            Socket::Tls(stream) => {
                let (stream, session) = stream.into_inner();
                let stream = mio::net::TcpStream::from_std(stream.into_std()?);
                Self::Tls(Box::new(StreamOwned::new(session, stream)))
            }
            #[cfg(unix)]
            Socket::Unix(stream) => Self::Unix(mio::net::UnixStream::from_std(stream.into_std()?)),
        })
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => &mut stream.sock,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        }
    }

    fn stream(&mut self) -> &mut dyn Stream {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => &mut **stream,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        }
    }

    /// Whether a read that doesn't fill the buffer leaves nothing behind. A TLS record may be followed by another.
    fn reads_all(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }
}

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// What replies are read from.
struct Inlet {
    plug: Plug,
    /// There may be something to read. The poller tells only once.
    open: bool,
    /// The server has said its last: to be read to the end, whatever a read brings.
    ends: bool,
}

impl Read for Inlet {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = if self.open { self.plug.stream().read(buffer) } else { Err(io::ErrorKind::WouldBlock.into()) };
        match &read {
            Ok(0) => (),
            Ok(count) => {
                self.open = self.ends || !self.plug.reads_all() || *count == buffer.len();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.open = false,
            Err(_) => (),
        }
        read
    }
}

/// One connection.
pub(crate) struct DirectLink {
    inlet: Inlet,
    pulse: Pulse,
    registry: Registry,
    replies: Replies,
    /// The number of the command whose answer comes next.
    next: u64,
    sent: Sent,
    outbox: Outbox,
    /// When it was last read from.
    looked: Tick,
}

impl DirectLink {
    pub(crate) fn new(greeted: Greeted, registry: &Registry, token: Token, response_timeout: Duration) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::not_applied(FailureKind::Other, format!("the connection could not be handed over: {error}"))
        };
        let registry = registry.try_clone().map_err(failed)?;
        let mut plug = Plug::new(greeted.socket).map_err(failed)?;
        registry.register(plug.source(), token, Interest::READABLE | Interest::WRITABLE).map_err(failed)?;
        let pulse = Pulse::default();
        let sent = Sent::new(pulse.clone(), greeted.run_id, response_timeout);
        Ok(Self {
            inlet: Inlet { plug, open: true, ends: false },
            pulse,
            registry,
            replies: Replies::default(),
            next: 0,
            sent,
            outbox: Outbox::default(),
            looked: Tick::now(),
        })
    }

    /// Takes the poller's word.
    pub(crate) fn notice(&mut self, moved: bool, ends: bool) {
        self.inlet.open |= moved;
        self.inlet.ends |= ends;
    }

    /// Whether to look what the server said before anything is sent: nothing shall overtake what has to be sent again, and a
    /// connection that nobody drove for a while may have ended meanwhile.
    pub(crate) fn is_doubtful(&self, now: Tick) -> bool {
        self.sent.is_probing() || now.since(self.looked) > TRUSTED
    }

    /// Whether somebody waits for an answer, or something is to be written.
    pub(crate) fn is_busy(&self) -> bool {
        self.sent.is_busy() || !self.outbox.is_empty()
    }

    /// The next answer that is there, or the end of the connection.
    pub(crate) fn receive(&mut self, now: Tick) -> Option<(u64, RedisResult<Value>)> {
        let result = loop {
            if let Some(result) = self.replies.next() {
                self.pulse.beat();
                break result;
            }
            if !self.inlet.open {
                return None;
            }
            self.looked = now;
            match self.replies.fill(&mut self.inlet) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(_) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => break Err(error.into()),
            }
        };
        let number = self.next;
        self.next += 1;
        Some((number, result))
    }

    /// Writes what can be written. What can't will be when the poller says so.
    pub(crate) fn flush(&mut self) -> Result<(), RedisError> {
        while !self.outbox.is_empty() {
            match self.inlet.plug.stream().write(self.outbox.rest()) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(count) => self.outbox.took(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error.into()),
            }
        }
        match self.inlet.plug.stream().flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Wire for DirectLink {
    type Attempt = ();

    fn send(&mut self, job: Job, form: Form, now: Tick) {
        codec::command(&job.request.op, self.sent.run_id(), form).write(self.outbox.end());
        self.sent.push(job, form, now);
    }

    fn sent(&self) -> &Sent {
        &self.sent
    }

    fn sent_mut(&mut self) -> &mut Sent {
        &mut self.sent
    }
}

impl Drop for DirectLink {
    fn drop(&mut self) {
        // Closing the socket does it, too, where this fails.
        let _ = self.registry.deregister(self.inlet.plug.source());
    }
}
