//! Unsupported: what another system than Unix has in the place of subcommands that need process groups and signals.

use std::ffi::OsString;
use std::io::{self, Write, stdout};

use clap::Args;

use super::exit;
use super::messages::Messages;
use super::operator::Stop;

pub(super) use self::{
    Unsupported as CronJob, Unsupported as Hold, Unsupported as Job, Unsupported as Lead, Unsupported as Run,
    refused as cron_job, refused as hold, refused as job, refused as lead, refused as run,
};

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

/// Nothing else handles what ends a process.
pub(super) fn take_ends() {}

pub(super) fn end_also_as_process_1() {}

/// Writes to the standard output of this process. A console of Windows takes text only through `Stdout`.
pub(super) fn write_out(text: &[u8]) -> io::Result<()> {
    let mut output = stdout().lock();
    output.write_all(text)?;
    output.flush()
}

/// By Ctrl-C.
pub(super) struct Ending;

impl Ending {
    pub(super) fn carry_out(self) -> u8 {
        const CTRL_C: i32 = 2;
        exit::signalled(CTRL_C)
    }
}

/// The end of the page of `watch --web`.
pub(super) fn ended() -> io::Result<impl Future<Output = Ending>> {
    let mut typed = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        typed.recv().await;
        Ending
    })
}
