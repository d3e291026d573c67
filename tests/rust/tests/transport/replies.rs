//! Wrong replies: too long, doubled, of another operation, or with a password in them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{Act, PATIENCE, Peer, Received, Subject, acquire, extend, release, success, well};
use locktender::op::{Answer, FailureKind, Verdict};

/// The owner value of the name "odd".
const OWNER: &str = "host=odd id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b";

fn kind(answer: Answer) -> (FailureKind, bool) {
    let failure = answer.unwrap_err();
    (failure.kind, failure.maybe_applied)
}

/// Does `odd` with what is for the owner "odd", on the first connection, and answers everything else well.
fn once(odd: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Peer {
    Peer::start(move |received| if received.connection == 0 && received.is_for("odd") { odd(received) } else { well(received) })
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
        assert_eq!(peer.received().last().unwrap().connection, 1, "another connection");
    }
}

#[test]
fn a_push_of_giant_length_ends_the_connection_too() {
    let peer = once(|received| Act::Answer(">3\r\n+message\r\n+news\r\n$2000000000\r\nx".to_owned() + &success(received)));
    let subject = Subject::new(&peer.url, PATIENCE);
    assert_eq!(kind(subject.ask(acquire("a", "odd"))), (FailureKind::Protocol, true));
    subject.ask(acquire("a", "after")).unwrap();
}

#[test]
fn a_reply_that_trickles_is_no_sign_of_life() {
    let peer = Peer::start(|received| match received.connection {
        0 if received.is_for("odd") => Act::Answer("$1000\r\n".to_owned()),
        // The answer to the next operation belongs to the reply that has no end.
        0 if received.is_for("more") => Act::Answer("x".to_owned()),
        _ => well(received),
    });
    let subject = Subject::new(&peer.url, Duration::from_millis(1_000));
    subject.ask(acquire("a", "first")).unwrap();
    let odd = subject.submit(acquire("a", "odd"));
    thread::sleep(Duration::from_millis(500));
    let more = subject.submit(acquire("a", "more"));
    assert!(odd.wait().is_err() && more.wait().is_err());
    subject.ask(acquire("a", "after")).unwrap();
    assert_eq!(peer.received().last().unwrap().connection, 1, "another connection");
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
    let failure = subject.ask(acquire("a", "b")).unwrap_err();
    assert!(!failure.maybe_applied && failure.message.contains("scripts"), "{failure}");
    let words: Vec<_> = peer.received().into_iter().map(|received| received.words[0].clone()).collect();
    assert_eq!(words, ["EVALSHA", "EVAL"]);
}

#[test]
fn a_doubled_answer_grants_nobody_else_s_lock() {
    // The answer of the first acquire comes twice, in one piece with those of the next ones.
    let peer = once(|received| Act::Answer(success(received) + &success(received)));
    let subject = Subject::new(&peer.url, PATIENCE);
    let ops = ["odd", "two", "three"].map(|owner| acquire(owner, owner)).into();
    let mut answers = subject.submit_together(ops).into_iter().map(crate::peer::Pending::wait);
    assert_eq!(answers.next().unwrap().unwrap().verdict, Verdict::Vote);
    for answer in answers {
        assert_eq!(kind(answer), (FailureKind::Protocol, true), "the outcome is unknown, so that it is undone");
    }
    subject.ask(acquire("a", "after")).unwrap();
    assert_eq!(peer.received().last().unwrap().connection, 1, "another connection");
}

#[test]
fn an_answer_that_nobody_asked_for_is_not_that_of_the_next_operation() {
    let peer = once(|received| Act::Answer(success(received) + &success(received)));
    let subject = Subject::new(&peer.url, PATIENCE);
    subject.ask(extend("a", "odd", 1)).unwrap();
    // Whether it is found before the next operation is sent, or only then: its answer is its own.
    for _ in 0..3 {
        match subject.ask(extend("a", "odd", 1)) {
            Ok(_) => (),
            Err(failure) => assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Protocol, true), "{failure}"),
        }
    }
    assert_eq!(peer.received().last().unwrap().connection, 1, "another connection");
}

#[test]
fn an_answer_about_another_owner_is_none() {
    let about = |verdict: &str, holder: &str| {
        let (tag, owner) = (format!("${}\r\n{verdict}", verdict.len()), format!("${}\r\n{holder}", holder.len()));
        format!("*5\r\n{tag}\r\n:1\r\n:1\r\n{owner}\r\n:1000\r\n")
    };
    for (op, verdict, holder) in [
        (acquire("a", "odd"), "vote", "another"),
        (acquire("a", "odd"), "held", OWNER),
        (extend("a", "odd", 1), "ok", "another"),
        (release("a", "odd"), "no", OWNER),
    ] {
        let answer = about(verdict, holder);
        let peer = once(move |_| Act::Answer(answer.clone()));
        let subject = Subject::new(&peer.url, PATIENCE);
        let answer = subject.ask(op.clone());
        if matches!(op.verb(), Some(locktender::op::Verb::Release { .. })) {
            assert!(answer.unwrap().repeated, "a release is asked for again");
        } else {
            assert_eq!(kind(answer), (FailureKind::Protocol, true), "{op:?}");
        }
        assert_eq!(peer.received().len(), 1 + usize::from(verdict == "no"));
    }
    // A lock that is lost is another's, and one that is held is not ours.
    for (op, verdict) in [(extend("a", "odd", 1), "no"), (acquire("a", "odd"), "held"), (release("a", "odd"), "no")] {
        let answer = about(verdict, "another");
        let peer = once(move |_| Act::Answer(answer.clone()));
        Subject::new(&peer.url, PATIENCE).ask(op).unwrap();
    }
}

/// Everything that a client of such a server lets a person see: errors, what a check finds, events, and itself.
fn all_that_is_shown(url: &str) -> String {
    let received = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let log = std::sync::Arc::clone(&received);
    let sink = move |event: &locktender::LockEvent| log.lock().unwrap().push_str(&format!("{event:?}\n"));
    let builder = locktender::Client::builder().url(url).sink(std::sync::Arc::new(sink)).configure(|options| {
        options.unavailable_after = Duration::from_millis(200);
    });
    let client = builder.build().unwrap();
    let mut shown = format!("{client:?}");
    let acquired = client.lock("a").acquire_blocking().unwrap_err();
    let seen = client.lock("a").inspect().blocking().unwrap_err();
    for error in [&acquired, &seen] {
        shown.push_str(&format!("\n{error} {error:?} {:?}", error.servers()));
    }
    shown.push_str(&format!("\n{:?}\n{:?}", client.check_servers().blocking(), client.initialize_quorum().blocking()));
    shown + &received.lock().unwrap()
}

/// A peer that doesn't know `AUTH`, and repeats whatever it is sent as a server does with an unknown command.
fn repeating(before: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://ann:hunter2hunter2@{}/3", listener.local_addr().unwrap());
    let serve = move |mut stream: TcpStream| {
        let mut room = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut room) {
            let words = String::from_utf8_lossy(&room[..count]).replace("\r\n", " ");
            let error = format!("-ERR unknown command 'AUTH', with args beginning with: {words}\r\n");
            let _ = stream.write_all((before.to_owned() + &error.repeat(6)).as_bytes());
        }
    };
    thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    url
}

#[test]
fn a_password_that_a_server_repeats_is_in_nothing_that_is_shown() {
    for before in ["", "+OK\r\n", "+OK\r\n+OK\r\n", "+OK\r\n+OK\r\n+OK\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "hunter2hunter2\r\n"]
    {
        let shown = all_that_is_shown(&repeating(before));
        assert!(!shown.contains("hunter"), "{before:?}: {shown}");
        assert!(shown.contains("127.0.0.1"), "{shown}");
    }
}

#[test]
fn what_others_wrote_stands_on_one_line_of_a_message_and_in_full_in_its_field() {
    let foreign = "\u{1b}[2J\nERROR:root:all is lost\r\n".to_owned() + &"x".repeat(5_000);
    let server = locktender_tests::RealServer::start();
    server.command(&["SET", "a", &foreign]);
    let client = locktender::Client::open(server.url()).unwrap();
    let error = client.lock("a").wait(Duration::from_millis(10)).acquire_blocking().unwrap_err();
    assert_eq!(error.holder().unwrap().owner, foreign[..1_024]);
    let peer = Peer::start(|_| Act::Answer(format!("-ERR \u{1b}[2J {}\r\n", "x".repeat(5_000))));
    let builder = locktender::Client::builder().url(&*peer.url).configure(|options| {
        options.unavailable_after = Duration::from_millis(200);
    });
    let failed = builder.build().unwrap().lock("a").acquire_blocking().unwrap_err();
    for text in [error.to_string(), format!("{error:?}"), failed.to_string(), failed.servers()[0].message.clone()] {
        assert!(!text.contains(char::is_control) && text.contains("\\u{1b}[2J"), "{text:?}");
        assert!(text.chars().count() < 450, "{text}");
    }
}
