//! What this process writes to its standard output, and what it passes on.

use std::fs::File;
use std::io::{self, ErrorKind, Write, stdout};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Writes to the standard output of this process.
pub(crate) fn write_out(text: &[u8]) -> io::Result<()> {
    pass_on(&mut standard_output()?, text)
}

/// Not `Stdout`, whose buffer waits for the end of a line.
pub(super) fn standard_output() -> io::Result<File> {
    Ok(File::from(stdout().as_fd().try_clone_to_owned()?))
}

/// Writes all of a piece, also to a file that another program made non-blocking.
pub(super) fn pass_on(to: &mut File, mut piece: &[u8]) -> io::Result<()> {
    while !piece.is_empty() {
        match to.write(piece) {
            Ok(written) => piece = &piece[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
