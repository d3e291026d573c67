//! Unsupported: the subcommands that this system doesn't have. They need process groups and signals, as Unix has them.

use std::ffi::OsString;

use clap::Args;

use super::exit;
use super::messages::Messages;
use super::operator::Stop;

/// Not on this system: it needs process groups and signals
///
/// Windows has neither. Call the library from the program itself, or run the command in WSL 2, which is Linux.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct Unsupported {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

pub(super) fn refused(_: &Unsupported) -> u8 {
    let text = "this subcommand needs process groups and signals, which this system doesn't have: call the library from the program itself";
    Messages::for_operators(false).error("UNSUPPORTED", text);
    exit::CANNOT_RUN
}

/// A screen that nobody enters: nothing would give the terminal back when a program is interrupted. `watch` writes one list after the other.
pub(super) enum Screen {}

impl Screen {
    pub(super) fn enter() -> Result<Self, Stop> {
        Err(Stop::Reported(exit::CANNOT_RUN))
    }

    pub(super) fn show(&self, _: &str) -> Result<(), Stop> {
        match *self {}
    }
}
