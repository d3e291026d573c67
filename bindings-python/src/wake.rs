//! Wake-up: a thread of the core wakes an event loop without touching the interpreter, by a file descriptor that the loop
//! watches.

use std::io;

/// Wakes a loop, or the thread that stands in for one.
#[cfg(target_os = "linux")]
pub(crate) struct Wake(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::event::EventfdFlags;
        Ok(Self(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// What the loop watches for reading. `None` on Windows: no loop watches anything there.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        Some(std::os::fd::AsRawFd::as_raw_fd(&self.0))
    }

    /// Wakes the loop. Never blocks.
    pub(crate) fn signal(&self) {
        // It can only fail for a counter that is full, and then the loop is awake already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Takes the signals back.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

/// The same where there are no counters: its two ends.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) struct Wake(std::os::unix::net::UnixStream, std::os::unix::net::UnixStream);

#[cfg(all(unix, not(target_os = "linux")))]
impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = std::os::unix::net::UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self(reader, writer))
    }

    pub(crate) fn descriptor(&self) -> Option<i32> {
        Some(std::os::fd::AsRawFd::as_raw_fd(&self.0))
    }

    pub(crate) fn signal(&self) {
        let _ = io::Write::write_all(&mut &self.1, &[0]);
    }

    pub(crate) fn clear(&self) {
        let _ = io::Read::read(&mut &self.0, &mut [0; 64]);
    }
}

/// The same for Windows, where a thread stands in for every loop.
#[cfg(not(unix))]
pub(crate) struct Wake;

#[cfg(not(unix))]
impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn descriptor(&self) -> Option<i32> {
        None
    }

    pub(crate) fn signal(&self) {}

    pub(crate) fn clear(&self) {}
}
