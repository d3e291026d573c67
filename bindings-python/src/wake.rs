//! Wake-up: a thread of the core wakes an event loop without touching the interpreter, by a file descriptor that the loop
//! watches.

use std::io;

/// Wakes a loop, or the thread that stands in for one.
pub(crate) struct Wake(Inner);

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Inner::new().map(Self)
    }

    /// What the loop watches for reading. `None` on Windows: no loop watches anything there.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.0.descriptor()
    }

    /// Wakes the loop. Never blocks.
    pub(crate) fn signal(&self) {
        // It can only fail for a counter that is full, and then the loop is awake already.
        let _ = self.0.write();
    }

    /// Takes the signals back.
    pub(crate) fn clear(&self) {
        let _ = self.0.read();
    }
}

#[cfg(target_os = "linux")]
struct Inner(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Inner {
    fn new() -> io::Result<Self> {
        use rustix::event::EventfdFlags;
        Ok(Self(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    fn descriptor(&self) -> Option<i32> {
        Some(std::os::fd::AsRawFd::as_raw_fd(&self.0))
    }

    fn write(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1_u64.to_ne_bytes())?;
        Ok(())
    }

    fn read(&self) -> io::Result<()> {
        rustix::io::read(&self.0, &mut [0_u8; 8])?;
        Ok(())
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
struct Inner(std::os::unix::net::UnixStream, std::os::unix::net::UnixStream);

#[cfg(all(unix, not(target_os = "linux")))]
impl Inner {
    fn new() -> io::Result<Self> {
        let (reader, writer) = std::os::unix::net::UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self(reader, writer))
    }

    fn descriptor(&self) -> Option<i32> {
        Some(std::os::fd::AsRawFd::as_raw_fd(&self.0))
    }

    fn write(&self) -> io::Result<()> {
        io::Write::write_all(&mut &self.1, &[0])
    }

    fn read(&self) -> io::Result<()> {
        io::Read::read(&mut &self.0, &mut [0; 64]).map(|_| ())
    }
}

#[cfg(not(unix))]
struct Inner;

#[cfg(not(unix))]
impl Inner {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    fn descriptor(&self) -> Option<i32> {
        None
    }

    fn write(&self) -> io::Result<()> {
        Ok(())
    }

    fn read(&self) -> io::Result<()> {
        Ok(())
    }
}
