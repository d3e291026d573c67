//! The command `locktender`: it guards any program by a lock, of whatever kind.
//!
//! The programs of the packages for Rust, Python and Node call [`main`], and exit with its result. The library is only for them: it may
//! change in any release.
#![deny(unsafe_code)]

mod arguments;
mod attempt;
mod child;
mod cron_job;
mod demo;
mod doctor;
mod end;
mod events;
mod exit;
mod family;
mod force;
mod generated;
mod guard;
mod history;
mod hold;
mod holder;
mod inspect;
mod job;
mod lead;
mod list;
mod messages;
mod operator;
mod output;
mod private_server;
mod quorum;
mod run;
mod run_options;
#[cfg(test)]
mod samples;
mod screen;
mod servers;
mod shown;
mod signals;
mod span;
mod status;
mod terminal;
mod watch;
mod web;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Subcommand};
use signals::{ENDS, end_also_as_process_1, take};

/// Does what the arguments say; the first of them is the program's name. Gives the exit code. The process must have no other work:
/// signals end it, or are for the subcommand, whatever handled them.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // Python's handler of SIGINT would only note it, and Node's does not bear another one above it.
    for signal in ENDS {
        take(signal);
    }
    match Arguments::try_parse_from(arguments) {
        Ok(Arguments { subcommand }) => {
            if !subcommand.handles_signals() {
                end_also_as_process_1();
            }
            match subcommand {
                Subcommand::Run(options) => run::run(&options),
                Subcommand::Job(options) => job::job(&options),
                Subcommand::CronJob(options) => cron_job::cron_job(&options),
                Subcommand::Lead(options) => lead::lead(&options),
                Subcommand::Hold(options) => hold::hold(&options),
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
