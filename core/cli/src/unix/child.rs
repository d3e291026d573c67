//! The child: a process group of its own that runs the command. It gets the terminal when it needs it.

use std::ffi::OsString;
use std::io::{self, stderr, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, getpid, getppid};
use rustix::io::{FdFlags, fcntl_setfd};

use super::family;
use super::output::Ends;
use super::signals::suffer;
use super::terminal::{Stop, Terminal, User, stop};

/// A command that was started, and the terminal that it may share with this process.
pub(super) struct Child {
    group: Pid,
    /// Whether what left its group gets its signals, too.
    is_whole: bool,
    terminal: Option<Terminal>,
}

impl Child {
    /// Starts the command. On Linux it dies with this thread, and so with this process.
    pub(super) fn start(words: &[OsString], environment: Vec<(&str, String)>, ends: Ends, is_whole: bool) -> io::Result<Self> {
        // Node keeps its own from the processes that it starts.
        let _ = fcntl_setfd(stdin(), FdFlags::empty());
        let _ = fcntl_setfd(stdout(), FdFlags::empty());
        let _ = fcntl_setfd(stderr(), FdFlags::empty());
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(environment).stdout(ends.output).stderr(ends.errors).process_group(0);
        prepare(&mut command);
        let group = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok(Self { group: Pid::from_raw(group), is_whole, terminal: Terminal::open() })
    }

    /// Whether this process is it.
    pub(super) fn is(&self, process: i32) -> bool {
        self.group.as_raw() == process
    }

    /// Sends a signal to all of its group. Gives false if it is all another user's, and this process may not.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let (group, outside): (Vec<_>, Vec<_>) = if self.is_whole { family::descendants() } else { Vec::new() }
            .into_iter()
            .partition(|relative| relative.group == self.group.as_raw());
        for relative in outside {
            let _ = kill(Pid::from_raw(relative.process), signal);
        }
        // When the command has ended long ago, others may have the number of its group.
        let is_gone = self.is_whole && group.is_empty();
        // It may be gone.
        is_gone || killpg(self.group, signal) != Err(Errno::EPERM)
    }

    /// Whether a process is left to which signals are sent.
    pub(super) fn is_left(&self) -> bool {
        if self.is_whole { family::is_left() } else { killpg(self.group, None) != Err(Errno::ESRCH) }
    }

    /// It was stopped. Whether it is to go on: with the terminal, if it needs that. Else this process was stopped, too, and a shell has
    /// continued it.
    pub(super) fn stopped(&self, signal: i32, is_asked: bool) -> bool {
        // One without a name stops nobody.
        let Ok(signal) = Signal::try_from(signal) else { return false };
        let user = self.terminal.as_ref().map(|terminal| terminal.user(self.group));
        match (stop(signal, user, is_asked), &self.terminal) {
            (Stop::Follow(signal, to), _) => {
                self.take_terminal_back();
                // One that ignores SIGTSTP would go on, and nothing renews the lock meanwhile.
                self.signal(Signal::SIGSTOP);
                suffer(signal, to);
                true
            }
            (Stop::Give, Some(terminal)) => {
                terminal.give(self.group);
                true
            }
            (Stop::Give | Stop::Leave, _) => false,
        }
    }

    /// Lets the child have the terminal, which may send signals to any user's processes.
    pub(super) fn give_terminal(&self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|terminal| terminal.user(self.group) == User::Own) {
            terminal.give(self.group);
        }
    }

    /// The child has ended, or stopped: the parent process needs the terminal again. Gives whether the child had it.
    pub(super) fn take_terminal_back(&self) -> bool {
        let taken = self.terminal.as_ref().filter(|terminal| terminal.user(self.group) == User::Command);
        if let Some(terminal) = taken {
            terminal.give(getpgrp());
        }
        taken.is_some()
    }
}

/// Between fork and exec only what is safe there.
#[allow(unsafe_code, reason = "what runs between fork and exec calls only functions that are safe there")]
fn prepare(command: &mut Command) {
    let parent = getpid();
    let begin = move || {
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may have died before.
        if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    // SAFETY: `begin` allocates nothing and takes no lock: it makes system calls.
    unsafe { command.pre_exec(begin) };
}
