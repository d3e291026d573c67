//! The child: a process group of its own that runs the command, and the terminal that it uses.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, killpg, raise, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid, getppid, tcgetpgrp, tcsetpgrp};
use rustix::io::{FdFlags, fcntl_setfd};

use super::exit;

/// A command that was started, and the terminal that it may share with this process.
pub(super) struct Child {
    group: Pid,
    terminal: Option<File>,
}

/// How a child ended.
#[derive(Clone, Copy)]
pub(super) enum Status {
    Code(u8),
    Signal(Signal),
}

impl Status {
    /// The exit code, as shells give it.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => exit::signalled(signal as i32),
        }
    }

    /// The signal that ended it.
    pub(super) fn signal(self) -> Option<Signal> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {}", *signal as i32),
        }
    }
}

/// What becomes of a child.
pub(super) enum Change {
    Ended(Status),
    /// It was stopped, as by Ctrl-Z.
    Stopped,
}

impl Child {
    /// Starts the command. On Linux it dies with this thread, and so with this process.
    pub(super) fn start(words: &[OsString], environment: Vec<(&str, String)>, output: Stdio) -> io::Result<Self> {
        // Node keeps its own from the processes that it starts.
        let _ = fcntl_setfd(stdin(), FdFlags::empty());
        let _ = fcntl_setfd(stdout(), FdFlags::empty());
        let _ = fcntl_setfd(stderr(), FdFlags::empty());
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok();
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(environment).stdout(output).process_group(0);
        // Who reads for this process through a pipe needs the terminal, not the command.
        let taken = terminal.as_ref().filter(|terminal| stdin().is_terminal() && foreground(terminal) == Some(getpgrp()));
        prepare(&mut command, taken.map(File::try_clone).transpose()?);
        let spawned = command.spawn();
        if let (Err(_), Some(terminal)) = (&spawned, taken) {
            give(terminal, getpgrp());
        }
        let group = i32::try_from(spawned?.id()).map_err(io::Error::other)?;
        Ok(Self { group: Pid::from_raw(group), terminal })
    }

    /// Waits for what becomes of it next; one thread may call this.
    pub(super) fn changes(&self) -> impl FnMut() -> Change + Send + use<> {
        let process = self.group;
        move || loop {
            match waitpid(process, Some(WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Exited(_, code)) => {
                    return Change::Ended(Status::Code(u8::try_from(code).unwrap_or(u8::MAX)));
                }
                Ok(WaitStatus::Signaled(_, signal, _)) => return Change::Ended(Status::Signal(signal)),
                Ok(WaitStatus::Stopped(..)) => return Change::Stopped,
                Ok(_) | Err(Errno::EINTR) => (),
                Err(_) => return Change::Ended(Status::Code(exit::INTERNAL)),
            }
        }
    }

    /// Sends a signal to all of its group.
    pub(super) fn signal(&self, signal: Signal) {
        // It may be gone.
        let _ = killpg(self.group, signal);
    }

    /// Whether a process of its group is left.
    pub(super) fn is_group_alive(&self) -> bool {
        killpg(self.group, None) != Err(Errno::ESRCH)
    }

    /// Lets a stopped child go on: with the terminal, if it was stopped because it has none. Else this process stops, too, so that its
    /// shell sees it, and the child goes on when the shell continues this process.
    pub(super) fn stopped(&self) {
        // Without a terminal nobody continues this process.
        let Some(terminal) = &self.terminal else { return };
        if foreground(terminal) != Some(getpgrp()) {
            self.take_terminal_back();
            // Where no shell could continue it, this does nothing.
            let _ = raise(Signal::SIGTSTP);
        }
        if foreground(terminal) == Some(getpgrp()) {
            give(terminal, self.group);
        }
        self.signal(Signal::SIGCONT);
    }

    /// The child has ended, or stopped: whoever runs this process needs the terminal again.
    pub(super) fn take_terminal_back(&self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|terminal| foreground(terminal) == Some(self.group)) {
            give(terminal, getpgrp());
        }
    }
}

/// The group that may use a terminal.
fn foreground(terminal: &File) -> Option<Pid> {
    tcgetpgrp(terminal).ok()
}

/// Lets a group use the terminal. A process outside of the group that may would be stopped for it, by SIGTTOU.
fn give(terminal: &File, group: Pid) {
    let before = SigSet::from(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let _ = tcsetpgrp(terminal, group);
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
}

/// Between fork and exec only what is safe there.
#[allow(unsafe_code, reason = "what runs between fork and exec calls only functions that are safe there")]
fn prepare(command: &mut Command, terminal: Option<File>) {
    let parent = getpid();
    let begin = move || {
        if let Some(terminal) = &terminal {
            give(terminal, getpid());
        }
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may have died before.
        if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    // SAFETY: `begin` allocates nothing and takes no lock: it makes system calls.
    unsafe { command.pre_exec(begin) };
}

/// The signals by which a person or the system ends a program.
pub(super) const ENDS: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

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
