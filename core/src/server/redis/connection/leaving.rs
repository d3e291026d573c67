//! Leaving: why a socket is left, and what becomes of the operations on it.

use std::io;

use super::connection::{Connection, State};
use crate::clock::Tick;
use crate::op::{Failure, Op};
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::failure::broke_by;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::lingering::{Lingering, Why};

impl Connection {
    /// The socket was closed, by the peer or by an error.
    pub(super) fn closed(&mut self, why: Option<io::Error>, now: Tick, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Handshake(handshake) => {
                let failure = handshake.closed(why);
                let connects_again = handshake.is_without_transaction();
                out.push(Effect::Drop(Role::Operations));
                self.handshake_failed(connects_again, &failure, now, out);
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
        self.primary.disconnected(conversation.accepted.replid, now);
        self.backoff.broke(now, useful, self.rng.f64());
        self.last_failure = Some(Failure::not_applied(failure.kind, failure.message.clone()));
        let unknown = Failure { maybe_applied: true, ..failure.clone() };
        let operations = conversation.pipeline.take_all();
        match Lingering::new(conversation, now).filter(|_| why == Why::Silent) {
            Some(lingering) => {
                self.lingering = Some(lingering);
                out.push(Effect::Linger);
            }
            None => out.push(Effect::Drop(Role::Operations)),
        }
        for pending in operations {
            if pending.request.op.survives_reconnect() && now < pending.request.deadline {
                self.backlog.push(InFlight { repeated: true, ..pending });
            } else {
                out.push(pending.end(Err(unknown.clone())));
            }
        }
    }

    /// Undoes on each socket what was cancelled there, and what a release or a leave undoes that was submitted to any
    /// connection to the server.
    pub(super) fn send_undo(&mut self, op: &Op, now: Tick) {
        if let Some(lingering) = &mut self.lingering {
            lingering.send_undo(op, now);
        }
        if let State::Up(conversation) = &mut self.state {
            conversation.send_undo(op, now.after(self.settings.response_timeout), now);
        }
    }

    /// Keeps count of whether something that was cancelled here may come late.
    pub(super) fn count_cancelled(&mut self) {
        let has_cancelled =
            self.lingering.is_some() || matches!(&self.state, State::Up(conversation) if conversation.pipeline.has_cancelled());
        if has_cancelled != self.cancelled_here.is_some() {
            self.cancelled_here = has_cancelled.then(|| self.primary.cancelled());
        }
    }

    /// Undoes everything on the lingering socket: the client goes.
    pub(super) fn take_all_back(&mut self, now: Tick) {
        if let Some(lingering) = &mut self.lingering {
            lingering.take_all_back(now);
        }
    }

    pub(super) fn read_lingering(&mut self, count: usize, now: Tick, out: &mut Vec<Effect>) {
        if self.lingering.as_mut().is_some_and(|lingering| !lingering.read(count, now)) {
            self.stop_lingering(out);
        }
    }

    /// Closes the lingering socket.
    pub(super) fn stop_lingering(&mut self, out: &mut Vec<Effect>) {
        if self.lingering.take().is_some() {
            out.push(Effect::Drop(Role::Lingering));
        }
    }
}
