use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::options::ClientOptions;
use crate::server::redis::transport::url::Target;
use crate::server::{Listener, Notice};

const TIMEOUT: Duration = Duration::from_secs(1);
const START: Tick = Tick::from_micros(1_000_000);

/// An ear, its listener, and what that was told.
fn ear() -> (Ear, Listener, Receiver<Notice>) {
    let target = Target::parse("redis://localhost", &ClientOptions::default()).unwrap();
    let settings =
        Settings { target, name: "locktender".into(), quorum_config: None, connect_timeout: TIMEOUT, response_timeout: TIMEOUT };
    let (told, notices) = channel();
    let listener: Listener = Arc::new(move |notice| told.send(notice).unwrap());
    (Ear::new(Arc::new(Hearing::new("news", &listener)), Arc::new(settings)), listener, notices)
}

fn refusal() -> Value {
    redis::parse_redis_value(b"-NOPERM no permissions to access one of the channels\r\n").unwrap()
}

fn gone() -> Failure {
    Failure::unknown(FailureKind::Disconnected, "gone")
}

/// Leads an ear to its subscription; the pulse is 1 then.
fn subscribe(ear: &mut Ear, now: Tick) {
    assert_eq!(ear.begin(now, 0), HELLO);
    assert_eq!(ear.answered(Word::Hello, Value::Map(vec![]), now, 1), SUBSCRIBE);
    for word in SUBSCRIBE {
        assert_eq!(ear.answered(*word, Value::Okay, now, 1), NOTHING);
    }
}

fn is_aside(ear: &Ear) -> bool {
    matches!(ear.stage, Stage::Aside(_))
}

#[test]
fn every_subscription_is_told_and_every_loss_once() {
    let (mut ear, _listener, notices) = ear();
    ear.unconnected(&gone(), START);
    ear.unconnected(&gone(), START);
    subscribe(&mut ear, START);
    ear.disconnected(&gone());
    assert!(ear.wants_home(), "it is reconnected for the listener");
    subscribe(&mut ear, START);
    let deaf = Notice::Deaf(gone());
    assert_eq!(notices.try_iter().collect::<Vec<_>>(), [deaf.clone(), Notice::Listening, deaf, Notice::Listening]);
}

#[test]
fn a_quiet_connection_is_asked_whether_it_lives_and_a_busy_one_is_not() {
    let (mut ear, _listener, _notices) = ear();
    subscribe(&mut ear, START);
    let mut now = START;
    let mut look = |ear: &mut Ear, pulse| {
        assert_eq!(ear.overdue(now, pulse), Finding::Say(NOTHING), "too early");
        now = ear.due();
        (ear.overdue(now, pulse), now)
    };
    for pulse in 2..9 {
        assert_eq!(look(&mut ear, pulse).0, Finding::Say(NOTHING), "something arrived");
    }
    assert_eq!(look(&mut ear, 8).0, Finding::Say(NOTHING), "once may be chance");
    let (finding, asked) = look(&mut ear, 8);
    assert_eq!(finding, Finding::Say(PING));
    ear.answered(Word::Ping, Value::SimpleString("PONG".into()), asked, 9);
    look(&mut ear, 9);
    let (finding, again) = look(&mut ear, 9);
    assert_eq!(finding, Finding::Say(PING));
    assert!(again.since(asked) >= Duration::from_secs(5));
    // The answer is late, but something else arrived; then nothing does.
    let (finding, at) = look(&mut ear, 10);
    assert_eq!((finding, at.since(again)), (Finding::Say(NOTHING), TIMEOUT));
    assert_eq!(look(&mut ear, 10).0, Finding::HalfOpen);
}

#[test]
fn a_question_without_any_answer_is_a_dead_connection() {
    let (mut ear, _listener, _notices) = ear();
    assert_eq!(ear.begin(START, 7), HELLO);
    assert_eq!(ear.due(), START.after(TIMEOUT));
    assert_eq!(ear.overdue(START.after(TIMEOUT), 7), Finding::HalfOpen);
}

#[test]
fn a_refused_subscription_is_asked_for_again_after_half_a_minute_and_needs_no_connection_meanwhile() {
    let (mut ear, _listener, notices) = ear();
    for _ in 0..2 {
        let now = if ear.due() == Tick::NEVER { START } else { ear.due() };
        ear.overdue(now, 1);
        assert!(ear.wants_home());
        ear.begin(now, 0);
        ear.answered(Word::Hello, Value::Map(vec![]), now, 1);
        for word in SUBSCRIBE {
            ear.answered(*word, refusal(), now, 1);
        }
        assert_eq!(ear.due(), now.after(REFUSED));
        assert!(!ear.wants_home());
        ear.disconnected(&gone());
        assert_eq!(ear.begin(now, 0), NOTHING);
    }
    let told: Vec<_> = notices.try_iter().collect();
    assert!(matches!(&told[..], [Notice::Deaf(failure)] if failure.kind == FailureKind::Denied), "{told:?}");
}

#[test]
fn a_server_that_refuses_the_client_is_not_asked_again_and_again_for_the_listener_alone() {
    for kind in [FailureKind::Denied, FailureKind::Mismatch] {
        let (mut ear, _listener, _notices) = ear();
        ear.unconnected(&Failure::not_applied(kind, "no"), START);
        assert_eq!((ear.wants_home(), ear.due()), (false, START.after(REFUSED)));
        ear.overdue(START.after(REFUSED), 0);
        assert!(ear.wants_home());
    }
}

#[test]
fn without_resp3_it_listens_on_a_second_connection() {
    let (mut ear, _listener, notices) = ear();
    ear.begin(START, 0);
    assert_eq!(ear.answered(Word::Hello, refusal(), START, 1), NOTHING);
    assert!(is_aside(&ear) && !ear.wants_home());
    assert_eq!(notices.try_iter().count(), 0, "that is no reason to be deaf");
}

#[test]
fn a_peer_that_hangs_up_when_asked_to_listen_is_not_asked_again_on_the_home_connection() {
    for answered in [false, true] {
        let (mut ear, _listener, _notices) = ear();
        ear.begin(START, 0);
        if answered {
            ear.answered(Word::Hello, Value::Map(vec![]), START, 1);
        }
        ear.disconnected(&gone());
        assert!(is_aside(&ear) && !ear.wants_home());
    }
}

#[test]
fn how_the_second_connection_ended_says_when_and_where_to_try_next() {
    let broken = |useful| Ending::Broken { failure: gone(), useful };
    let denied = Failure::not_applied(FailureKind::Denied, "no");
    for (ending, longest, aside) in [
        (Ending::Unconnected(gone()), Duration::from_millis(50), true),
        (Ending::Unconnected(denied.clone()), REFUSED, true),
        (Ending::Refused(denied), REFUSED, true),
        (broken(true), Duration::ZERO, false),
    ] {
        let (mut ear, _listener, _notices) = ear();
        ear.go_aside();
        ear.ended(&ending, START);
        let pause = ear.due().since(START);
        assert!(longest / 2 <= pause && pause <= longest, "{ending:?}: {pause:?}");
        ear.overdue(ear.due(), 0);
        assert_eq!((is_aside(&ear), ear.wants_home()), (aside, !aside), "{ending:?}");
    }
    let (mut ear, _listener, _notices) = ear();
    let pauses: Vec<Duration> = (0..4)
        .map(|_| {
            ear.ended(&broken(false), START);
            ear.due().since(START)
        })
        .collect();
    assert!(pauses[1] > Duration::ZERO && pauses[3] > pauses[1], "no storm: {pauses:?}");
}

#[test]
fn nothing_is_told_after_the_end() {
    let (mut ear, listener, notices) = ear();
    subscribe(&mut ear, START);
    let hearing = Arc::clone(&ear.hearing);
    drop(ear);
    let words = ["message", "news", "late"].map(|word| Value::BulkString(word.into()));
    hearing.sent(Value::Array(words.to_vec()));
    drop(listener);
    assert_eq!(notices.iter().collect::<Vec<_>>(), [Notice::Listening]);
}
