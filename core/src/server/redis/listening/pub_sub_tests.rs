//! Conversations about channels: what is sent, and what is made of the answers.

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

fn receives(pub_sub: &mut PubSub, bytes: &str) -> Result<Vec<ChannelEvent>, Failure> {
    pub_sub.buffers.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
    pub_sub.read(bytes.len(), at(1))
}

fn list(words: &[&str]) -> String {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<String>();
    format!("*{}\r\n{words}", words.matches('$').count())
}

#[test]
fn each_channel_is_subscribed_received_and_left() {
    let mut pub_sub = new();
    pub_sub.subscribe(sharded("a"), at(1));
    pub_sub.subscribe(Channel { name: "b".into(), kind: Kind::Plain }, at(1));
    assert_eq!(wrote(&mut pub_sub), "SSUBSCRIBE a SUBSCRIBE b");
    let events =
        receives(&mut pub_sub, &(list(&["ssubscribe", "a"]) + &list(&["smessage", "a", "free"]) + &list(&["subscribe", "b"])));
    assert_eq!(
        events.unwrap(),
        [
            ChannelEvent::Subscribed("a".into()),
            ChannelEvent::Message("a".into(), "free".into()),
            ChannelEvent::Subscribed("b".into())
        ]
    );
    pub_sub.unsubscribe(&sharded("a"), at(1));
    assert_eq!(wrote(&mut pub_sub), "SUNSUBSCRIBE a");
    assert_eq!(receives(&mut pub_sub, &list(&["sunsubscribe", "a"])).unwrap(), []);
    assert_eq!(
        receives(&mut pub_sub, &list(&["sunsubscribe", "b"])).unwrap(),
        [ChannelEvent::Ended("b".into())],
        "nobody asked for that"
    );
}

#[test]
fn a_refused_channel_is_named_and_an_older_server_is_asked_for_a_plain_one() {
    let mut pub_sub = new();
    pub_sub.subscribe(sharded("a"), at(1));
    pub_sub.subscribe(sharded("b"), at(1));
    let events = receives(&mut pub_sub, "-MOVED 7 h:1\r\n-ERR unknown command `SSUBSCRIBE`, with args\r\n").unwrap();
    assert!(
        matches!(&events[..], [ChannelEvent::Refused(name, failure)] if &**name == "a" && failure.redirect.is_some()),
        "{events:?}"
    );
    assert_eq!(wrote(&mut pub_sub), "SSUBSCRIBE a SSUBSCRIBE b SUBSCRIBE b");
    assert_eq!(receives(&mut pub_sub, &list(&["subscribe", "b"])).unwrap(), [ChannelEvent::Subscribed("b".into())]);
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
        assert_eq!(receives(&mut pub_sub, plain).unwrap(), [], "the other answer is still to come");
        let events = receives(&mut pub_sub, sharded).unwrap();
        assert_eq!(matches!(&events[..], [ChannelEvent::Refused(..)]), is_refused, "{events:?}");
        assert_eq!(matches!(&events[..], [ChannelEvent::Subscribed(_)]), !is_refused, "{events:?}");
        pub_sub.unsubscribe(&Channel { name: "a".into(), kind: Kind::Both }, at(1));
        let left = if sharded == unknown { "UNSUBSCRIBE a" } else { "UNSUBSCRIBE a SUNSUBSCRIBE a" };
        assert_eq!(wrote(&mut pub_sub), left);
    }
}

#[test]
fn both_kinds_are_left_by_two_answers_in_whatever_way_the_node_gives_them() {
    let both = Channel { name: "a".into(), kind: Kind::Both };
    let (plain, own_end) = (list(&["unsubscribe", "a"]), list(&["sunsubscribe", "a"]));
    let moved = format!("-MOVED {} h:1\r\n", slot_of("a"));
    for answers in
        [plain.clone() + &own_end, plain.clone() + &moved, own_end.clone() + &plain + &own_end, own_end.clone() + &plain + &moved]
    {
        let mut pub_sub = new();
        pub_sub.unsubscribe(&both, at(1));
        pub_sub.subscribe(sharded("b"), at(1));
        assert_eq!(receives(&mut pub_sub, &answers).unwrap(), [], "{answers}");
        assert_eq!(
            receives(&mut pub_sub, &list(&["ssubscribe", "b"])).unwrap(),
            [ChannelEvent::Subscribed("b".into())],
            "{answers}"
        );
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
        assert_eq!(receives(&mut pub_sub, &(own_end.clone() + &answer)).unwrap(), [], "{answer}");
        assert_eq!(receives(&mut pub_sub, &list(&["ssubscribe", "b"])).unwrap(), [ChannelEvent::Subscribed("b".into())]);
        // That was the answer: the next end is another one.
        assert_eq!(receives(&mut pub_sub, &own_end).unwrap(), [ChannelEvent::Ended("a".into())]);
    }
    // Two at once.
    let mut pub_sub = new();
    pub_sub.unsubscribe(&sharded("a"), at(1));
    pub_sub.unsubscribe(&sharded("b"), at(1));
    let both = own_end.clone() + &list(&["sunsubscribe", "b"]) + &moved("a") + &moved("b");
    assert_eq!(receives(&mut pub_sub, &both).unwrap(), []);
    // The next question is about the same slot: either answer is its own, and so is the other.
    let mut pub_sub = new();
    pub_sub.unsubscribe(&sharded("a"), at(1));
    pub_sub.subscribe(sharded("{a}b"), at(1));
    let events = receives(&mut pub_sub, &(own_end + &moved("a") + &moved("a"))).unwrap();
    assert!(matches!(&events[..], [ChannelEvent::Refused(name, _)] if &**name == "{a}b"), "{events:?}");
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_conversation() {
    for bytes in ["-ERR no\r\n".to_owned(), list(&["ssubscribe", "x"]), ":1\r\n".to_owned(), list(&["what", "x"])] {
        assert!(receives(&mut new(), &bytes).is_err(), "{bytes}");
    }
}

#[test]
fn a_quiet_socket_is_asked_and_a_silent_one_is_dead() {
    let mut pub_sub = new();
    pub_sub.subscribe(sharded("a"), at(1));
    receives(&mut pub_sub, &list(&["ssubscribe", "a"])).unwrap();
    wrote(&mut pub_sub);
    for _ in 0..2 {
        let due = pub_sub.wake_at();
        assert!(!pub_sub.wake(due));
    }
    assert_eq!(wrote(&mut pub_sub), "PING");
    let due = pub_sub.wake_at();
    assert!(pub_sub.wake(due), "no answer at all");
}
