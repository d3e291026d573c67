//! The exit codes that are the command's own. Those of `sysexits.h` mean the same there.

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
