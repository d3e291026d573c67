//! Run options: those of every subcommand that runs a command.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use locktender::host::LockOverrides;
use locktender::{Client, Error, Lock, Wait};

use super::watch::{default_kill_after, leaves_time};
use crate::exit;
use crate::messages::Messages;
use crate::servers::Servers;
use crate::span::span;

/// The lock, and how it is asked for. The numbers keep their order in the help, whatever else a subcommand has, and of whatever it says
/// other words (`mut_arg`).
#[derive(Debug, Args)]
pub(super) struct LockOptions {
    /// How long the lock outlives this program if it dies [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = span, display_order = 20)]
    pub(super) ttl: Option<Duration>,

    /// End the command when it has held the lock for this long
    #[arg(long, value_name = "DURATION", value_parser = span, display_order = 22)]
    pub(super) max_hold: Option<Duration>,

    /// Wait in the order of arrival
    #[arg(long, display_order = 23)]
    pub(super) fair: bool,

    #[command(flatten)]
    pub(super) servers: Servers,

    /// Write messages as lines of JSON
    #[arg(long, display_order = 28)]
    pub(super) json: bool,

    /// Write no messages, not even errors
    #[arg(short, long, conflicts_with = "verbose", display_order = 29)]
    pub(super) quiet: bool,

    /// Log acquire, wait and release
    #[arg(short, long, display_order = 30)]
    pub(super) verbose: bool,

    /// The lock's name; several names for all of these locks at once, or none
    #[arg(index = 1, value_name = "NAME", required = true, num_args = 1..)]
    pub(super) names: Vec<String>,
}

impl LockOptions {
    /// The name, for a message: of several locks all names.
    pub(super) fn name(&self) -> String {
        self.names.join(", ")
    }

    /// What they say about messages.
    pub(super) fn messages(&self) -> Messages {
        Messages { is_quiet: self.quiet, is_verbose: self.verbose, is_json: self.json }
    }

    /// The options of the lock, of whatever kind it is.
    pub(super) fn overrides(&self, wait: Wait) -> LockOverrides {
        let mut overrides = LockOverrides::default();
        (overrides.ttl, overrides.wait) = (self.ttl, Some(wait));
        (overrides.fair, overrides.max_hold) = (Some(self.fair), Some(self.max_hold));
        overrides
    }
}

/// How many may hold the lock at once.
#[derive(Debug, Args)]
pub(super) struct Holders {
    /// Hold the lock as a reader, with any number of other readers and no writer
    #[arg(long, conflicts_with_all = ["permits", "min_hold"], display_order = 18)]
    read: bool,

    /// Hold one of so many permits of a semaphore
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with = "min_hold", display_order = 19)]
    permits: Option<u32>,

    /// Keep the lock at least this long, also if what it is held for ends before
    #[arg(long, value_name = "DURATION", value_parser = span, display_order = 21)]
    min_hold: Option<Duration>,
}

impl Holders {
    /// The option that is given and that several locks don't have.
    fn of_one_name(&self) -> Option<&'static str> {
        let given = [("--read", self.read), ("--permits", self.permits.is_some()), ("--min-hold", self.min_hold.is_some())];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// The lock, checked.
    pub(super) fn lock(&self, client: &Client, options: &LockOptions, wait: Wait) -> Result<Lock, Error> {
        let mut overrides = options.overrides(wait);
        overrides.min_hold = self.min_hold;
        let name = options.name();
        let lock = match self.permits {
            _ if options.names.len() > 1 => {
                if let Some(option) = self.of_one_name() {
                    return Err(Error::invalid(option, &options.names, "is for one name"));
                }
                client.multi_lock(&options.names).into_lock()
            }
            Some(permits) => client.semaphore(name, permits),
            None if self.read => client.read_lock(name),
            None => client.lock(name),
        };
        let lock = lock.settings(overrides);
        lock.validate()?;
        Ok(lock)
    }
}

/// The command that runs while the lock is held, and how it is ended.
#[derive(Debug, Args)]
pub(super) struct RunOptions {
    #[command(flatten)]
    pub(super) lock: LockOptions,

    /// The time between SIGTERM and SIGKILL for a command that is ended [default: a fifth of the ttl]
    #[arg(long, value_name = "DURATION", value_parser = span, display_order = 24)]
    pub(super) kill_after: Option<Duration>,

    /// Keep the lock until also what the command started in the background has ended (Linux)
    #[arg(long, display_order = 26)]
    pub(super) wait_children: bool,

    /// The command and its arguments; no shell is involved
    #[arg(index = 2, required = true, last = true, value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
}

impl RunOptions {
    /// The time between SIGTERM and SIGKILL for a lock with this ttl.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if that leaves the command no time.
    pub(super) fn kill_after(&self, on_lost: OnLost, ttl: Duration) -> Result<Duration, Error> {
        let least = self.lock.max_hold.unwrap_or(ttl).min(ttl);
        let kill_after = self.kill_after.unwrap_or_else(|| default_kill_after(least));
        if on_lost == OnLost::Warn || leaves_time(kill_after, least) {
            return Ok(kill_after);
        }
        let option = if least < ttl { "max_hold" } else { "ttl" };
        Err(match self.kill_after {
            Some(_) => Error::invalid_time("kill_after", kill_after, "must be at most half of --ttl and --max-hold, less 100 ms"),
            None => Error::invalid_time(option, least, "leaves no time to end the command: 334 ms are the least"),
        })
    }
}

/// How long a busy lock is waited for.
#[derive(Debug, Args)]
pub(super) struct Waiting {
    /// Don't wait: exit with 75 if the lock is busy
    #[arg(short = 'n', long, conflicts_with = "wait")]
    nonblock: bool,

    /// Wait at most this long, then exit with 75
    #[arg(short, long, value_name = "SECONDS", value_parser = span)]
    wait: Option<Duration>,

    /// The exit code if the lock is busy
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = exit::BUSY)]
    pub(super) conflict_exit_code: u8,
}

impl Waiting {
    pub(super) fn wait(&self) -> Wait {
        if self.nonblock { Wait::For(Duration::ZERO) } else { self.wait.map_or(Wait::Forever, Wait::For) }
    }
}

/// What to do without the lock.
#[derive(Debug, Args)]
pub(super) struct Loss {
    /// What to do when the lock is lost, or about to be
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = OnLost::Kill, display_order = 25)]
    pub(super) on_lost: OnLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnLost {
    /// End the command: SIGTERM, then SIGKILL
    Kill,
    /// Write a message, and let the command continue
    Warn,
}
