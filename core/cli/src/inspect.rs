//! `locktender show`, `locktender wait` and `locktender reset`: one lock, which they leave alone, and the record of its job.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use locktender::{Client, Code, JobState, Remaining};

use super::exit;
use super::operator::{Asked, Stop, print};
use super::parent::{is_held_by_parent, waits_for_itself};
use super::shown;
use super::span::span;

/// The longest pause between two looks at a lock.
const LOOK: Duration = Duration::from_millis(200);

/// Shows who holds a lock, who waits for it, and what is known of its job
///
/// It exits with 1 if nobody holds it, and nothing is known of a job.
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    asked: Asked,

    /// The lock's name
    name: String,
}

/// Waits until a lock is free, and leaves it so
///
/// When it returns, another program may have acquired the lock again. To work while nobody else does, use `locktender run`. With --done it waits
/// until a job is done, and runs nothing.
#[derive(Debug, Args)]
pub(super) struct Wait {
    #[command(flatten)]
    asked: Asked,

    /// Wait at most this long, then exit with 75
    #[arg(short, long, value_name = "SECONDS", value_parser = span)]
    wait: Option<Duration>,

    /// Wait until the job of this name is done; exit with 80 if no attempt is left
    #[arg(long)]
    done: bool,

    /// The lock's name, or the job's
    name: String,
}

pub(super) fn show(options: &Show) -> u8 {
    options.asked.with_client(|client| {
        let lock = client.lock(&*options.name).inspect_blocking()?;
        // A quorum has no jobs.
        let job = client.job(&*options.name).status_blocking().ok().filter(|job| job.state != JobState::New);
        let code = if lock.is_none() && job.is_none() { exit::NOTHING } else { 0 };
        if options.asked.json {
            print(&shown::json(&options.name, lock.as_ref(), job.as_ref()))?;
            return Ok(code);
        }
        if lock.is_none() {
            options.asked.messages().note(&format!("nobody holds {:?}", options.name));
        }
        print(&(lock.as_ref().map(shown::lines).unwrap_or_default() + &job.as_ref().map(shown::job_lines).unwrap_or_default()))?;
        Ok(code)
    })
}

/// Forgets what is known of a job, so that it runs again
///
/// Nothing is forgotten while an attempt runs: then, and if nothing is known of the job, it exits with 1.
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
        Ok(if is_reset { 0 } else { exit::NOTHING })
    })
}

pub(super) fn wait(options: &Wait) -> u8 {
    let until = options.wait.map(|wait| Instant::now() + wait);
    let mut answered_at = None;
    options.asked.with_client(|client| {
        loop {
            let pause = match options.look(client) {
                Ok(Look::Over(code)) => return Ok(code),
                Ok(Look::Later(pause, why)) => {
                    answered_at = Some(Instant::now());
                    if until.is_some_and(|until| until <= Instant::now()) {
                        options.asked.messages().error(Code::AcquireTimeout.as_str(), &why);
                        return Ok(exit::BUSY);
                    }
                    pause
                }
                // A server that has answered may be restarting.
                Err(Stop::Failed(error))
                    if error.code() == Code::Unavailable
                        && answered_at.is_some_and(|at| at.elapsed() < client.options().unavailable_after) =>
                {
                    LOOK
                }
                Err(stop) => return Err(stop),
            };
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            thread::sleep(pause.min(left));
        }
    })
}

/// The result of a look.
enum Look {
    Over(u8),
    /// It is worth another look after this time, and why it is.
    Later(Duration, String),
}

impl Wait {
    fn look(&self, client: &Client) -> Result<Look, Stop> {
        let name = &*self.name;
        if self.done {
            let job = client.job(name).status_blocking()?;
            return Ok(match job.state {
                JobState::Done => Look::Over(0),
                JobState::Dead => {
                    let error = job.last_error.unwrap_or_default();
                    self.asked.messages().error(Code::JobDead.as_str(), &format!("the last attempt of {name:?} failed: {error}"));
                    Look::Over(exit::DEAD)
                }
                JobState::Running if job.last_owner.as_deref().is_some_and(is_held_by_parent) => self.waits_for_itself(),
                state => Look::Later(LOOK, format!("{name:?} is not done: {}", state.as_str())),
            });
        }
        let Some(held) = client.lock(name).inspect_blocking()? else { return Ok(Look::Over(0)) };
        if is_held_by_parent(&held.owner) {
            return Ok(self.waits_for_itself());
        }
        // A millisecond after its end it is surely over.
        let ends = if let Remaining::For(ends) = held.remaining { ends + Duration::from_millis(1) } else { LOOK };
        Ok(Look::Later(LOOK.min(ends), format!("{name:?} is still held by {}", shown::holder(&held))))
    }

    fn waits_for_itself(&self) -> Look {
        self.asked.messages().error("DEADLOCK", &waits_for_itself(&self.name));
        Look::Over(exit::BUSY)
    }
}
