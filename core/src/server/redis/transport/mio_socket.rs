//! A connected socket that threads read and write without a runtime.

use std::io::{self, Read, Write};
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};
use rustls::{ClientConnection, StreamOwned};

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::transport::socket::Socket;

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

/// The socket, and what the poller said of it.
pub(crate) struct MioSocket {
    plug: Plug,
    registry: Registry,
    /// There may be something to read. The poller tells only once.
    readable: bool,
    /// The server has said its last: to be read to the end, whatever a read brings.
    ends: bool,
    /// When it was last read from.
    looked: Tick,
}

impl MioSocket {
    pub(crate) fn new(socket: Socket, registry: &Registry, token: Token) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::not_applied(FailureKind::Other, format!("the connection could not be handed over: {error}"))
        };
        let registry = registry.try_clone().map_err(failed)?;
        let mut plug = Plug::new(socket).map_err(failed)?;
        registry.register(plug.source(), token, Interest::READABLE | Interest::WRITABLE).map_err(failed)?;
        Ok(Self { plug, registry, readable: true, ends: false, looked: Tick::now() })
    }

    /// Takes the poller's word.
    pub(crate) fn notice(&mut self, moved: bool, ends: bool) {
        self.readable |= moved;
        self.ends |= ends;
    }

    /// Whether nobody has looked for a while: a connection that nobody drove may have ended meanwhile.
    pub(crate) fn is_doubtful(&self, now: Tick) -> bool {
        now.since(self.looked) > TRUSTED
    }

    /// Reads once. Nothing is the server's end, and `None` that nothing is there.
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

    /// Writes what can be written. What can't will be when the poller says so.
    pub(crate) fn write(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        while !buffers.unwritten().is_empty() {
            match self.plug.stream().write(buffers.unwritten()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => buffers.wrote(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        match self.plug.stream().flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for MioSocket {
    fn drop(&mut self) {
        // Closing the socket does it, too, where this fails.
        let _ = self.registry.deregister(self.plug.source());
    }
}
