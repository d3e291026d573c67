//! Publish and subscribe: what is said on a connection that carries the subscriptions to many channels, and nothing else. Decided without
//! I/O.
//!
//! A node of a cluster has channels that belong to a slot. It ends a subscription by itself when the slot goes to another node. Before
//! version 7 there are only plain channels, whose messages cross to every node.

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

/// What a node says of a channel.
#[derive(Debug, PartialEq)]
pub enum Said {
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
    /// Channels that are left, and whose end was told, maybe by the node itself: then the answer is still to come.
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
            self.say("SUBSCRIBE", &channel.name, now);
            self.asked.push_back(Asked::Subscribe { channel: channel.clone(), is_sharded: false, decides: !is_sharded });
        }
        if is_sharded {
            self.say("SSUBSCRIBE", &channel.name, now);
            self.asked.push_back(Asked::Subscribe { channel, is_sharded, decides: true });
        }
    }

    pub(crate) fn unsubscribe(&mut self, channel: &Channel, now: Tick) {
        let [is_plain, is_sharded] = self.is_needed(channel.kind);
        for command in [is_plain.then_some("UNSUBSCRIBE"), is_sharded.then_some("SUNSUBSCRIBE")].into_iter().flatten() {
            self.say(command, &channel.name, now);
            self.asked.push_back(Asked::Unsubscribe(Arc::clone(&channel.name)));
        }
    }

    fn say(&mut self, command: &str, channel: &str, now: Tick) {
        let words = [command, channel].into_iter().filter(|word| !word.is_empty());
        let command = words.fold(redis::Cmd::new(), |mut command, word| command.arg(word).take());
        self.buffers.output.end().extend_from_slice(&command.get_packed_command());
        self.idle_check.asked(1, now, self.reads);
    }

    /// The time of the next look at the clock.
    #[must_use]
    pub fn wake_at(&self) -> Tick {
        self.idle_check.due()
    }

    /// Looks at the clock; says whether the socket is dead.
    pub fn wake(&mut self, now: Tick) -> bool {
        match self.idle_check.look(now, self.reads) {
            Finding::Nothing => false,
            Finding::Quiet => {
                self.say("PING", "", now);
                self.asked.push_back(Asked::Ping);
                false
            }
            Finding::HalfOpen => true,
        }
    }

    /// Takes what was read, and gives what the node says.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn read(&mut self, count: usize, now: Tick) -> Result<Vec<Said>, Failure> {
        self.buffers.replies.filled(count);
        let mut said = Vec::new();
        while let Some(value) = self.buffers.replies.next() {
            self.reads += 1;
            match value.map_err(|error| refusal::failure(&error, true))? {
                Value::ServerError(error) => said.extend(self.refused(&error.into(), now)?),
                Value::Array(words) => said.extend(self.heard(&words, now)?),
                // A server may answer a ping so.
                Value::SimpleString(_) => self.done(now),
                _ => return Err(out_of_step()),
            }
        }
        Ok(said)
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

    fn refused(&mut self, error: &redis::RedisError, now: Tick) -> Result<Option<Said>, Failure> {
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
        Ok(self.judged(channel, (is_sharded, decides), Some(failure), now))
    }

    /// Takes the answer to a subscription. What the server's scripts use has to be there: where it has channels of slots, those.
    fn judged(
        &mut self,
        channel: Channel,
        (is_sharded, decides): (bool, bool),
        mut refusal: Option<Failure>,
        now: Tick,
    ) -> Option<Said> {
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
            None => Said::Subscribed(channel.name),
            Some(failure) => Said::Refused(channel.name, failure),
        })
    }

    /// Takes a list of words: a message, or the answer about a subscription.
    fn heard(&mut self, words: &[Value], now: Tick) -> Result<Option<Said>, Failure> {
        let word = |at: usize| match words.get(at) {
            Some(Value::BulkString(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Some(Value::SimpleString(text)) => Some(text.clone()),
            _ => None,
        };
        let kind = word(0).ok_or_else(out_of_step)?;
        let name: Arc<str> = word(1).unwrap_or_default().into();
        match &*kind {
            "message" | "smessage" => Ok(word(2).map(|message| Said::Message(name, message))),
            "subscribe" | "ssubscribe" => match self.asked.front() {
                Some(Asked::Subscribe { channel, is_sharded, decides })
                    if channel.name == name && *is_sharded == (kind == "ssubscribe") =>
                {
                    let (channel, answered) = (channel.clone(), (*is_sharded, *decides));
                    self.done(now);
                    Ok(self.judged(channel, answered, None, now))
                }
                _ => Err(out_of_step()),
            },
            "unsubscribe" | "sunsubscribe" => match self.asked.front() {
                Some(Asked::Unsubscribe(asked)) if *asked == name => {
                    self.answered(now);
                    self.ended.push(name);
                    Ok(None)
                }
                _ => match self.ended.iter().position(|ended| *ended == name) {
                    Some(at) => {
                        self.ended.swap_remove(at);
                        Ok(None)
                    }
                    None => Ok(Some(Said::Ended(name))),
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
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::from_micros(seconds * 1_000_000)
    }

    fn sharded(name: &str) -> Channel {
        Channel { name: name.into(), kind: Kind::Sharded }
    }

    fn new() -> PubSub {
        PubSub::new(Buffers::default(), Duration::from_secs(1))
    }

    fn wrote(pub_sub: &mut PubSub) -> String {
        let written = String::from_utf8_lossy(pub_sub.buffers.unwritten()).into_owned();
        pub_sub.buffers.wrote(written.len());
        written.split("\r\n").filter(|word| !word.starts_with(['*', '$'])).collect::<Vec<_>>().join(" ").trim().to_owned()
    }

    fn says(pub_sub: &mut PubSub, bytes: &str) -> Result<Vec<Said>, Failure> {
        pub_sub.buffers.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
        pub_sub.read(bytes.len(), at(1))
    }

    fn list(words: &[&str]) -> String {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<String>();
        format!("*{}\r\n{words}", words.matches('$').count())
    }

    #[test]
    fn each_channel_is_subscribed_heard_and_left() {
        let mut pub_sub = new();
        pub_sub.subscribe(sharded("a"), at(1));
        pub_sub.subscribe(Channel { name: "b".into(), kind: Kind::Plain }, at(1));
        assert_eq!(wrote(&mut pub_sub), "SSUBSCRIBE a SUBSCRIBE b");
        let said =
            says(&mut pub_sub, &(list(&["ssubscribe", "a"]) + &list(&["smessage", "a", "free"]) + &list(&["subscribe", "b"])));
        assert_eq!(
            said.unwrap(),
            [Said::Subscribed("a".into()), Said::Message("a".into(), "free".into()), Said::Subscribed("b".into())]
        );
        pub_sub.unsubscribe(&sharded("a"), at(1));
        assert_eq!(wrote(&mut pub_sub), "SUNSUBSCRIBE a");
        assert_eq!(says(&mut pub_sub, &list(&["sunsubscribe", "a"])).unwrap(), []);
        assert_eq!(
            says(&mut pub_sub, &list(&["sunsubscribe", "b"])).unwrap(),
            [Said::Ended("b".into())],
            "nobody asked for that"
        );
    }

    #[test]
    fn a_refused_channel_is_named_and_an_older_server_is_asked_for_a_plain_one() {
        let mut pub_sub = new();
        pub_sub.subscribe(sharded("a"), at(1));
        pub_sub.subscribe(sharded("b"), at(1));
        let said = says(&mut pub_sub, "-MOVED 7 h:1\r\n-ERR unknown command `SSUBSCRIBE`, with args\r\n").unwrap();
        assert!(matches!(&said[..], [Said::Refused(name, failure)] if &**name == "a" && failure.redirect.is_some()), "{said:?}");
        assert_eq!(wrote(&mut pub_sub), "SSUBSCRIBE a SSUBSCRIBE b SUBSCRIBE b");
        assert_eq!(says(&mut pub_sub, &list(&["subscribe", "b"])).unwrap(), [Said::Subscribed("b".into())]);
        pub_sub.subscribe(sharded("c"), at(1));
        pub_sub.unsubscribe(&sharded("b"), at(1));
        assert_eq!(wrote(&mut pub_sub), "SUBSCRIBE c UNSUBSCRIBE b");
    }

    #[test]
    fn of_both_kinds_the_one_that_scripts_use_decides() {
        let unknown = "-ERR unknown command `SSUBSCRIBE`, with args\r\n";
        let denied = "-NOPERM no\r\n";
        let (plain, both) = (list(&["subscribe", "a"]), list(&["ssubscribe", "a"]));
        for (plain, sharded, is_refused) in [
            (&*plain, &*both, false),
            (&plain, unknown, false),
            (&plain, denied, true),
            (denied, &both, false),
            (denied, unknown, true),
            (denied, denied, true),
        ] {
            let mut pub_sub = new();
            pub_sub.subscribe(Channel { name: "a".into(), kind: Kind::Both }, at(1));
            assert_eq!(wrote(&mut pub_sub), "SUBSCRIBE a SSUBSCRIBE a");
            assert_eq!(says(&mut pub_sub, plain).unwrap(), [], "the other answer is still to come");
            let said = says(&mut pub_sub, sharded).unwrap();
            assert_eq!(matches!(&said[..], [Said::Refused(..)]), is_refused, "{said:?}");
            assert_eq!(matches!(&said[..], [Said::Subscribed(_)]), !is_refused, "{said:?}");
            pub_sub.unsubscribe(&Channel { name: "a".into(), kind: Kind::Both }, at(1));
            let left = if sharded == unknown { "UNSUBSCRIBE a" } else { "UNSUBSCRIBE a SUNSUBSCRIBE a" };
            assert_eq!(wrote(&mut pub_sub), left);
        }
    }

    #[test]
    fn a_node_that_ends_a_subscription_just_as_it_is_left_answers_twice() {
        let moved = |name: &str| format!("-MOVED {} h:1\r\n", slot_of(name));
        let own_end = list(&["sunsubscribe", "a"]);
        for answer in [moved("a"), own_end.clone()] {
            let mut pub_sub = new();
            pub_sub.unsubscribe(&sharded("a"), at(1));
            pub_sub.subscribe(sharded("b"), at(1));
            assert_eq!(says(&mut pub_sub, &(own_end.clone() + &answer)).unwrap(), [], "{answer}");
            assert_eq!(says(&mut pub_sub, &list(&["ssubscribe", "b"])).unwrap(), [Said::Subscribed("b".into())]);
            // That was the answer: the next end is another one.
            assert_eq!(says(&mut pub_sub, &own_end).unwrap(), [Said::Ended("a".into())]);
        }
        // Two at once.
        let mut pub_sub = new();
        pub_sub.unsubscribe(&sharded("a"), at(1));
        pub_sub.unsubscribe(&sharded("b"), at(1));
        let both = own_end.clone() + &list(&["sunsubscribe", "b"]) + &moved("a") + &moved("b");
        assert_eq!(says(&mut pub_sub, &both).unwrap(), []);
        // The next question is about the same slot: either answer is its own, and so is the other.
        let mut pub_sub = new();
        pub_sub.unsubscribe(&sharded("a"), at(1));
        pub_sub.subscribe(sharded("{a}b"), at(1));
        let said = says(&mut pub_sub, &(own_end + &moved("a") + &moved("a"))).unwrap();
        assert!(matches!(&said[..], [Said::Refused(name, _)] if &**name == "{a}b"), "{said:?}");
    }

    #[test]
    fn an_answer_that_nobody_asked_for_ends_the_conversation() {
        for bytes in ["-ERR no\r\n".to_owned(), list(&["ssubscribe", "x"]), ":1\r\n".to_owned(), list(&["what", "x"])] {
            assert!(says(&mut new(), &bytes).is_err(), "{bytes}");
        }
    }

    #[test]
    fn a_quiet_socket_is_asked_and_a_silent_one_is_dead() {
        let mut pub_sub = new();
        pub_sub.subscribe(sharded("a"), at(1));
        says(&mut pub_sub, &list(&["ssubscribe", "a"])).unwrap();
        wrote(&mut pub_sub);
        for _ in 0..2 {
            let due = pub_sub.wake_at();
            assert!(!pub_sub.wake(due));
        }
        assert_eq!(wrote(&mut pub_sub), "PING");
        let due = pub_sub.wake_at();
        assert!(pub_sub.wake(due), "no answer at all");
    }
}
