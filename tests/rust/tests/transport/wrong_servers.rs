//! Wrong servers, such as a sentinel: the error says at once what to write instead, and nothing is tried again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::tls::terminate;
use crate::peer::{Act, PATIENCE, Peer};
use locktender::{Client, ClientBuilder, Code, Error, ServerReport};
use locktender_tests::{Proxy, RealServer, ServerOptions, certificate, eventually};

/// A client that would go on trying for longer than a test waits.
fn patient(builder: ClientBuilder, tls_ca: Option<&str>) -> Client {
    let build = builder.configure(|options| {
        options.connect_timeout = PATIENCE;
        options.response_timeout = Some(PATIENCE);
        options.unavailable_after = PATIENCE;
        options.tls_ca = tls_ca.map(|name| certificate(name).display().to_string());
    });
    build.build().unwrap()
}

/// What an acquire and a look at a lock fail of, both at once and of the same.
fn fails(client: &Client) -> Error {
    let begun = Instant::now();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    let seen = client.lock("a").inspect().blocking().unwrap_err();
    assert!(begun.elapsed() < Duration::from_millis(2_300), "{error} took {:?}", begun.elapsed());
    assert_eq!((error.code(), error.to_string()), (seen.code(), seen.to_string()));
    error
}

fn at(url: &str) -> Client {
    patient(Client::builder().url(url), None)
}

/// A listener that answers one read after the other with these bytes, on every connection, and then hangs up.
fn answering(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let serve = move |mut stream: TcpStream| {
        for answer in &answers {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    };
    thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    url
}

#[test]
fn a_node_of_a_cluster() {
    for message in ["MOVED 866 127.0.0.1:7001", "ASK 866 127.0.0.1:7001", "CROSSSLOT Keys in request don't hash to the same slot"]
    {
        let peer = Peer::start(move |_| Act::Answer(format!("-{message}\r\n")));
        let error = fails(&at(&peer.url));
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        for words in ["node of a cluster", "write redis+cluster://host:port", message] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn a_cluster_of_one_node_serves_and_a_check_says_what_will_happen() {
    let node = ServerOptions::new().config("cluster-enabled yes").start();
    node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let state = || node.command(&["CLUSTER", "INFO"]).text().unwrap();
    eventually("the cluster serves", PATIENCE, || state().contains("cluster_state:ok"));
    let client = at(&node.url());
    client.lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
    let report = client.check_servers().blocking().unwrap().remove(0);
    let warned = |report: &ServerReport| report.warnings.iter().any(|warning| warning.contains("node of a cluster"));
    assert!(warned(&report), "{report:?}");
    let alone = RealServer::start();
    assert!(!warned(&at(&alone.url()).check_servers().blocking().unwrap()[0]));
}

#[test]
fn a_node_of_a_cluster_among_several_servers() {
    let node = ServerOptions::new().config("cluster-enabled yes").start();
    let others = [(); 2].map(|()| RealServer::start());
    let builder = others.iter().fold(Client::builder().url(node.url()), |builder, other| builder.url(other.url()));
    let client = patient(builder, None);
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("node of a cluster"), "{error}");
}

#[test]
fn a_sentinel() {
    // Word by word what Valkey 9.1 and Redis 8.2 say.
    let unknown = "-ERR unknown command 'EVAL', with args beginning with: '-- Asks whether' '1' '{~lt}:marker' \r\n";
    for mode in ["server_mode", "redis_mode"] {
        let bulk = |info: &str| format!("${}\r\n{info}\r\n", info.len());
        let server = bulk(&format!("# Server\r\n{mode}:sentinel\r\nos:Linux\r\n"));
        let answers = vec![server + "-ERR unknown command 'INFO'\r\n+OK\r\n" + unknown];
        let error = fails(&at(&answering(answers)));
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        for words in ["this is a sentinel", "write redis+sentinel://host:port/service"] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn a_server_without_scripts() {
    let server = ServerOptions::new().config("rename-command EVAL \"\"").config("rename-command EVALSHA \"\"").start();
    let error = fails(&at(&server.url()));
    assert_eq!(error.code(), Code::Denied, "{error}");
    assert!(error.to_string().contains("this server does not allow EVAL"), "{error}");
    assert!(!error.to_string().contains("Asks whether"), "{error}");
    // With several servers the scripts are first asked for with the first operation.
    let peer = Peer::start(|_| Act::Answer("-ERR unknown command `EVALSHA`, with args beginning with: `9a`, `4`\r\n".into()));
    let error = fails(&at(&peer.url));
    assert!(error.code() == Code::Denied && error.to_string().contains("this server does not allow EVAL"), "{error}");
}

#[test]
fn an_authority_that_is_not_trusted() {
    let server = RealServer::start();
    let url = terminate(server.port(), "server", false);
    let error = fails(&patient(Client::builder().url(&*url), Some("stranger.pem")));
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("authority that is not trusted here; the option tls_ca (in Node tlsCa)"), "{error}");
}

#[test]
fn a_port_with_tls_behind_a_url_without_and_the_reverse() {
    let server = RealServer::start();
    let without = patient(Client::builder().url(server.url().replace("redis:", "rediss:")), Some("ca.pem"));
    let error = refused_in_every_way(&without);
    assert!(error.to_string().contains("its URL begins with redis://, or the server has another port for TLS"), "{error}");
    let tls = terminate(server.port(), "server", false).replace("rediss:", "redis:");
    let builder = Client::builder().url(tls).configure(|options| options.unavailable_after = Duration::from_millis(1_000));
    let error = builder.build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert!(error.code() == Code::Unavailable && error.to_string().contains("URL begins with rediss://"), "{error}");
}

#[test]
fn a_database_that_the_server_does_not_have() {
    let server = RealServer::start();
    let error = refused_in_every_way(&at(&format!("{}/99", server.url())));
    for words in ["database 99 can't be used", "put the number of another one into the URL", "`databases`"] {
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// `INVALID_ARGUMENT` of one attempt, of an acquire that waits, and of the default, each at once.
fn refused_in_every_way(client: &Client) -> Error {
    let error = fails(client);
    let waiting = client.lock("a").wait(PATIENCE).acquire_blocking().unwrap_err();
    let once = client.lock("a").try_acquire().blocking().unwrap_err();
    let codes = [error.code(), waiting.code(), once.code()];
    assert_eq!(codes, [Code::InvalidArgument; 3], "{error}");
    error
}

#[test]
fn a_server_that_has_served_is_not_asked_whether_it_speaks_tls() {
    let mut server = RealServer::start();
    let tls = terminate(server.port(), "server", false);
    let proxies = [server.port(), tls.rsplit_once(':').unwrap().1.parse().unwrap()].map(Proxy::to);
    let urls = [proxies[0].url(), proxies[1].url().replace("redis:", "rediss:")];
    let clients = urls.map(|url| {
        let ca = url.starts_with("rediss:").then(|| certificate("ca.pem").display().to_string());
        let build = Client::builder().url(url).configure(|options| {
            options.unavailable_after = Duration::from_millis(1_000);
            options.tls_ca = ca;
        });
        build.build().unwrap()
    });
    for client in &clients {
        client.lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
    }
    server.kill();
    // Both accept a connection, and end it because there is no server behind them.
    for client in &clients {
        let error = client.lock("a").acquire_blocking().unwrap_err();
        assert_eq!((error.code(), error.servers().len()), (Code::Unavailable, 1), "{error}");
        assert!(!error.to_string().contains("that port") && !error.to_string().contains("URL begins"), "{error}");
    }
}

#[test]
fn a_user_without_rights_learns_which_keys_and_what_to_ask_for() {
    let server = ServerOptions::new().user("ann", "secret", "~other:* &* +@all").start();
    let url = format!("redis://ann:secret@127.0.0.1:{}", server.port());
    let builder = Client::builder().url(url).configure(|options| options.prefix = "prod:".into());
    let error = builder.build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Denied, "{error}");
    for words in ["prod:a and {prod:a}:~lt:*", "ACL SETUSER <user> ~prod:* ~{prod:* ", "+evalsha"] {
        assert!(error.to_string().contains(words), "{words} is not in: {error}");
    }
}

#[test]
fn a_release_says_like_an_acquire_why_nobody_answers() {
    let mut server = RealServer::start();
    // Its port could become that of another test's server.
    let builder = Client::builder().url(server.unix_url()).configure(|options| {
        options.response_timeout = Some(PATIENCE);
        options.unavailable_after = Duration::from_millis(1_500);
    });
    let client = builder.build().unwrap();
    let held = client.lock("a").ttl(Duration::from_secs(60)).acquire_blocking().unwrap();
    server.kill();
    let released = held.release().blocking().unwrap_err();
    let acquired = client.lock("b").acquire_blocking().unwrap_err();
    assert_eq!((released.code(), acquired.code()), (Code::Unavailable, Code::Unavailable));
    let kinds = |error: &Error| error.servers().iter().map(|server| server.kind.as_str()).collect::<Vec<_>>();
    assert_eq!((kinds(&released), kinds(&acquired)), (vec!["refused"], vec!["refused"]), "{released}");
}
