//! Closing: the work that a connection still does when its client goes.

use super::connection::{Connection, State};
use crate::clock::Tick;
use crate::server::redis::commands::words::Form;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::failure::closed;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::{Completion, Request};

impl Connection {
    /// From here on only releases count. Operations that were sent and have no answer are undone on the same connection. There
    /// nothing can overtake the undo, whenever the server reads it.
    pub(super) fn cancel(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.cancelled, true) {
            return;
        }
        self.backlog.refuse(&closed(false), |pending| !pending.request.op.survives_reconnect(), out);
        if let State::Up(conversation) = &mut self.state {
            let (cancelled, undo) = conversation.pipeline.cancel();
            for op in undo {
                let request = Request::new(op, now.after(self.settings.response_timeout));
                conversation.send(InFlight::new(request, Completion::new(|_| ())), Form::BySha, now);
            }
            out.extend(cancelled.into_iter().map(|pending| pending.end(Err(closed(true)))));
        }
        self.take_all_back(now);
    }

    /// Starts a close. Releases have a moment to leave, also those that wait for a connection.
    pub(super) fn close(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if self.closing.is_some() || self.is_over() {
            return;
        }
        self.cancel(now, out);
        self.closing = Some(now.after(self.settings.response_timeout));
    }

    /// Ends a close that has nothing left to wait for.
    pub(super) fn end_if_over(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if !self.is_over() && self.closing.is_some_and(|until| now >= until || !self.is_awaited()) {
            self.end(now, out);
        }
    }

    /// Whether a close has something to wait for.
    fn is_awaited(&self) -> bool {
        self.lingering.is_some()
            || match &self.state {
                State::Down | State::Opening(_) | State::Handshake(_) => !self.backlog.is_empty(),
                State::Up(conversation) => conversation.pipeline.is_busy(),
                State::Over => false,
            }
    }

    /// Leaves the socket and cancels all operations that still wait.
    fn end(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.backlog.refuse(&closed(false), |_| true, out);
        self.stop_lingering(out);
        let state = std::mem::replace(&mut self.state, State::Over);
        if let State::Up(mut conversation) = state {
            self.primary.disconnected(conversation.accepted.replid, now);
            out.extend(conversation.pipeline.take(|_| true).into_iter().map(|pending| pending.end(Err(closed(true)))));
            out.push(Effect::Drop(Role::Operations));
        } else if matches!(state, State::Opening(_) | State::Handshake(_)) {
            out.push(Effect::Drop(Role::Operations));
        }
    }
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
