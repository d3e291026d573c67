//! Replies that no server of locks gives: too long, doubled, of another's, or with a password in them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

mod peer;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use locktender::server::{Answer, FailureKind, Verdict};
use peer::{Act, Heard, PATIENCE, Peer, Subject, acquire, extend, release, success, well};

fn kind(answer: Answer) -> (FailureKind, bool) {
    let failure = answer.unwrap_err();
    (failure.kind, failure.maybe_applied)
}

/// Does `odd` with what is for the owner "odd", on the first connection, and answers everything else well.
fn once(odd: impl Fn(&Heard) -> Act + Send + Sync + 'static) -> Peer {
    Peer::start(move |heard| if heard.connection == 0 && heard.is_for("odd") { odd(heard) } else { well(heard) })
}

#[test]
fn a_reply_of_giant_length_ends_the_connection_at_once_and_the_next_one_serves() {
    let deep = "*1\r\n".repeat(50);
    for giant in ["$2000000000\r\nxxx", "*2000000000\r\n:1\r\n", "=2000000000\r\ntxt:", "%100000000\r\n+a\r\n", &deep] {
        let giant = giant.to_owned();
        let peer = once(move |_| Act::Answer(giant.clone()));
        let subject = Subject::new(&peer.url, PATIENCE);
        subject.ask(acquire("a", "first")).unwrap();
        assert_eq!(kind(subject.ask(acquire("a", "odd"))), (FailureKind::Protocol, true));
        subject.ask(acquire("a", "after")).unwrap();
        assert_eq!(peer.heard().last().unwrap().connection, 1, "another connection");
    }
}

#[test]
fn a_push_of_giant_length_ends_the_connection_too() {
    let peer = once(|heard| Act::Answer(">3\r\n+message\r\n+news\r\n$2000000000\r\nx".to_owned() + &success(heard)));
    let subject = Subject::new(&peer.url, PATIENCE);
    assert_eq!(kind(subject.ask(acquire("a", "odd"))), (FailureKind::Protocol, true));
    subject.ask(acquire("a", "after")).unwrap();
}

#[test]
fn a_reply_that_trickles_is_no_sign_of_life() {
    let peer = Peer::start(|heard| match heard.connection {
        0 if heard.is_for("odd") => Act::Answer("$1000\r\n".to_owned()),
        // What the next operation makes it say belongs to the reply that has no end.
        0 if heard.is_for("more") => Act::Answer("x".to_owned()),
        _ => well(heard),
    });
    let subject = Subject::new(&peer.url, Duration::from_millis(1_000));
    subject.ask(acquire("a", "first")).unwrap();
    let odd = subject.submit(acquire("a", "odd"));
    thread::sleep(Duration::from_millis(500));
    let more = subject.submit(acquire("a", "more"));
    assert!(odd.wait().is_err() && more.wait().is_err());
    subject.ask(acquire("a", "after")).unwrap();
    assert_eq!(peer.heard().last().unwrap().connection, 1, "another connection");
}

/// A listener that sends these bytes over and over, from the first word of a connection on; and how many it got rid of.
fn endless(bytes: &'static [u8]) -> (String, &'static AtomicUsize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://:hunter2@{}", listener.local_addr().unwrap());
    let sent: &AtomicUsize = Box::leak(Box::default());
    let serve = |mut stream: TcpStream| {
        let _ = stream.read(&mut [0; 4096]);
        while let Ok(count) = stream.write(bytes) {
            sent.fetch_add(count, Ordering::SeqCst);
        }
    };
    thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    (url, sent)
}

#[test]
fn an_endless_reply_takes_no_memory_before_the_password_was_asked_for() {
    static LINE: [u8; 65_536] = [b'+'; 65_536];
    static NUMBERS: [u8; 65_536] = [b'1'; 65_536];
    static LISTS: &[u8] = b"*1000\r\n*1000\r\n*1000\r\n*1000\r\n:1\r\n";
    for bytes in [&LINE[..], &NUMBERS[..], LISTS] {
        let (url, sent) = endless(bytes);
        let begun = Instant::now();
        let failure = Subject::new(&url, PATIENCE).ask(acquire("a", "b")).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Protocol, false), "{failure}");
        assert!(begun.elapsed() < Duration::from_millis(2_300), "{:?}", begun.elapsed());
        // What the sockets between them hold is not the client's.
        assert!(sent.load(Ordering::SeqCst) < 32 << 20, "{} MB were taken", sent.load(Ordering::SeqCst) >> 20);
    }
}

#[test]
fn scripts_that_a_server_forgets_at_once_are_not_sent_again_and_again() {
    let peer = Peer::start(|_| Act::Answer("-NOSCRIPT No matching script. Please use EVAL.\r\n".into()));
    let subject = Subject::new(&peer.url, PATIENCE);
    let failure = subject.ask(release("a", "b")).unwrap_err();
    assert!(!failure.maybe_applied && failure.message.contains("scripts"), "{failure}");
    let words: Vec<_> = peer.heard().into_iter().map(|heard| heard.words[0].clone()).collect();
    assert_eq!(words, ["EVALSHA", "EVAL"]);
}

#[test]
fn a_doubled_answer_grants_nobody_else_s_lock() {
    // The answer of the first acquire comes twice, in one piece with those of the next ones.
    let peer = once(|heard| Act::Answer(success(heard) + &success(heard)));
    let subject = Subject::new(&peer.url, PATIENCE);
    let ops = ["odd", "two", "three"].map(|owner| acquire(owner, owner)).into();
    let mut answers = subject.submit_together(ops).into_iter().map(peer::Pending::wait);
    let first = answers.next().unwrap().unwrap();
    assert_eq!((first.verdict, first.holder.as_deref()), (Verdict::Vote, Some("odd")));
    for answer in answers {
        assert_eq!(kind(answer), (FailureKind::Protocol, true), "the outcome is unknown, so that it is undone");
    }
    subject.ask(acquire("a", "after")).unwrap();
    assert_eq!(peer.heard().last().unwrap().connection, 1, "another connection");
}

#[test]
fn an_answer_that_nobody_asked_for_is_not_that_of_the_next_operation() {
    let peer = once(|heard| Act::Answer(success(heard) + &success(heard)));
    let subject = Subject::new(&peer.url, PATIENCE);
    subject.ask(extend("a", "odd", 1)).unwrap();
    // Whether it is found before the next operation is sent, or only then: its answer is its own.
    for _ in 0..3 {
        match subject.ask(extend("a", "odd", 1)) {
            Ok(_) => (),
            Err(failure) => assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Protocol, true), "{failure}"),
        }
    }
    assert_eq!(peer.heard().last().unwrap().connection, 1, "another connection");
}

#[test]
fn an_answer_about_another_owner_is_none() {
    let about = |verdict: &str, holder: &str| {
        let (tag, owner) = (format!("${}\r\n{verdict}", verdict.len()), format!("${}\r\n{holder}", holder.len()));
        format!("*5\r\n{tag}\r\n:1\r\n:1\r\n{owner}\r\n:1000\r\n")
    };
    for (op, verdict, holder) in [
        (acquire("a", "odd"), "vote", "another"),
        (acquire("a", "odd"), "held", "odd"),
        (extend("a", "odd", 1), "ok", "another"),
        (release("a", "odd"), "no", "odd"),
    ] {
        let answer = about(verdict, holder);
        let peer = once(move |_| Act::Answer(answer.clone()));
        let subject = Subject::new(&peer.url, PATIENCE);
        let answer = subject.ask(op.clone());
        if matches!(op, locktender::server::Op::Release { .. }) {
            assert!(answer.unwrap().repeated, "a release is asked for again");
        } else {
            assert_eq!(kind(answer), (FailureKind::Protocol, true), "{op:?}");
        }
        assert_eq!(peer.heard().len(), 1 + usize::from(verdict == "no"));
    }
    // A lock that is lost is another's, and one that is held is not ours.
    for (op, verdict) in [(extend("a", "odd", 1), "no"), (acquire("a", "odd"), "held"), (release("a", "odd"), "no")] {
        let answer = about(verdict, "another");
        let peer = once(move |_| Act::Answer(answer.clone()));
        Subject::new(&peer.url, PATIENCE).ask(op).unwrap();
    }
}
