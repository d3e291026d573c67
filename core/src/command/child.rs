//! The child: a process group of its own that runs the command, and the terminal that it uses.

use std::ffi::OsString;
use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, killpg, raise, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid, getppid, tcgetpgrp, tcsetpgrp};

use rustix::io::{FdFlags, fcntl_setfd};

use super::exit;

/// The group of a child that was started.
#[derive(Clone, Copy)]
pub(super) struct Child(Pid);

/// What becomes of a child.
pub(super) enum Change {
    /// It ended, with this exit code.
    Ended(u8),
    /// It was stopped, as by Ctrl-Z.
    Stopped,
}

impl Child {
    /// Starts the command. On Linux it dies with this thread, and so with this process.
    pub(super) fn start(words: &[OsString], environment: Vec<(&str, String)>) -> io::Result<Self> {
        // Node keeps its own from the processes that it starts.
        let _ = fcntl_setfd(stdin(), FdFlags::empty());
        let _ = fcntl_setfd(stdout(), FdFlags::empty());
        let _ = fcntl_setfd(stderr(), FdFlags::empty());
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(environment).process_group(0);
        prepare(&mut command, is_in_foreground());
        let id = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok(Self(Pid::from_raw(id)))
    }

    /// Waits for what becomes of it next; only one thread may.
    pub(super) fn wait(self) -> Change {
        loop {
            match waitpid(self.0, Some(WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Exited(_, code)) => return Change::Ended(u8::try_from(code).unwrap_or(u8::MAX)),
                Ok(WaitStatus::Signaled(_, signal, _)) => return Change::Ended(exit::signalled(signal as i32)),
                Ok(WaitStatus::Stopped(..)) => return Change::Stopped,
                Ok(_) | Err(Errno::EINTR) => (),
                Err(_) => return Change::Ended(exit::INTERNAL),
            }
        }
    }

    /// Sends a signal to all of its group.
    pub(super) fn signal(self, signal: Signal) {
        // It may be gone.
        let _ = killpg(self.0, signal);
    }

    /// Stops with the stopped child, so that the shell sees it, and goes on with it. Without a terminal there is no such shell.
    pub(super) fn stop_too(self) {
        if !stdin().is_terminal() {
            return;
        }
        if tcgetpgrp(stdin()) == Ok(self.0) {
            give_terminal(getpgrp());
        }
        let _ = raise(Signal::SIGTSTP);
        // Here the shell has continued this process, or there is none that could.
        if is_in_foreground() {
            give_terminal(self.0);
        }
        self.signal(Signal::SIGCONT);
    }
}

/// Whether this process's group may use the terminal.
fn is_in_foreground() -> bool {
    stdin().is_terminal() && tcgetpgrp(stdin()) == Ok(getpgrp())
}

/// Makes a group the one that may use the terminal. A process outside of that group would be stopped for it, by SIGTTOU.
fn give_terminal(group: Pid) {
    let signals = SigSet::from(Signal::SIGTTOU);
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let _ = tcsetpgrp(stdin(), group);
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
}

/// Between fork and exec only what is safe there.
#[allow(unsafe_code, reason = "what runs between fork and exec calls only functions that are safe there")]
fn prepare(command: &mut Command, takes_terminal: bool) {
    let parent = getpid();
    let begin = move || {
        if takes_terminal {
            give_terminal(getpid());
        }
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may have died before.
        if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    // SAFETY: `begin` allocates nothing and takes no lock: it makes system calls.
    unsafe { command.pre_exec(begin) };
}

/// Takes a signal from whoever handled it: the runtime of another language, which would end the process. Gives false and changes
/// nothing if this process was started to ignore it, as `nohup` does with SIGHUP.
#[allow(unsafe_code, reason = "the handler of a signal can only be read by setting it")]
pub(super) fn take(signal: Signal) -> bool {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default runs no code.
    let Ok(before) = (unsafe { sigaction(signal, &default) }) else { return false };
    let is_ignored = matches!(before.handler(), SigHandler::SigIgn);
    if is_ignored {
        // SAFETY: to ignore a signal runs no code.
        let _ = unsafe { sigaction(signal, &before) };
    }
    !is_ignored
}
