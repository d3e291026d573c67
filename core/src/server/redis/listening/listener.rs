//! Listener of a channel: the notices that it gets, and whether the same notice went before.

use redis::{PushKind, Value};

use crate::op::Failure;
use crate::server::redis::connection::effect::Effect;
use crate::server::{Listener, Notice, WeakListener};

/// A channel and its listener. The listener belongs to the code that listens.
pub struct ChannelListener {
    channel: String,
    listener: WeakListener,
    not_listening: bool,
}

impl ChannelListener {
    /// A listener without any notice so far.
    #[must_use]
    pub fn new(channel: &str, listener: &Listener) -> Self {
        Self { channel: channel.to_owned(), listener: std::sync::Arc::downgrade(listener), not_listening: false }
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    /// The subscription was made, or made anew.
    pub(crate) fn listening(&mut self, out: &mut Vec<Effect>) {
        self.not_listening = false;
        self.tell(Notice::Listening, out);
    }

    /// There is no subscription. The listener gets one notice of that, until there was a subscription again.
    pub(crate) fn not_listening(&mut self, failure: &Failure, out: &mut Vec<Effect>) {
        if !std::mem::replace(&mut self.not_listening, true) {
            self.tell(Notice::NotListening(failure.clone()), out);
        }
    }

    /// Whether this is the listener.
    pub(crate) fn is(&self, listener: &Listener) -> bool {
        std::ptr::addr_eq(self.listener.as_ptr(), std::sync::Arc::as_ptr(listener))
    }

    /// Whether the code that listens has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.listener.strong_count() == 0
    }

    pub(crate) fn tell(&self, notice: Notice, out: &mut Vec<Effect>) {
        out.extend(self.listener.upgrade().map(|listener| Effect::Tell(listener, notice)));
    }

    /// A message that the client did not ask for: a push in RESP3, a list in RESP2.
    pub(crate) fn heard(&self, said: Value, out: &mut Vec<Effect>) {
        match said {
            Value::Push { kind: PushKind::Message | PushKind::SMessage, data } => self.message(data.into_iter(), out),
            Value::Array(words) => {
                let mut words = words.into_iter();
                if words.next().as_ref().is_some_and(is_message_kind) {
                    self.message(words, out);
                }
            }
            _ => {}
        }
    }

    /// Gives the listener the payload of a message on its channel; the payload's bytes become the text.
    fn message(&self, mut words: impl Iterator<Item = Value>, out: &mut Vec<Effect>) {
        let (Some(Value::BulkString(channel)), Some(Value::BulkString(payload))) = (words.next(), words.next()) else { return };
        if channel == self.channel.as_bytes() {
            let foreign = |error: std::string::FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
            self.tell(Notice::Message(String::from_utf8(payload).unwrap_or_else(foreign)), out);
        }
    }
}

/// Whether a list of a RESP2 connection is a message, and not an answer.
pub(crate) fn is_message(value: &Value) -> bool {
    let Value::Array(words) = value else { return false };
    words.first().is_some_and(is_message_kind)
}

fn is_message_kind(word: &Value) -> bool {
    matches!(word, Value::BulkString(kind) if kind == b"message" || kind == b"smessage")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::server::FailureKind;

    fn listener() -> (ChannelListener, Listener) {
        let listener: Listener = Arc::new(|_| ());
        (ChannelListener::new("news", &listener), listener)
    }

    fn told(effects: Vec<Effect>) -> Vec<Notice> {
        let notice = |effect| match effect {
            Effect::Tell(_, notice) => notice,
            other => panic!("{other:?}"),
        };
        effects.into_iter().map(notice).collect()
    }

    fn words(words: &[&str]) -> Vec<Value> {
        words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec())).collect()
    }

    fn push(kind: PushKind, data: Vec<Value>) -> Value {
        Value::Push { kind, data }
    }

    #[test]
    fn messages_of_the_channel_are_passed_on_and_nothing_else() {
        let (channel, listener) = listener();
        let foreign = ["message", "news"].map(|word| Value::BulkString(word.into())).into_iter();
        let mut out = Vec::new();
        for said in [
            push(PushKind::Message, words(&["news", "one"])),
            push(PushKind::SMessage, words(&["news", "two"])),
            Value::Array(words(&["message", "news", "three"])),
            Value::Array(words(&["smessage", "news", "four"])),
            Value::Array(foreign.chain([Value::BulkString(vec![b'a', 0xff])]).collect()),
            push(PushKind::Message, words(&["else", "x"])),
            push(PushKind::Subscribe, words(&["news", "x"])),
            push(PushKind::Message, vec![Value::Nil]),
            Value::Nil,
            Value::Array(words(&["pong", ""])),
            Value::Array(words(&["message", "else", "x"])),
        ] {
            channel.heard(said, &mut out);
        }
        drop(listener);
        // The effects of before still have their listener.
        assert!(!channel.is_over());
        let expected = ["one", "two", "three", "four", "a\u{fffd}"].map(|text| Notice::Message(text.into()));
        assert_eq!(told(out), expected);
        assert!(channel.is_over());
        let mut late = Vec::new();
        channel.heard(Value::Array(words(&["message", "news", "late"])), &mut late);
        assert_eq!(told(late), []);
    }

    #[test]
    fn a_missing_subscription_is_notified_once_and_listening_every_time() {
        let (mut channel, _listener) = listener();
        let failure = Failure::not_applied(FailureKind::Refused, "no");
        let mut out = Vec::new();
        for _ in 0..2 {
            channel.not_listening(&failure, &mut out);
            channel.not_listening(&failure, &mut out);
            channel.listening(&mut out);
        }
        channel.listening(&mut out);
        let not_listening = Notice::NotListening(failure);
        assert_eq!(told(out), [not_listening.clone(), Notice::Listening, not_listening, Notice::Listening, Notice::Listening]);
    }
}
