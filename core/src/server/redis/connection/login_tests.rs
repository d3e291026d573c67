//! Credentials that change under a connection.

use std::time::Duration;

use tokio::runtime::Builder;

use super::super::staged::{GREETED, START, TIMEOUT, Test, acquire, release, released};
use super::*;
use crate::credentials::{Credentials, SharedProvider};
use crate::server::redis::connection::input::Input;
use crate::server::redis::transport::provided::Provided;

const OK: &str = "+OK\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

/// A provider that nobody calls: the test says what it gives.
fn provided() -> Arc<Provided> {
    let provider = SharedProvider::new(|| async { Ok::<_, std::io::Error>(Credentials::new("never")) });
    let runtime = Builder::new_current_thread().build().unwrap();
    Provided::new(&provider, "redis://localhost", TIMEOUT, runtime.handle())
}

fn give(provided: &Provided, password: &str) {
    provided.take(Ok(Credentials::new(password).user("ann").expires_in(Duration::from_secs(900))), START);
}

fn auth(password: &str) -> String {
    format!("*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n${}\r\n{password}\r\n", password.len())
}

/// A connection that is up with the password `one`.
fn connected(provided: &Arc<Provided>) -> Test {
    give(provided, "one");
    let mut test = Test::provided(provided);
    test.bring(Input::KeepWarm);
    assert_eq!(test.effects(), ["open"]);
    test.bring(Input::Opened(Role::Operations));
    assert!(test.wrote().starts_with(&auth("one")));
    test.replies(&format!("{OK}{GREETED}"));
    assert_eq!(test.effects(), [""; 0]);
    test
}

#[test]
fn new_credentials_go_out_between_the_commands_and_once() {
    let provided = provided();
    let mut test = connected(&provided);
    test.bring(Input::LogIn);
    assert_eq!(test.wrote(), "", "the server knows them");
    let _received = test.submit(release("ours", None));
    give(&provided, "two");
    test.bring(Input::LogIn);
    test.bring(Input::LogIn);
    assert!(test.wrote().ends_with(&auth("two")));
    give(&provided, "three");
    test.bring(Input::LogIn);
    assert_eq!(test.wrote(), "", "the answer to the last ones is still to come");
    test.replies(released());
    test.replies(OK);
    assert_eq!(test.wrote(), auth("three"));
    test.replies(OK);
    assert_eq!(test.effects(), ["complete"]);
    assert!(test.connection.is_up());
}

#[test]
fn refused_credentials_leave_the_connection_as_it_was_and_are_reported_once() {
    let provided = provided();
    let (mut one, mut other) = (connected(&provided), connected(&provided));
    give(&provided, "hunter2hunter2");
    for test in [&mut one, &mut other] {
        test.bring(Input::LogIn);
        assert_eq!(test.wrote(), auth("hunter2hunter2"));
        test.replies(WRONG);
        assert!(test.connection.is_up());
    }
    assert_eq!((one.effects(), other.effects()), (vec!["warning"], vec![]));
    one.bring(Input::LogIn);
    assert_eq!(one.wrote(), "", "not the same ones again");
    give(&provided, "two");
    one.bring(Input::LogIn);
    assert_eq!(one.wrote(), auth("two"));
}

#[test]
fn a_connection_that_is_refused_tries_other_credentials_once() {
    let provided = provided();
    give(&provided, "one");
    let mut test = Test::provided(&provided);
    let _received = test.submit(acquire());
    assert_eq!(test.effects(), ["open"]);
    for effects in [&["drop", "open"][..], &["drop", "failed", "complete"]] {
        test.bring(Input::Opened(Role::Operations));
        assert!(test.wrote().starts_with("*3\r\n$4\r\nAUTH"));
        test.replies(&format!("{WRONG}{}", "-NOAUTH Authentication required.\r\n".repeat(6)));
        assert_eq!(test.effects(), effects);
        give(&provided, "two");
    }
    assert!(!test.connection.is_opening());
}

#[test]
fn a_refusal_for_another_reason_is_no_reason_for_other_credentials() {
    let provided = provided();
    give(&provided, "one");
    let mut test = Test::provided(&provided);
    let _received = test.submit(acquire());
    assert_eq!(test.effects(), ["open"]);
    test.bring(Input::Opened(Role::Operations));
    test.wrote();
    test.replies(&format!(
        "{OK}-NOPERM\r\n-NOPERM\r\n{OK}-NOPERM this user has no permissions to run the 'eval' command\r\n-NOPERM\r\n-NOPERM\r\n"
    ));
    assert!(test.connection.is_up(), "what it may do is found out later");
    let mut full = Test::provided(&provided);
    let _received = full.submit(acquire());
    full.bring(Input::Opened(Role::Operations));
    full.replies("-ERR max number of clients reached\r\n");
    full.bring(Input::Closed(Role::Operations, None));
    assert_eq!(full.effects(), ["open", "drop", "failed", "complete"]);
}
