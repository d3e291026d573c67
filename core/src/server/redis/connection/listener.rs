//! Who listens to what, and what they were told last.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use redis::{PushInfo, PushKind, Value};

use crate::op::Failure;
use crate::server::{Listener, Notice, WeakListener};

/// Where a home lane's connections find out whether somebody listens by now.
pub(crate) type Audience = Arc<OnceLock<Arc<Hearing>>>;

const NOTHING: u8 = 0;
const LISTENING: u8 = 1;
const DEAF: u8 = 2;
const ENDED: u8 = 3;

/// A channel and its listener, which belongs to who listens.
pub(crate) struct Hearing {
    pub(crate) channel: String,
    listener: WeakListener,
    told: AtomicU8,
}

impl Hearing {
    pub(crate) fn new(channel: &str, listener: &Listener) -> Self {
        Self { channel: channel.to_owned(), listener: Arc::downgrade(listener), told: AtomicU8::new(NOTHING) }
    }

    /// The subscription was made, or made anew.
    pub(crate) fn listening(&self) {
        self.told.store(LISTENING, Ordering::Relaxed);
        self.tell(Notice::Listening);
    }

    /// There is no subscription: told once, until there was one.
    pub(crate) fn deaf(&self, failure: &Failure) {
        if self.told.swap(DEAF, Ordering::Relaxed) != DEAF {
            self.tell(Notice::Deaf(failure.clone()));
        }
    }

    /// Nothing is told any more.
    pub(crate) fn end(&self) {
        self.told.store(ENDED, Ordering::Relaxed);
    }

    /// Whether nobody listens any more.
    pub(crate) fn is_over(&self) -> bool {
        self.listener.strong_count() == 0
    }

    fn tell(&self, notice: Notice) {
        if let Some(listener) = self.listener.upgrade() {
            listener(notice);
        }
    }

    /// What a RESP3 connection was sent unasked. Called by the task that reads the socket.
    pub(crate) fn pushed(&self, push: PushInfo) {
        if matches!(push.kind, PushKind::Message | PushKind::SMessage) {
            self.message(push.data.into_iter());
        }
    }

    /// What a RESP2 connection was sent.
    pub(crate) fn sent(&self, value: Value) {
        let Value::Array(words) = value else { return };
        let mut words = words.into_iter();
        if matches!(words.next(), Some(Value::BulkString(kind)) if kind == b"message" || kind == b"smessage") {
            self.message(words);
        }
    }

    /// The channel and the payload, whose bytes become the text.
    fn message(&self, mut words: impl Iterator<Item = Value>) {
        let (Some(Value::BulkString(channel)), Some(Value::BulkString(payload))) = (words.next(), words.next()) else { return };
        if channel == self.channel.as_bytes() && self.told.load(Ordering::Relaxed) != ENDED {
            let foreign = |error: std::string::FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
            self.tell(Notice::Message(String::from_utf8(payload).unwrap_or_else(foreign)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::FailureKind;
    use crate::sync::Mutex;

    fn hearing() -> (Hearing, Listener, Arc<Mutex<Vec<Notice>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&told);
        let listener: Listener = Arc::new(move |notice| log.lock().push(notice));
        (Hearing::new("news", &listener), listener, told)
    }

    fn words(words: &[&str]) -> Vec<Value> {
        words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec())).collect()
    }

    #[test]
    fn messages_of_the_channel_are_passed_on_and_nothing_else() {
        let (hearing, listener, told) = hearing();
        hearing.pushed(PushInfo { kind: PushKind::Message, data: words(&["news", "one"]) });
        hearing.pushed(PushInfo { kind: PushKind::SMessage, data: words(&["news", "two"]) });
        hearing.sent(Value::Array(words(&["message", "news", "three"])));
        hearing.sent(Value::Array(words(&["smessage", "news", "four"])));
        hearing.sent(Value::Array(vec![
            Value::BulkString(b"message".into()),
            Value::BulkString(b"news".into()),
            Value::BulkString(vec![b'a', 0xff]),
        ]));
        hearing.pushed(PushInfo { kind: PushKind::Message, data: words(&["else", "x"]) });
        hearing.pushed(PushInfo { kind: PushKind::Subscribe, data: words(&["news", "x"]) });
        hearing.pushed(PushInfo { kind: PushKind::Message, data: vec![Value::Nil] });
        for other in [Value::Nil, Value::Array(words(&["pong", ""])), Value::Array(words(&["message", "else", "x"]))] {
            hearing.sent(other);
        }
        let expected = ["one", "two", "three", "four", "a\u{fffd}"].map(|text| Notice::Message(text.into()));
        drop(listener);
        assert!(hearing.is_over());
        hearing.sent(Value::Array(words(&["message", "news", "late"])));
        assert_eq!(*told.lock(), expected);
    }

    #[test]
    fn deafness_is_told_once_and_listening_every_time() {
        let (hearing, listener, told) = hearing();
        let failure = Failure::not_applied(FailureKind::Refused, "no");
        for _ in 0..2 {
            hearing.deaf(&failure);
            hearing.deaf(&failure);
            hearing.listening();
        }
        hearing.listening();
        assert!(!hearing.is_over());
        hearing.end();
        hearing.pushed(PushInfo { kind: PushKind::Message, data: words(&["news", "late"]) });
        drop(listener);
        let deaf = Notice::Deaf(failure);
        assert_eq!(*told.lock(), [deaf.clone(), Notice::Listening, deaf, Notice::Listening, Notice::Listening]);
    }
}
