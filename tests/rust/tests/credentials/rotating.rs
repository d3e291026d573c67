//! Tokens that end after a few seconds: nothing that is held is lost, and no connection is made again.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use locktender::{Client, Code, EventKind};
use locktender_tests::{Binary, Events, PATIENCE, RealServer, ServerOptions, TTL, eventually};

use crate::tokens::{self, Tokens, Turn, connections, connections_of};

const LIFE: Duration = Duration::from_secs(3);

pub(crate) fn servers() -> impl Iterator<Item = Arc<RealServer>> {
    Binary::ends().into_iter().map(|binary| tokens::server(ServerOptions::new().binary(&binary)))
}

/// Waits until every connection has a token of this number or a later one; gives the ids of those without a subscription.
pub(crate) fn all_have(server: &RealServer, number: u32) -> Vec<u64> {
    let has = |user: &str| user.strip_prefix("token-").is_some_and(|of| of.parse::<u32>().unwrap() >= number);
    eventually(&format!("every connection has token {number}"), PATIENCE, || {
        let found = connections(server);
        !found.is_empty() && found.iter().all(|(_, user)| has(user))
    });
    connections_of(server, &["normal"]).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn a_hold_outlives_three_tokens_on_the_same_connections() {
    for server in servers() {
        let tokens = Tokens::new(&server, Some(LIFE));
        let (client, events) = Events::of(tokens.builder());
        // A blocking caller, a runtime of the program, and a waiter that listens: each has a connection of its own.
        let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (sender, event) = channel();
        let lock = client.lock("b").ttl(TTL);
        let program = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                sender.send(lock.acquire().await.unwrap()).unwrap();
                let _ = ended.await;
            });
        });
        let other = event.recv().unwrap();
        let waiter = std::thread::spawn({
            // An endless wait would be warned of.
            let lock = client.lock("a").wait(PATIENCE);
            move || lock.acquire_blocking().unwrap()
        });
        events.at_least(EventKind::Queued, 1);
        let subscribed = || connections_of(&server, &["pubsub"]);
        eventually("each has a connection", PATIENCE, || connections(&server).len() >= 4 && subscribed().len() == 1);
        let (before, listened) = (all_have(&server, 1), subscribed());
        for number in 2..5 {
            assert_eq!(all_have(&server, number), before, "no connection was made again");
            // A user that is deleted closes its connections: all have left the old one.
            server.command(&["ACL", "DELUSER", &Tokens::user(number - 1)]);
            events.next_renewal();
        }
        assert_eq!(all_have(&server, 4), before);
        // A connection with a subscription can't get another token: another one takes its place.
        eventually("the old one is gone", PATIENCE, || subscribed().len() == 1);
        assert_ne!(subscribed(), listened);
        assert!(held.is_valid() && other.is_valid());
        held.release_blocking().unwrap();
        waiter.join().unwrap().release_blocking().unwrap();
        assert!(events.notified() >= 1, "it was notified of the release");
        other.release_blocking().unwrap();
        drop(end);
        program.join().unwrap();
        for kind in [EventKind::Lost, EventKind::Warning, EventKind::ServerFailed] {
            assert_eq!(events.last(kind), None, "{}", server.binary().name);
        }
    }
}

#[test]
fn a_deleted_user_closes_the_connections_and_the_next_token_opens_them() {
    for server in servers() {
        let tokens = Tokens::new(&server, None);
        let (client, events) = Events::of(tokens.builder());
        let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
        all_have(&server, 1);
        server.command(&["ACL", "DELUSER", &Tokens::user(1)]);
        all_have(&server, 2);
        events.next_renewal();
        assert!(held.is_valid());
        held.release_blocking().unwrap();
        assert_eq!((tokens.calls(), events.last(EventKind::Lost)), (2, None), "{}", server.binary().name);
    }
}

#[test]
fn a_token_that_is_refused_under_way_is_reported_and_replaced() {
    let server = tokens::server(ServerOptions::new());
    let tokens = Tokens::new(&server, Some(LIFE));
    let (client, events) = Events::of(tokens.builder());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    // From there on the background has its connection.
    events.next_renewal();
    let before = all_have(&server, 1);
    tokens.next([Turn::Wrong, Turn::Wrong]);
    events.at_least(EventKind::Warning, 1);
    assert_eq!(all_have(&server, 4), before);
    held.release_blocking().unwrap();
    let event = events.last(EventKind::Warning).unwrap();
    let message = event.message.unwrap();
    assert!(message.contains("refused new credentials") && !message.contains("hunter2"), "{message}");
    assert_eq!(event.server.as_deref(), Some(&*format!("redis://127.0.0.1:{}", server.port())));
    assert_eq!((events.last(EventKind::Lost), events.last(EventKind::ServerFailed)), (None, None));
}

#[test]
fn a_subscription_continues_while_new_tokens_are_refused() {
    let server = tokens::server(ServerOptions::new());
    let tokens = Tokens::new(&server, Some(LIFE));
    let (client, events) = Events::of(tokens.builder());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    let lock = client.lock("a").wait(PATIENCE);
    let waiter = std::thread::spawn(move || lock.acquire_blocking().unwrap());
    let subscribed = || connections_of(&server, &["pubsub"]);
    eventually("it listens", PATIENCE, || subscribed().len() == 1);
    let listened = subscribed();
    tokens.next([const { Turn::Wrong }; 100]);
    events.at_least(EventKind::Warning, 1);
    eventually("others are asked for", PATIENCE, || tokens.calls() >= 4);
    assert_eq!(subscribed(), listened);
    held.release_blocking().unwrap();
    waiter.join().unwrap().release_blocking().unwrap();
    assert!(events.notified() >= 1, "it was notified of the release");
    assert_eq!((events.last(EventKind::Lost), events.last(EventKind::ServerFailed)), (None, None));
}

#[test]
fn a_provider_that_fails_later_is_reported_once_while_its_last_token_lives() {
    let server = tokens::server(ServerOptions::new());
    let tokens = Tokens::new(&server, Some(LIFE));
    let (client, events) = Events::of(tokens.builder());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    tokens.next([Turn::Fails, Turn::Fails]);
    events.at_least(EventKind::Warning, 1);
    all_have(&server, 4);
    held.release_blocking().unwrap();
    let message = events.last(EventKind::Warning).unwrap().message.unwrap();
    assert_eq!(message, "`credentials` failed: the token server is down");
    assert_eq!((events.count(EventKind::Warning), events.last(EventKind::Lost)), (1, None));
}

#[test]
fn a_provider_that_blocks_delays_no_renewal() {
    let server = tokens::server(ServerOptions::new());
    let tokens = Tokens::new(&server, Some(Duration::from_secs(1)));
    let (client, events) = Events::of(tokens.builder());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    tokens.next([Turn::Blocks]);
    eventually("it blocks", PATIENCE, || tokens.calls() == 2);
    events.next_renewal();
    events.next_renewal();
    held.release_blocking().unwrap();
    assert_eq!((tokens.calls(), events.last(EventKind::Lost)), (2, None), "one call at a time");
}

#[test]
fn a_client_that_is_gone_asks_for_nothing() {
    let server = tokens::server(ServerOptions::new());
    for closes in [true, false] {
        let tokens = Tokens::new(&server, Some(Duration::ZERO));
        let client = tokens.builder().build().unwrap();
        client.lock("a").acquire_blocking().unwrap().release_blocking().unwrap();
        let calls = tokens.calls();
        eventually("it is asked again", PATIENCE, || tokens.calls() > calls);
        if closes {
            client.close().blocking().unwrap();
        }
        drop(client);
        drop(tokens);
        // A provider holds the server, too.
        eventually("nobody holds the provider", PATIENCE, || Arc::strong_count(&server) == 1);
    }
}

#[test]
fn the_url_and_the_provider_are_not_both_asked() {
    let provider = || async { Ok::<_, std::io::Error>(locktender::Credentials::new("hunter2")) };
    for url in ["redis://ann:hunter2@h", "redis://ann@h", "unix:///s?pass=hunter2", "redis+sentinel://:hunter2@h/service"] {
        let error = Client::builder().url(url).credentials(provider).build().unwrap_err();
        assert_eq!((error.code(), error.argument()), (Code::InvalidArgument, Some("url")));
        let text = error.to_string();
        assert!(text.contains("the option credentials") && !text.contains("hunter2"), "{text}");
    }
    for url in ["redis://h", "redis+sentinel://h/service?sentinel_password=hunter2"] {
        let client = Client::builder().url(url).credentials(provider).build().unwrap();
        assert!(!format!("{client:?}").contains("hunter2"));
    }
}
