//! Setup of a quorum: trust, quorums that don't match, and the report.

use locktender::{Client, Code, FailureKind, Outcome};
use locktender_tests::{LENIENT, PATIENCE, RealServer, ServerOptions};

use crate::servers::{Ensemble, ms};

const MARKER: &str = "{~lt}:marker";

#[test]
fn clients_of_another_quorum_are_refused_whatever_they_ask() {
    let quorum = Ensemble::start(3);
    drop(quorum.trusted());
    let urls = || quorum.servers.iter().map(RealServer::url);
    let of = |count: usize| urls().take(count).fold(Client::builder(), locktender::ClientBuilder::url);
    let other_ttl = of(3).configure(|options| options.max_ttl = ms(30_000)).build().unwrap();
    for (client, ours) in
        [(other_ttl, "n=3 max_ttl=30000"), (of(2).build().unwrap(), "n=2 max_ttl=60000"), (of(1).build().unwrap(), "")]
    {
        let error = client.lock("a").acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.to_string().contains("n=3 max_ttl=60000") && error.to_string().contains(ours), "{error}");
        assert!(error.to_string().matches("a quorum").count() == 1, "one sentence: {error}");
        if !ours.is_empty() {
            assert_eq!(client.initialize_quorum().blocking().unwrap_err().code(), Code::InvalidArgument);
        }
    }
    assert!(quorum.values("a").iter().all(Option::is_none));
    let client = quorum.builder().build().unwrap();
    assert_eq!(client.lock("a").acquire_blocking().unwrap().release().blocking().unwrap().outcome, Outcome::Released);
}

#[test]
fn one_server_of_another_quorum_is_found_by_the_first_acquire() {
    let (ours, theirs) = (Ensemble::start(2), Ensemble::start(5));
    drop(theirs.trusted());
    let urls = [ours.proxies[0].url(), ours.proxies[1].url(), theirs.proxies[4].url()];
    let client = urls.into_iter().fold(Client::builder(), locktender::ClientBuilder::url).build().unwrap();
    let error = client.initialize_quorum().blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("n=5"), "{error}");
    ours.left_clean("a");
}

#[test]
fn the_same_server_listed_twice_is_refused() {
    let quorum = Ensemble::start(2);
    let again = format!("redis://localhost:{}", quorum.servers[0].port());
    let urls = [quorum.servers[0].url(), again, quorum.servers[1].url()];
    let client = urls.into_iter().fold(Client::builder(), locktender::ClientBuilder::url).build().unwrap();
    client.initialize_quorum().blocking().unwrap();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    quorum.left_clean("a");
}

#[test]
fn trust_says_which_server_is_missing_and_can_be_repeated() {
    let mut quorum = Ensemble::start(3);
    quorum.servers[2].kill();
    let client = quorum.builder().build().unwrap();
    let error = client.initialize_quorum().blocking().unwrap_err();
    assert_eq!((error.code(), error.servers().len()), (Code::Unavailable, 1), "{error}");
    client.lock("a").acquire_blocking().expect("two of three are trusted, which is enough");
    quorum.servers[2].restart();
    client.initialize_quorum().blocking().unwrap();
    let markers = quorum.values(MARKER);
    let trusted = |marker: &Option<String>| {
        marker.as_ref().is_some_and(|text| text.starts_with("n=3 max_ttl=60000 run=") && text.ends_with(" since=0"))
    };
    assert!(markers.iter().all(trusted), "{markers:?}");
    assert_eq!(quorum.servers[0].command(&["PTTL", MARKER]).int(), -1, "the one key without expiry");
}

#[test]
fn what_is_no_marker_is_left_as_it_is_and_counts_as_a_server_that_cannot_be_used() {
    let quorum = Ensemble::start(3);
    let client = quorum.trusted();
    quorum.servers[0].command(&["SET", MARKER, "garbage"]);
    let error = client.initialize_quorum().blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let held = client.lock("a").acquire_blocking().expect("two of three are a majority");
    held.release().blocking().unwrap();
    quorum.servers[1].command(&["DEL", MARKER]);
    quorum.servers[1].command(&["RPUSH", MARKER, "x"]);
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::KeyConflict, "{error}");
    assert!(error.to_string().contains(MARKER), "{error}");
    assert_eq!(quorum.value(0, MARKER).as_deref(), Some("garbage"));
    quorum.left_clean("a");
}

#[test]
fn servers_that_do_not_permit_info_form_a_quorum_all_the_same() {
    let start = || ServerOptions::new().user("app", "pw", "~* +@all -info").start();
    let quorum = Ensemble::of((0..3).map(|_| start()).collect());
    let urls = quorum.proxies.iter().map(|proxy| format!("redis://app:pw@127.0.0.1:{}", proxy.port()));
    let limited = urls.fold(Client::builder(), locktender::ClientBuilder::url).build().unwrap();
    limited.initialize_quorum().blocking().unwrap();
    let held = limited.lock("a").acquire_blocking().unwrap();
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    let reports = limited.check_servers().blocking().unwrap();
    for report in &reports {
        assert_eq!(report.failure.as_ref().unwrap().kind, FailureKind::Denied, "{report:?}");
        assert!(report.warnings.iter().any(|warning| warning.contains("INFO is not permitted")), "{report:?}");
    }
    // Beside clients that know the run id, nobody takes the other's marker for a restart.
    let client = quorum.trusted();
    for client in [&limited, &client, &limited, &client] {
        let held = client.lock("a").wait(PATIENCE).acquire_blocking().unwrap();
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
}

#[test]
fn rights_that_a_majority_denies_are_denied_at_once() {
    let start = || ServerOptions::new().user("app", "pw", "~b* +@all").start();
    let servers: Vec<RealServer> = (0..3).map(|_| start()).collect();
    let as_app = |server: &RealServer| format!("redis://app:pw@127.0.0.1:{}", server.port());
    let client = |limited: usize| {
        let urls = servers.iter().enumerate().map(|(n, server)| if n < limited { as_app(server) } else { server.url() });
        let builder = urls.fold(Client::builder(), locktender::ClientBuilder::url);
        builder.configure(|options| options.unavailable_after = ms(60_000)).build().unwrap()
    };
    client(0).initialize_quorum().blocking().unwrap();
    client(1).lock("a").acquire_blocking().expect("one that denies is a minority");
    let start = std::time::Instant::now();
    let error = client(2).lock("a2").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Denied, "{error}");
    assert!(start.elapsed() < ms(900), "{:?}", start.elapsed());
}

#[test]
fn a_check_reports_what_each_server_guarantees() {
    let evicting = ServerOptions::new().config("maxmemory-policy allkeys-lru").start();
    let durable = ServerOptions::new().persistent().start();
    let replica = ServerOptions::new().config(&format!("replicaof 127.0.0.1 {}", durable.port())).start();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("redis://{}", silent.local_addr().unwrap());
    let urls = [evicting.url(), durable.url(), replica.url(), "redis://127.0.0.1:1".to_owned(), silent];
    let client = urls.into_iter().fold(Client::builder(), locktender::ClientBuilder::url);
    // The silent server keeps the report waiting; that must not look like slow clocks.
    let client = client.configure(|options| options.connect_timeout = LENIENT + ms(1_000)).build().unwrap();
    let reports = client.check_servers().blocking().unwrap();
    assert_eq!(reports[0].eviction.as_deref(), Some("allkeys-lru"));
    assert!(reports[0].warnings.iter().any(|warning| warning.contains("noeviction")), "{reports:?}");
    assert_eq!((reports[1].role.as_deref(), reports[1].persistence.as_deref()), (Some("master"), Some("aof")));
    let clock = |warning: &String| warning.contains("its clock is");
    assert!(reports[1].warnings.iter().all(clock), "{reports:?}");
    let replica = reports[2].failure.as_ref().unwrap();
    assert!(replica.kind == FailureKind::ReadOnly && replica.message.contains("this is a replica of 127.0.0.1:"), "{reports:?}");
    for report in &reports[..2] {
        assert!(report.clock_offset_ms.is_some_and(|offset| offset.abs() < 1_000), "{report:?}");
        assert!(report.version.as_ref().is_some_and(|version| version.contains(&evicting.binary().version)), "{report:?}");
    }
    assert!(reports[3].failure.is_some() && reports[4].failure.is_some());
    assert_eq!(evicting.command(&["EXISTS", MARKER]).int(), 0, "the marker is not written");
}
