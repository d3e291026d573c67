//! `locktender run`: a command runs while a lock is held.

use std::time::Instant;

use clap::Args;
use locktender::{Client, Lock};

use super::end::Ending;
use super::guard::{Guard, guarded};
use super::run_options::{Holders, Loss, RunOptions, Waiting};
use crate::exit;

const EXAMPLES: &str = "\
locktender run nightly -- /usr/local/bin/tidy --all     # waits for the lock
locktender run -n sync -- ./sync                        # or exits with 75
locktender run -w 30 --ttl 1m deploy -- sh -c './migrate && ./restart'
locktender run account:1 account:2 -- ./transfer        # both at once, or neither";

/// Runs a command while it holds a lock
///
/// The lock is renewed while the command runs. If it can't be renewed, the command is ended before another holder can get the lock.
/// Without -n and -w it waits until the lock is free.
#[derive(Debug, Args)]
#[command(
    after_help = exit::help(EXAMPLES, "", &[exit::UNWRITTEN, exit::DEAD], Some("")),
    override_usage = "locktender run [OPTIONS] NAME... -- COMMAND [ARGUMENT]..."
)]
pub(crate) struct Run {
    #[command(flatten)]
    waiting: Waiting,

    #[command(flatten)]
    holders: Holders,

    #[command(flatten)]
    run_options: RunOptions,

    #[command(flatten)]
    loss: Loss,
}

/// Runs the command, and gives the exit code.
pub(crate) fn run(options: &Run) -> u8 {
    let lock = |client: &Client| {
        let lock = options.holders.lock(client, &options.run_options.lock, options.waiting.wait())?;
        let ttl = lock.validate()?.ttl;
        Ok((lock, ttl))
    };
    guarded(&options.run_options, options.loss.on_lost, lock, |guard, lock| held(guard, lock, options))
}

fn held(guard: &Guard<'_>, lock: &Lock, options: &Run) -> Ending {
    let began = Instant::now();
    let held = match guard.waited(lock.acquire()) {
        Ok(held) => held,
        Err(failure) => return guard.on_acquire_failure(&failure, options.waiting.conflict_exit_code),
    };
    let ending = match guard.run(&held, began, Vec::new(), false) {
        Ok(end) => end.ending(end.lost.is_none() && guard.was_lost(&held)),
        Err(code) => code.into(),
    };
    guard.release(&held);
    ending
}
