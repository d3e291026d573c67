//! Guard: a command runs while a lock is held, and ends before the lock can end. Each kind of lock brings its own begin and end.

use std::io;
use std::mem;
use std::ops::Deref;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use locktender::{Client, Code, Error, Hold};
use nix::sys::signal::Signal;
use nix::unistd::getpid;

use super::child::Child;
use super::end::{End, Ending};
use super::events::Event;
use super::family;
use super::holder::{Holder, RELEASE, SOON, fences_of, held, name_of};
use super::output::{Ends, Kept, Output};
use super::run_options::{OnLost, RunOptions};
use super::signals::is_ending;
use super::status::Change;
use super::watch::{DEATH, Step, Watch};
use crate::exit;
use crate::messages::in_words;

/// The time between two looks at processes whose end is not reported.
const LOOK: Duration = Duration::from_millis(10);

/// How many processes that go on are named.
const SHOWN: usize = 5;

/// Variables of the command's environment.
pub(super) type Environment = Vec<(&'static str, String)>;

/// Prepares a lock of whatever kind, which comes with its ttl, runs what is to be done with it, and gives the exit code, unless
/// this process ends by a signal.
pub(super) fn guarded<L>(
    run_options: &RunOptions,
    on_lost: OnLost,
    lock: impl FnOnce(&Client) -> Result<(L, Duration), Error>,
    run: impl FnOnce(&Guard<'_>, &L) -> Ending,
) -> u8 {
    let prepared = |client: &Client| {
        if run_options.wait_children && !family::IS_KNOWN {
            let why = "needs Linux: this system doesn't show what a command leaves behind";
            return Err(Error::invalid("--wait-children", true, why));
        }
        let (lock, ttl) = lock(client)?;
        Ok((lock, ttl, run_options.kill_after(on_lost, ttl)?))
    };
    held(&run_options.lock, prepared, |holder, (lock, ttl, kill_after)| {
        family::adopt();
        let guard = Guard { holder, run_options, on_lost, ttl: *ttl, kill_after: *kill_after };
        let ending = run(&guard, lock);
        guard.report_left();
        ending
    })
}

/// A command that is guarded by a lock.
pub(super) struct Guard<'a> {
    holder: &'a Holder<'a>,
    run_options: &'a RunOptions,
    on_lost: OnLost,
    ttl: Duration,
    kill_after: Duration,
}

impl<'a> Deref for Guard<'a> {
    type Target = Holder<'a>;

    fn deref(&self) -> &Holder<'a> {
        self.holder
    }
}

impl Guard<'_> {
    /// Runs the command while a lock is held that was waited for since `began`; or gives the exit code, if it can't run.
    pub(super) fn run(&self, held: &Hold, began: Instant, own: Environment, keeps_output: bool) -> Result<End, u8> {
        let (name, fences) = (name_of(held), fences_of(held));
        let fence = if held.names().len() > 1 { fences.as_str().into() } else { held.fence().into() };
        let fields = [("fence", fence), ("owner", held.owner().into())];
        let took = began.elapsed().as_secs_f64();
        if held.remaining() < self.ttl / 2 {
            // The server is slow: renewals that begin late would come too late.
            let _ = held.renew_now().wait_for(held.remaining());
        }
        self.messages.progress("acquired", &format!("got {name:?} after {took:.3} s, fence {fences}"), &fields);
        match self.started(held, own, keeps_output) {
            Ok((child, output)) => {
                let mut end = self.watched(held, &child);
                end.output = output.map(|output| self.read(output, &end));
                Ok(end)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.cannot("find the command", &error, exit::NOT_FOUND))
            }
            Err(error) => Err(self.cannot("run the command", &error, exit::CANNOT_RUN)),
        }
    }

    fn started(&self, held: &Hold, own: Environment, keeps_output: bool) -> io::Result<(Child, Option<Output>)> {
        let valid_until = (SystemTime::now() + held.remaining()).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut environment = vec![
            ("LOCKTENDER_NAME", name_of(held)),
            ("LOCKTENDER_FENCE", fences_of(held)),
            ("LOCKTENDER_OWNER", held.owner().to_owned()),
            ("LOCKTENDER_VALID_UNTIL", valid_until.as_secs().to_string()),
        ];
        environment.extend(own);
        let (output, ends) = if keeps_output {
            let sender = self.events.sender();
            let (output, ends) = Output::read(move || drop(sender.send(Event::Read)))?;
            (Some(output), ends)
        } else {
            (None, Ends::inherited())
        };
        let (command, is_whole) = (&self.run_options.command, self.run_options.wait_children);
        let child = self.events.start(|| Child::start(command, environment, ends, is_whole))?;
        let (sender, fence) = (self.events.sender(), held.fence());
        held.on_lost(move |_| drop(sender.send(Event::Lost(fence))));
        Ok((child, output))
    }

    /// Watches the command until it ends.
    fn watched(&self, held: &Hold, child: &Child) -> End {
        let began = Instant::now();
        let [mut terminated_at, mut killed_at] = [None::<Instant>; 2];
        let (mut is_lost, mut is_asked_to_stop, mut continues, mut ended, mut asked) = (false, false, false, None, None);
        let (mut why, mut is_foreign, mut had_terminal) = (None, false, false);
        let status = loop {
            // What a command that has to end leaves behind must end, too.
            if let Some(status) = ended.filter(|_| !child.is_left() || killed_at.is_some_and(|at| at.elapsed() >= DEATH)) {
                if child.is_left() {
                    self.send(child, Signal::SIGKILL, &mut is_foreign);
                }
                break status;
            }
            let pause = if self.on_lost == OnLost::Warn {
                Duration::MAX
            } else {
                let terminated_for = terminated_at.map(|at| at.elapsed());
                match (Watch { kill_after: self.kill_after, terminated_for, is_killed: killed_at.is_some() })
                    .step(held.remaining(), is_lost)
                {
                    Step::LookIn(pause) => pause,
                    Step::Terminate => {
                        self.messages.error(Code::LockLost.as_str(), why.insert(self.reason(held, began)));
                        self.send(child, Signal::SIGTERM, &mut is_foreign);
                        // A stopped one gets it, too.
                        child.signal(Signal::SIGCONT);
                        terminated_at = Some(Instant::now());
                        continue;
                    }
                    Step::Kill => {
                        if self.send(child, Signal::SIGKILL, &mut is_foreign) {
                            self.messages.progress("killed", "it did not end in time: SIGKILL", &[]);
                        }
                        killed_at = Some(Instant::now());
                        continue;
                    }
                }
            };
            // The lock is looked at first: it may have ended while this process was stopped, and then SIGTERM comes before this.
            if mem::take(&mut continues) {
                child.signal(Signal::SIGCONT);
            }
            // Nothing reports the end of a process that is not a child.
            let pause = if ended.is_some() && terminated_at.is_some() { pause.min(LOOK) } else { pause };
            match self.events.next(pause) {
                Ok(Event::Signal(sent)) => {
                    self.send(child, sent, &mut is_foreign);
                    is_asked_to_stop |= sent == Signal::SIGTSTP;
                    asked = Some(sent).filter(|sent| is_ending(*sent)).or(asked);
                }
                Ok(Event::Lost(fence)) if fence == held.fence() => {
                    is_lost = true;
                    if self.on_lost == OnLost::Warn {
                        self.messages.error(Code::LockLost.as_str(), &self.reason(held, began));
                    }
                }
                Ok(Event::Child(process, Change::Stopped(by))) if child.is(process) => {
                    continues = child.stopped(by, mem::take(&mut is_asked_to_stop));
                }
                Ok(Event::Child(process, Change::Ended(status))) if child.is(process) => {
                    had_terminal = child.take_terminal_back();
                    if terminated_at.is_none() && !self.run_options.wait_children {
                        break status;
                    }
                    ended = Some(status);
                }
                _ => (),
            }
        };
        End { status, lost: why, is_foreign, asked, had_terminal, output: None }
    }

    /// Sends a signal to the command; gives whether it got it. A command of another user gets none, which is reported once.
    fn send(&self, child: &Child, signal: Signal, is_foreign: &mut bool) -> bool {
        let is_sent = child.signal(signal);
        if !is_sent && signal != Signal::SIGWINCH && !mem::replace(is_foreign, true) {
            let text = "the command runs as another user: it could not be ended, and gets no signal; run locktender itself as that user, as by sudo";
            self.messages.error("CANNOT_END", text);
            // The next Ctrl-C reaches it.
            child.give_terminal();
        }
        is_sent
    }

    /// What the command wrote, when all of it was read and passed on. Who is to read it may be slow: a signal ends the wait, and one that
    /// came before shortens it, as a loss does.
    fn read(&self, mut output: Output, end: &End) -> Kept {
        output.end();
        let by_itself = end.lost.is_none() && !end.was_asked();
        let patience = if by_itself { Duration::MAX } else { RELEASE };
        while !output.is_complete() {
            match self.events.next_alone(patience) {
                Ok(Event::Signal(sent)) if is_ending(sent) => break,
                Ok(_) => (),
                Err(_) => break,
            }
        }
        output.kept()
    }

    /// Prints that the lock of a command that ended by itself was lost meanwhile, if so. This process may have been stopped.
    pub(super) fn was_lost(&self, held: &Hold) -> bool {
        if self.on_lost == OnLost::Warn {
            return false;
        }
        let lost = held.check();
        if let Err(error) = &lost {
            self.messages.failure(error);
        }
        lost.is_err()
    }

    /// Why the command has to end.
    fn reason(&self, held: &Hold, began: Instant) -> String {
        if let Err(error) = held.check() {
            return in_words(&error);
        }
        let (name, remaining) = (name_of(held), held.remaining());
        match self.lock_options.max_hold {
            Some(max_hold) if began.elapsed() + remaining + SOON >= max_hold => {
                format!("{name:?} was held for almost {}: ending the command", humantime::format_duration(max_hold))
            }
            _ => format!("{name:?} ends in {:.1} s and can't be renewed: ending the command", remaining.as_secs_f64()),
        }
    }

    /// Prints which processes the command has left behind, if it did. Many programs end a moment after the one that started them.
    pub(super) fn report_left(&self) {
        let until = Instant::now() + SOON;
        while family::is_left() && Instant::now() < until {
            thread::sleep(LOOK);
        }
        // They end with process 1.
        let left = if family::is_left() && getpid().as_raw() != 1 { family::descendants() } else { Vec::new() };
        if !left.is_empty() {
            let shown = left.iter().take(SHOWN).map(|relative| relative.process.to_string()).collect::<Vec<_>>().join(", ");
            let more = if left.len() > SHOWN { ", …" } else { "" };
            let text = match left.len() {
                1 => format!("a process that it started continues without the lock (pid {shown})"),
                count => format!("{count} processes that it started continue without the lock (pid {shown}{more})"),
            };
            self.messages.warning("processes_left", &text);
        }
    }

    fn cannot(&self, what: &str, error: &io::Error, code: u8) -> u8 {
        let command = self.run_options.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        self.messages.error("CANNOT_RUN", &format!("can't {what} {command:?}: {error}"));
        code
    }
}
