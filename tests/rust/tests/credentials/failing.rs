//! Providers that fail: how an operation ends then, and that the next one is served.

use std::error::Error as _;
use std::time::Duration;

use locktender::{Code, FailureKind};
use locktender_tests::{Events, PATIENCE, ServerOptions, TTL, eventually};

use crate::rotating::servers;
use crate::tokens::{self, Tokens, Turn};

#[test]
fn a_wrong_first_answer_is_followed_by_a_right_one_at_once() {
    for server in servers() {
        let tokens = Tokens::new(&server, None);
        tokens.next([Turn::Wrong]);
        let (client, events) = Events::of(tokens.builder());
        client.lock("a").ttl(TTL).acquire_blocking().unwrap().release_blocking().unwrap();
        assert_eq!(tokens.calls(), 2, "{}", server.binary().name);
        assert_eq!(events.last(locktender::EventKind::ServerFailed), None, "it needs no report");
    }
}

#[test]
fn a_second_wrong_answer_is_an_error() {
    let server = tokens::server(ServerOptions::new());
    let tokens = Tokens::new(&server, None);
    tokens.next([Turn::Wrong, Turn::Wrong]);
    let client = tokens.builder().build().unwrap();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers()[0].kind, tokens.calls()), (Code::Denied, FailureKind::Denied, 2));
    let text = format!("{error} {error:?}");
    assert!(text.contains("`credentials` gave (WRONGPASS)") && !text.contains("hunter2"), "{text}");
}

#[test]
fn a_provider_that_fails_or_panics_is_denied_and_asked_again() {
    for (turn, message, has_cause) in [
        (Turn::Fails, "`credentials` failed: the token server is down", true),
        (Turn::Panics, "`credentials` panicked: the token server was forgotten", false),
    ] {
        let server = tokens::server(ServerOptions::new());
        let tokens = Tokens::new(&server, None);
        tokens.next([turn.clone()]);
        let client = tokens.builder().build().unwrap();
        let error = client.lock("a").acquire_blocking().unwrap_err();
        assert_eq!((error.code(), &*error.servers()[0].message), (Code::Denied, message), "{error}");
        assert_eq!(error.source().map(ToString::to_string), has_cause.then(|| "the token server is down".to_owned()));
        // For a moment the last failure is the answer.
        eventually("it is asked again", PATIENCE, || client.lock("a").try_acquire_blocking().is_ok());
        assert_eq!((tokens.calls(), tokens.servers()[1].as_str()), (2, &*format!("redis://127.0.0.1:{}", server.port())));
    }
}

#[test]
fn a_provider_that_gives_no_answer_is_cancelled_with_the_connection() {
    for turn in [Turn::Hangs, Turn::Blocks] {
        let server = tokens::server(ServerOptions::new());
        let tokens = Tokens::new(&server, None);
        tokens.next([turn.clone(), turn.clone(), turn.clone()]);
        let span = Duration::from_millis(100);
        let client = tokens.builder().connect_timeout(span).unavailable_after(span * 2).build().unwrap();
        let error = client.lock("a").acquire_blocking().unwrap_err();
        assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::Timeout), "{turn:?}");
        assert_eq!(error.servers()[0].message, "`credentials` gave no answer within 100 ms", "{turn:?}");
    }
}

/// An error that can't even say what it is.
#[derive(Debug)]
struct Mute;

impl std::fmt::Display for Mute {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("it has no words")
    }
}

impl std::error::Error for Mute {}

#[test]
fn an_error_that_panics_ends_in_the_call() {
    let server = tokens::server(ServerOptions::new());
    let url = format!("redis://127.0.0.1:{}", server.port());
    let provider = || async { Err::<locktender::Credentials, _>(Mute) };
    let client = locktender::Client::builder().url(url).credentials(provider).build().unwrap();
    for _ in 0..2 {
        let error = client.lock("a").acquire_blocking().unwrap_err();
        assert_eq!((error.code(), &*error.servers()[0].message), (Code::Denied, "`credentials` panicked: it has no words"));
    }
}
