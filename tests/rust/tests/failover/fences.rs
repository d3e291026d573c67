//! Fences: none repeats and none sinks over a failover, also with a client whose clock is fast.

use std::env;
use std::thread::sleep;

use locktender::Client;
use locktender_tests::{eventually, run_ahead};

use crate::pair::{Pair, ms};

const URL: &str = "LOCKTENDER_TEST_URL";

fn fences(client: &Client, count: usize) -> Vec<u64> {
    let fence = |_| {
        let held = client.lock("a").acquire_blocking().unwrap();
        held.release().wait().unwrap();
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

#[test]
fn fences_go_on_rising_over_a_failover_that_loses_the_last_ones_though_one_client_is_an_hour_fast() {
    let mut pair = Pair::start();
    let output = run_ahead(ms(3_600_000), "fences::a_client_with_a_fast_clock", (URL, &pair.address.url()));
    let line = output.split("fences: [").nth(1).unwrap_or_else(|| panic!("{output}"));
    let fast: Vec<u64> = line.split(']').next().unwrap().split(", ").map(|fence| fence.parse().unwrap()).collect();
    let client = pair.builder().build().unwrap();
    let known = fences(&client, 1);
    let replicated = || pair.replica.command(&["GET", "{a}:~lt:fence"]).text() == Some(known[0].to_string());
    eventually("the fence is replicated", locktender_tests::PATIENCE, replicated);
    pair.cut_link();
    let lost = fences(&client, 3);
    // Longer than two nodes' clocks may differ, and shorter than any failover that nobody planned.
    sleep(ms(1_000));
    pair.fail_over();
    let later = fences(&client, 5);
    let all: Vec<u64> = [fast, known, lost, later].concat();
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
}
