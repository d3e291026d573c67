//! `locktender cron-job`: a command that a timer starts on each machine runs on one of them, once per scheduled time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args, ValueEnum};
use locktender::host::JobOverrides;
use locktender::{Client, Code, JobOutcome, NotRunReason};

use super::attempt::{ENVIRONMENT, attempt};
use super::guard::{Guard, guarded};
use super::run_options::{Loss, RunOptions, Waiting};
use crate::exit;
use crate::span::{instant, span};

const NOTHING_TO_RUN: &str =
    "\n  0    also if nothing is to run here: another machine ran the command for this scheduled time, or runs it,
       or it is too late (-E changes it)";

const SCHEDULED_TIME: &str = "
  LOCKTENDER_SCHEDULED_TIME    the scheduled time: seconds since 1970";

const EXAMPLES: &str = "\
locktender cron-job --every 1h nightly -- /usr/local/bin/tidy
locktender cron-job --at 2026-11-21T02:00:00+01:00 --max-attempts 3 nightly -- /usr/local/bin/tidy";

/// Runs a command once per scheduled time, on one of the machines whose timers start it
///
/// The scheduled time is the time for which the timer planned the run: --at names it, or it is now, rounded down to a multiple of
/// --every. Machines whose clocks differ name the same scheduled time. One of them runs the command. The others exit with 0 and
/// write nothing. It needs one server, not a quorum.
#[derive(Debug, Args)]
#[command(
    after_help = exit::help(EXAMPLES, NOTHING_TO_RUN, &[exit::BUSY], Some(&format!("{ENVIRONMENT}{SCHEDULED_TIME}"))),
    override_usage = "locktender cron-job [OPTIONS] <--at TIME|--every DURATION> NAME -- COMMAND [ARGUMENT]...",
    group = ArgGroup::new("scheduled_time").required(true),
    mut_arg("names", |arg| arg.num_args(1).action(clap::ArgAction::Set).help("The job's name")),
    mut_arg("nonblock", |arg| arg.help("Don't wait, whatever --max-attempts and --on-overlap say")),
    mut_arg("wait", |arg| arg.help("Wait at most this long as a backup, or for an earlier scheduled time")),
    mut_arg("conflict_exit_code", |arg| arg.help("The exit code if nothing is to run here").default_value("0")),
)]
pub(crate) struct CronJob {
    #[command(flatten)]
    waiting: Waiting,

    /// The scheduled time: RFC 3339, or @ and seconds since 1970; or give --every
    #[arg(long, value_name = "TIME", value_parser = instant, group = "scheduled_time")]
    at: Option<SystemTime>,

    /// The time between two scheduled times: the scheduled time is now, rounded down to a multiple of it
    #[arg(long, value_name = "DURATION", value_parser = span, group = "scheduled_time")]
    every: Option<Duration>,

    /// How long ago a scheduled time may be and still run; with --every from its end on [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    max_lateness: Option<Duration>,

    /// What to do while the command still runs for an earlier scheduled time
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = Overlap::Skip)]
    on_overlap: Overlap,

    /// How many attempts may begin for one scheduled time; with more than one, other machines wait as backups [default: 1]
    #[arg(long, value_name = "NUMBER")]
    max_attempts: Option<u32>,

    /// How long after a failed attempt the next one may begin; doubled after each further one [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    retry_delay: Option<Duration>,

    #[command(flatten)]
    run_options: RunOptions,

    #[command(flatten)]
    loss: Loss,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Overlap {
    /// Leave this scheduled time out
    Skip,
    /// Wait, then run
    Wait,
}

/// Runs the command for the scheduled time, and gives the exit code.
pub(crate) fn cron_job(options: &CronJob) -> u8 {
    let job = |client: &Client| {
        let mut own = JobOverrides::default();
        (own.at, own.every, own.max_lateness) = (options.at, options.every, options.max_lateness);
        (own.max_attempts, own.retry_delay) = (options.max_attempts, options.retry_delay);
        own.on_overlap = Some(match options.on_overlap {
            Overlap::Skip => locktender::Overlap::Skip,
            Overlap::Wait => locktender::Overlap::Wait,
        });
        let lock = &options.run_options.lock;
        let job = client.cron_job(lock.name()).settings(lock.overrides(options.waiting.wait())).overrides(own);
        let ttl = job.validate()?.ttl;
        Ok((job.at_scheduled_time()?, ttl))
    };
    let busy = options.waiting.conflict_exit_code;
    guarded(&options.run_options, options.loss.on_lost, job, |guard, (job, scheduled_time)| {
        let own = vec![("LOCKTENDER_SCHEDULED_TIME", since_1970(*scheduled_time))];
        attempt(guard, job, own, busy, |outcome| not_run(guard, job.name(), outcome, busy))
    })
}

/// A scheduled time in seconds, with its milliseconds if it has any: two scheduled times are two texts.
fn since_1970(scheduled_time: SystemTime) -> String {
    let since = scheduled_time.duration_since(UNIX_EPOCH).unwrap_or_default();
    match since.subsec_millis() {
        0 => since.as_secs().to_string(),
        millis => format!("{}.{millis:03}", since.as_secs()),
    }
}

/// Prints why nothing ran: a run that is too late always, the rest only if that is wanted, because cron mails any message.
fn not_run(guard: &Guard<'_>, name: &str, outcome: &JobOutcome, code: u8) -> u8 {
    let why = match outcome.reason {
        Some(NotRunReason::Dead) => {
            let error = outcome.last_error.as_deref().unwrap_or_default();
            guard
                .messages
                .error(Code::JobDead.as_str(), &format!("the last attempt of {name:?} for this scheduled time failed: {error}"));
            return exit::DEAD;
        }
        Some(NotRunReason::Running) => "is run by another machine",
        Some(NotRunReason::Missed) => "has begun a later scheduled time",
        Some(NotRunReason::TooLate) => {
            // That may be so on every machine, and then the command never runs.
            guard.messages.warning(
                "too_late",
                &format!("{name:?} is too late for its scheduled time, and does not run: see --max-lateness"),
            );
            return code;
        }
        _ => "was done for this scheduled time",
    };
    guard.messages.progress(outcome.reason.unwrap_or(NotRunReason::Done).as_str(), &format!("{name:?} {why}"), &[]);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_time_has_a_fraction_if_it_needs_one() {
        for (millis, text) in
            [(1_795_222_800_000, "1795222800"), (1_795_222_800_200, "1795222800.200"), (1_795_222_800_007, "1795222800.007")]
        {
            assert_eq!(since_1970(UNIX_EPOCH + Duration::from_millis(millis)), text);
        }
    }
}
