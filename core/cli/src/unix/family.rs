//! The family of this process: the command, and what that has started, also in the background and in sessions of its own.
//!
//! On Linux this process is their subreaper: when the parent of one of them ends, it becomes a child of this process.

use std::io;

use nix::unistd::getpid;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, wait, waitid};

use super::status::{Change, Status};

/// Whether this system can show what a command leaves behind.
pub(super) const IS_KNOWN: bool = cfg!(target_os = "linux");

/// Begins to adopt.
pub(super) fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The next change of a child of this process. One that has ended is gone then, and its number may be given to another one.
/// `None`: nothing has changed. An error: there is no child.
pub(super) fn next_change() -> io::Result<Option<(i32, Change)>> {
    loop {
        let (process, status) = match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let change = match (status.exit_status(), status.terminating_signal(), status.stopping_signal()) {
            (Some(code), ..) => Change::Ended(Status::Code(u8::try_from(code).unwrap_or(u8::MAX))),
            (_, Some(signal), _) => Change::Ended(Status::Signal(signal)),
            (.., Some(signal)) => Change::Stopped(signal),
            _ => continue,
        };
        return Ok(Some((process.as_raw_pid(), change)));
    }
}

/// Whether a child of this process is left.
pub(super) fn is_left() -> bool {
    let found = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    !matches!(found, Err(Errno::CHILD))
}

/// The process of a family, and its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relative {
    pub(super) process: i32,
    pub(super) group: i32,
}

/// The descendants of this process that run.
pub(super) fn descendants() -> Vec<Relative> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let stats =
        processes.filter_map(|process: i32| read(process, &std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?));
    descendants_of(getpid().as_raw(), &stats.collect::<Vec<_>>())
}

/// A process with its parent, by the text of its `stat`. `None` if it has ended.
fn read(process: i32, stat: &str) -> Option<(Relative, i32)> {
    // The name of the program may have any letters.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, parent, group) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (!matches!(state, "Z" | "X")).then_some((Relative { process, group }, parent))
}

fn descendants_of(ancestor: i32, processes: &[(Relative, i32)]) -> Vec<Relative> {
    let mut found: Vec<Relative> = Vec::new();
    let mut next = 0;
    let mut parent = ancestor;
    loop {
        found.extend(processes.iter().filter(|(_, of)| *of == parent).map(|(relative, _)| *relative));
        let Some(relative) = found.get(next) else { return found };
        parent = relative.process;
        next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_whatever_their_programs_are_called() {
        let stats = [
            (10, "10 (sh) S 1 10 10 0"),
            (11, "11 (a) b) R 10 11 11 0"),
            (12, "12 (x S 10) S 11 11 11 0"),
            (13, "13 (gone) Z 10 10 10 0"),
            (14, "14 (other) S 1 14 14 0"),
            (15, "15 (broken"),
        ];
        let processes: Vec<_> = stats.into_iter().filter_map(|(process, stat)| read(process, stat)).collect();
        let relatives = [Relative { process: 11, group: 11 }, Relative { process: 12, group: 11 }];
        assert_eq!(descendants_of(10, &processes), relatives);
        assert_eq!(descendants_of(14, &processes), []);
    }
}
