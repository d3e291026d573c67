//! Following: which node a connection talks to. It stays with a node for one replication id, and looks for the node's successor.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::connection::{Connection, State};
use crate::clock::{Tick, micros};
use crate::mutant::mutant;
use crate::op::{Answer, Failure, FailureKind, Verb, Verdict};
use crate::server::redis::commands::handshake_facts::HandshakeFacts;
use crate::server::redis::commands::words::Form;
use crate::server::redis::connection::conversation::Conversation;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::lingering::Why;
use crate::server::redis::connection::pipeline::Pipeline;
use crate::server::redis::connection::question::Question;

/// The pause between two looks for a successor.
const LOOK: Duration = Duration::from_secs(30);

/// The time for which a connection is replaced at once when it breaks, after the last notice that something is held. It is longer
/// than the pause between two such notices.
const KEPT_WARM: Duration = Duration::from_secs(40);

impl Connection {
    /// Notes the address of the peer of the socket that is open from now on.
    pub(crate) fn reached(&mut self, peer: Option<SocketAddr>) {
        self.peer = peer;
    }

    /// Takes the end of a handshake.
    pub(super) fn assessed(&mut self, assessed: Result<HandshakeFacts, Failure>, now: Tick, out: &mut Vec<Effect>) {
        let State::Handshake(handshake) = &mut self.state else { return };
        let (buffers, login) = (std::mem::take(&mut handshake.buffers), Arc::clone(&handshake.login));
        let (is_refused, connects_again) = (handshake.is_refused, handshake.is_without_transaction());
        // The handshake has begun no longer ago than a connection may take.
        let sent = Tick::from_micros(now.as_micros().saturating_sub(micros(self.settings.connect_timeout)));
        self.sockets = self.sockets.wrapping_add(1);
        let socket = self.sockets;
        let assess = |facts: HandshakeFacts| {
            let (accepted, failover) = self.primary.on_connected(&facts, self.peer, self.settings.max_ttl(), now)?;
            facts.time_us.into_iter().for_each(|time_us| self.primary.clock.learn(time_us, sent, now));
            Ok((Pipeline::new(facts, self.settings.response_timeout, socket), accepted, failover))
        };
        match assessed.and_then(assess) {
            Ok((pipeline, accepted, failover)) => {
                self.looks_at = now.after(LOOK);
                self.on_connected(&login);
                self.connected(Box::new(Conversation::begin(buffers, pipeline, (accepted, login), now)), now, out);
                self.log_in(now);
                out.extend(failover.map(Effect::Report));
            }
            Err(failure) => {
                out.push(Effect::Drop(Role::Operations));
                if is_refused && self.has_others(&login, &failure, now, out) {
                    return;
                }
                self.handshake_failed(connects_again, &failure, now, out);
            }
        }
    }

    /// A handshake has failed. If that was for its transaction, the connection is made again at once, and no operation fails by it.
    pub(super) fn handshake_failed(&mut self, connects_again: bool, failure: &Failure, now: Tick, out: &mut Vec<Effect>) {
        if connects_again && self.closing.is_none() {
            self.state = State::Opening(now);
            return out.push(Effect::Open(Role::Operations));
        }
        self.unconnected(failure, now, out);
    }

    /// Leaves a socket whose server belongs to an earlier replication id: another connection has found its successor.
    pub(super) fn follow(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let replid = self.primary.replid_number();
        let why = "another node answers for the server now, and the connection to the old one was given up";
        if matches!(&self.state, State::Up(conversation) if conversation.accepted.replid != replid && !mutant!(ReplidNotShared)) {
            self.leave(&Failure::unknown(FailureKind::Disconnected, why), (true, Why::Useless), now, out);
        }
    }

    fn connected(&mut self, mut conversation: Box<Conversation>, now: Tick, out: &mut Vec<Effect>) {
        let primary = &self.primary;
        self.backlog.drain(now, |pending| conversation.submit(pending, primary, now), out);
        let is_primary = conversation.pipeline.facts().is_primary;
        self.state = State::Up(conversation);
        // A server that doesn't show its role may be a replica; then only an answer shows whether it is a primary again.
        if self.last_failure.take().is_none_or(|failure| is_primary || failure.kind != FailureKind::ReadOnly) {
            out.extend(self.primary.health.recovered().map(Effect::Report));
        }
    }

    /// Takes the server's clock.
    pub(super) fn on_time(&self, time: &Value, sent: Tick, now: Tick) {
        let parts: Option<(u64, u64)> = redis::from_redis_value_ref(time).ok();
        if let Some((seconds, micros)) = parts {
            self.primary.clock.learn(seconds.saturating_mul(1_000_000).saturating_add(micros), sent, now);
        }
    }

    /// Takes the server's clock out of the answer of a script; other answers show none.
    pub(super) fn on_script_time(&self, time_us: u64, sent: Tick, now: Tick) {
        // Another connection may have found the successor just now.
        if time_us > 0 && matches!(&self.state, State::Up(up) if up.accepted.replid == self.primary.replid_number()) {
            self.primary.clock.learn(time_us, sent, now);
        }
    }

    /// The server has a new replication id under this connection, and did nothing else. The handshake is repeated, and then the
    /// server gets the operation once more. If its answer is the same, another handshake would change nothing.
    pub(super) fn repeat_handshake(&mut self, pending: InFlight, now: Tick, out: &mut Vec<Effect>) {
        if pending.suspected {
            let why =
                "shows another replication id inside of a script than in INFO: is there a proxy between that asks two nodes?";
            return out.push(pending.end(Err(Failure::not_applied(FailureKind::Protocol, why))));
        }
        self.leave(&replid_changed(), (true, Why::Useless), now, out);
        self.backlog.push(InFlight { suspected: true, ..pending });
    }

    /// Asks a server with a marker for its replication id, and then again, if it says that a hold is gone: the id may be new under
    /// this connection, and then the hold has to be written again. Gives the operation back if the answer counts.
    pub(super) fn suspect(&mut self, pending: InFlight, answer: &Answer, now: Tick) -> Option<InFlight> {
        let is_refused = matches!(answer, Ok(reply) if matches!(reply.verdict, Verdict::No { .. }));
        let counts = pending.suspected || !is_refused || now >= pending.request.deadline || self.settings.quorum_config.is_none();
        match &mut self.state {
            State::Up(conversation) if !counts && matches!(pending.request.op.verb(), Some(Verb::Extend { .. })) => {
                conversation.ask(Question::Replid, now);
                conversation.send(InFlight { suspected: true, ..pending }, Form::BySha, now);
                None
            }
            _ => Some(pending),
        }
    }

    /// Takes the server's replication id. If it has changed, the handshake is repeated, which decides what follows.
    pub(super) fn on_replid(&mut self, info: &Value, now: Tick, out: &mut Vec<Effect>) {
        let State::Up(conversation) = &self.state else { return };
        let facts = conversation.pipeline.facts();
        let mut shown = facts.clone();
        if shown.replication(info).is_err() || shown.replid_text() != facts.replid_text() {
            self.leave(&replid_changed(), (true, Why::Useless), now, out);
        }
    }

    /// The server's clock at that time, in microseconds since the epoch.
    #[must_use]
    pub fn server_clock(&self, at: Tick) -> Option<u64> {
        self.primary.clock.at(at)
    }

    /// Something is held: a connection is wanted, to the node that the name of the server leads to now. The node that it leads to
    /// is asked from time to time, too: it may have become a replica, or be a primary again.
    pub(super) fn keep_warm(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.kept_warm_until = now.after(KEPT_WARM);
        if let (State::Up(conversation), Some(peer)) = (&mut self.state, self.peer)
            && now >= self.looks_at
        {
            self.looks_at = now.after(LOOK);
            conversation.ask(Question::Replid, now);
            out.push(Effect::Look(peer));
        }
    }
}

fn replid_changed() -> Failure {
    Failure::unknown(FailureKind::Disconnected, "the server has another replication id than at the handshake")
}

#[cfg(test)]
#[path = "following_tests.rs"]
mod tests;
