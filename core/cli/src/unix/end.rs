//! The end of a command, and how this process ends after it: as the command would have ended without it.

use nix::sys::signal::Signal;

use super::output::Kept;
use super::signals::{To, is_ending, suffer};
use super::status::Status;
use crate::exit;

/// How a command ended.
pub(super) struct End {
    pub(super) status: Status,
    /// Why this process ended it, if so: the lock was lost.
    pub(super) lost: Option<String>,
    /// Whether it, or what it left behind, was another user's, and could not be ended.
    pub(super) is_foreign: bool,
    /// The last signal that came to this process to end both.
    pub(super) asked: Option<Signal>,
    /// Whether the command had the terminal, which then sends what is typed to the command alone.
    pub(super) had_terminal: bool,
    /// Its output, if that was to be kept.
    pub(super) output: Option<Kept>,
}

impl End {
    /// Whether a signal was to end it: one that came to this process, or the one that ended it.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.is_some() || self.status.signal().is_some_and(is_ending)
    }

    /// How this process ends after it. `was_lost` is whether the lock was found lost when the command had ended by itself.
    pub(super) fn ending(&self, was_lost: bool) -> Ending {
        use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        match (self.status.signal(), self.asked) {
            // A shell ends its script, and make its other recipes, only if they see this signal, and their program dies of it.
            (Some(signal @ (SIGINT | SIGQUIT)), asked) => {
                let is_typed = self.had_terminal && asked != Some(signal);
                Ending::Signal(signal, if is_typed { To::Group } else { To::Itself })
            }
            (_, Some(asked)) if self.lost.is_some() => asked.into(),
            // systemd takes a service that dies of these for stopped, and one with an exit code for failed.
            (Some(signal @ (SIGTERM | SIGHUP)), Some(_)) => signal.into(),
            _ if self.lost.is_some() && self.is_foreign => Ending::Code(exit::UNENDED),
            _ if self.lost.is_some() || was_lost => Ending::Code(exit::LOST),
            _ => Ending::Code(self.status.code()),
        }
    }
}

/// How this process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(u8),
    /// By this signal, as if it had no handler for it.
    Signal(Signal, To),
}

impl From<u8> for Ending {
    fn from(code: u8) -> Self {
        Self::Code(code)
    }
}

impl From<Signal> for Ending {
    fn from(signal: Signal) -> Self {
        Self::Signal(signal, To::Itself)
    }
}

impl Ending {
    /// Ends this process by a signal; else gives the exit code. Process 1 doesn't die by its own signals.
    pub(crate) fn carry_out(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal, to) => {
                suffer(signal, to);
                exit::signalled(signal as i32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_ends_as_the_command_would_have_ended_without_it() {
        use Signal::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1};
        use Status::Code;
        let by = |signal: Signal| Status::Signal(signal as i32);
        let own = |signal: Signal| Ending::Signal(signal, To::Itself);
        let typed = |signal: Signal| Ending::Signal(signal, To::Group);
        let code = Ending::Code;
        for (status, lost, asked, had_terminal, was_lost, expected) in [
            (Code(0), false, None, false, false, code(0)),
            (Code(3), false, None, true, false, code(3)),
            (Code(0), false, None, false, true, code(79)),
            // It handles the signal, and reports itself how it ended.
            (Code(7), false, Some(SIGTERM), false, false, code(7)),
            (Code(0), false, Some(SIGINT), false, false, code(0)),
            // Ctrl-C while this process has the terminal, and while the command has it.
            (by(SIGINT), false, Some(SIGINT), false, false, own(SIGINT)),
            (by(SIGINT), false, None, true, false, typed(SIGINT)),
            (by(SIGQUIT), false, None, true, false, typed(SIGQUIT)),
            // `kill -INT` of this process; of the command.
            (by(SIGINT), false, Some(SIGINT), true, false, own(SIGINT)),
            (by(SIGQUIT), false, None, false, false, own(SIGQUIT)),
            (by(SIGINT), false, Some(SIGINT), false, true, own(SIGINT)),
            // `systemctl stop`.
            (by(SIGTERM), false, Some(SIGTERM), false, false, own(SIGTERM)),
            (by(SIGTERM), false, Some(SIGHUP), false, false, own(SIGTERM)),
            (by(SIGHUP), false, Some(SIGHUP), false, false, own(SIGHUP)),
            // Another signal than those that came to this process.
            (by(SIGTERM), false, None, false, false, code(143)),
            (by(SIGKILL), false, Some(SIGTERM), false, false, code(137)),
            (by(SIGUSR1), false, None, false, false, code(138)),
            // A real-time signal.
            (Status::Signal(37), false, None, false, false, code(165)),
            // It was ended, since the lock was lost.
            (by(SIGTERM), true, None, false, false, code(79)),
            (Code(0), true, None, true, false, code(79)),
            (by(SIGKILL), true, Some(SIGTERM), false, false, own(SIGTERM)),
            (by(SIGTERM), true, Some(SIGINT), false, false, own(SIGINT)),
            (by(SIGINT), true, None, true, false, typed(SIGINT)),
        ] {
            let end = End { status, lost: lost.then(String::new), is_foreign: false, asked, had_terminal, output: None };
            assert_eq!(end.ending(was_lost), expected, "{status} {lost} {asked:?} {had_terminal} {was_lost}");
        }
    }

    #[test]
    fn a_command_of_another_user_that_continues_without_its_lock_has_a_code_of_its_own() {
        for (lost, asked, expected) in [
            (true, None, Ending::Code(81)),
            (true, Some(Signal::SIGTERM), Signal::SIGTERM.into()),
            (false, Some(Signal::SIGTERM), Ending::Code(3)),
        ] {
            let (status, lost) = (Status::Code(3), lost.then(String::new));
            let end = End { status, lost, is_foreign: true, asked, had_terminal: false, output: None };
            assert_eq!(end.ending(false), expected, "{asked:?}");
        }
    }
}
