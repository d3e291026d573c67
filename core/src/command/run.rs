//! `locktender run`: a command runs while a lock is held.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;
use signal_hook::iterator::Signals;

use super::arguments::{OnLost, Run};
use super::child::{Change, Child, take};
use super::exit;
use super::messages::Messages;
use super::watch::{DEATH, Step, Watch, default_kill_after, leaves_time};
use crate::error::{Code, Error};
use crate::{Client, Held, Lock, Wait};

/// Those that end a program unless it handles them; the child gets them.
const FORWARDED: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];

/// An acquire that takes longer is a wait that is worth a message.
const SOON: Duration = Duration::from_millis(200);

/// The time between two looks at processes of which nobody tells the end.
const LOOK: Duration = Duration::from_millis(10);

/// How long a program that has ended waits for the release of its lock.
const RELEASE: Duration = Duration::from_secs(2);

/// What happens while a lock is waited for and held.
enum Happening {
    Signal(Signal),
    Acquired(Result<Held, Error>),
    Lost,
    Child(Change),
}

/// Runs the command, and gives the exit code.
pub(super) fn run(options: &Run) -> u8 {
    let messages = Messages::of(options);
    let (client, lock, kill_after) = match prepared(options) {
        Ok(prepared) => prepared,
        Err(why) => {
            messages.error(Code::InvalidArgument.as_str(), &why);
            return exit::USAGE;
        }
    };
    let (sender, happenings) = mpsc::channel();
    let guard = Guard { options, messages, sender, happenings, kill_after };
    let code = match guard.tell_signals() {
        Ok(()) => guard.run(&lock),
        Err(error) => guard.cannot("receive signals", &error, exit::INTERNAL),
    };
    // A lock that came too late is given back. Without a server it expires.
    let _ = client.close_blocking();
    code
}

/// The lock, and the time between SIGTERM and SIGKILL.
fn prepared(options: &Run) -> Result<(Client, Lock, Duration), String> {
    let mut builder = Client::builder();
    if !options.server.is_empty() {
        builder = builder.urls(&*options.server);
    }
    if let Some(prefix) = &options.prefix {
        builder = builder.prefix(prefix);
    }
    let client = builder.build().map_err(|error| error.to_string())?;
    let wait = if options.nonblock { Wait::For(Duration::ZERO) } else { options.wait.map_or(Wait::Forever, Wait::For) };
    let mut lock = client.lock(&*options.name).wait(wait).fair(options.fair).max_hold(options.max_hold);
    if let Some(ttl) = options.ttl {
        lock = lock.ttl(ttl);
    }
    if let Some(min_hold) = options.min_hold {
        lock = lock.min_hold(min_hold);
    }
    let ttl = lock.validate().map_err(|error| error.to_string())?.ttl;
    let least = options.max_hold.unwrap_or(ttl).min(ttl);
    let kill_after = options.kill_after.unwrap_or_else(|| default_kill_after(least));
    if options.on_lost == OnLost::Kill && !leaves_time(kill_after, least) {
        let [kill_after, least] = [kill_after, least].map(humantime::format_duration);
        return Err(format!(
            "--kill-after {kill_after} leaves the command no time within {least}: at most half of --ttl and --max-hold, less 100 ms"
        ));
    }
    Ok((client, lock, kill_after))
}

/// A command that is guarded by a lock.
struct Guard<'a> {
    options: &'a Run,
    messages: Messages,
    sender: Sender<Happening>,
    happenings: Receiver<Happening>,
    kill_after: Duration,
}

impl Guard<'_> {
    /// Tells signals as happenings from now on. Who starts this program to ignore one gets that.
    fn tell_signals(&self) -> io::Result<()> {
        let heard = FORWARDED.into_iter().filter(|signal| take(*signal));
        let mut signals = Signals::new(heard.map(|signal| signal as i32))?;
        if !take(Signal::SIGCHLD) {
            // Nobody could wait for a child whose end is ignored. A signal that is heard is not ignored.
            signals.add_signal(Signal::SIGCHLD as i32)?;
        }
        self.tell_from("signals", move |sender| {
            let heard = signals.forever().filter_map(|number| Signal::try_from(number).ok());
            for signal in heard.filter(|signal| FORWARDED.contains(signal)) {
                let _ = sender.send(Happening::Signal(signal));
            }
        })
    }

    fn tell_from(&self, name: &str, tell: impl FnOnce(Sender<Happening>) + Send + 'static) -> io::Result<()> {
        let sender = self.sender.clone();
        thread::Builder::new().name(format!("locktender-{name}")).spawn(move || tell(sender)).map(drop)
    }

    fn run(&self, lock: &Lock) -> u8 {
        let began = Instant::now();
        let held = match self.acquired(lock) {
            Ok(held) => held,
            Err(code) => return code,
        };
        let name = held.name();
        let fields = [("fence", held.fence().into()), ("owner", held.owner().into())];
        let took = began.elapsed().as_secs_f64();
        self.messages.progress("acquired", &format!("got {name:?} after {took:.3} s, fence {}", held.fence()), &fields);
        let code = match self.started(&held) {
            Ok(child) => {
                let code = self.watched(&held, &child);
                child.take_terminal_back();
                code
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.cannot("find the command", &error, exit::NOT_FOUND),
            Err(error) => self.cannot("run the command", &error, exit::CANNOT_RUN),
        };
        self.release(&held);
        code
    }

    /// Waits for the lock, or gives the exit code.
    fn acquired(&self, lock: &Lock) -> Result<Held, u8> {
        let sender = self.sender.clone();
        let cancel = lock.acquire().then(move |acquired| drop(sender.send(Happening::Acquired(acquired))));
        let mut pause = SOON;
        loop {
            match self.happenings.recv_timeout(pause) {
                Ok(Happening::Acquired(Ok(held))) => return Ok(held),
                Ok(Happening::Acquired(Err(error))) => {
                    let code = self.code_of(&error);
                    if code == 0 {
                        // Who asks for this code is content with it, and cron sends a mail for any message.
                        self.messages.progress("busy", &error.to_string(), &[]);
                    } else {
                        self.messages.error(error.code().as_str(), &error.to_string());
                    }
                    return Err(code);
                }
                Ok(Happening::Signal(signal)) => {
                    cancel.cancel();
                    return Err(exit::signalled(signal as i32));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.messages.progress("waiting", &format!("waiting for {:?}", lock.name()), &[]);
                    pause = Duration::MAX;
                }
                Ok(_) | Err(RecvTimeoutError::Disconnected) => (),
            }
        }
    }

    fn started(&self, held: &Held) -> io::Result<Child> {
        let valid_until = (SystemTime::now() + held.remaining()).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let environment = vec![
            ("LOCKTENDER_NAME", held.name().to_owned()),
            ("LOCKTENDER_FENCE", held.fence().to_string()),
            ("LOCKTENDER_OWNER", held.owner().to_owned()),
            ("LOCKTENDER_VALID_UNTIL", valid_until.as_secs().to_string()),
        ];
        let child = Child::start(&self.options.command, environment)?;
        let sender = self.sender.clone();
        held.on_lost(move |_| drop(sender.send(Happening::Lost)));
        let mut next_change = child.changes();
        let told = self.tell_from("child", move |sender| {
            loop {
                let change = next_change();
                let is_over = matches!(change, Change::Ended(_));
                if sender.send(Happening::Child(change)).is_err() || is_over {
                    return;
                }
            }
        });
        if told.is_err() {
            child.signal(Signal::SIGKILL);
        }
        told.map(|()| child)
    }

    /// Watches the command until it ends, and gives the exit code.
    fn watched(&self, held: &Held, child: &Child) -> u8 {
        let began = Instant::now();
        let [mut terminated_at, mut killed_at] = [None::<Instant>; 2];
        let (mut is_lost, mut has_ended) = (false, false);
        loop {
            // What a command that has to end leaves behind must end, too.
            if has_ended && (!child.is_group_alive() || killed_at.is_some_and(|at| at.elapsed() >= DEATH)) {
                return exit::LOST;
            }
            let pause = if self.options.on_lost == OnLost::Warn {
                Duration::MAX
            } else {
                let terminated_for = terminated_at.map(|at| at.elapsed());
                match (Watch { kill_after: self.kill_after, terminated_for, is_killed: killed_at.is_some() })
                    .step(held.remaining(), is_lost)
                {
                    Step::LookIn(pause) => pause,
                    Step::Terminate => {
                        self.messages.error(Code::LockLost.as_str(), &self.reason(held, began));
                        child.signal(Signal::SIGTERM);
                        // A stopped one gets it, too.
                        child.signal(Signal::SIGCONT);
                        terminated_at = Some(Instant::now());
                        continue;
                    }
                    Step::Kill => {
                        self.messages.progress("killed", "it did not end in time: SIGKILL", &[]);
                        child.signal(Signal::SIGKILL);
                        killed_at = Some(Instant::now());
                        continue;
                    }
                }
            };
            // Nobody tells the end of a process that is not a child.
            let pause = if has_ended { pause.min(LOOK) } else { pause };
            match self.happenings.recv_timeout(pause) {
                Ok(Happening::Signal(signal)) => child.signal(signal),
                Ok(Happening::Lost) => {
                    is_lost = true;
                    if self.options.on_lost == OnLost::Warn {
                        self.messages.error(Code::LockLost.as_str(), &self.reason(held, began));
                    }
                }
                Ok(Happening::Child(Change::Stopped)) => child.stopped(),
                Ok(Happening::Child(Change::Ended(code))) if terminated_at.is_none() => return self.ended(held, began, code),
                Ok(Happening::Child(Change::Ended(_))) => has_ended = true,
                _ => (),
            }
        }
    }

    /// The exit code of a command that ended by itself. This process may have been stopped meanwhile.
    fn ended(&self, held: &Held, began: Instant, code: u8) -> u8 {
        if self.options.on_lost == OnLost::Warn || held.is_valid() {
            return code;
        }
        self.messages.error(Code::LockLost.as_str(), &self.reason(held, began));
        exit::LOST
    }

    /// Why the command has to end.
    fn reason(&self, held: &Held, began: Instant) -> String {
        if let Err(error) = held.check() {
            return error.to_string();
        }
        let (name, remaining) = (held.name(), held.remaining());
        match self.options.max_hold {
            Some(max_hold) if began.elapsed() + remaining + SOON >= max_hold => {
                format!("{name:?} was held for almost {}: ending the command", humantime::format_duration(max_hold))
            }
            _ => format!("{name:?} ends in {:.1} s and can't be renewed: ending the command", remaining.as_secs_f64()),
        }
    }

    fn release(&self, held: &Held) {
        match held.release().wait_for(RELEASE) {
            Some(Ok(release)) => {
                let outcome = release.outcome.as_str();
                self.messages.progress("released", &format!("{:?}: {outcome}", held.name()), &[("outcome", outcome.into())]);
            }
            Some(Err(error)) => self.messages.progress("released", &error.to_string(), &[]),
            None => self.messages.progress("unreleased", "no server answers: the lock ends with its ttl", &[]),
        }
    }

    fn cannot(&self, what: &str, error: &io::Error, code: u8) -> u8 {
        let command = self.options.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        self.messages.error("CANNOT_RUN", &format!("can't {what} {command:?}: {error}"));
        code
    }

    fn code_of(&self, error: &Error) -> u8 {
        match error.code() {
            Code::AcquireTimeout => self.options.conflict_exit_code,
            Code::Unavailable => exit::UNAVAILABLE,
            Code::InvalidArgument => exit::USAGE,
            Code::Denied | Code::KeyConflict => exit::CONFIGURATION,
            Code::LockLost => exit::LOST,
            _ => exit::INTERNAL,
        }
    }
}
