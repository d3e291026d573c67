//! Leaders announce themselves on a channel, and observers receive that.

use locktender::Client;
use locktender_tests::{Binary, PATIENCE, RealServer, Reply, ServerOptions, eventually};

const CHANNEL: &str = "~lt:lead:prod:scheduler";

fn client(url: &str) -> Client {
    Client::builder().urls(url).configure(|options| options.prefix = "prod:".into()).build().unwrap()
}

/// How many connections listen to the channel.
fn subscribers(server: &RealServer) -> i64 {
    let Reply::Array(words) = server.command(&["PUBSUB", "NUMSUB", CHANNEL]) else { panic!("no list") };
    words.into_iter().nth(1).unwrap().int()
}

#[test]
fn a_leader_and_its_end_are_announced_on_every_version() {
    for binary in Binary::all() {
        let server = ServerOptions::new().binary(&binary).start();
        let mut listener = server.connection().unwrap();
        listener.command(&["SUBSCRIBE", CHANNEL]).unwrap();
        let election = client(&server.url()).election("scheduler");
        for dropped in [false, true] {
            let leadership = election.campaign_blocking().unwrap();
            let lead = format!("lead {} {}", leadership.term(), leadership.owner());
            if dropped {
                drop(leadership)
            } else {
                drop(leadership.resign_blocking().unwrap())
            }
            for message in [&lead, "lead none"] {
                let Reply::Array(words) = listener.reply().unwrap() else { panic!("no message") };
                let words: Vec<_> = words.into_iter().filter_map(Reply::text).collect();
                assert_eq!(words, ["message", CHANNEL, message], "{}", binary.name);
            }
        }
        // A lock of the same name is no election.
        client(&server.url()).lock("scheduler").acquire_blocking().unwrap().release_blocking().unwrap();
        election.try_campaign_blocking().unwrap().unwrap();
        let Reply::Array(words) = listener.reply().unwrap() else { panic!("no message") };
        assert!(words.last().unwrap().clone().text().unwrap().starts_with("lead 1"), "{}", binary.name);
    }
}

#[test]
fn an_observer_listens_as_long_as_there_is_one() {
    for binary in Binary::ends() {
        let server = ServerOptions::new().binary(&binary).start();
        let (watching, leading) = (client(&server.url()), client(&server.url()));
        let mut observer = watching.election("scheduler").observe();
        assert_eq!(subscribers(&server), 0, "before the first call it does no I/O");
        assert_eq!(observer.next_blocking().unwrap().leader, None);
        eventually("it listens", PATIENCE, || subscribers(&server) == 1);
        let leadership = leading.election("scheduler").campaign_blocking().unwrap();
        assert_eq!(observer.next_blocking().unwrap().leader.unwrap().term, leadership.term());
        leadership.resign_blocking().unwrap();
        assert_eq!(observer.next_blocking().unwrap().leader, None);
        drop(observer);
        eventually("it does not listen any more", PATIENCE, || subscribers(&server) == 0);
        watching.close_blocking().unwrap();
    }
}

#[test]
fn a_client_that_is_closed_does_not_listen() {
    let server = RealServer::start();
    let watching = client(&server.url());
    let mut observer = watching.election("scheduler").observe();
    observer.next_blocking().unwrap();
    eventually("it listens", PATIENCE, || subscribers(&server) == 1);
    watching.close_blocking().unwrap();
    eventually("it does not listen any more", PATIENCE, || subscribers(&server) == 0);
}

#[test]
fn observers_of_many_elections_share_one_connection_and_each_is_notified_of_its_own() {
    for binary in Binary::ends() {
        let server = ServerOptions::new().binary(&binary).start();
        let (watching, leading) = (client(&server.url()), client(&server.url()));
        // Two of each election.
        let mut observers: Vec<_> = (0..20).map(|number| watching.election(format!("e{}", number / 2)).observe()).collect();
        for observer in &mut observers {
            assert_eq!(observer.next_blocking().unwrap().leader, None);
        }
        let listening = || server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).text().unwrap().lines().count();
        let channels = || {
            let Reply::Array(words) = server.command(&["PUBSUB", "CHANNELS", "~lt:lead:*"]) else { panic!("no list") };
            words.len()
        };
        eventually("each election has its channel", PATIENCE, || channels() == 10);
        assert_eq!(listening(), 1, "{}", binary.name);
        let leadership = leading.election("e3").campaign_blocking().unwrap();
        for observer in &mut observers[6..8] {
            assert_eq!(observer.next_blocking().unwrap().leader.unwrap().term, leadership.term());
        }
        drop(observers);
        eventually("nobody listens any more", PATIENCE, || listening() == 0);
    }
}
