//! `locktender job`: a command runs until it has succeeded once, on whichever machine.

use std::time::Duration;

use clap::Args;
use locktender::host::JobOverrides;
use locktender::{Client, JobOutcome};
use serde_json::Value;

use super::attempt::{ENVIRONMENT, attempt};
use super::guard::{Guard, guarded};
use super::run_options::{Loss, RunOptions, Waiting};
use super::written::write_out;
use crate::exit;
use crate::span::span;

const EXAMPLES: &str = "\
locktender job migrate:42 -- ./migrate 42
locktender job --retention 7d report:2026-11-21 -- ./make-report";

/// Runs a command until it has succeeded once, on whichever machine
///
/// The job is done when the command ends with exit code 0. What it wrote to its standard output is the result, and is kept, up to
/// 64 KiB: a later run of the same job, on any machine, writes the result instead of running the command. Any other end of the
/// command is a failed attempt, unless a signal asked it to end. While one machine runs the command, the others wait; if it
/// fails, or its machine dies, one of them makes the next attempt. A job needs one server, not a quorum.
#[derive(Debug, Args)]
#[command(
    after_help = exit::help(EXAMPLES, "\n  0    also if the job was done before: its result was written", &[], Some(ENVIRONMENT)),
    override_usage = "locktender job [OPTIONS] NAME -- COMMAND [ARGUMENT]...",
    mut_arg("names", |arg| arg.num_args(1).action(clap::ArgAction::Set).help("The job's name")),
    mut_arg("nonblock", |arg| arg.help("Don't wait: exit with 75 if another machine runs the job")),
    mut_arg("conflict_exit_code", |arg| arg.help("The exit code if another machine runs the job")),
)]
pub(crate) struct Job {
    #[command(flatten)]
    waiting: Waiting,

    /// How many attempts may begin before the job is dead [default: 3]
    #[arg(long, value_name = "NUMBER")]
    max_attempts: Option<u32>,

    /// How long after a failed attempt the next one may begin; doubled after each further one [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    retry_delay: Option<Duration>,

    /// How long a job that is done or dead is remembered [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    retention: Option<Duration>,

    #[command(flatten)]
    run_options: RunOptions,

    #[command(flatten)]
    loss: Loss,
}

/// Runs the command as an attempt of the job, and gives the exit code.
pub(crate) fn job(options: &Job) -> u8 {
    let job = |client: &Client| {
        let mut own = JobOverrides::default();
        (own.max_attempts, own.retry_delay, own.retention) = (options.max_attempts, options.retry_delay, options.retention);
        let lock = &options.run_options.lock;
        let job = client.job(lock.name()).settings(lock.overrides(options.waiting.wait())).overrides(own);
        let ttl = job.validate()?.ttl;
        Ok((job, ttl))
    };
    let busy = options.waiting.conflict_exit_code;
    guarded(&options.run_options, options.loss.on_lost, job, |guard, job| {
        attempt(guard, job, Vec::new(), busy, |outcome| written(guard, job.name(), outcome))
    })
}

/// Writes the result of a job that was done before.
fn written(guard: &Guard<'_>, name: &str, outcome: &JobOutcome) -> u8 {
    guard.messages.progress("done", &format!("{name:?} was done before"), &[("attempts", outcome.attempts.into())]);
    let result = outcome.result.as_deref().map(shown).unwrap_or_default();
    write_out(result.as_bytes()).map_or_else(|error| guard.messages.unwritten(&error), |()| 0)
}

/// A result as a command wrote it. Programs that use the library may have kept something else, which is shown as the JSON that it is.
fn shown(result: &str) -> String {
    match serde_json::from_str(result) {
        Ok(Value::String(text)) => text,
        _ => format!("{result}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_shown_as_a_command_wrote_it() {
        for (result, text) in
            [(r#""made\n""#, "made\n"), (r#""""#, ""), ("{\"sent\": 3}", "{\"sent\": 3}\n"), ("plain", "plain\n")]
        {
            assert_eq!(shown(result), text);
        }
    }
}
