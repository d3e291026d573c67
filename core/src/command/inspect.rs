//! `locktender show`, `locktender wait` and `locktender reset`: one lock, which they leave alone, and the record of its job.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::exit;
use super::operator::{Asked, say};
use super::shown;
use super::span::span;
use crate::error::{Code, Remaining};
use crate::protocol::JobState;

/// The longest pause between two looks at a lock.
const LOOK: Duration = Duration::from_millis(200);

/// Shows who holds a lock, who waits for it, and what is known of its job
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    asked: Asked,

    /// The lock's name
    name: String,
}

/// Waits until a lock is free, and leaves it so
///
/// When it returns, somebody else may have acquired the lock again. To work while nobody else does, use `locktender run`.
#[derive(Debug, Args)]
pub(super) struct Wait {
    #[command(flatten)]
    asked: Asked,

    /// Wait at most this long, then exit with 75
    #[arg(short, long, value_name = "SECONDS", value_parser = span)]
    wait: Option<Duration>,

    /// The lock's name
    name: String,
}

pub(super) fn show(options: &Show) -> u8 {
    options.asked.with_client(|client| {
        let lock = client.lock(&*options.name).inspect_blocking()?;
        // A quorum has no jobs.
        let job = client.job(&*options.name).status_blocking().ok().filter(|job| job.state != JobState::New);
        if options.asked.json {
            say(&shown::json(&options.name, lock.as_ref(), job.as_ref()))?;
            return Ok(0);
        }
        if lock.is_none() {
            options.asked.messages().note(&format!("nobody holds {:?}", options.name));
        }
        say(&(lock.as_ref().map(shown::lines).unwrap_or_default() + &job.as_ref().map(shown::job_lines).unwrap_or_default()))?;
        Ok(0)
    })
}

/// Forgets what is known of a job, so that it runs again
///
/// Nothing is forgotten while an attempt runs.
#[derive(Debug, Args)]
pub(super) struct Reset {
    #[command(flatten)]
    asked: Asked,

    /// The job's name
    name: String,
}

pub(super) fn reset(options: &Reset) -> u8 {
    options.asked.with_client(|client| {
        let is_reset = client.job(&*options.name).reset_blocking()?;
        let text = if is_reset { "may run again" } else { "is as it was: an attempt runs, or nothing is known of it" };
        options.asked.messages().note(&format!("{:?} {text}", options.name));
        Ok(0)
    })
}

pub(super) fn wait(options: &Wait) -> u8 {
    let until = options.wait.map(|wait| Instant::now() + wait);
    options.asked.with_client(|client| {
        let lock = client.lock(&*options.name);
        loop {
            let Some(held) = lock.inspect_blocking()? else { return Ok(0) };
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let text = format!("{:?} is still held by {}", options.name, shown::holder(&held));
                options.asked.messages().error(Code::AcquireTimeout.as_str(), &text);
                return Ok(exit::BUSY);
            }
            // A millisecond after its end it is surely over.
            let ends = if let Remaining::For(ends) = held.remaining { ends + Duration::from_millis(1) } else { LOOK };
            thread::sleep(LOOK.min(left).min(ends));
        }
    })
}
