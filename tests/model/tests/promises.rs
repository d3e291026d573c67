//! The protocol keeps its promises in every state that can be reached.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that fails shows the trace, and one that passes what it took"
)]

use locktender_model::scenario::Scenario;
use locktender_model::search::search;
use locktender_model::walk::walk;

/// Visits every state; gives their number.
fn keeps(scenario: Scenario) -> usize {
    let outcome = search(&scenario, usize::MAX, |_, _, _| ()).unwrap();
    if let Some((violation, trace)) = outcome.violation {
        panic!("{scenario}: {violation:?} is broken:\n{trace}");
    }
    assert!(outcome.complete);
    eprintln!("{scenario}: {} states in {:.2} s", outcome.states, outcome.took.as_secs_f64());
    outcome.states
}

#[test]
fn few_servers() {
    for servers in [1, 2, 4, 5] {
        keeps(Scenario::timed(servers, 2));
    }
    keeps(Scenario::untimed(1, 4).skewed());
    keeps(Scenario::untimed(2, 3).skewed());
}

#[test]
fn three_servers_and_two_attempts() {
    assert!(keeps(Scenario::timed(3, 2).skewed()) > 1_000, "the search got nowhere");
    keeps(Scenario::untimed(3, 2).skewed());
}

#[test]
fn three_servers_and_three_attempts() {
    assert!(keeps(Scenario::timed(3, 3)) > 100_000, "the search got nowhere");
}

#[test]
fn extensions_and_heals() {
    keeps(Scenario::timed(3, 2).extending(3));
    keeps(Scenario::untimed(3, 2).extending(2));
    keeps(Scenario::timed(4, 2).extending(2));
}

#[test]
fn servers_that_forget() {
    keeps(Scenario::timed(3, 2).forgetting());
    keeps(Scenario::timed(3, 2).extending(3).forgetting());
}

#[test]
fn hand_overs() {
    keeps(Scenario::timed(3, 2).extending(2).handing_over().forgetting());
    keeps(Scenario::untimed(3, 2).extending(2).handing_over());
}

#[test]
fn acquires_that_are_applied_twice() {
    keeps(Scenario::timed(3, 2).resending().handing_over());
    keeps(Scenario::untimed(2, 2).skewed().resending().handing_over());
}

#[test]
fn walks_over_five_servers() {
    for scenario in [Scenario::untimed(5, 3).extending(2), Scenario::timed(5, 3).extending(3).forgetting().handing_over()] {
        let walked = walk(&scenario, 1, 5_000);
        if let Some((violation, trace)) = walked.violation {
            panic!("{scenario}: {violation:?} is broken:\n{trace}");
        }
        assert!(walked.grants > 1_000, "{scenario}: {} grants in {} steps", walked.grants, walked.steps);
    }
}
