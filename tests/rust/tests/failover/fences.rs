//! Fences: none repeats and none sinks over a failover, also with a client whose clock is fast.

use std::env;
use std::thread::sleep;

use locktender::Client;
use locktender_tests::run_ahead;

use crate::pair::ms;
use crate::trio::{Trio, Way, versions};

const URL: &str = "LOCKTENDER_TEST_URL";

fn fences(client: &Client, count: usize) -> Vec<u64> {
    let fence = |_| {
        let held = client.lock("a").acquire_blocking().unwrap();
        held.release().blocking().unwrap();
        held.fence()
    };
    (0..count).map(fence).collect()
}

/// Not a test of its own: the next one runs it by a clock that is ahead.
#[test]
fn a_client_with_a_fast_clock() {
    if let Ok(url) = env::var(URL) {
        println!("fences: {:?}", fences(&Client::open(url).unwrap(), 3));
    }
}

/// The fences that a client gets whose clock is an hour fast.
fn fast_fences(trio: &Trio) -> Vec<u64> {
    let output = run_ahead(ms(3_600_000), "fences::a_client_with_a_fast_clock", (URL, &trio.others.url()));
    let line = output.split("fences: [").nth(1).unwrap_or_else(|| panic!("{output}"));
    line.split(']').next().unwrap().split(", ").map(|fence| fence.parse().unwrap()).collect()
}

#[test]
fn fences_continue_to_rise_over_a_failover_that_loses_the_last_ones_though_one_client_is_an_hour_fast() {
    for binary in versions() {
        let mut trio = Trio::start(&binary);
        let client = trio.others().build().unwrap();
        let known = [fast_fences(&trio), fences(&client, 1)].concat();
        trio.has_replicated("{20200}:~lt:clock");
        trio.cut_links();
        let lost = [fences(&client, 3), fast_fences(&trio), fences(&client, 3)].concat();
        // Longer than two nodes' clocks may differ, and shorter than any failover that nobody planned.
        sleep(ms(1_000));
        trio.fail_over(Way::Killed);
        let later = [fences(&client, 3), fast_fences(&trio), fences(&client, 3)].concat();
        let all: Vec<u64> = [known, lost, later].concat();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{}: {all:?}", binary.name);
    }
}
