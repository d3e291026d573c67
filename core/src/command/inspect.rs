//! `locktender show` and `locktender wait`: one lock, which they leave alone.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::exit;
use super::operator::{Asked, say};
use super::shown;
use super::span::span;
use crate::error::{Code, Remaining};

/// The longest pause between two looks at a lock.
const LOOK: Duration = Duration::from_millis(200);

/// Shows who holds a lock, and who waits for it
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
        match client.lock(&*options.name).inspect_blocking()? {
            Some(lock) if options.asked.json => say(&shown::json(&lock))?,
            Some(lock) => say(&shown::lines(&lock))?,
            None => options.asked.messages().note(&format!("nobody holds {:?}", options.name)),
        }
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
