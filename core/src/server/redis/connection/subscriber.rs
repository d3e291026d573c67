//! How the home lane listens: what it asks for, when, and where. Decides; the lane does the I/O.
//!
//! The home lane's own connection carries messages beside answers once it speaks RESP3, which it is told with the first
//! listener and not before. Where that is refused, a second connection only subscribes (`aside`).

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::listener::Hearing;
use crate::server::redis::connection::subscription::{Kind, Subscription};
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::aside::{Ending, listen_aside};

/// How long a refusal is taken for an answer. Rights are given by people.
pub(crate) const REFUSED: Duration = Duration::from_secs(30);

/// How often it is looked whether anything arrived. After two looks in vain something is asked, to see whether it is answered.
pub(crate) const LOOK: Duration = Duration::from_millis(2_500);
pub(crate) const LOOKS: u32 = 2;

/// What is asked of the server for the sake of listening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Hello,
    Subscribe(Kind),
    Ping,
}

impl Word {
    /// The command, as bytes.
    pub(crate) fn command(self, channel: &str) -> Vec<u8> {
        let command = match self {
            Self::Hello => redis::cmd("HELLO").arg(3).take(),
            Self::Subscribe(Kind::Plain) => redis::cmd("SUBSCRIBE").arg(channel).take(),
            Self::Subscribe(Kind::Sharded) => redis::cmd("SSUBSCRIBE").arg(channel).take(),
            Self::Ping => redis::cmd("PING"),
        };
        command.get_packed_command()
    }
}

const HELLO: &[Word] = &[Word::Hello];
pub(crate) const SUBSCRIBE: &[Word] = &[Word::Subscribe(Kind::Plain), Word::Subscribe(Kind::Sharded)];
const PING: &[Word] = &[Word::Ping];
const NOTHING: &[Word] = &[];

enum Stage {
    /// The home connection is wanted, and nothing is asked on it yet.
    Idle,
    /// RESP3 is asked for.
    Greeting,
    Subscribing(Subscription),
    Listening,
    /// On a connection of its own.
    Aside(Pin<Box<dyn Future<Output = Ending> + Send>>),
    /// Nothing is tried before `until`.
    Resting {
        until: Tick,
        aside: bool,
    },
}

/// Looks after the home connection while somebody listens there.
struct Watch {
    /// When to look next.
    at: Tick,
    pulse: u64,
    /// Looks in vain, one after the other.
    quiet: u32,
    unanswered: usize,
}

/// What a look at the clock brings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Say(&'static [Word]),
    /// Something was asked, and nothing at all came back.
    HalfOpen,
}

pub(crate) struct Ear {
    hearing: Arc<Hearing>,
    settings: Arc<Settings>,
    stage: Stage,
    watch: Watch,
    /// Of the second connection.
    backoff: Backoff,
}

impl Ear {
    pub(crate) fn new(hearing: Arc<Hearing>, settings: Arc<Settings>) -> Self {
        let watch = Watch { at: Tick::NEVER, pulse: 0, quiet: 0, unanswered: 0 };
        Self { hearing, settings, stage: Stage::Idle, watch, backoff: Backoff::default() }
    }

    pub(crate) fn channel(&self) -> &str {
        &self.hearing.channel
    }

    /// Whether nobody listens any more.
    pub(crate) fn is_over(&self) -> bool {
        self.hearing.is_over()
    }

    /// Whether the home connection has to be there even if there is nothing to send.
    pub(crate) fn wants_home(&self) -> bool {
        !matches!(self.stage, Stage::Aside(_) | Stage::Resting { .. })
    }

    /// What to ask on a home connection that is up.
    pub(crate) fn begin(&mut self, now: Tick, pulse: u64) -> &'static [Word] {
        if !matches!(self.stage, Stage::Idle) {
            return NOTHING;
        }
        self.stage = Stage::Greeting;
        self.say(HELLO, now, pulse)
    }

    fn say(&mut self, words: &'static [Word], now: Tick, pulse: u64) -> &'static [Word] {
        let unanswered = self.watch.unanswered + words.len();
        self.watch = Watch { at: now.after(self.settings.response_timeout), pulse, quiet: 0, unanswered };
        words
    }

    /// Takes an answer, and says what to ask next.
    pub(crate) fn answered(&mut self, word: Word, value: Value, now: Tick, pulse: u64) -> &'static [Word] {
        self.watch.unanswered = self.watch.unanswered.saturating_sub(1);
        if self.watch.unanswered == 0 {
            self.watch = Watch { at: now.after(LOOK), pulse, quiet: 0, unanswered: 0 };
        }
        let refusal = match value {
            Value::ServerError(error) => Some(refusal::failure(&error.into(), true)),
            _ => None,
        };
        match (&mut self.stage, word, refusal) {
            (Stage::Greeting, Word::Hello, None) => {
                self.stage = Stage::Subscribing(Subscription::default());
                return self.say(SUBSCRIBE, now, pulse);
            }
            (Stage::Greeting, Word::Hello, Some(_)) => self.go_aside(),
            (Stage::Subscribing(subscription), Word::Subscribe(kind), refusal) => match subscription.answered(kind, refusal) {
                None => {}
                Some(Ok(())) => {
                    self.stage = Stage::Listening;
                    self.hearing.listening();
                }
                Some(Err(failure)) => self.rest(&failure, now.after(REFUSED), false),
            },
            // A ping may be refused: that is an answer too.
            _ => {}
        }
        NOTHING
    }

    fn rest(&mut self, failure: &Failure, until: Tick, aside: bool) {
        self.stage = Stage::Resting { until, aside };
        self.hearing.deaf(failure);
    }

    fn go_aside(&mut self) {
        self.stage = Stage::Aside(Box::pin(listen_aside(Arc::clone(&self.settings), Arc::clone(&self.hearing))));
    }

    /// There is no home connection, and this is why. A server that refuses us is not asked again and again for this alone.
    pub(crate) fn unconnected(&mut self, failure: &Failure, now: Tick) {
        if !self.wants_home() {
            return;
        }
        match failure.kind {
            FailureKind::Denied | FailureKind::Mismatch => self.rest(failure, now.after(REFUSED), false),
            _ => self.hearing.deaf(failure),
        }
    }

    /// The home connection is gone. A peer that hung up when it was asked to listen is not asked again on a connection that
    /// the operations need.
    pub(crate) fn disconnected(&mut self, failure: &Failure) {
        self.watch.unanswered = 0;
        if self.wants_home() {
            self.hearing.deaf(failure);
        }
        match self.stage {
            Stage::Greeting | Stage::Subscribing(_) => self.go_aside(),
            Stage::Listening => self.stage = Stage::Idle,
            Stage::Idle | Stage::Aside(_) | Stage::Resting { .. } => {}
        }
    }

    /// Waits for the end of the second connection. Cancel safe.
    pub(crate) async fn ending(&mut self) -> Ending {
        match &mut self.stage {
            Stage::Aside(aside) => aside.await,
            _ => pending().await,
        }
    }

    /// The second connection ended. If it served, the next attempt begins at home: what answers may be another server by now.
    pub(crate) fn ended(&mut self, ending: &Ending, now: Tick) {
        let chance = fastrand::f64();
        match ending {
            Ending::Unconnected(failure) if failure.kind == FailureKind::Denied => {
                self.rest(failure, now.after(REFUSED), true);
            }
            Ending::Unconnected(failure) => {
                self.backoff.failed(now, chance);
                self.rest(failure, self.backoff.until(), true);
            }
            Ending::Refused(failure) => self.rest(failure, now.after(REFUSED), true),
            Ending::Broken { failure, useful } => {
                self.backoff.broke(now, *useful, chance);
                self.rest(failure, self.backoff.until(), false);
            }
        }
    }

    /// When to look at the clock next.
    pub(crate) fn due(&self) -> Tick {
        match self.stage {
            Stage::Resting { until, .. } => until,
            Stage::Greeting | Stage::Subscribing(_) | Stage::Listening => self.watch.at,
            Stage::Idle | Stage::Aside(_) => Tick::NEVER,
        }
    }

    /// Looks at the clock.
    pub(crate) fn overdue(&mut self, now: Tick, pulse: u64) -> Finding {
        if now < self.due() {
            return Finding::Say(NOTHING);
        }
        match self.stage {
            Stage::Resting { aside: true, .. } => {
                self.go_aside();
                return Finding::Say(NOTHING);
            }
            Stage::Resting { aside: false, .. } => {
                self.stage = Stage::Idle;
                return Finding::Say(NOTHING);
            }
            _ => {}
        }
        let watch = &mut self.watch;
        let lives = watch.pulse != pulse;
        watch.pulse = pulse;
        if watch.unanswered > 0 {
            watch.at = now.after(self.settings.response_timeout);
            return if lives { Finding::Say(NOTHING) } else { Finding::HalfOpen };
        }
        watch.quiet = if lives { 0 } else { watch.quiet + 1 };
        watch.at = now.after(LOOK);
        Finding::Say(if watch.quiet >= LOOKS { self.say(PING, now, pulse) } else { NOTHING })
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.hearing.end();
    }
}

#[cfg(test)]
#[path = "subscriber_tests.rs"]
mod tests;
