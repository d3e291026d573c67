//! Socket on a runtime: TCP, Unix or TLS behind one type.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use redis::{RedisResult, Value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
#[cfg(feature = "tls")]
use tokio_rustls::client::TlsStream;

use crate::server::redis::connection::buffers::Buffers;

/// Any kind of connected socket, on a runtime.
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Calls a method of the socket, of any kind.
macro_rules! each {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            #[cfg(feature = "tls")]
            Socket::Tls($stream) => $call,
            #[cfg(unix)]
            Socket::Unix($stream) => $call,
        }
    };
}

impl Socket {
    /// The address of the peer, if it has one.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.get_ref().0.peer_addr().ok(),
            #[cfg(unix)]
            Self::Unix(_) => None,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(&mut *self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_shutdown(context))
    }
}

/// A socket on a runtime, with the state of its writes.
pub(crate) struct OpenSocket {
    socket: Socket,
    /// Whether written bytes may still be inside the TLS layer.
    unflushed: bool,
    /// The error of a write. The server's last bytes may still be there to read.
    mute: Option<io::Error>,
}

impl OpenSocket {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, unflushed: false, mute: None }
    }

    /// Writes the bytes that the socket takes. Those that aren't written yet stay in the buffers.
    pub(crate) fn write(&mut self, buffers: &mut Buffers, context: &mut Context<'_>) {
        if self.mute.is_none()
            && let Poll::Ready(Err(error)) = self.poll_write(buffers, context)
        {
            self.mute = Some(error);
        }
    }

    /// Writes the bytes that the socket takes, and reads once, as [`OpenSocket::poll_read`].
    pub(crate) fn poll(&mut self, buffers: &mut Buffers, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.write(buffers, context);
        self.poll_read(buffers, context)
    }

    /// Writes what is to be written, and reads once. An error of the socket, or its end (`None`). Dropping the future loses nothing.
    pub(crate) async fn read(&mut self, buffers: &mut Buffers) -> Result<usize, Option<io::Error>> {
        match poll_fn(|context| self.poll(buffers, context)).await {
            Ok(0) => Err(None),
            Ok(count) => Ok(count),
            Err(error) => Err(Some(error)),
        }
    }

    /// Writes what is to be written, and waits for the next answer or message.
    pub(crate) async fn next(&mut self, buffers: &mut Buffers) -> RedisResult<Value> {
        loop {
            if let Some(value) = buffers.replies.next() {
                return value;
            }
            match self.read(buffers).await {
                Ok(count) => buffers.replies.filled(count),
                Err(error) => return Err(error.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()).into()),
            }
        }
    }

    /// Reads once; zero bytes are the server's end. Fails after a write that failed when there is nothing left to read.
    pub(crate) fn poll_read(&mut self, buffers: &mut Buffers, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(buffers.room());
        match Pin::new(&mut self.socket).poll_read(context, &mut room) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(room.filled().len())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => match self.mute.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        }
    }

    fn poll_write(&mut self, buffers: &mut Buffers, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !buffers.unwritten().is_empty() {
            let count = ready!(Pin::new(&mut self.socket).poll_write(context, buffers.unwritten()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            buffers.wrote(count);
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.socket).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}
