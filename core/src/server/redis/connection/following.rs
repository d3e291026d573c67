//! Following: which node a connection talks to. It greets a node, stays with it for one era, and looks for its successor.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::connection::{Connection, State};
use crate::clock::{Tick, micros};
use crate::mutant::mutant;
use crate::op::{Answer, Failure, FailureKind, Verb, Verdict};
use crate::server::redis::commands::greeting::Greeting;
use crate::server::redis::commands::words::Form;
use crate::server::redis::connection::conversation::Conversation;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::job::Job;
use crate::server::redis::connection::lingering::Why;
use crate::server::redis::connection::pipeline::Pipeline;
use crate::server::redis::connection::question::Question;

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
    pub(super) fn judged(&mut self, judged: Result<Greeting, Failure>, now: Tick, out: &mut Vec<Effect>) {
        let State::Greeting(handshake) = &mut self.state else { return };
        let (buffers, login) = (std::mem::take(&mut handshake.buffers), Arc::clone(handshake.login()));
        let (is_refused, connects_again) = (handshake.is_refused(), handshake.is_without_transaction());
        // The handshake has begun no longer ago than a connection may take.
        let sent = Tick::from_micros(now.as_micros().saturating_sub(micros(self.settings.connect_timeout)));
        self.sockets = self.sockets.wrapping_add(1);
        let socket = self.sockets;
        let welcome = |greeting: Greeting| {
            let (accepted, failover) = self.primary.greeted(&greeting, self.peer, self.settings.max_ttl(), now)?;
            greeting.time_us.into_iter().for_each(|time_us| self.primary.clock.hear(time_us, sent, now));
            Ok((Pipeline::new(greeting, self.settings.response_timeout, socket), accepted, failover))
        };
        match judged.and_then(welcome) {
            Ok((pipeline, accepted, failover)) => {
                self.looks_at = now.after(LOOK);
                self.welcomed(&login);
                self.connected(Box::new(Conversation::begin(buffers, pipeline, (accepted, login), now)), now, out);
                self.log_in(now);
                out.extend(failover.map(Effect::Report));
            }
            Err(failure) => {
                out.push(Effect::Drop(Role::Operations));
                if is_refused && self.has_others(&login, &failure, now, out) {
                    return;
                }
                self.ungreeted(connects_again, &failure, now, out);
            }
        }
    }

    /// A handshake has failed. If that was for its transaction, the connection is made again at once, and no operation hears of it.
    pub(super) fn ungreeted(&mut self, connects_again: bool, failure: &Failure, now: Tick, out: &mut Vec<Effect>) {
        if connects_again && self.closing.is_none() {
            self.state = State::Opening(now);
            return out.push(Effect::Open(Role::Operations));
        }
        self.unconnected(failure, now, out);
    }

    /// Leaves a socket whose server belongs to an earlier era: another connection has found its successor.
    pub(super) fn follow(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let era = self.primary.era_number();
        let why = "another node answers for the server now, and the connection to the old one was given up";
        if matches!(&self.state, State::Up(conversation) if conversation.accepted.era != era && !mutant!(EraNotShared)) {
            self.leave(&Failure::unknown(FailureKind::Disconnected, why), (true, Why::Useless), now, out);
        }
    }

    fn connected(&mut self, mut conversation: Box<Conversation>, now: Tick, out: &mut Vec<Effect>) {
        let primary = &self.primary;
        self.backlog.drain(now, |job| conversation.submit(job, primary, now), out);
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

    /// Takes the server's clock out of the answer of a script; other answers show none.
    pub(super) fn heard_script(&self, time_us: u64, sent: Tick, now: Tick) {
        // Another connection may have found the successor just now.
        if time_us > 0 && matches!(&self.state, State::Up(conversation) if conversation.accepted.era == self.primary.era_number())
        {
            self.primary.clock.hear(time_us, sent, now);
        }
    }

    /// The server has begun an era under this connection, and did nothing else. It is greeted again, which decides what follows, and
    /// then it gets the operation once more. If its answer is the same, another greeting would change nothing.
    pub(super) fn greet_again(&mut self, job: Job, now: Tick, out: &mut Vec<Effect>) {
        if job.doubted {
            let why =
                "shows another replication id inside of a script than in INFO: is there a proxy between that asks two nodes?";
            return out.push(job.end(Err(Failure::not_applied(FailureKind::Protocol, why))));
        }
        self.leave(&in_another_era(), (true, Why::Useless), now, out);
        self.backlog.push(Job { doubted: true, ..job });
    }

    /// Asks a server with a marker for its era, and then again, if it says that a hold is gone: it may have begun an era under this
    /// connection, and then the hold has to be written again. Gives the operation back if the answer counts.
    pub(super) fn doubt(&mut self, job: Job, answer: &Answer, now: Tick) -> Option<Job> {
        let is_refused = matches!(answer, Ok(reply) if matches!(reply.verdict, Verdict::No { .. }));
        let counts = job.doubted || !is_refused || now >= job.request.deadline || self.settings.quorum_config.is_none();
        match &mut self.state {
            State::Up(conversation) if !counts && matches!(job.request.op.verb(), Some(Verb::Extend { .. })) => {
                conversation.ask(Question::Era, now);
                conversation.send(Job { doubted: true, ..job }, Form::BySha, now);
                None
            }
            _ => Some(job),
        }
    }

    /// Takes the server's era. If it has changed, the server is greeted anew, which decides what follows.
    pub(super) fn heard_era(&mut self, info: &Value, now: Tick, out: &mut Vec<Effect>) {
        let State::Up(conversation) = &self.state else { return };
        let greeting = conversation.pipeline.greeting();
        let mut shown = greeting.clone();
        if shown.replication(info).is_err() || shown.era_id() != greeting.era_id() {
            self.leave(&in_another_era(), (true, Why::Useless), now, out);
        }
    }

    /// The server's clock at that time, in microseconds since the epoch.
    #[must_use]
    pub fn server_clock(&self, at: Tick) -> Option<u64> {
        self.primary.clock.at(at)
    }

    /// Something is held: a connection is wanted, to the node that the name of the server leads to now. The node that it leads to is
    /// asked from time to time, too: it may have become a replica, or be a primary again.
    pub(super) fn tend(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.tended_until = now.after(TENDED);
        if let (State::Up(conversation), Some(peer)) = (&mut self.state, self.peer)
            && now >= self.looks_at
        {
            self.looks_at = now.after(LOOK);
            conversation.ask(Question::Era, now);
            out.push(Effect::Look(peer));
        }
    }
}

fn in_another_era() -> Failure {
    Failure::unknown(FailureKind::Disconnected, "the server has another replication id than at the handshake")
}

#[cfg(test)]
#[path = "following_tests.rs"]
mod tests;
