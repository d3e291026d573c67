//! The command `locktender`: it guards any program by a lock, of whatever kind.
//!
//! The programs of the packages for Rust, Python and Node call [`main`], and exit with its result. The library is only for them: it may
//! change in any release.
#![deny(unsafe_code)]
#![cfg_attr(not(unix), allow(dead_code, reason = "only subcommands that need Unix use it"))]

mod arguments;
mod demo;
mod doctor;
mod exit;
mod force;
mod generated;
mod history;
mod inspect;
mod list;
mod messages;
mod operator;
mod parent;
mod quorum;
#[cfg(test)]
#[path = "samples_tests.rs"]
mod samples;
mod servers;
mod shown;
mod span;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod unsupported;
mod web;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Subcommand};
#[cfg(unix)]
use unix as system;
#[cfg(not(unix))]
use unsupported as system;

/// Does what the arguments say; the first of them is the program's name. Gives the exit code. The process must have no other work:
/// signals end it, or are for the subcommand, whatever handled them.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    system::take_ends();
    match Arguments::try_parse_from(arguments) {
        Ok(Arguments { subcommand }) => {
            if !subcommand.handles_signals() {
                system::end_also_as_process_1();
            }
            match subcommand {
                Subcommand::Run(options) => system::run(&options),
                Subcommand::Job(options) => system::job(&options),
                Subcommand::CronJob(options) => system::cron_job(&options),
                Subcommand::Lead(options) => system::lead(&options),
                Subcommand::Hold(options) => system::hold(&options),
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
