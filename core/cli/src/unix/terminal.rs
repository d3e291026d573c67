//! The terminal: which group of processes may use it, and what it means for this process that the command was stopped.

use std::fs::File;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::signals::To;

/// The terminal of this process.
pub(super) struct Terminal(File);

/// The group that may use a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    /// That of this process.
    Own,
    /// That of the command.
    Command,
    Other,
}

impl Terminal {
    /// The terminal, if there is one.
    pub(super) fn open() -> Option<Self> {
        File::options().read(true).write(true).open("/dev/tty").ok().map(Self)
    }

    pub(super) fn user(&self, command: Pid) -> User {
        match tcgetpgrp(&self.0) {
            Ok(group) if group == getpgrp() => User::Own,
            Ok(group) if group == command => User::Command,
            _ => User::Other,
        }
    }

    /// Lets a group use it. A process outside of the group that may would be stopped for it, by SIGTTOU.
    pub(super) fn give(&self, group: Pid) {
        let before = SigSet::from(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK);
        let _ = tcsetpgrp(&self.0, group);
        if let Ok(before) = before {
            let _ = before.thread_set_mask();
        }
    }
}

/// What is to be done when the command was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It gets the terminal, and continues.
    Give,
    /// This process stops by this signal, so that its shell sees it. The command continues when the shell continues this process.
    Follow(Signal, To),
    /// It stays stopped: without a terminal nobody would continue this process.
    Leave,
}

/// What is to be done when the command was stopped by `signal`, while `user` had the terminal. `is_asked` is whether this process had
/// sent the command a SIGTSTP that was for both.
pub(super) fn stop(signal: Signal, user: Option<User>, is_asked: bool) -> Stop {
    // It reads, or changes the terminal, and is in the background.
    let needs_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
    match user {
        // The request went to the rest of the group, too.
        _ if is_asked && !needs_terminal => Stop::Follow(Signal::SIGTSTP, To::Itself),
        None => Stop::Leave,
        Some(User::Own | User::Command) if needs_terminal => Stop::Give,
        // Without this process the terminal would have stopped the group.
        Some(User::Other) if needs_terminal => Stop::Follow(signal, To::Group),
        Some(User::Command) => Stop::Follow(Signal::SIGTSTP, To::Group),
        Some(User::Own | User::Other) => Stop::Follow(Signal::SIGTSTP, To::Itself),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_terminal_when_it_needs_it_and_what_stops_it_stops_this_process() {
        use Signal::{SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
        use Stop::{Follow, Give, Leave};
        use User::{Command, Other, Own};
        for (signal, user, is_asked, expected) in [
            (SIGTTIN, Some(Own), false, Give),
            (SIGTTOU, Some(Own), false, Give),
            // Another process of the command was stopped, too, or stops itself.
            (SIGTTOU, Some(Command), false, Give),
            // In the background.
            (SIGTTIN, Some(Other), false, Follow(SIGTTIN, To::Group)),
            (SIGTTOU, Some(Other), false, Follow(SIGTTOU, To::Group)),
            // Ctrl-Z while this process has the terminal, and while the command has it.
            (SIGTSTP, Some(Own), true, Follow(SIGTSTP, To::Itself)),
            (SIGTSTP, Some(Command), false, Follow(SIGTSTP, To::Group)),
            // A program that cleans the screen before it stops.
            (SIGSTOP, Some(Own), true, Follow(SIGTSTP, To::Itself)),
            (SIGSTOP, Some(Command), false, Follow(SIGTSTP, To::Group)),
            // `kill -STOP` of the command alone.
            (SIGSTOP, Some(Own), false, Follow(SIGTSTP, To::Itself)),
            (SIGSTOP, Some(Other), false, Follow(SIGTSTP, To::Itself)),
            (SIGTSTP, None, false, Leave),
            (SIGTTIN, None, false, Leave),
            // `kill -TSTP` of this process.
            (SIGTSTP, None, true, Follow(SIGTSTP, To::Itself)),
            // It needs the terminal, whatever was asked for before.
            (SIGTTIN, Some(Own), true, Give),
        ] {
            assert_eq!(stop(signal, user, is_asked), expected, "{signal} {user:?} {is_asked}");
        }
    }
}
