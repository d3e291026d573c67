//! Following: which node a connection talks to. It greets a node, stays with it for one era, and looks for its successor.

use std::net::SocketAddr;
use std::time::Duration;

use redis::Value;

use super::connection::{Connection, State};
use crate::clock::{Tick, micros};
use crate::mutant::mutant;
use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::greeting::Greeting;
use crate::server::redis::commands::words::Form;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::conversation::Conversation;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::lingering::Why;
use crate::server::redis::connection::pipeline::Pipeline;

/// The pause between two looks for a successor.
const LOOK: Duration = Duration::from_secs(30);

/// The time for which a connection is replaced at once when it breaks, after it was last said that something is held. It is longer
/// than the pause between two such notices.
const TENDED: Duration = Duration::from_secs(40);

impl Connection {
    /// Notes the address of the peer of the socket that is open from now on.
    pub(crate) fn reached(&mut self, peer: Option<SocketAddr>) {
        self.peer = peer;
    }

    /// Takes the end of a handshake.
    pub(super) fn judged(&mut self, judged: Result<Greeting, Failure>, buffers: Buffers, now: Tick, out: &mut Vec<Effect>) {
        // The handshake has begun no longer ago than a connection may take.
        let sent = Tick::from_micros(now.as_micros().saturating_sub(micros(self.settings.connect_timeout)));
        let welcome = |greeting: Greeting| {
            let (era, failover) = self.primary.greeted(&greeting, self.peer, self.settings.max_ttl(), now)?;
            greeting.time_us.into_iter().for_each(|time_us| self.primary.clock.hear(time_us, sent, now));
            Ok((Pipeline::new(greeting, self.settings.response_timeout), era, failover))
        };
        match judged.and_then(welcome) {
            Ok((pipeline, era, failover)) => {
                self.looks_at = now.after(LOOK);
                self.connected(Box::new(Conversation::begin(buffers, pipeline, era, now)), now, out);
                out.extend(failover.map(Effect::Report));
            }
            Err(failure) => {
                out.push(Effect::Drop(Role::Operations));
                self.unconnected(&failure, now, out);
            }
        }
    }

    /// Leaves a socket whose server belongs to an earlier era: another connection has found its successor.
    pub(super) fn follow(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let era = self.primary.era_number();
        let why = "another node answers for the server now, and the connection to the old one was given up";
        let failure = || Failure::unknown(FailureKind::Disconnected, why);
        if matches!(&self.state, State::Up(conversation) if conversation.era != era && !mutant!(EraNotShared)) {
            self.leave(&failure(), (true, Why::Useless), now, out);
        }
        if self.subscriber.as_ref().is_some_and(|subscriber| subscriber.is_of_another(era)) {
            self.bring_to_second(|subscriber, chance| subscriber.follow(failure(), now, chance, out));
        }
    }

    fn connected(&mut self, mut conversation: Box<Conversation>, now: Tick, out: &mut Vec<Effect>) {
        self.backlog.drain(now, |job| conversation.send(job, Form::BySha, now), out);
        let is_primary = conversation.pipeline.greeting().is_primary;
        self.state = State::Up(conversation);
        // A server that doesn't tell its role may be a replica; then only an answer shows whether it is a primary again.
        if self.last_failure.take().is_none_or(|failure| is_primary || failure.kind != FailureKind::ReadOnly) {
            out.extend(self.primary.health.recovered().map(Effect::Report));
        }
    }

    /// Takes the server's clock.
    pub(super) fn heard_time(&self, time: &Value, sent: Tick, now: Tick) {
        let parts: Option<(u64, u64)> = redis::from_redis_value_ref(time).ok();
        if let Some((seconds, micros)) = parts {
            self.primary.clock.hear(seconds.saturating_mul(1_000_000).saturating_add(micros), sent, now);
        }
    }

    /// A server says that it is in quarantine: it may have changed its era unseen.
    pub(super) fn doubt_era(&mut self, now: Tick) {
        if let State::Up(conversation) = &mut self.state {
            conversation.doubt_era(now);
        }
    }

    /// Takes the server's era. If it has changed, the server is greeted anew, which decides what follows.
    pub(super) fn heard_era(&mut self, info: &Value, now: Tick, out: &mut Vec<Effect>) {
        let State::Up(conversation) = &self.state else { return };
        let greeting = conversation.pipeline.greeting();
        let mut shown = greeting.clone();
        if shown.replication(info).is_err() || shown.era_id() != greeting.era_id() {
            let why = "the server is not in the era any more in which it was greeted";
            self.leave(&Failure::unknown(FailureKind::Disconnected, why), (true, Why::Useless), now, out);
        }
    }

    /// The server's clock at that time, in microseconds since the epoch.
    #[must_use]
    pub fn server_clock(&self, at: Tick) -> Option<u64> {
        self.primary.clock.at(at)
    }

    /// Something is held: a connection is wanted, to the node that the name of the server leads to now.
    pub(super) fn tend(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.tended_until = now.after(TENDED);
        if let (State::Up(_), Some(peer)) = (&self.state, self.peer)
            && now >= self.looks_at
        {
            self.looks_at = now.after(LOOK);
            out.push(Effect::Look(peer));
        }
    }
}

#[cfg(test)]
#[path = "following_tests.rs"]
mod tests;
