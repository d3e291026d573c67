//! Listening connection: a second one that only subscribes, for a peer whose RESP2 can't carry messages beside answers.

use std::io;
use std::slice::Iter;
use std::sync::Arc;

use redis::{RedisResult, Value};

use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::failure::{broke_by, no_answer};
use crate::server::redis::connection::handshake::Handshake;
use crate::server::redis::connection::question::{PING, Question, SUBSCRIBE};
use crate::server::redis::connection::subscription::Subscription;
use crate::server::redis::listening::idle_check::{Finding, IdleCheck, LOOK, LOOKS};
use crate::server::redis::listening::listener::{ChannelListener, is_message};
use crate::server::redis::login::Login;
use crate::server::redis::settings::Settings;

/// The end of a listening connection.
#[derive(Debug)]
pub(crate) enum Ending {
    /// There was no connection.
    Unconnected(Failure),
    /// The peer forbids the subscription, or hangs up when asked for one.
    Refused(Failure),
    /// There was a subscription; `useful` if it lived long enough for the next connection to follow at once.
    Broken { failure: Failure, useful: bool },
}

enum Stage {
    Opening,
    Greeting(Box<Handshake>),
    /// The questions are answered in this order.
    Subscribing(Subscription, Iter<'static, Question>),
    Listening {
        since: Tick,
    },
}

/// The connection, from its opening to its end. Another attempt is another value of this type.
pub(crate) struct ListeningConnection {
    settings: Arc<Settings>,
    began: Tick,
    /// The number of the era in which its socket was opened.
    era: u64,
    stage: Stage,
    /// The credentials that the server was told.
    login: Option<Arc<Login>>,
    /// The buffers after the handshake.
    buffers: Buffers,
    /// The number of replies and messages that have arrived.
    reads: u64,
    idle_check: IdleCheck,
}

impl ListeningConnection {
    /// A connection whose socket is being opened.
    pub(crate) fn new(settings: &Arc<Settings>, now: Tick) -> Self {
        let (buffers, idle_check) = (Buffers::default(), IdleCheck::new(settings.response_timeout));
        Self {
            settings: Arc::clone(settings),
            began: now,
            era: 0,
            stage: Stage::Opening,
            login: None,
            buffers,
            reads: 0,
            idle_check,
        }
    }

    pub(crate) fn buffers(&mut self) -> Option<&mut Buffers> {
        match &mut self.stage {
            Stage::Opening => None,
            Stage::Greeting(handshake) => Some(&mut handshake.buffers),
            Stage::Subscribing(..) | Stage::Listening { .. } => Some(&mut self.buffers),
        }
    }

    /// Whether there is a subscription.
    pub(crate) fn listens(&self) -> bool {
        matches!(self.stage, Stage::Listening { .. })
    }

    /// Whether there is a subscription, on a connection that told the server other credentials than these.
    pub(crate) fn listens_as_another(&self, login: &Arc<Login>) -> bool {
        self.listens() && self.login.as_ref().is_some_and(|told| !Arc::ptr_eq(told, login))
    }

    /// Whether its socket was opened in another era than this one: then it may be the old primary's, which publishes nothing.
    pub(crate) fn is_of_another(&self, era: u64) -> bool {
        self.era != era && !matches!(self.stage, Stage::Opening)
    }

    pub(crate) fn wake_at(&self) -> Tick {
        match &self.stage {
            Stage::Opening => Tick::NEVER,
            Stage::Greeting(handshake) => handshake.until(),
            Stage::Subscribing(..) | Stage::Listening { .. } => self.idle_check.due(),
        }
    }

    /// The socket is open; says whether the connection waited for it.
    pub(crate) fn opened(&mut self, era: u64) -> bool {
        self.era = era;
        let expected = matches!(self.stage, Stage::Opening);
        if expected {
            let until = self.began.after(self.settings.connect_timeout);
            let handshake = Handshake::begin(&self.settings, Role::Listening, until);
            self.login = Some(Arc::clone(handshake.login()));
            self.stage = Stage::Greeting(Box::new(handshake));
        }
        expected
    }

    /// `count` bytes were read into the room; gives the end of the connection, if it ends by them.
    pub(crate) fn read(
        &mut self,
        count: usize,
        listener: &mut ChannelListener,
        now: Tick,
        out: &mut Vec<Effect>,
    ) -> Option<Ending> {
        self.buffers()?.replies.filled(count);
        if let Stage::Greeting(handshake) = &mut self.stage {
            let judged = handshake.read()?;
            if let Err(failure) = judged {
                if handshake.is_refused() {
                    self.settings.refused(handshake.login(), &failure, false, now);
                }
                return Some(Ending::Unconnected(failure));
            }
            self.buffers = std::mem::take(&mut handshake.buffers);
            self.stage = Stage::Subscribing(Subscription::default(), SUBSCRIBE.iter());
            self.ask(SUBSCRIBE, listener, now);
        }
        while let Some(said) = self.buffers.replies.next() {
            self.reads += 1;
            match said {
                Ok(said) if is_message(&said) => listener.heard(said, out),
                answer => {
                    if let Some(ending) = self.answered(answer, listener, now, out) {
                        return Some(ending);
                    }
                }
            }
        }
        None
    }

    fn ask(&mut self, questions: &[Question], listener: &ChannelListener, now: Tick) {
        for question in questions {
            self.buffers.output.end().extend(question.command(listener.channel()));
        }
        self.idle_check.asked(questions.len(), now, self.reads);
    }

    fn answered(
        &mut self,
        answer: RedisResult<Value>,
        listener: &mut ChannelListener,
        now: Tick,
        out: &mut Vec<Effect>,
    ) -> Option<Ending> {
        let refusal = match answer {
            Ok(Value::ServerError(error)) => Some(refusal::failure(&error.into(), true)),
            Ok(_) => None,
            Err(error) => return Some(self.ended(refusal::failure(&error, true), now)),
        };
        self.idle_check.answered(now, self.reads);
        let Stage::Subscribing(subscription, questions) = &mut self.stage else { return None };
        let Some(Question::Subscribe(kind)) = questions.next() else { return None };
        match subscription.answered(*kind, refusal)? {
            Ok(()) => {
                self.stage = Stage::Listening { since: now };
                listener.listening(out);
                None
            }
            Err(failure) => Some(Ending::Refused(failure)),
        }
    }

    /// The socket is closed.
    pub(crate) fn closed(&mut self, why: Option<io::Error>, now: Tick) -> Ending {
        match &mut self.stage {
            Stage::Greeting(handshake) => Ending::Unconnected(handshake.closed(why)),
            _ => self.ended(broke_by(why), now),
        }
    }

    fn ended(&self, failure: Failure, now: Tick) -> Ending {
        match &self.stage {
            Stage::Opening | Stage::Greeting(_) => Ending::Unconnected(failure),
            Stage::Subscribing(..) => Ending::Refused(failure),
            Stage::Listening { since } => Ending::Broken { failure, useful: now.since(*since) > LOOK * LOOKS },
        }
    }

    /// Looks at the clock; gives the end of the connection, if it ends now.
    pub(crate) fn wake(&mut self, listener: &ChannelListener, now: Tick) -> Option<Ending> {
        match &self.stage {
            Stage::Opening => return None,
            Stage::Greeting(handshake) => return (now >= handshake.until()).then(|| Ending::Unconnected(handshake.late())),
            Stage::Subscribing(..) | Stage::Listening { .. } => (),
        }
        match self.idle_check.look(now, self.reads) {
            Finding::Nothing => None,
            Finding::Quiet => {
                self.ask(PING, listener, now);
                None
            }
            Finding::HalfOpen => Some(self.ended(no_answer(self.settings.response_timeout), now)),
        }
    }
}
