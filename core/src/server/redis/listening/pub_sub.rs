//! Publish and subscribe: what is sent on a connection that carries the subscriptions to many channels, and nothing else. Decided
//! without I/O.
//!
//! A node of a cluster has channels that belong to a slot. It ends a subscription by itself when the slot goes to another node.
//! Before version 7 there are only plain channels, whose messages cross to every node.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::clock::Tick;
use crate::name::slot::slot_of;
use crate::op::{Failure, FailureKind, Redirect};
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::listening::idle_check::{Finding, IdleCheck};

/// The kind of a channel. A server of 7.0 or later has channels that belong to a slot. An older one has only plain channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A plain channel, on any version.
    Plain,
    /// A channel of a slot, where the server has such channels, else a plain one.
    Sharded,
    /// Both. Messages arrive on the channel of the slot, where the server has such channels and a script may publish there.
    Both,
}

/// A channel of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Its name.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: Kind,
}

/// What was asked, and is not answered yet.
enum Asked {
    /// The last subscription to a channel `decides`.
    Subscribe {
        channel: Channel,
        is_sharded: bool,
        decides: bool,
    },
    Unsubscribe(Arc<str>),
    Ping,
}

/// What a node reports about a channel.
#[derive(Debug, PartialEq)]
pub enum ChannelEvent {
    /// Messages arrive from now on.
    Subscribed(Arc<str>),
    /// There is no subscription, and why.
    Refused(Arc<str>, Failure),
    /// The node has ended the subscription: the slot went to another one.
    Ended(Arc<str>),
    /// A message on the channel.
    Message(Arc<str>, String),
}

/// The conversation on one socket, behind its handshake.
pub struct PubSub {
    /// The buffers of the socket.
    pub buffers: Buffers,
    asked: VecDeque<Asked>,
    /// Channels that are left, and whose end was reported, maybe by the node itself: then the answer is still to come.
    ended: Vec<Arc<str>>,
    /// Whether the server has plain channels alone.
    only_plain: bool,
    /// Why the plain subscription to a channel of both kinds was refused, while the other one is asked for.
    plain_refusal: Option<Failure>,
    idle_check: IdleCheck,
    reads: u64,
}

impl PubSub {
    /// A conversation without any channel.
    #[must_use]
    pub fn new(buffers: Buffers, response_timeout: Duration) -> Self {
        let (asked, ended, only_plain, plain_refusal) = (VecDeque::new(), Vec::new(), false, None);
        Self { buffers, asked, ended, only_plain, plain_refusal, idle_check: IdleCheck::new(response_timeout), reads: 0 }
    }

    /// Whether the node has answered anything.
    pub(crate) fn has_answered(&self) -> bool {
        self.reads > 0
    }

    /// The commands for both kinds of a channel that are needed for this kind.
    fn is_needed(&self, kind: Kind) -> [bool; 2] {
        if self.only_plain { [true, false] } else { [kind != Kind::Sharded, kind != Kind::Plain] }
    }

    /// Asks for the messages of a channel.
    pub fn subscribe(&mut self, channel: Channel, now: Tick) {
        let [is_plain, is_sharded] = self.is_needed(channel.kind);
        if is_plain {
            self.send(&["SUBSCRIBE", &channel.name], now);
            self.asked.push_back(Asked::Subscribe { channel: channel.clone(), is_sharded: false, decides: !is_sharded });
        }
        if is_sharded {
            self.send(&["SSUBSCRIBE", &channel.name], now);
            self.asked.push_back(Asked::Subscribe { channel, is_sharded, decides: true });
        }
    }

    pub(crate) fn unsubscribe(&mut self, channel: &Channel, now: Tick) {
        let [is_plain, is_sharded] = self.is_needed(channel.kind);
        for command in [is_plain.then_some("UNSUBSCRIBE"), is_sharded.then_some("SUNSUBSCRIBE")].into_iter().flatten() {
            self.send(&[command, &channel.name], now);
            self.asked.push_back(Asked::Unsubscribe(Arc::clone(&channel.name)));
        }
    }

    fn send(&mut self, words: &[&str], now: Tick) {
        self.buffers.output.end().extend_from_slice(&redis::Cmd::new().arg(words).get_packed_command());
        self.idle_check.asked(1, now, self.reads);
    }

    /// The time of the next look at the clock.
    #[must_use]
    pub fn wake_at(&self) -> Tick {
        self.idle_check.due()
    }

    /// Looks at the clock; returns whether the socket is dead.
    pub fn wake(&mut self, now: Tick) -> bool {
        match self.idle_check.look(now, self.reads) {
            Finding::Nothing => false,
            Finding::Quiet => {
                self.send(&["PING"], now);
                self.asked.push_back(Asked::Ping);
                false
            }
            Finding::HalfOpen => true,
        }
    }

    /// Takes what was read, and gives what the node reports.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn read(&mut self, count: usize, now: Tick) -> Result<Vec<ChannelEvent>, Failure> {
        self.buffers.replies.filled(count);
        let mut events = Vec::new();
        while let Some(value) = self.buffers.replies.next() {
            self.reads += 1;
            match value.map_err(|error| refusal::failure(&error, true))? {
                Value::ServerError(error) => events.extend(self.refused(&error.into(), now)?),
                Value::Array(words) => events.extend(self.received(&words, now)?),
                // A server may answer a ping so.
                Value::SimpleString(_) => self.done(now),
                _ => return Err(out_of_step()),
            }
        }
        Ok(events)
    }

    fn answered(&mut self, now: Tick) {
        self.asked.pop_front();
        self.idle_check.answered(now, self.reads);
    }

    /// The first question is answered, and so is all that was asked before.
    fn done(&mut self, now: Tick) {
        self.answered(now);
        self.ended.clear();
    }

    fn refused(&mut self, error: &redis::RedisError, now: Tick) -> Result<Option<ChannelEvent>, Failure> {
        let failure = refusal::failure(error, true);
        if let Some(Redirect::Moved { slot, .. }) = failure.redirect.as_deref()
            && !matches!(self.asked.front(), Some(Asked::Subscribe { channel, .. }) if slot_of(&channel.name) == *slot)
            && let Some(at) = self.ended.iter().position(|name| slot_of(name) == *slot)
        {
            // The node had ended that subscription before, since its slot went away.
            self.ended.swap_remove(at);
            return Ok(None);
        }
        let front = self.asked.pop_front().ok_or_else(out_of_step)?;
        self.idle_check.answered(now, self.reads);
        let Asked::Subscribe { channel, is_sharded, decides } = front else { return Ok(None) };
        Ok(self.assessed(channel, (is_sharded, decides), Some(failure), now))
    }

    /// Takes the answer to a subscription. What the server's scripts use has to be there: where it has channels of slots, those.
    fn assessed(
        &mut self,
        channel: Channel,
        (is_sharded, decides): (bool, bool),
        mut refusal: Option<Failure>,
        now: Tick,
    ) -> Option<ChannelEvent> {
        if !decides {
            self.plain_refusal = refusal;
            return None;
        }
        if is_sharded && refusal.as_ref().is_some_and(is_unknown) {
            self.only_plain = true;
            if channel.kind == Kind::Sharded {
                self.subscribe(channel, now);
                return None;
            }
            refusal = self.plain_refusal.take();
        }
        Some(match refusal {
            None => ChannelEvent::Subscribed(channel.name),
            Some(failure) => ChannelEvent::Refused(channel.name, failure),
        })
    }

    /// Takes a list of words: a message, or the answer about a subscription.
    fn received(&mut self, words: &[Value], now: Tick) -> Result<Option<ChannelEvent>, Failure> {
        let word = |at: usize| match words.get(at) {
            Some(Value::BulkString(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Some(Value::SimpleString(text)) => Some(text.clone()),
            _ => None,
        };
        let kind = word(0).ok_or_else(out_of_step)?;
        let name: Arc<str> = word(1).unwrap_or_default().into();
        match &*kind {
            "message" | "smessage" => Ok(word(2).map(|message| ChannelEvent::Message(name, message))),
            "subscribe" | "ssubscribe" => match self.asked.front() {
                Some(Asked::Subscribe { channel, is_sharded, decides })
                    if channel.name == name && *is_sharded == (kind == "ssubscribe") =>
                {
                    let (channel, answered) = (channel.clone(), (*is_sharded, *decides));
                    self.done(now);
                    Ok(self.assessed(channel, answered, None, now))
                }
                _ => Err(out_of_step()),
            },
            "unsubscribe" | "sunsubscribe" => match self.asked.front() {
                Some(Asked::Unsubscribe(asked)) if *asked == name => {
                    self.answered(now);
                    // No node ends a plain one itself.
                    self.ended.extend((kind == "sunsubscribe").then_some(name));
                    Ok(None)
                }
                _ => match self.ended.iter().position(|ended| *ended == name) {
                    Some(at) => {
                        self.ended.swap_remove(at);
                        Ok(None)
                    }
                    None => Ok(Some(ChannelEvent::Ended(name))),
                },
            },
            "pong" => {
                self.done(now);
                Ok(None)
            }
            _ => Err(out_of_step()),
        }
    }
}

/// Whether the server, or a proxy in front of it, doesn't have the command at all.
fn is_unknown(refusal: &Failure) -> bool {
    let text = refusal.message.to_ascii_lowercase();
    ["unknown command", "unsupported", "not supported"].iter().any(|words| text.contains(words))
}

fn out_of_step() -> Failure {
    Failure::unknown(FailureKind::Protocol, "an answer about a subscription came that nobody had asked for")
}

#[cfg(test)]
#[path = "pub_sub_tests.rs"]
mod tests;
