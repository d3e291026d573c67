//! `locktender ls` and `locktender watch`: the locks that are held.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use clap::Args;

use super::operator::{Asked, Stop, say};
use super::shown;
use super::span::span;
use crate::Client;
use crate::error::Code;
use crate::protocol::LockInfo;

/// The beginning of each picture on a terminal: the cursor goes to the corner, and what was there is deleted.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// What is listed.
#[derive(Debug, Args)]
struct Choice {
    #[command(flatten)]
    asked: Asked,

    /// Show at most this many locks
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// The names; * is any text, ? any one character
    #[arg(default_value = "*")]
    pattern: String,
}

/// Lists the locks that are held
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    choice: Choice,
}

/// Lists the locks that are held, again and again
#[derive(Debug, Args)]
pub(super) struct Watch {
    #[command(flatten)]
    choice: Choice,

    /// The time between two lists
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = span, default_value = "2")]
    interval: Duration,
}

pub(super) fn list(options: &List) -> u8 {
    let choice = &options.choice;
    choice.asked.with_client(|client| {
        let locks = choice.locks(client)?;
        if locks.is_empty() && !choice.asked.json {
            choice.asked.messages().note("no lock is held");
        } else {
            say(&choice.text(&locks))?;
        }
        if locks.len() == choice.limit as usize {
            choice.asked.messages().note(&format!("there may be more than these {}: see --limit", locks.len()));
        }
        Ok(0)
    })
}

pub(super) fn watch(options: &Watch) -> u8 {
    let choice = &options.choice;
    let clear = if io::stdout().is_terminal() && !choice.asked.json { CLEAR } else { "" };
    choice.asked.with_client(|client| {
        let mut locks = choice.locks(client)?;
        loop {
            say(&format!("{clear}{}", choice.text(&locks)))?;
            loop {
                thread::sleep(options.interval.max(Duration::from_millis(100)));
                match choice.locks(client) {
                    // An outage passes, and the person still looks.
                    Err(Stop::Failed(error)) if error.code() == Code::Unavailable => {
                        choice.asked.messages().error(error.code().as_str(), &error.to_string());
                    }
                    listed => break locks = listed?,
                }
            }
        }
    })
}

impl Choice {
    fn locks(&self, client: &Client) -> Result<Vec<LockInfo>, Stop> {
        Ok(client.locks_blocking(&*self.pattern, self.limit as usize)?)
    }

    fn text(&self, locks: &[LockInfo]) -> String {
        if self.asked.json { locks.iter().map(shown::lock_json).collect() } else { shown::table(locks) }
    }
}
