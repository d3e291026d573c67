//! Signals: how they are taken from other handlers, and what they do to this process itself.

use std::io;
use std::thread;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, killpg, raise, sigaction};
use nix::unistd::{getpgrp, getpid};
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;

use crate::exit::signalled;

/// The signals by which a person or the system ends a program.
pub(crate) const ENDS: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

/// Whether a signal is sent to let a program end.
pub(super) fn is_ending(signal: Signal) -> bool {
    signal == Signal::SIGQUIT || ENDS.contains(&signal)
}

/// Takes a signal from its present handler: the runtime of another language, which would end the process. Gives false and changes
/// nothing if this process was started to ignore it, as `nohup` does with SIGHUP.
pub(super) fn take(signal: Signal) -> bool {
    let Some(before) = handle(signal, SigHandler::SigDfl) else { return false };
    let is_taken = !is_ignored(&before);
    if !is_taken {
        restore(signal, &before);
    }
    is_taken
}

/// Takes those that end this process. Python's handler of SIGINT would only note it, and Node's does not bear another one above it.
pub(crate) fn take_ends() {
    for signal in ENDS {
        take(signal);
    }
}

/// Who gets a signal that this process sends to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Itself,
    /// All that belong to the same line of a shell: its scripts, make, the programs behind a pipe.
    Group,
}

/// Lets a signal do to this process what it does to a program that doesn't handle it: it stops, or ends. This returns when a shell
/// continues the process; and at once if it was started to ignore the signal, is process 1, or stops where no shell could continue it.
pub(super) fn suffer(signal: Signal, to: To) {
    // Another thread could get what is sent to the group, and too late.
    let Some(before) = handle(signal, SigHandler::SigIgn) else { return };
    if to == To::Group {
        let _ = killpg(getpgrp(), signal);
    }
    if !is_ignored(&before) {
        #[cfg(target_os = "linux")]
        if signal == Signal::SIGQUIT {
            // The memory that is worth a look is that of the command.
            let _ = nix::sys::prctl::set_dumpable(false);
        }
        handle(signal, SigHandler::SigDfl);
        let _ = SigSet::from(signal).thread_unblock();
        let _ = raise(signal);
    }
    restore(signal, &before);
}

/// Process 1 of a container ignores the signals that it doesn't handle. It ends by them from now on.
pub(crate) fn end_also_as_process_1() {
    if getpid().as_raw() == 1 {
        // At once: other threads have no time to end.
        let _ = receive(ENDS, |signal| exit(signalled(signal as i32).into()));
    }
}

/// Has `got` called for each of these signals, in a thread.
pub(super) fn receive(signals: impl IntoIterator<Item = Signal>, got: impl FnMut(Signal) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(signals.into_iter().map(|signal| signal as i32))?;
    let work = move || signals.forever().filter_map(|number| Signal::try_from(number).ok()).for_each(got);
    thread::Builder::new().name("locktender-signals".to_owned()).spawn(work).map(drop)
}

fn is_ignored(action: &SigAction) -> bool {
    matches!(action.handler(), SigHandler::SigIgn)
}

/// Sets the default, or ignores the signal; gives what was before.
#[allow(unsafe_code, reason = "the handler of a signal can only be read by setting it")]
fn handle(signal: Signal, how: SigHandler) -> Option<SigAction> {
    let action = SigAction::new(how, SaFlags::empty(), SigSet::empty());
    // SAFETY: the callers give the default or ignore the signal, which runs no code.
    unsafe { sigaction(signal, &action) }.ok()
}

#[allow(unsafe_code, reason = "a handler is set")]
fn restore(signal: Signal, before: &SigAction) {
    // SAFETY: it was the handler until now.
    let _ = unsafe { sigaction(signal, before) };
}
