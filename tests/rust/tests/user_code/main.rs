//! Code of users that the core calls, wherever it does, and whatever that code does there: the locks of the process are held, lost
//! and released as before.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod place;
mod scene;
mod subscriber;

use std::env;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use locktender_tests::{PATIENCE, RealServer, eventually};

use self::place::Place;
use self::scene::{Act, EXIT_CODE, Scene};

/// Names the place in a program that ends there.
const EXITS_IN: &str = "LOCKTENDER_TEST_EXITS_IN";

/// Plays `act` in every place, one after the other.
fn one_after_the_other(act: Act) {
    let server = Arc::new(RealServer::start());
    for place in Place::ALL {
        plays(&server, place, act);
    }
}

/// Plays `act` in every place, at the same time.
fn everywhere(act: Act) {
    let server = Arc::new(RealServer::start());
    thread::scope(|scope| {
        for place in Place::ALL {
            let server = &server;
            scope.spawn(move || plays(server, place, act));
        }
    });
}

fn plays(server: &Arc<RealServer>, place: Place, act: Act) {
    let (server, (ended, end)) = (Arc::clone(server), channel());
    let played = thread::spawn(move || {
        let scene = Scene::new(&server, place, act);
        place.calls(&scene);
        scene.is_over();
        ended.send(()).unwrap();
    });
    // One that hangs fails, too.
    let ends = end.recv_timeout(2 * PATIENCE);
    if played.is_finished() || ends.is_ok() {
        played.join().unwrap_or_else(|_| panic!("{place:?} that {act:?}: see above"));
    }
    assert!(ends.is_ok(), "{place:?} that {act:?} has not ended");
}

#[test]
fn code_that_panics() {
    everywhere(Act::Panics);
}

#[test]
fn code_that_blocks_for_a_second() {
    one_after_the_other(Act::Blocks);
}

#[test]
fn code_that_waits_for_a_lock() {
    everywhere(Act::Locks);
}

#[test]
fn code_that_sends_an_acquire_off() {
    everywhere(Act::SendsOff);
}

#[test]
fn code_that_closes_its_client() {
    everywhere(Act::Closes);
}

#[test]
fn code_that_drops_a_hold() {
    everywhere(Act::Drops);
}

#[test]
fn code_that_runs_a_program() {
    everywhere(Act::Forks);
}

#[test]
fn code_that_ends_the_process() {
    // This test is also the program, for one place.
    if let Ok(own) = env::var(EXITS_IN) {
        let place = Place::ALL.into_iter().find(|place| format!("{place:?}") == own).unwrap();
        return one_place(place);
    }
    let programs = Place::ALL.map(|place| {
        let mut program = Command::new(env::current_exe().unwrap());
        program.args(["--exact", "code_that_ends_the_process"]).env(EXITS_IN, format!("{place:?}"));
        (place, program.stdout(Stdio::null()).spawn().unwrap())
    });
    for (place, mut program) in programs {
        let mut status = None;
        eventually(&format!("{place:?} that ends the process"), 2 * PATIENCE, || {
            status = program.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(EXIT_CODE), "{place:?}");
    }
}

fn one_place(place: Place) {
    plays(&Arc::new(RealServer::start()), place, Act::Exits);
}
