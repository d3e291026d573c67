//! The arguments of the command, and its help.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};

use super::exit;
use super::span::span;

const EXIT_CODES: &str = "\
Exit codes:
  the command's own, or 128 + N if signal N ended it
  64   wrong arguments
  69   no server, or too few of a quorum, could be reached
  75   the lock is busy (with -n or -w; -E changes it)
  78   the server refuses: its user lacks a right, or the key is not a lock's
  79   the lock was lost, and the command was ended
  126  the command can't be run
  127  the command was not found

Environment of the command:
  LOCKTENDER_NAME         the lock's name
  LOCKTENDER_FENCE        the fencing token: larger than that of every earlier holder
  LOCKTENDER_OWNER        the value of the lock's key
  LOCKTENDER_VALID_UNTIL  when the lock ends unless it is renewed, at the start: seconds since 1970";

/// Distributed locks on Redis
#[derive(Debug, Parser)]
#[command(name = "locktender", bin_name = "locktender", version, subcommand_required = true, disable_help_subcommand = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    Run(Run),
}

/// Runs a command while it holds a lock
///
/// The lock is renewed while the command runs. If it can't be renewed, the command is ended before another holder can get the lock.
/// Without -n and -w it waits until the lock is free.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, override_usage = "locktender run [OPTIONS] NAME -- COMMAND [ARGUMENT]...")]
pub(super) struct Run {
    /// Don't wait: exit with 75 if the lock is busy
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(super) nonblock: bool,

    /// Wait at most this long, then exit with 75
    #[arg(short, long, value_name = "SECONDS", value_parser = span)]
    pub(super) wait: Option<Duration>,

    /// The exit code if the lock is busy
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = exit::BUSY)]
    pub(super) conflict_exit_code: u8,

    /// How long the lock outlives this program if it dies [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(super) ttl: Option<Duration>,

    /// Keep the lock at least this long, also if the command ends before
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(super) min_hold: Option<Duration>,

    /// End the command when it has held the lock for this long
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(super) max_hold: Option<Duration>,

    /// Wait in the order of arrival
    #[arg(long)]
    pub(super) fair: bool,

    /// The time between SIGTERM and SIGKILL for a command that is ended [default: a fifth of the ttl]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(super) kill_after: Option<Duration>,

    /// What to do when the lock is lost, or about to be
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = OnLost::Kill)]
    pub(super) on_lost: OnLost,

    /// A server's URL; several of them are a quorum [default: those in LOCKTENDER_URL]
    #[arg(long, value_name = "URL")]
    pub(super) server: Vec<String>,

    /// The beginning of all keys
    #[arg(long, value_name = "TEXT")]
    pub(super) prefix: Option<String>,

    /// Write messages as lines of JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Write no messages, not even errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(super) quiet: bool,

    /// Say what happens with the lock
    #[arg(short, long)]
    pub(super) verbose: bool,

    /// The lock's name
    pub(super) name: String,

    /// The command, which no shell reads
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnLost {
    /// End the command: SIGTERM, then SIGKILL
    Kill,
    /// Say it, and let the command go on
    Warn,
}
