//! `locktender history`: who has held a lock, as the holders have noted it.

use clap::Args;

use super::operator::{Asked, print};
use super::shown;

/// Shows who has held a lock, or any, and for how long
///
/// Holders note their holds on the server: with the first renewal, and at the end of a hold that lasted a second or had found the lock held.
/// The state `holds` is also the last word of a holder that died. Times are the server's. LASTED is ? if the end is before the begin: then
/// the clock was ahead when the hold began, as behind a failover. On a quorum there is no history.
#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    asked: Asked,

    /// Show at most this many holds, the latest first
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// The lock's name [default: all locks]
    name: Option<String>,
}

pub(super) fn history(options: &History) -> u8 {
    options.asked.with_client(|client| {
        let grants = client.history_blocking(options.name.as_deref(), options.limit as usize)?;
        if grants.is_empty() {
            let of = options.name.as_ref().map(|name| format!(" of {name:?}")).unwrap_or_default();
            options.asked.messages().note(&format!("no hold{of} is noted"));
        } else if options.asked.json {
            print(&grants.iter().map(shown::grant_json).collect::<String>())?;
        } else {
            print(&shown::history_table(&grants))?;
        }
        Ok(0)
    })
}
