//! `locktender ls` and `locktender watch`: the locks that are held.

use std::io::{self, IsTerminal};
use std::mem;
use std::thread;
use std::time::{Duration, SystemTime};

use clap::Args;
use locktender::host::cli::on_one_line;
use locktender::{Client, Code, LockInfo};

use super::messages::in_words;
use super::operator::{Asked, Stop, print};
use super::shown;
use super::span::span;
use super::system::{Screen, end_also_as_process_1};
use super::web::{Look, Web};

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

/// Lists the locks that are held, or the jobs
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    choice: Choice,

    /// List the jobs and cron jobs of which something is known, instead of the locks
    #[arg(long)]
    jobs: bool,
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
        let (count, text) = if options.jobs {
            let jobs = client.jobs(&*choice.pattern, choice.limit as usize).blocking()?;
            let json = || jobs.iter().map(|(name, job)| shown::job_json(name, job)).collect();
            (jobs.len(), if choice.asked.json { json() } else { shown::jobs_table(&jobs) })
        } else {
            let locks = choice.locks(client)?;
            (locks.len(), choice.text(&locks))
        };
        if count == 0 {
            choice.asked.messages().note(if options.jobs { "nothing is known of any job" } else { "no lock is held" });
        } else {
            print(&text)?;
        }
        if count == choice.limit as usize {
            choice.asked.messages().note(&format!("there may be more than these {count}: see --limit"));
        }
        Ok(0)
    })
}

pub(super) fn watch(options: &Watch) -> u8 {
    let choice = &options.choice;
    let interval = options.interval.unwrap_or(if options.web.web { WEB_INTERVAL } else { INTERVAL }).max(SHORTEST_INTERVAL);
    choice.asked.with_client(|client| {
        if options.web.web {
            let (pattern, limit) = (&*choice.pattern, choice.limit as usize);
            return options.web.serve(client, &Look { pattern, limit, interval, is_json: choice.asked.json });
        }
        let has_screen = cfg!(unix) && io::stdout().is_terminal() && !choice.asked.json;
        if !has_screen {
            end_also_as_process_1();
        }
        let mut text = choice.text(&choice.locks(client)?);
        let screen = if has_screen { Some(Screen::enter()?) } else { None };
        let mut outage = String::new();
        loop {
            match &screen {
                Some(screen) => screen.show(&[choice.head(interval), mem::take(&mut outage), text.clone()].concat())?,
                None => print(&text)?,
            }
            loop {
                thread::sleep(interval);
                match choice.locks(client) {
                    // An outage passes, and the person still looks.
                    Err(Stop::Failed(error)) if error.code() == Code::Unavailable => {
                        if screen.is_some() {
                            outage = format!("{}: as it was before\n\n", on_one_line(&in_words(&error)));
                            break;
                        }
                        choice.asked.messages().failure(&error);
                    }
                    listed => {
                        text = choice.text(&listed?);
                        break;
                    }
                }
            }
        }
    })
}

impl Choice {
    fn locks(&self, client: &Client) -> Result<Vec<LockInfo>, Stop> {
        Ok(client.locks_blocking(&*self.pattern, self.limit as usize)?)
    }

    /// The line above a picture on a terminal.
    fn head(&self, interval: Duration) -> String {
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        format!("Every {}: locktender ls {}    {now}\n\n", humantime::format_duration(interval), on_one_line(&self.pattern))
    }

    fn text(&self, locks: &[LockInfo]) -> String {
        if self.asked.json { locks.iter().map(shown::lock_json).collect() } else { shown::table(locks) }
    }
}
