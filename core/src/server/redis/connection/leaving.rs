//! Leaving: why a socket is given up, and what becomes of the operations on it.

use std::io;

use super::connection::{Connection, State};
use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::failure::broke_by;
use crate::server::redis::connection::lingering::Lingering;
use crate::server::redis::connection::pipeline::Job;
use crate::server::redis::connection::subscriber::Subscriber;

/// Why a socket is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is closed, or of no use.
    Useless,
    /// It is silent: the server may still read from it, later.
    Silent,
}

impl Connection {
    /// The socket was closed, by the peer or by an error.
    pub(super) fn closed(&mut self, why: Option<io::Error>, now: Tick, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Greeting(handshake) => {
                let failure = handshake.closed(why);
                out.push(Effect::Drop(Role::Operations));
                self.unconnected(&failure, now, out);
            }
            State::Up(_) => self.broken(&broke_by(why), Why::Useless, now, out),
            State::Down | State::Opening(_) | State::Over => {}
        }
    }

    /// The socket is of no use any more.
    pub(super) fn broken(&mut self, failure: &Failure, why: Why, now: Tick, out: &mut Vec<Effect>) {
        let State::Up(conversation) = &self.state else { return };
        let useful = conversation.pipeline.answered();
        if conversation.pipeline.is_busy() {
            out.extend(self.primary.health.failed(failure).map(Effect::Report));
        }
        self.leave(failure, (useful, why), now, out);
    }

    /// Gives the socket up, which was `useful` or not. Releases wait for the next one; the outcome of the other operations is
    /// unknown.
    pub(super) fn leave(&mut self, failure: &Failure, (useful, why): (bool, Why), now: Tick, out: &mut Vec<Effect>) {
        let State::Up(mut conversation) = std::mem::replace(&mut self.state, State::Down) else { return };
        self.primary.disconnected(conversation.era, now);
        self.backoff.broke(now, useful, self.rng.f64());
        self.last_failure = Some(Failure::not_applied(failure.kind, failure.message.clone()));
        let unknown = Failure { maybe_applied: true, ..failure.clone() };
        let jobs = conversation.pipeline.take_all();
        match Lingering::new(conversation, now).filter(|_| why == Why::Silent) {
            Some(lingering) => {
                self.lingering = Some(lingering);
                out.push(Effect::Linger);
            }
            None => out.push(Effect::Drop(Role::Operations)),
        }
        for job in jobs {
            if job.request.op.survives_reconnect() && now < job.request.deadline {
                self.backlog.push(Job { repeated: true, ..job });
            } else {
                out.push(job.end(Err(unknown.clone())));
            }
        }
        self.forget_listener(out, Subscriber::is_over);
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.disconnected(failure, now, out);
        }
    }
}
