//! Socket without a runtime: threads read and write it themselves.

use std::io::{self, Read, Write};
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};
#[cfg(feature = "tls")]
use rustls::{ClientConnection, StreamOwned};

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::transport::socket::Socket;

/// The time for which a connection counts as alive without a look. A look costs a system call.
const TRUSTED: Duration = Duration::from_millis(5);

/// Whether a notice comes only after a read or a write that would have blocked, as on Windows. Such a read or write asks for a notice of
/// all interests. So a socket with room to write would give one notice after the other there, unless only those that lack room are
/// interested.
const IS_ASKED_AGAIN: bool = cfg!(windows);

/// Any kind of connected socket, without a runtime.
enum Plug {
    Tcp(mio::net::TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<StreamOwned<ClientConnection, mio::net::TcpStream>>),
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
}

impl Plug {
    fn new(socket: Socket) -> io::Result<Self> {
        Ok(match socket {
            Socket::Tcp(stream) => Self::Tcp(mio::net::TcpStream::from_std(stream.into_std()?)),
            #[cfg(feature = "tls")]
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
            #[cfg(feature = "tls")]
            Self::Tls(stream) => &mut stream.sock,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        }
    }

    fn stream(&mut self) -> &mut dyn Stream {
        match self {
            Self::Tcp(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => &mut **stream,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        }
    }

    /// Whether a read that doesn't fill the buffer leaves no bytes behind, and the next ones are reported. A TLS record may be followed by
    /// another.
    fn reads_all(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(_) => false,
            _ => !IS_ASKED_AGAIN,
        }
    }
}

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// The socket, and the last notices of the poller about it.
pub(crate) struct MioSocket {
    plug: Plug,
    registry: Registry,
    token: Token,
    /// Whether it lacks room for the last write.
    is_full: bool,
    /// Whether there may be bytes to read. The poller reports them only once.
    readable: bool,
    /// Whether the server has sent its last bytes: the socket is then read to the end, whatever a read gives.
    ends: bool,
    /// The time of the last read.
    looked: Tick,
}

impl MioSocket {
    pub(crate) fn new(socket: Socket, registry: &Registry, token: Token) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::not_applied(FailureKind::Other, format!("the connection could not be handed over: {error}"))
        };
        let registry = registry.try_clone().map_err(failed)?;
        let mut plug = Plug::new(socket).map_err(failed)?;
        registry.register(plug.source(), token, interest(false)).map_err(failed)?;
        Ok(Self { plug, registry, token, is_full: false, readable: true, ends: false, looked: Tick::now() })
    }

    /// Takes a notice of the poller.
    pub(crate) fn notice(&mut self, moved: bool, ends: bool) {
        self.readable |= moved;
        self.ends |= ends;
    }

    /// Whether the socket was not looked at for a while: a connection without a driver may have ended meanwhile.
    pub(crate) fn is_suspect(&self, now: Tick) -> bool {
        now.since(self.looked) > TRUSTED
    }

    /// Reads once. Zero bytes are the server's end, and `None` means that no bytes are there.
    pub(crate) fn read(&mut self, buffers: &mut Buffers, now: Tick) -> io::Result<Option<usize>> {
        while self.readable {
            self.looked = now;
            let room = buffers.room();
            match self.plug.stream().read(room) {
                Ok(count) => {
                    self.readable = count == 0 || self.ends || !self.plug.reads_all() || count == room.len();
                    return Ok(Some(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Writes the bytes that the socket takes. The others are written at the poller's next notice.
    pub(crate) fn write(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        let is_full = self.fill(buffers)?;
        if IS_ASKED_AGAIN && is_full != self.is_full {
            self.registry.reregister(self.plug.source(), self.token, interest(is_full))?;
        }
        self.is_full = is_full;
        Ok(())
    }

    /// Writes until the socket takes no more; gives whether that is so.
    fn fill(&mut self, buffers: &mut Buffers) -> io::Result<bool> {
        while !buffers.unwritten().is_empty() {
            match self.plug.stream().write(buffers.unwritten()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => buffers.wrote(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        match self.plug.stream().flush() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            result => result.map(|()| false),
        }
    }
}

/// What the poller reports.
fn interest(is_full: bool) -> Interest {
    if IS_ASKED_AGAIN && !is_full { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE }
}

impl Drop for MioSocket {
    fn drop(&mut self) {
        // If this fails, the close of the socket deregisters it, too.
        let _ = self.registry.deregister(self.plug.source());
    }
}
