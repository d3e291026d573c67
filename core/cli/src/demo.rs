//! `locktender demo`: three programs fight for one lock, and one of them dies while it holds it.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use locktender::{Client, Code, Error, Wait};

use super::exit;
use super::messages::Messages;
use super::operator::{Stop, print};
use super::servers::Servers;
use super::span::span;
#[cfg(unix)]
use super::system::{ENDS, PrivateServer};

/// What they fight for.
const LOCK: &str = "sweetroll";

const FIGHTERS: [&str; 3] = ["Diego", "Gorn", "Milten"];

/// The one that dies once.
const MORTAL: usize = 1;

const TTL: Duration = Duration::from_secs(2);

/// The time for which a fighter eats, and for which it rests.
const EATS: Duration = Duration::from_millis(700);
const RESTS: Duration = Duration::from_millis(150);

/// Shows a lock at work: three clients fight for the sweetroll
///
/// One of them dies while it holds the lock: the others get it when its ttl is over. At the end the demo checks that no two held it at the same
/// time, and that fences only rose. Without --server and LOCKTENDER_URL it starts a valkey-server or redis-server of its own, if one is on PATH,
/// and uses the memory of this process if there is none.
#[derive(Debug, Args)]
pub(super) struct Demo {
    #[command(flatten)]
    servers: Servers,

    /// How long they fight
    #[arg(long, value_name = "SECONDS", value_parser = span, default_value = "8")]
    seconds: Duration,
}

/// What happened.
enum Notice {
    Takes { who: &'static str, fence: u64, waited: Duration },
    Leaves { who: &'static str, fence: u64 },
    Dies { who: &'static str },
    Fails(Error),
}

pub(super) fn demo(options: &Demo) -> u8 {
    let messages = Messages::for_operators(false);
    match options.fought() {
        Ok(code) | Err(Stop::Reported(code)) => code,
        Err(Stop::Failed(error)) => {
            messages.failure(&error);
            exit::code_of(&error)
        }
        // Nobody looks any more.
        Err(Stop::Unwritten(_)) => 0,
    }
}

impl Demo {
    fn fought(&self) -> Result<u8, Stop> {
        let needs_server = !self.servers.are_named();
        #[cfg(unix)]
        let server = needs_server.then(PrivateServer::start).flatten();
        #[cfg(unix)]
        let own = server.as_ref().map(PrivateServer::url);
        // Without Unix sockets and process groups there is none.
        #[cfg(not(unix))]
        let own = None;
        let url = needs_server.then(|| own.unwrap_or_else(|| "memory://demo".to_owned()));
        let over = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in ENDS {
            // Without it the signal ends the demo at once.
            let _ = signal_hook::flag::register(signal as i32, Arc::clone(&over));
        }
        let clients: Vec<Client> =
            FIGHTERS.iter().map(|who| self.servers.client_for(url.as_deref(), who)).collect::<Result<_, _>>()?;
        print(&format!(
            "They fight for {LOCK:?} on {}, with a ttl of {}.\n",
            clients[0].addresses().join(", "),
            humantime::format_duration(TTL)
        ))?;
        let (sender, notices) = mpsc::channel();
        let began = Instant::now();
        let shown = thread::scope(|scope| {
            for (number, client) in clients.iter().enumerate() {
                let fighter = Fighter { number, client, over: &over, until: began + self.seconds, notices: sender.clone() };
                scope.spawn(move || fighter.fight());
            }
            drop(sender);
            let mut checker = Checker::default();
            // The others must not fight on if nothing can be written.
            let shown = notices.iter().try_for_each(|notice| print(&checker.line(began.elapsed(), notice)?));
            over.store(true, Ordering::Relaxed);
            shown.and_then(|()| checker.verdict())
        });
        clients.iter().for_each(|client| drop(client.close_blocking()));
        shown
    }
}

/// One that wants the sweetroll.
struct Fighter<'a> {
    number: usize,
    client: &'a Client,
    over: &'a AtomicBool,
    until: Instant,
    notices: Sender<Notice>,
}

impl Fighter<'_> {
    /// Reports what happens while the lock is held, so that notices come in the order of the holds.
    fn notify(&self, notice: Notice) {
        let _ = self.notices.send(notice);
    }

    fn fight(self) {
        let who = FIGHTERS[self.number];
        let middle = self.until - self.until.saturating_duration_since(Instant::now()) / 2;
        let mut is_mortal = self.number == MORTAL;
        while Instant::now() < self.until && !self.over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let dies = is_mortal && began >= middle;
            let lock = self.client.lock(LOCK).ttl(TTL).renew(!dies).wait(Wait::For(2 * TTL));
            let held = match lock.acquire_blocking() {
                Ok(held) => held,
                Err(error) if error.code() == Code::AcquireTimeout => continue,
                Err(error) => {
                    self.over.store(true, Ordering::Relaxed);
                    return self.notify(Notice::Fails(error));
                }
            };
            let fence = held.fence();
            self.notify(Notice::Takes { who, fence, waited: began.elapsed() });
            thread::sleep(EATS);
            if dies {
                is_mortal = false;
                self.notify(Notice::Dies { who });
                // As a process that is killed: nobody renews the lock, and nobody releases it.
                std::mem::forget(held);
                continue;
            }
            self.notify(Notice::Leaves { who, fence });
            let _ = held.release_blocking();
            thread::sleep(RESTS);
        }
    }
}

/// Looks whether the lock keeps its promise.
#[derive(Default)]
struct Checker {
    holder: Option<&'static str>,
    last_fence: u64,
    holds: u32,
    violations: u32,
}

impl Checker {
    fn line(&mut self, at: Duration, notice: Notice) -> Result<String, Stop> {
        let line = |who: &str, text: &dyn Display| format!("{:6.2} s  {who:<6}  {text}\n", at.as_secs_f64());
        Ok(match notice {
            Notice::Takes { who, fence, waited } => {
                self.holds += 1;
                let is_wrong = self.holder.is_some() || fence <= self.last_fence;
                self.violations += u32::from(is_wrong);
                (self.holder, self.last_fence) = (Some(who), fence);
                let wrong = if is_wrong { "  VIOLATED" } else { "" };
                line(who, &format_args!("takes it after {:.3} s, fence {fence}{wrong}", waited.as_secs_f64()))
            }
            Notice::Leaves { who, fence } => {
                self.holder = self.holder.filter(|_| fence != self.last_fence);
                line(who, &"leaves")
            }
            Notice::Dies { who } => {
                self.holder = None;
                line(who, &format_args!("dies, and still has it: the others wait for the end of the ttl"))
            }
            Notice::Fails(error) => return Err(Stop::Failed(error)),
        })
    }

    fn verdict(&self) -> Result<u8, Stop> {
        if self.violations > 0 {
            print(&format!("{} of {} holds were wrong: this is a bug of locktender\n", self.violations, self.holds))?;
            return Ok(exit::WORTH_A_LOOK);
        }
        print(&format!("{} holds, no two at the same time, and fences only rose.\n", self.holds))?;
        Ok(0)
    }
}
