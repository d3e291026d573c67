//! What needs Unix: the subcommands that run a program or hold a lock for one, and what the others do with signals and the terminal.

mod attempt;
mod child;
mod cron_job;
mod end;
mod ended;
mod events;
mod family;
mod guard;
mod hold;
mod holder;
mod job;
mod lead;
mod output;
mod private_server;
mod run;
mod run_options;
mod screen;
mod signals;
mod status;
mod terminal;
mod watch;
mod written;

pub(crate) use self::cron_job::{CronJob, cron_job};
pub(crate) use self::end::Ending;
pub(crate) use self::ended::ended;
pub(crate) use self::hold::{Hold, hold};
pub(crate) use self::job::{Job, job};
pub(crate) use self::lead::{Lead, lead};
pub(crate) use self::private_server::PrivateServer;
pub(crate) use self::run::{Run, run};
pub(crate) use self::screen::Screen;
pub(crate) use self::signals::{ENDS, end_also_as_process_1, take_ends};
pub(crate) use self::written::write_out;
