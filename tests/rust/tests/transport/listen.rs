//! Subscriptions: which messages arrive, on how many connections, and which events follow a refusal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails where it can't go on")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::peer::{Act, PATIENCE, Peer, Subject, acquire, release, success, well};
use locktender::op::{FailureKind, Verdict};
use locktender::server::{Listener, Notice, Server};
use locktender_tests::{Binary, LENIENT, Proxy, RealServer, Reply, ServerOptions, eventually};

/// A test's response timeout: on a busy machine an answer may take its time.
const TIMEOUT: Duration = LENIENT;

/// A dead connection shows after two or three looks and the response timeout.
const SILENCE: Duration = Duration::from_secs(60);

/// A listener and what it received.
struct Received {
    _listener: Listener,
    notices: Receiver<Notice>,
}

impl Received {
    fn on(subject: &Subject) -> Self {
        let (received, notices) = channel();
        let listener: Listener = Arc::new(move |notice| drop(received.send(notice)));
        assert!(subject.server.listen("news", Arc::clone(&listener)));
        Self { _listener: listener, notices }
    }

    fn next(&self) -> Notice {
        self.within(PATIENCE)
    }

    fn within(&self, patience: Duration) -> Notice {
        self.notices.recv_timeout(patience).expect("a notice comes")
    }

    fn listens(&self) {
        assert_eq!(self.next(), Notice::Listening);
    }

    fn not_listening(&self) -> FailureKind {
        match self.within(SILENCE) {
            Notice::NotListening(failure) => failure.kind,
            other => panic!("{other:?}"),
        }
    }

    fn receives(&self, text: &str) {
        assert_eq!(self.next(), Notice::Message(text.into()));
    }
}

/// The ids of the connections that locktender made.
fn connections(server: &RealServer) -> Vec<String> {
    let list = server.command(&["CLIENT", "LIST"]).text().unwrap();
    let ours = list.lines().filter(|line| line.contains("name=locktender"));
    ours.map(|line| line.split_once(' ').unwrap().0.strip_prefix("id=").unwrap().to_owned()).collect()
}

fn is_sharded(binary: &Binary) -> bool {
    binary.version.split('.').next().unwrap().parse::<u32>().unwrap() >= 7
}

/// Publishes in every way the server has.
fn published(server: &RealServer, received: &Received) {
    server.command(&["PUBLISH", "else", "not for us"]);
    assert_eq!(server.command(&["PUBLISH", "news", "plain"]), Reply::Int(1));
    received.receives("plain");
    if is_sharded(server.binary()) {
        assert_eq!(server.command(&["SPUBLISH", "news", "sharded"]), Reply::Int(1));
        received.receives("sharded");
    }
    let long = "é".repeat(50_000);
    server.command(&["PUBLISH", "news", &long]);
    received.receives(&long);
}

/// Takes and gives back a lock.
fn locks(subject: &Subject) {
    assert_eq!(subject.ask(acquire("a", "owner")).unwrap().verdict, Verdict::Vote);
    assert_eq!(subject.ask(release("a", "owner")).unwrap().verdict, Verdict::Ok);
}

#[test]
fn messages_arrive_on_a_connection_of_their_own_which_is_replaced_although_nothing_is_sent() {
    for binary in Binary::all() {
        let server = ServerOptions::new().binary(&binary).password("s3cret").start();
        let subject = Subject::new(&format!("{}/2", server.url()), TIMEOUT);
        locks(&subject);
        let home = connections(&server);
        let received = Received::on(&subject);
        received.listens();
        published(&server, &received);
        let both = connections(&server);
        assert_eq!((both.len(), &both[0]), (2, &home[0]), "{}", binary.name);
        server.command(&["CLIENT", "KILL", "ID", &both[1]]);
        assert_eq!(received.not_listening(), FailureKind::Disconnected);
        received.listens();
        published(&server, &received);
        locks(&subject);
        let after = connections(&server);
        assert_eq!((after.len(), &after[0]), (2, &home[0]), "{}", binary.name);
    }
}

#[test]
fn a_client_that_never_waits_never_subscribes() {
    let server = RealServer::start();
    let subject = Subject::new(&server.url(), TIMEOUT);
    locks(&subject);
    let stats = server.command(&["INFO", "commandstats"]).text().unwrap();
    for command in ["subscribe", "ssubscribe"] {
        assert!(!stats.contains(&format!("cmdstat_{command}:")), "{stats}");
    }
    assert_eq!(connections(&server).len(), 1);
}

#[test]
fn a_server_that_restarts_is_listened_to_again() {
    let mut server = RealServer::start();
    let subject = Subject::new(&server.url(), TIMEOUT);
    let received = Received::on(&subject);
    received.listens();
    server.kill();
    received.not_listening();
    server.restart();
    received.listens();
    published(&server, &received);
}

#[test]
fn a_server_that_starts_later_is_found() {
    let mut server = RealServer::start();
    server.kill();
    let subject = Subject::new(&server.url(), TIMEOUT);
    let received = Received::on(&subject);
    assert_eq!(received.not_listening(), FailureKind::Refused);
    server.restart();
    received.listens();
}

#[test]
fn a_link_that_was_cut_is_replaced() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let subject = Subject::new(&proxy.url(), TIMEOUT);
    let received = Received::on(&subject);
    received.listens();
    for _ in 0..3 {
        proxy.cut();
        received.not_listening();
        received.listens();
    }
    published(&server, &received);
}

#[test]
fn a_half_open_connection_is_noticed_and_replaced() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let subject = Subject::new(&proxy.url(), TIMEOUT);
    let received = Received::on(&subject);
    received.listens();
    proxy.black_hole();
    received.not_listening();
    proxy.cut();
    proxy.restore();
    received.listens();
    published(&server, &received);
}

#[test]
fn a_quiet_connection_that_lives_stays() {
    let server = RealServer::start();
    let subject = Subject::new(&server.url(), TIMEOUT);
    let received = Received::on(&subject);
    received.listens();
    let before = connections(&server);
    let pings = || {
        let stats = server.command(&["INFO", "commandstats"]).text().unwrap();
        let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_ping:calls=")?.split_once(',')?.0.parse().ok());
        calls.is_some_and(|calls: u32| calls >= 3)
    };
    // The fixture's own are among them.
    server.command(&["CONFIG", "RESETSTAT"]);
    eventually("it asks now and then", SILENCE, pings);
    assert_eq!(connections(&server), before);
    assert_eq!(received.notices.try_iter().count(), 0);
}

#[test]
fn without_rights_on_the_channel_locks_work_and_the_listener_is_notified() {
    for rules in ["~* resetchannels +@all", "~* &* +@all -subscribe -ssubscribe"] {
        for binary in Binary::all() {
            if !is_sharded(&binary) && rules.contains("ssubscribe") {
                continue;
            }
            let server = ServerOptions::new().binary(&binary).user("ann", "s3cret", rules).start();
            let subject = Subject::new(&format!("redis://ann:s3cret@127.0.0.1:{}", server.port()), TIMEOUT);
            locks(&subject);
            let received = Received::on(&subject);
            assert_eq!(received.not_listening(), FailureKind::Denied, "{} {rules}", binary.name);
            let before = connections(&server);
            locks(&subject);
            assert_eq!(connections(&server), before, "it is asked again there, and not at once");
            assert_eq!(received.notices.try_iter().count(), 0);
        }
    }
}

#[test]
fn a_right_for_plain_channels_alone_still_receives_what_is_published_there() {
    let server = ServerOptions::new().user("ann", "s3cret", "~* &* +@all -ssubscribe").start();
    let subject = Subject::new(&format!("redis://ann:s3cret@127.0.0.1:{}", server.port()), TIMEOUT);
    let received = Received::on(&subject);
    // This server's scripts publish to sharded channels.
    assert_eq!(received.not_listening(), FailureKind::Denied);
    assert_eq!(server.command(&["PUBLISH", "news", "plain"]), Reply::Int(1));
    received.receives("plain");
}

#[test]
fn a_peer_without_pub_sub_leaves_the_listener_without_messages() {
    let server = ServerOptions::new().config("rename-command SUBSCRIBE \"\"").config("rename-command SSUBSCRIBE \"\"").start();
    let subject = Subject::new(&server.url(), TIMEOUT);
    let received = Received::on(&subject);
    received.not_listening();
    locks(&subject);
}

#[test]
fn a_peer_that_hangs_up_when_asked_to_listen_is_asked_twice_and_disturbs_no_operation() {
    let peer = Peer::start(|received| if received.words[0] == "SUBSCRIBE" { Act::Cut } else { well(received) });
    let subject = Subject::new(&peer.url, TIMEOUT);
    subject.ask(acquire("a", "owner")).unwrap();
    let received = Received::on(&subject);
    received.not_listening();
    let asked = || peer.received().iter().filter(|received| received.words[0] == "SUBSCRIBE").count();
    eventually("it is asked once more", PATIENCE, || asked() == 2);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        subject.ask(acquire("a", "owner")).unwrap();
    }
    let all = peer.received();
    assert_eq!(asked(), 2, "it continues to ask");
    assert_eq!(
        all.iter().map(|received| received.connection).max(),
        all.iter().map(|received| received.connection).min().map(|first| first + 2)
    );
}

#[test]
fn a_notice_in_the_place_of_an_answer_ends_the_connection_before_answers_are_mixed_up() {
    let notice = ">3\r\n$12\r\nsunsubscribe\r\n$4\r\nnews\r\n:1\r\n";
    let peer = Peer::start(move |received| match received {
        received if received.is_for("moved") => Act::Answer(notice.to_owned() + &success(received)),
        received => well(received),
    });
    let subject = Subject::new(&peer.url, TIMEOUT);
    let together = ["before", "moved", "after"].map(|owner| acquire("a", owner));
    let answers: Vec<_> = subject.submit_together(together.into()).into_iter().map(|pending| pending.wait()).collect();
    assert!(answers[0].is_ok());
    for answer in &answers[1..] {
        let failure = answer.clone().unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Protocol, true));
    }
    subject.ask(acquire("a", "later")).unwrap();
}

#[test]
fn a_closed_server_lets_go_and_reports_nothing_more() {
    for dropped in [false, true] {
        let server = RealServer::start();
        let subject = Subject::new(&server.url(), TIMEOUT);
        let received = Received::on(&subject);
        received.listens();
        if dropped {
            drop(subject.server);
        } else {
            subject.server.close();
        }
        eventually("its connections are closed", PATIENCE, || connections(&server).is_empty());
        assert_eq!(server.command(&["PUBLISH", "news", "late"]), Reply::Int(0));
        assert_eq!(received.notices.try_iter().count(), 0);
    }
}

#[test]
fn a_listener_that_was_dropped_lets_the_connection_go_for_good() {
    let server = RealServer::start();
    let subject = Subject::new(&server.url(), TIMEOUT);
    let received = Received::on(&subject);
    received.listens();
    let Received { _listener: listener, notices } = received;
    drop(listener);
    server.command(&["CLIENT", "KILL", "ID", &connections(&server)[0]]);
    // Its channel ends when there is no sender any more.
    assert!(notices.recv_timeout(PATIENCE).is_err());
    eventually("nobody subscribes again", PATIENCE, || connections(&server).is_empty());
}
