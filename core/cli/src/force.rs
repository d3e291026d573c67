//! `locktender break`: an operator ends a hold.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use locktender::host::cli::{may_be_no_lock, on_one_line};
use locktender::{Code, Error, LockInfo};

use super::exit;
use super::operator::{Asked, Stop, print};
use super::shown;

/// Ends the hold of a lock, whatever process has it
///
/// It shows whose hold that is, and asks before it ends it. The next waiter gets the lock at once. The holder continues until its next renewal
/// is refused, at most a third of its ttl later: until then two programs may work at the same time. Where you can, end the holder's process
/// instead.
#[derive(Debug, Args)]
pub(super) struct Break {
    #[command(flatten)]
    asked: Asked,

    /// Don't ask
    #[arg(short, long)]
    yes: bool,

    /// End only the hold with this owner value; needed for a value that no locktender wrote. Without it all holds are ended, if several
    /// programs hold the lock
    #[arg(long, value_name = "VALUE")]
    owner: Option<String>,

    /// The lock's name
    name: String,
}

pub(super) fn break_hold(options: &Break) -> u8 {
    let messages = options.asked.messages();
    options.asked.with_client(|client| {
        let lock = client.lock(&*options.name);
        let Some(seen) = lock.inspect_blocking()? else {
            messages.note(&format!("nobody holds {:?}", options.name));
            return Ok(exit::NOTHING);
        };
        match &options.owner {
            Some(owner)
                if *owner != seen.owner && !seen.holders.contains(owner) && seen.holder_count <= seen.holders.len() as u64 =>
            {
                messages.note(&format!("{:?} is held by another value: {}", options.name, on_one_line(&seen.owner)));
                return Ok(exit::NOTHING);
            }
            None if may_be_no_lock(&seen.owner) => return Err(Error::foreign_value(&options.name, &seen.owner).into()),
            _ => (),
        }
        if !options.yes && !options.confirmed(&seen)? {
            messages.note("nothing was changed");
            return Ok(exit::DECLINED);
        }
        // Several holds are ended together, unless one of them is named.
        let owner = options.owner.as_deref().or(Some(&*seen.owner)).filter(|_| !seen.is_shared || options.owner.is_some());
        match lock.force_release_blocking(owner)? {
            Some(ended) if options.asked.json => print(&shown::lock_json(&ended))?,
            Some(ended) => {
                let fence = ended.fence.map(|fence| format!(" with the fence {fence}")).unwrap_or_default();
                print(&format!("ended the hold of {}{fence}\n", shown::holder(&ended)))?;
            }
            None => {
                messages.note("that hold ended by itself meanwhile");
                return Ok(exit::NOTHING);
            }
        }
        Ok(0)
    })
}

impl Break {
    /// Asks a person.
    fn confirmed(&self, seen: &LockInfo) -> Result<bool, Stop> {
        if !io::stdin().is_terminal() {
            let text = "standard input is no terminal, so nobody can be asked: say --yes to end the hold";
            self.asked.messages().error(Code::InvalidArgument.as_str(), text);
            return Err(Stop::Reported(exit::USAGE));
        }
        let what = if self.owner.is_none() && seen.holder_count > 1 { "these holds" } else { "this hold" };
        let question = format!("{}\nEnd {what}? [y/N] ", shown::lines(seen));
        // Standard output may be a file.
        let _ = io::stderr().write_all(question.as_bytes());
        let mut answer = String::new();
        // What can't be read is no yes.
        let _ = io::stdin().read_line(&mut answer);
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}
