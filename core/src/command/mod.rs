//! The command `locktender`: it guards any program by a lock.
//!
//! The programs of the packages for Rust, Python and Node call [`main`], and exit with its result.

mod arguments;
mod child;
mod messages;
mod run;
mod span;
mod watch;

use std::ffi::OsString;

use clap::Parser;

use arguments::{Arguments, Subcommand};

/// The exit codes that are the command's own. Those of `sysexits.h` mean the same there.
mod exit {
    pub(super) const USAGE: u8 = 64;
    pub(super) const UNAVAILABLE: u8 = 69;
    pub(super) const INTERNAL: u8 = 70;
    pub(super) const BUSY: u8 = 75;
    pub(super) const CONFIGURATION: u8 = 78;
    pub(super) const LOST: u8 = 79;
    pub(super) const CANNOT_RUN: u8 = 126;
    pub(super) const NOT_FOUND: u8 = 127;

    /// The code of a program that a signal ended, as shells give it.
    pub(super) fn signalled(signal: i32) -> u8 {
        u8::try_from(128 + signal).unwrap_or(u8::MAX)
    }
}

/// Does what the arguments say; the first of them is the program's name. Gives the exit code.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    match Arguments::try_parse_from(arguments) {
        Ok(Arguments { subcommand: Subcommand::Run(options) }) => run::run(&options),
        Err(error) => {
            // Whoever closed the pipe doesn't read it.
            let _ = error.print();
            if error.use_stderr() { exit::USAGE } else { 0 }
        }
    }
}
