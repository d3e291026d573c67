//! `locktender lead`: a command runs on one machine at a time, and on another one when that resigns or dies.

use std::mem;
use std::time::{Duration, Instant};

use clap::Args;
use locktender::{Client, Code, Election, Wait};

use super::end::{End, Ending};
use super::guard::{Guard, guarded};
use super::holder::AcquireFailure;
use super::run_options::{OnLost, RunOptions};
use crate::exit;
use crate::messages::in_words;

/// The pause after a campaign for which no server could be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// The campaign continues where other subcommands give these codes.
const NEVER: [u8; 5] = [exit::UNAVAILABLE, exit::UNWRITTEN, exit::BUSY, exit::LOST, exit::DEAD];

const ENVIRONMENT: &str = "
  LOCKTENDER_TERM         the term of this leader, which is its fence";

/// Runs a command on the leader: on one machine at a time, and on another one when it dies
///
/// It waits until it leads, however long, also while no server can be reached. Then it runs the command. If the leadership is lost, the
/// command is ended before another machine can lead, and the next campaign begins. When the command ends by itself, its exit code is this
/// program's, and another machine leads.
#[derive(Debug, Args)]
#[command(
    after_help = exit::help("locktender lead scheduler -- /usr/local/bin/scheduler", "", &NEVER, Some(ENVIRONMENT)),
    override_usage = "locktender lead [OPTIONS] NAME -- COMMAND [ARGUMENT]...",
    mut_arg("names", |arg| arg.num_args(1).action(clap::ArgAction::Set).help("The election's name")),
)]
pub(crate) struct Lead {
    #[command(flatten)]
    run_options: RunOptions,
}

/// Runs the command in each term, until it ends by itself, and gives the exit code.
pub(crate) fn lead(options: &Lead) -> u8 {
    let election = |client: &Client| {
        let election =
            client.election(options.run_options.lock.name()).settings(options.run_options.lock.overrides(Wait::Forever));
        let ttl = election.validate()?.ttl;
        Ok((election, ttl))
    };
    guarded(&options.run_options, OnLost::Kill, election, leads)
}

fn leads(guard: &Guard<'_>, election: &Election) -> Ending {
    let mut is_outage = false;
    loop {
        let began = Instant::now();
        let leadership = match guard.waited(election.campaign()) {
            Ok(leadership) => leadership,
            Err(AcquireFailure::Error(error)) if error.code() == Code::Unavailable => {
                // An outage is reported once: it may take hours.
                if !mem::replace(&mut is_outage, true) {
                    guard.messages.error(error.code().as_str(), &format!("{}; the campaign continues", in_words(&error)));
                }
                match guard.paused(PAUSE) {
                    Ok(()) => continue,
                    Err(signal) => return signal.into(),
                }
            }
            Err(failure) => return guard.on_acquire_failure(&failure, exit::BUSY),
        };
        is_outage = false;
        let environment = vec![("LOCKTENDER_TERM", leadership.term().to_string())];
        let end = guard.run(&leadership, began, environment, false);
        guard.release(&leadership);
        match end.map(|end| (end.ending(false), end)) {
            Ok((Ending::Code(exit::LOST), End { lost: Some(_), .. })) => {
                guard.report_left();
                guard.messages.progress("campaigning", "campaigns again", &[]);
            }
            Ok((ending, _)) => return ending,
            Err(code) => return code.into(),
        }
    }
}
