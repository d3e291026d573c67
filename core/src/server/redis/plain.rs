//! A connected bare socket, on the I/O thread's reactor and off it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// A connected socket that never blocks.
#[derive(Debug)]
pub(super) enum Plain {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Plain {
    pub(super) fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*stream).read(bytes),
            Self::Unix(stream) => (&*stream).read(bytes),
        }
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*stream).write(bytes),
            Self::Unix(stream) => (&*stream).write(bytes),
        }
    }

    pub(super) fn shutdown(&self) {
        // It may be over already.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl AsRawFd for Plain {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

/// The same while the I/O thread's reactor watches it.
pub(super) enum Watched {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

impl Watched {
    /// Waits until there is something to read, and reads it.
    pub(super) async fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Self::Tcp(stream) => {
                    stream.readable().await?;
                    stream.try_read(bytes)
                }
                Self::Unix(stream) => {
                    stream.readable().await?;
                    stream.try_read(bytes)
                }
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// Waits until something can be written, and writes it.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let written = match self {
                Self::Tcp(stream) => {
                    stream.writable().await?;
                    stream.try_write(bytes)
                }
                Self::Unix(stream) => {
                    stream.writable().await?;
                    stream.try_write(bytes)
                }
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    pub(super) fn into_plain(self) -> io::Result<Plain> {
        Ok(match self {
            Self::Tcp(stream) => Plain::Tcp(stream.into_std()?),
            Self::Unix(stream) => Plain::Unix(stream.into_std()?),
        })
    }
}
