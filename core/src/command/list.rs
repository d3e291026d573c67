//! `locktender ls` and `locktender watch`: the locks that are held.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use clap::Args;

use super::operator::{Asked, Stop, say};
use super::shown;
use super::span::span;
use super::web::{Look, Web};
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

/// Lists the locks that are held, again and again, or shows them on a page
#[derive(Debug, Args)]
pub(super) struct Watch {
    #[command(flatten)]
    choice: Choice,

    /// The time between two lists [default: 2, with --web 0.25]
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = span)]
    interval: Option<Duration>,

    #[command(flatten)]
    web: Web,
}

/// The time between two lists, and between two looks for the page. Never less than a tenth of a second.
const INTERVAL: Duration = Duration::from_secs(2);
const WEB_INTERVAL: Duration = Duration::from_millis(250);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

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
    let interval = options.interval.unwrap_or(if options.web.web { WEB_INTERVAL } else { INTERVAL }).max(SHORTEST_INTERVAL);
    choice.asked.with_client(|client| {
        if options.web.web {
            let (pattern, limit) = (&*choice.pattern, choice.limit as usize);
            return options.web.serve(client, &Look { pattern, limit, interval, is_json: choice.asked.json });
        }
        let mut locks = choice.locks(client)?;
        loop {
            say(&format!("{clear}{}", choice.text(&locks)))?;
            loop {
                thread::sleep(interval);
                match choice.locks(client) {
                    // An outage passes, and the person still looks.
                    Err(Stop::Failed(error)) if error.code() == Code::Unavailable => {
                        choice.asked.messages().failure(&error);
                    }
                    listed => break locks = listed?,
                }
            }
        }
    })
}

impl Watch {
    pub(super) fn is_a_page(&self) -> bool {
        self.web.web
    }
}

impl Choice {
    fn locks(&self, client: &Client) -> Result<Vec<LockInfo>, Stop> {
        Ok(client.locks_blocking(&*self.pattern, self.limit as usize)?)
    }

    fn text(&self, locks: &[LockInfo]) -> String {
        if self.asked.json { locks.iter().map(shown::lock_json).collect() } else { shown::table(locks) }
    }
}
