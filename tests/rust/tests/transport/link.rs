//! Requests on a bad link: which are sent, in which order and how often, and what an answer means.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::peer::{Act, PATIENCE, Peer, Subject, acquire, extend, release, success, well};
use locktender::internals::clock::Tick;
use locktender::internals::redis::ServerState;
use locktender::op::{FailureKind, Verdict};
use locktender::server::Server;
use locktender_tests::eventually;

/// Short where a test waits for it, long enough for what has to be answered within it.
const SHORT: Duration = Duration::from_millis(1_000);

fn kind(answer: locktender::op::Answer) -> (FailureKind, bool) {
    let failure = answer.unwrap_err();
    (failure.kind, failure.maybe_applied)
}

#[test]
fn operations_arrive_in_the_order_in_which_they_were_submitted() {
    let peer = Peer::start(well);
    let subject = Subject::new(&peer.url, PATIENCE);
    let owners: Vec<String> = (0..500).map(|number| format!("owner-{number}")).collect();
    let op = |at: usize| match at % 3 {
        0 => release("a", &owners[at]),
        1 => acquire("a", &owners[at]),
        _ => extend("a", &owners[at], 1),
    };
    let pending: Vec<_> = (0..owners.len()).map(|at| subject.submit(op(at))).collect();
    for pending in pending {
        pending.wait().unwrap();
    }
    let received = peer.received();
    assert_eq!(received.len(), owners.len());
    for (received, owner) in received.iter().zip(&owners) {
        assert!(received.is_for(owner), "{owner} is not in {received:?}");
    }
}

#[test]
fn answers_that_come_byte_by_byte_are_those_of_their_operations() {
    let owner = |number: usize| format!("{number}:{}", "x\r\n".repeat(number));
    let peer = Peer::start(|received| {
        let number = received.words[8].split_once(':').unwrap().0.strip_prefix("host=").unwrap().parse::<usize>().unwrap();
        let answer = success(received).replace(":1\r\n:1\r\n", &format!(":1\r\n:{number}\r\n"));
        Act::Drip(answer)
    });
    let subject = Subject::new(&peer.url, PATIENCE);
    let pending: Vec<_> = (0..60).map(|number| subject.submit(release("a", &owner(number)))).collect();
    for (number, pending) in pending.into_iter().enumerate() {
        let reply = pending.wait().unwrap();
        assert_eq!((reply.fence, reply.verdict), (number as u64, Verdict::Ok));
    }
}

#[test]
fn what_a_server_does_not_read_waits_and_is_answered_in_order_when_it_does() {
    let server = locktender_tests::RealServer::start();
    let subject = Subject::new(&server.url(), PATIENCE);
    subject.ask(release("a", "first")).unwrap();
    server.pause();
    // More than the sockets between them hold.
    let owner = |number: usize| format!("{number:01000}");
    let pending: Vec<_> = (0..20_000).map(|number| subject.submit(acquire(&number.to_string(), &owner(number)))).collect();
    server.resume();
    for pending in pending {
        assert_eq!(pending.wait().unwrap().verdict, Verdict::Vote);
    }
}

#[test]
fn renewals_that_are_due_together_leave_in_one_write() {
    let peer = Peer::start(well);
    let subject = Subject::new(&peer.url, PATIENCE);
    subject.ask(acquire("a", "first")).unwrap();
    let renewals = (0..50).map(|number| extend("a", &format!("app=a host=b pid=1 id={number:0100}"), 1)).collect();
    for pending in subject.submit_together(renewals) {
        pending.wait().unwrap();
    }
    let reads: Vec<usize> = peer.received().iter().skip(1).map(|received| received.read).collect();
    assert_eq!(reads, vec![reads[0]; 50]);
}

#[test]
fn an_operation_past_its_deadline_is_never_sent() {
    let peer = Peer::start(well);
    let subject = Subject::new(&peer.url, PATIENCE);
    let late = subject.submit_until(acquire("a", "late"), Tick::now());
    assert_eq!(kind(late.wait()), (FailureKind::TooLate, false));
    subject.ask(acquire("a", "timely")).unwrap();
    let late = subject.submit_until(release("a", "late"), Tick::now());
    assert_eq!(kind(late.wait()), (FailureKind::TooLate, false));
    assert_eq!(peer.received().len(), 1);
}

#[test]
fn an_operation_whose_deadline_passes_while_connecting_is_never_sent() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = locktender::ClientOptions::default();
    options.connect_timeout = PATIENCE;
    let subject = Subject::with(&format!("redis://{}", silent.local_addr().unwrap()), &options, PATIENCE, None);
    let begun = Instant::now();
    let late = subject.submit_until(acquire("a", "late"), Tick::now().after(SHORT));
    assert_eq!(kind(late.wait()), (FailureKind::Timeout, false));
    assert!(begun.elapsed() < SHORT + Duration::from_millis(850), "it waited for more than its deadline");
}

#[test]
fn a_cut_after_apply_resends_releases_ahead_of_newer_operations_and_nothing_else() {
    let peer = Peer::start(|received| match received.connection {
        0 if received.is_for("cut") => Act::Cut,
        0 => Act::Silence,
        _ => well(received),
    });
    let subject = Subject::new(&peer.url, PATIENCE);
    let ops = vec![release("a", "one"), acquire("a", "two"), release("a", "three"), extend("a", "cut", 1)];
    let mut pending = subject.submit_together(ops).into_iter();
    let mut next = || pending.next().unwrap().wait();
    assert!(next().is_ok(), "a release is idempotent");
    assert_eq!(kind(next()), (FailureKind::Disconnected, true));
    assert!(next().is_ok());
    assert_eq!(kind(next()), (FailureKind::Disconnected, true));
    subject.ask(acquire("a", "four")).unwrap();
    let again: Vec<_> = peer.received().into_iter().filter(|received| received.connection == 1).collect();
    assert_eq!(again.len(), 3);
    for (received, owner) in again.iter().zip(["one", "three", "four"]) {
        assert!(received.is_for(owner), "{owner} is not in {received:?}");
    }
}

#[test]
fn a_half_open_connection_is_replaced() {
    let peer = Peer::start(|received| match received.connection {
        0 if !received.is_for("well") => Act::Silence,
        _ => well(received),
    });
    let subject = Subject::new(&peer.url, SHORT);
    subject.ask(acquire("a", "well")).unwrap();
    assert_eq!(kind(subject.ask(acquire("a", "lost"))), (FailureKind::Timeout, true));
    subject.ask(acquire("a", "after")).unwrap();
    assert!(peer.received().iter().any(|received| received.is_for("after") && received.connection == 1));
    let states: Vec<_> = subject.states.try_iter().collect();
    assert!(matches!(&states[..], [ServerState::Failed(_), ServerState::Recovered]), "{states:?}");
}

#[test]
fn a_slow_answer_is_cancelled_but_does_not_end_the_connection() {
    // The answer of "slow" is withheld until "next" arrives; in between, that of "swift" shows that the link lives.
    let held_back = std::sync::Mutex::new(String::new());
    let peer = Peer::start(move |received| {
        if received.is_for("swift") {
            *held_back.lock().unwrap() = success(received);
            return Act::Silence;
        }
        if received.is_for("slow") {
            return Act::Answer(std::mem::take(&mut *held_back.lock().unwrap()));
        }
        Act::Answer(success(received) + &success(received))
    });
    let subject = Subject::new(&peer.url, SHORT * 2);
    let swift = subject.submit(acquire("a", "swift"));
    let slow = subject.submit(acquire("a", "slow"));
    swift.wait().unwrap();
    assert_eq!(kind(slow.wait()), (FailureKind::Timeout, true));
    subject.ask(acquire("a", "next")).unwrap();
    assert!(peer.received().iter().all(|received| received.connection == 0));
}

#[test]
fn a_script_the_server_does_not_know_is_sent_once_more_as_text() {
    let peer = Peer::start(|received| match &*received.words[0] {
        "EVALSHA" => Act::Answer("-NOSCRIPT No matching script.\r\n".into()),
        _ => well(received),
    });
    let subject = Subject::new(&peer.url, PATIENCE);
    subject.ask(acquire("a", "b")).unwrap();
    let words: Vec<_> = peer.received().into_iter().map(|received| received.words[0].clone()).collect();
    assert_eq!(words, ["EVALSHA", "EVAL"]);
}

#[test]
fn a_server_that_hangs_up_on_every_operation_is_not_stormed() {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let peer = Peer::start(|received| {
        CONNECTIONS.fetch_max(received.connection, Ordering::SeqCst);
        Act::Cut
    });
    let subject = Subject::new(&peer.url, PATIENCE);
    let begun = Instant::now();
    // Only releases are tried again and again.
    let _unanswered = subject.submit(release("a", "b"));
    eventually("it continues to try", PATIENCE, || CONNECTIONS.load(Ordering::SeqCst) + 1 >= 8);
    // The second at once, the others after pauses that double up to half a second, each at least by half.
    assert!(begun.elapsed() >= Duration::from_millis(25 + 50 + 100 + 200 + 250 + 250), "{:?}", begun.elapsed());
}

#[test]
fn close_lets_releases_leave_and_ends_everything_else() {
    let peer = Peer::start(|received| if received.is_for("busy") { Act::Silence } else { well(received) });
    let subject = Subject::new(&peer.url, SHORT);
    subject.ask(acquire("a", "first")).unwrap();
    let left = subject.submit(release("a", "first"));
    let stuck = subject.submit(acquire("a", "busy"));
    let never = subject.submit(release("a", "busy"));
    subject.server.close();
    assert!(left.wait().is_ok());
    assert_eq!(kind(stuck.wait()), (FailureKind::Closed, true));
    let begun = Instant::now();
    assert!(never.wait().unwrap_err().maybe_applied);
    assert!(begun.elapsed() < SHORT + Duration::from_millis(850));
    assert_eq!(kind(subject.ask(acquire("a", "later"))), (FailureKind::Closed, false));
}

#[test]
fn a_dropped_server_ends_as_a_closed_one() {
    let peer = Peer::start(|_| Act::Silence);
    let subject = Subject::new(&peer.url, PATIENCE);
    let stuck = subject.submit(acquire("a", "b"));
    drop(subject.server);
    assert_eq!(kind(stuck.wait()).0, FailureKind::Closed);
}

#[test]
fn completions_are_called_also_when_the_runtime_is_gone() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = locktender::ClientOptions::default();
    let handle = runtime.handle().clone();
    let server =
        locktender::internals::redis::RedisServer::new("redis://localhost:1", &options, SHORT, None, handle, |_| ()).unwrap();
    let ask = || {
        let (answer, answers) = std::sync::mpsc::channel();
        let completion = locktender::server::Completion::new(move |received| drop(answer.send(received)));
        server.submit(locktender::server::Request::new(release("a", "b"), Tick::NEVER), completion);
        answers
    };
    let queued = ask();
    drop(runtime);
    assert_eq!(kind(queued.recv_timeout(PATIENCE).unwrap()).0, FailureKind::Disconnected);
    assert_eq!(kind(ask().recv_timeout(PATIENCE).unwrap()), (FailureKind::Closed, false));
}

#[test]
fn a_primary_that_became_a_replica_is_left_for_its_successor() {
    let peer = Peer::start(|received| match received.connection {
        0 if received.is_for("well") => well(received),
        0 => Act::Answer("-READONLY You can't write against a read only replica.\r\n".into()),
        _ => well(received),
    });
    let subject = Subject::new(&peer.url, PATIENCE);
    subject.ask(acquire("a", "well")).unwrap();
    assert_eq!(kind(subject.ask(acquire("a", "b"))).0, FailureKind::ReadOnly);
    subject.ask(release("a", "b")).unwrap();
    let states: Vec<_> = subject.states.try_iter().collect();
    assert!(matches!(&states[..], [ServerState::Failed(_), ServerState::Recovered]), "{states:?}");
}
