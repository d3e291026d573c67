//! Second connection: where a peer's RESP2 can't carry messages beside answers. A connection with a subscription can't be told new
//! credentials there. So another one takes its place, once that listens, too: no message is lost in between.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::listening::{Ending, ListeningConnection};
use crate::server::redis::listening::listener::ChannelListener;
use crate::server::redis::settings::Settings;

/// The pause after a successor that came to nothing.
const PAUSE: Duration = Duration::from_secs(1);

/// The connection, and the one that takes its place.
pub(crate) struct Second {
    settings: Arc<Settings>,
    present: ListeningConnection,
    successor: Option<ListeningConnection>,
    /// The time before which no successor is opened.
    not_before: Tick,
}

impl Second {
    pub(crate) fn open(settings: &Arc<Settings>, now: Tick, out: &mut Vec<Effect>) -> Self {
        out.push(Effect::Open(Role::Listening));
        let present = ListeningConnection::new(settings, now);
        Self { settings: Arc::clone(settings), present, successor: None, not_before: Tick::default() }
    }

    /// Gives up the sockets.
    pub(crate) fn give_up(&self, out: &mut Vec<Effect>) {
        out.push(Effect::Drop(Role::Listening));
        out.extend(self.successor.as_ref().map(|_| Effect::Drop(Role::Successor)));
    }

    fn at(&mut self, role: Role) -> Option<&mut ListeningConnection> {
        if role == Role::Successor { self.successor.as_mut() } else { Some(&mut self.present) }
    }

    pub(crate) fn buffers(&mut self, role: Role) -> Option<&mut Buffers> {
        self.at(role)?.buffers()
    }

    /// Whether its socket was opened in another era than this one.
    pub(crate) fn is_of_another(&self, era: u64) -> bool {
        self.present.is_of_another(era)
    }

    pub(crate) fn wake_at(&self) -> Tick {
        let successor = self.successor.as_ref().map_or(Tick::NEVER, ListeningConnection::wake_at);
        let renewal = if self.is_stale() { self.not_before } else { Tick::NEVER };
        self.present.wake_at().min(successor).min(renewal)
    }

    /// Whether there are newer credentials, and nothing is done about them.
    fn is_stale(&self) -> bool {
        self.settings.provided.is_some() && self.successor.is_none() && self.present.listens_as_another(&self.settings.login())
    }

    /// Opens a successor, if there are newer credentials.
    pub(crate) fn renew(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if now >= self.not_before && self.is_stale() {
            out.push(Effect::Open(Role::Successor));
            self.successor = Some(ListeningConnection::new(&self.settings, now));
        }
    }

    /// A socket is open; says whether it was waited for.
    pub(crate) fn opened(&mut self, role: Role, era: u64) -> bool {
        self.at(role).is_some_and(|connection| connection.opened(era))
    }

    /// There is no socket; gives the end, if that is the end.
    pub(crate) fn unopened(&mut self, role: Role, failure: Failure, now: Tick, out: &mut Vec<Effect>) -> Option<Ending> {
        self.judged(role, Some(Ending::Unconnected(failure)), now, out)
    }

    /// `count` bytes were read; gives the end, if it ends by them.
    pub(crate) fn read(
        &mut self,
        (role, count): (Role, usize),
        listener: &mut ChannelListener,
        now: Tick,
        out: &mut Vec<Effect>,
    ) -> Option<Ending> {
        let ending = self.at(role)?.read(count, listener, now, out);
        if let Some(successor) = self.successor.take_if(|successor| ending.is_none() && successor.listens()) {
            self.present = successor;
            out.push(Effect::Succeed);
        }
        let ending = self.judged(role, ending, now, out);
        self.renew(now, out);
        ending
    }

    /// A socket is closed.
    pub(crate) fn closed(&mut self, role: Role, why: Option<io::Error>, now: Tick, out: &mut Vec<Effect>) -> Option<Ending> {
        let ending = self.at(role)?.closed(why, now);
        self.judged(role, Some(ending), now, out)
    }

    /// Looks at the clock; gives the end, if it ends now.
    pub(crate) fn wake(&mut self, listener: &ChannelListener, now: Tick, out: &mut Vec<Effect>) -> Option<Ending> {
        let ending = self.successor.as_mut().and_then(|successor| successor.wake(listener, now));
        self.judged(Role::Successor, ending, now, out);
        self.renew(now, out);
        self.present.wake(listener, now)
    }

    /// The end of one of the connections. That of a successor changes nothing: the present connection listens.
    fn judged(&mut self, role: Role, ending: Option<Ending>, now: Tick, out: &mut Vec<Effect>) -> Option<Ending> {
        if role != Role::Successor {
            return ending;
        }
        if ending.is_some() && self.successor.take().is_some() {
            out.push(Effect::Drop(Role::Successor));
            self.not_before = now.after(PAUSE);
        }
        None
    }
}

#[cfg(test)]
#[path = "second_tests.rs"]
mod tests;
