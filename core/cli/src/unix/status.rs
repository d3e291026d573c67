//! Status: what becomes of a child.

use std::fmt;

use nix::sys::signal::Signal;

use crate::exit;

/// How a child ended.
#[derive(Clone, Copy)]
pub(super) enum Status {
    Code(u8),
    /// By the signal of this number, which may have no name.
    Signal(i32),
}

impl Status {
    /// The exit code, as shells give it.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => exit::signalled(signal),
        }
    }

    /// The signal that ended it, if that has a name.
    pub(super) fn signal(self) -> Option<Signal> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Signal::try_from(signal).ok(),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What becomes of a child.
pub(super) enum Change {
    Ended(Status),
    /// It was stopped by the signal of this number, as by Ctrl-Z.
    Stopped(i32),
}
