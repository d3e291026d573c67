//! The command `locktender`: it guards any program by a lock, of whatever kind.
//!
//! The programs of the packages for Rust, Python and Node call [`main`], and exit with its result. The library is only for them: it may
//! change in any release.
#![deny(unsafe_code)]
#![cfg_attr(not(unix), allow(dead_code, reason = "only subcommands that need Unix use it"))]

mod arguments;
#[cfg(unix)]
mod attempt;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod cron_job;
mod demo;
mod doctor;
#[cfg(unix)]
mod end;
#[cfg(unix)]
mod events;
mod exit;
#[cfg(unix)]
mod family;
mod force;
mod generated;
#[cfg(unix)]
mod guard;
mod history;
#[cfg(unix)]
mod hold;
#[cfg(unix)]
mod holder;
mod inspect;
#[cfg(unix)]
mod job;
#[cfg(unix)]
mod lead;
mod list;
mod messages;
mod operator;
#[cfg(unix)]
mod output;
mod parent;
#[cfg(unix)]
mod private_server;
mod quorum;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod run_options;
#[cfg(test)]
mod samples;
#[cfg(unix)]
mod screen;
mod servers;
mod shown;
#[cfg(unix)]
mod signals;
mod span;
#[cfg(unix)]
mod status;
#[cfg(unix)]
mod terminal;
#[cfg(not(unix))]
mod unsupported;
#[cfg(unix)]
mod watch;
mod web;
mod written;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Subcommand};
#[cfg(unix)]
use signals::{ENDS, end_also_as_process_1, take};

/// Does what the arguments say; the first of them is the program's name. Gives the exit code. The process must have no other work:
/// signals end it, or are for the subcommand, whatever handled them.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // Python's handler of SIGINT would only note it, and Node's does not bear another one above it.
    #[cfg(unix)]
    for signal in ENDS {
        take(signal);
    }
    match Arguments::try_parse_from(arguments) {
        Ok(Arguments { subcommand }) => {
            #[cfg(unix)]
            if !subcommand.handles_signals() {
                end_also_as_process_1();
            }
            match subcommand {
                #[cfg(unix)]
                Subcommand::Run(options) => run::run(&options),
                #[cfg(unix)]
                Subcommand::Job(options) => job::job(&options),
                #[cfg(unix)]
                Subcommand::CronJob(options) => cron_job::cron_job(&options),
                #[cfg(unix)]
                Subcommand::Lead(options) => lead::lead(&options),
                #[cfg(unix)]
                Subcommand::Hold(options) => hold::hold(&options),
                #[cfg(not(unix))]
                Subcommand::Run(options)
                | Subcommand::Job(options)
                | Subcommand::CronJob(options)
                | Subcommand::Lead(options)
                | Subcommand::Hold(options) => unsupported::refused(&options),
                Subcommand::List(options) => list::list(&options),
                Subcommand::Show(options) => inspect::show(&options),
                Subcommand::History(options) => history::history(&options),
                Subcommand::Wait(options) => inspect::wait(&options),
                Subcommand::Watch(options) => list::watch(&options),
                Subcommand::Break(options) => force::break_hold(&options),
                Subcommand::Reset(options) => inspect::reset(&options),
                Subcommand::Quorum(options) => quorum::quorum(&options),
                Subcommand::Doctor(options) => doctor::doctor(&options),
                Subcommand::Demo(options) => demo::demo(&options),
                Subcommand::Completions(options) => generated::completions(Arguments::command(), &options),
                Subcommand::Manual(options) => generated::manual(Arguments::command(), &options),
            }
        }
        Err(error) => {
            // The closed pipe has no reader.
            let _ = error.print();
            if error.use_stderr() { exit::USAGE } else { 0 }
        }
    }
}
