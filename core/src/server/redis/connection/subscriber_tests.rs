//! The questions of a subscriber, when and on which connection it asks them, and the notices of its listener.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::options::ClientOptions;
use crate::server::redis::url::Target;
use crate::server::{Listener, Notice};

const TIMEOUT: Duration = Duration::from_secs(1);
const START: Tick = Tick::from_micros(1_000_000);

/// A subscriber, its listener, and its effects.
struct Test {
    subscriber: Subscriber,
    out: Vec<Effect>,
    _listener: Listener,
}

impl Test {
    fn new() -> Self {
        let target = Target::parse("redis://localhost", &ClientOptions::default()).unwrap();
        let settings = Settings {
            target,
            name: "locktender".into(),
            quorum_config: None,
            connect_timeout: TIMEOUT,
            response_timeout: TIMEOUT,
            replicas: None,
            answered: AtomicBool::default(),
            has_no_transactions: AtomicBool::default(),
            provided: None,
            in_cluster: false,
            callers_runtime: true,
        };
        let listener: Listener = Arc::new(|_| ());
        let subscriber = Subscriber::new(ChannelListener::new("news", &listener), Arc::new(settings));
        Self { subscriber, out: Vec::new(), _listener: listener }
    }

    /// Leads the subscriber to its subscription; one reply has been read then.
    fn subscribe(&mut self, now: Tick) {
        assert_eq!(self.subscriber.begin(now, 0), HELLO);
        assert_eq!(self.answered(Question::Hello, Value::Map(vec![]), now, 1), SUBSCRIBE);
        for question in SUBSCRIBE {
            assert_eq!(self.answered(*question, Value::Okay, now, 1), NOTHING);
        }
    }

    fn answered(&mut self, question: Question, value: Value, now: Tick, reads: u64) -> &'static [Question] {
        self.subscriber.answered(question, value, (now, reads), &mut self.out)
    }

    fn wake(&mut self, now: Tick, reads: u64) -> Look {
        self.subscriber.wake(now, reads, 1.0, &mut self.out)
    }

    /// The notices that the listener got since the last time.
    fn told(&mut self) -> Vec<Notice> {
        let notice = |effect| match effect {
            Effect::Tell(_, notice) => Some(notice),
            _ => None,
        };
        self.out.drain(..).filter_map(notice).collect()
    }

    /// Gives the second connection bytes to read.
    fn said(&mut self, bytes: &str, now: Tick) {
        let buffers = self.subscriber.buffers(Role::Listening).expect("there is a second connection");
        buffers.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
        let count = (Role::Listening, bytes.len());
        self.subscriber.second((now, 1.0), &mut self.out, |second, listener, out| second.read(count, listener, now, out));
    }

    fn has_second(&self) -> bool {
        matches!(self.subscriber.stage, Stage::Second(_))
    }

    /// Closes the second connection.
    fn closed(&mut self, now: Tick) {
        self.subscriber.second((now, 1.0), &mut self.out, |second, _, out| second.closed(Role::Listening, None, now, out));
    }

    /// The bytes that are written on the second connection.
    fn wrote(&mut self) -> String {
        let buffers = self.subscriber.buffers(Role::Listening).expect("there is a second connection");
        let written = String::from_utf8_lossy(buffers.unwritten()).into_owned();
        buffers.wrote(written.len());
        written
    }

    /// Leads the subscriber to a second connection with a subscription.
    fn subscribe_on_second(&mut self, now: Tick) {
        self.subscriber.begin(now, 0);
        self.answered(Question::Hello, refusal(), now, 1);
        assert!(matches!(self.out.pop(), Some(Effect::Open(Role::Listening))));
        assert!(self.subscriber.opened(Role::Listening, 0));
        assert!(self.wrote().contains("SETNAME"));
        self.said("+OK\r\n", now);
        assert!(self.wrote().contains("SSUBSCRIBE"));
        self.said("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", now);
        assert_eq!(self.told(), []);
        self.said("*3\r\n$10\r\nssubscribe\r\n$4\r\nnews\r\n:1\r\n", now);
        assert_eq!(self.told(), [Notice::Listening]);
    }
}

fn refusal() -> Value {
    redis::parse_redis_value(b"-NOPERM no permissions to access one of the channels\r\n").unwrap()
}

fn gone() -> Failure {
    Failure::unknown(FailureKind::Disconnected, "gone")
}

#[test]
fn every_subscription_is_notified_and_every_loss_once() {
    let mut test = Test::new();
    test.subscriber.unconnected(&gone(), START, &mut test.out);
    test.subscriber.unconnected(&gone(), START, &mut test.out);
    test.subscribe(START);
    test.subscriber.disconnected(&gone(), START, &mut test.out);
    assert!(test.subscriber.wants_first(), "it is reconnected for the listener");
    test.subscribe(START);
    let not_listening = Notice::NotListening(gone());
    assert_eq!(test.told(), [not_listening.clone(), Notice::Listening, not_listening, Notice::Listening]);
}

#[test]
fn a_quiet_connection_is_asked_whether_it_lives_and_a_busy_one_is_not() {
    let mut test = Test::new();
    test.subscribe(START);
    let mut now = START;
    let mut look = |test: &mut Test, reads| {
        assert_eq!(test.wake(now, reads), Look::Ask(NOTHING), "too early");
        now = test.subscriber.wake_at();
        (test.wake(now, reads), now)
    };
    for reads in 2..9 {
        assert_eq!(look(&mut test, reads).0, Look::Ask(NOTHING), "something arrived");
    }
    assert_eq!(look(&mut test, 8).0, Look::Ask(NOTHING), "once may be chance");
    let (finding, asked) = look(&mut test, 8);
    assert_eq!(finding, Look::Ask(PING));
    test.answered(Question::Ping, Value::SimpleString("PONG".into()), asked, 9);
    look(&mut test, 9);
    let (finding, again) = look(&mut test, 9);
    assert_eq!(finding, Look::Ask(PING));
    assert!(again.since(asked) >= Duration::from_secs(5));
    // The answer is late, but something else arrived; then nothing does.
    let (finding, at) = look(&mut test, 10);
    assert_eq!((finding, at.since(again)), (Look::Ask(NOTHING), TIMEOUT));
    assert_eq!(look(&mut test, 10).0, Look::HalfOpen);
}

#[test]
fn a_question_without_any_answer_is_a_dead_connection() {
    let mut test = Test::new();
    assert_eq!(test.subscriber.begin(START, 7), HELLO);
    assert_eq!(test.subscriber.wake_at(), START.after(TIMEOUT));
    assert_eq!(test.wake(START.after(TIMEOUT), 7), Look::HalfOpen);
}

#[test]
fn a_refused_subscription_is_asked_for_again_after_half_a_minute_and_needs_no_connection_meanwhile() {
    let mut test = Test::new();
    for _ in 0..2 {
        let now = if test.subscriber.wake_at() == Tick::NEVER { START } else { test.subscriber.wake_at() };
        test.wake(now, 1);
        assert!(test.subscriber.wants_first());
        test.subscriber.begin(now, 0);
        test.answered(Question::Hello, Value::Map(vec![]), now, 1);
        for question in SUBSCRIBE {
            test.answered(*question, refusal(), now, 1);
        }
        assert_eq!(test.subscriber.wake_at(), now.after(REFUSED));
        assert!(!test.subscriber.wants_first());
        test.subscriber.disconnected(&gone(), now, &mut test.out);
        assert_eq!(test.subscriber.begin(now, 0), NOTHING);
    }
    let told = test.told();
    assert!(matches!(&told[..], [Notice::NotListening(failure)] if failure.kind == FailureKind::Denied), "{told:?}");
}

#[test]
fn a_server_that_refuses_the_client_is_not_asked_again_and_again_for_the_listener_alone() {
    for kind in [FailureKind::Denied, FailureKind::Mismatch] {
        let mut test = Test::new();
        test.subscriber.unconnected(&Failure::not_applied(kind, "no"), START, &mut test.out);
        assert_eq!((test.subscriber.wants_first(), test.subscriber.wake_at()), (false, START.after(REFUSED)));
        test.wake(START.after(REFUSED), 0);
        assert!(test.subscriber.wants_first());
    }
}

#[test]
fn without_resp3_it_listens_on_a_second_connection() {
    let mut test = Test::new();
    test.subscriber.begin(START, 0);
    assert_eq!(test.answered(Question::Hello, refusal(), START, 1), NOTHING);
    assert!(test.has_second() && !test.subscriber.wants_first());
    assert_eq!(test.told(), [], "that is no reason to stop");
}

#[test]
fn a_peer_that_hangs_up_when_asked_to_listen_is_not_asked_again_on_the_first_connection() {
    for answered in [false, true] {
        let mut test = Test::new();
        test.subscriber.begin(START, 0);
        if answered {
            test.answered(Question::Hello, Value::Map(vec![]), START, 1);
        }
        test.subscriber.disconnected(&gone(), START, &mut test.out);
        assert!(test.has_second() && !test.subscriber.wants_first());
    }
}

#[test]
fn how_the_second_connection_ended_says_when_and_where_to_try_next() {
    let broken = |useful| Ending::Broken { failure: gone(), useful };
    let denied = Failure::not_applied(FailureKind::Denied, "no");
    for (ending, longest, on_second) in [
        (Ending::Unconnected(gone()), Duration::from_millis(50), true),
        (Ending::Unconnected(denied.clone()), REFUSED, true),
        (Ending::Refused(denied), REFUSED, true),
        (broken(true), Duration::ZERO, false),
    ] {
        let mut test = Test::new();
        test.subscriber.open_second(START, &mut test.out);
        let shown = format!("{ending:?}");
        test.subscriber.ended(ending, START, 1.0, &mut test.out);
        let pause = test.subscriber.wake_at().since(START);
        assert!(longest / 2 <= pause && pause <= longest, "{shown}: {pause:?}");
        let due = test.subscriber.wake_at();
        test.wake(due, 0);
        assert_eq!((test.has_second(), test.subscriber.wants_first()), (on_second, !on_second), "{shown}");
    }
    let mut test = Test::new();
    let pauses: Vec<Duration> = (0..4)
        .map(|_| {
            test.subscriber.ended(broken(false), START, 1.0, &mut test.out);
            test.subscriber.wake_at().since(START)
        })
        .collect();
    assert!(pauses[1] > Duration::ZERO && pauses[3] > pauses[1], "no storm: {pauses:?}");
}

#[test]
fn a_second_connection_passes_messages_on_and_is_asked_when_it_falls_silent() {
    let mut test = Test::new();
    test.subscribe_on_second(START);
    test.said("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\none\r\n*3\r\n$8\r\nsmess", START);
    test.said("age\r\n$4\r\nnews\r\n$3\r\ntwo\r\n", START);
    assert_eq!(test.told(), ["one", "two"].map(|text| Notice::Message(text.into())));
    // The first of three looks covers the messages above; the other two find nothing.
    let mut asked = START;
    for _ in 0..3 {
        asked = test.subscriber.wake_at();
        test.wake(asked, 0);
    }
    assert!(test.wrote().contains("PING"));
    test.said("*2\r\n$4\r\npong\r\n$0\r\n\r\n", asked);
    assert!(test.subscriber.wake_at() > asked.after(TIMEOUT), "that is an answer");
    for _ in 0..2 {
        asked = test.subscriber.wake_at();
        test.wake(asked, 0);
    }
    assert!(test.wrote().contains("PING") && test.told().is_empty());
    test.wake(asked.after(TIMEOUT), 0);
    assert!(matches!(&test.out[..], [Effect::Drop(Role::Listening), Effect::Tell(..)]), "{:?}", test.out);
    assert!(matches!(&test.told()[..], [Notice::NotListening(failure)] if failure.kind == FailureKind::Timeout));
    assert!(!test.has_second());
}

#[test]
fn a_second_connection_that_ends_says_when_to_try_next() {
    for (said, later, kind) in [
        ("-NOPERM no\r\n-NOPERM no\r\n", REFUSED, FailureKind::Denied),
        ("HTTP/1.1", REFUSED, FailureKind::Protocol),
        ("", REFUSED, FailureKind::Disconnected),
    ] {
        let mut test = Test::new();
        test.subscriber.open_second(START, &mut test.out);
        assert!(test.subscriber.opened(Role::Listening, 0));
        test.said("+OK\r\n", START);
        if said.is_empty() {
            test.closed(START);
        } else {
            test.said(said, START);
        }
        assert_eq!(test.subscriber.wake_at(), START.after(later), "{said:?}");
        assert!(matches!(&test.told()[..], [Notice::NotListening(failure)] if failure.kind == kind), "{said:?}");
    }
    // A handshake that takes too long is not a connection.
    let mut test = Test::new();
    test.subscriber.open_second(START, &mut test.out);
    assert!(test.subscriber.opened(Role::Listening, 0) && !test.subscriber.opened(Role::Listening, 0));
    assert_eq!(test.subscriber.wake_at(), START.after(TIMEOUT));
    test.wake(START.after(TIMEOUT), 0);
    assert_eq!(test.subscriber.wake_at(), START.after(TIMEOUT).after(Duration::from_millis(50)));
    assert!(matches!(&test.told()[..], [Notice::NotListening(failure)] if failure.kind == FailureKind::Timeout));
}
