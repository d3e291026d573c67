//! `locktender hold`: a lock for several commands of a script.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, stdin};
use std::os::fd::AsFd;
use std::time::Duration;

use clap::Args;
use locktender::{Client, Lock};
use rustix::fs::{FileType, fstat};
use serde_json::json;

use super::end::Ending;
use super::events::Event;
use super::holder::{self, Holder, fences_of};
use super::run_options::{Holders, LockOptions, Waiting};
use super::written::write_out;
use crate::exit;

/// Holds a lock until a signal comes, or its standard input ends
///
/// When it holds the lock it writes the fencing token to its standard output, as a line; of several locks their tokens in the order of the
/// names. It gives the lock back and ends after a signal; and
/// after the end of its standard input if that is a pipe, and so when the script ends that has the other end. If the lock is lost, it
/// ends, but nobody ends the script's commands: use `locktender run` where you can.
#[derive(Debug, Args)]
#[command(
    after_help = exit::help("locktender hold deploy", "", &exit::OF_COMMANDS, None),
    mut_arg("max_hold", |arg| arg.help("End the hold after this time, with exit code 79")),
    mut_arg("json", |arg| arg.help("Write messages and the result as lines of JSON")),
)]
pub(crate) struct Hold {
    #[command(flatten)]
    waiting: Waiting,

    #[command(flatten)]
    holders: Holders,

    #[command(flatten)]
    lock_options: LockOptions,
}

pub(crate) fn hold(options: &Hold) -> u8 {
    let lock = |client: &Client| options.holders.lock(client, &options.lock_options, options.waiting.wait());
    holder::held(&options.lock_options, lock, |holder, lock| holds(holder, lock, options))
}

fn holds(holder: &Holder<'_>, lock: &Lock, options: &Hold) -> Ending {
    let held = match holder.waited(lock.acquire()) {
        Ok(held) => held,
        Err(failure) => return holder.on_acquire_failure(&failure, options.waiting.conflict_exit_code),
    };
    let ending = until_its_end(holder, &held, options);
    holder.release(&held);
    ending
}

/// Holds the lock.
fn until_its_end(holder: &Holder<'_>, held: &locktender::Hold, options: &Hold) -> Ending {
    let cannot = |what: &str, error: &io::Error, code: u8| {
        holder.messages.error("CANNOT_HOLD", &format!("can't {what}: {error}"));
        code.into()
    };
    let (sender, fence) = (holder.events.sender(), held.fence());
    held.on_lost(move |_| drop(sender.send(Event::Lost(fence))));
    let line = if options.lock_options.json {
        let line = match &held.fences()[..] {
            [(name, fence)] => json!({ "name": name, "fence": fence, "owner": held.owner() }),
            several => json!({ "fences": several.iter().copied().collect::<BTreeMap<_, _>>(), "owner": held.owner() }),
        };
        format!("{line}\n")
    } else {
        format!("{}\n", fences_of(held))
    };
    // Who closed it doesn't read it.
    if let Some(error) = write_out(line.as_bytes()).err().filter(|error| error.kind() != ErrorKind::BrokenPipe) {
        return cannot("write the output", &error, exit::UNWRITTEN);
    }
    if ends_with_input() {
        let read = holder.events.send_from("input", |sender| {
            let _ = io::copy(&mut stdin(), &mut io::sink());
            let _ = sender.send(Event::InputEnded);
        });
        if let Err(error) = read {
            return cannot("read the standard input", &error, exit::INTERNAL);
        }
    }
    loop {
        match holder.events.next_alone(Duration::MAX) {
            Ok(Event::Signal(signal)) => return signal.into(),
            Ok(Event::InputEnded) => return Ending::Code(0),
            Ok(Event::Lost(_)) => {
                if let Err(error) = held.check() {
                    holder.messages.failure(&error);
                }
                return Ending::Code(exit::LOST);
            }
            _ => (),
        }
    }
}

/// Whether the standard input has another end. A terminal doesn't end, and `&` in a script gives /dev/null, which has ended before.
fn ends_with_input() -> bool {
    fstat(stdin().as_fd()).is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket))
}
