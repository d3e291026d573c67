//! The proxy as a program, for the tests in other languages: `locktender-proxy PORT`.
//!
//! The program prints its own port. Then it answers each command on standard input with one line. It ends with its input, so it
//! can't outlive the test. `tests/python/support/proxy.py` and `tests/node/support/proxy.mjs` use it.
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program of the tests, with its answers on standard output"
)]

use std::env;
use std::io::stdin;
use std::time::Duration;

use locktender_tests::{Fault, Proxy};

fn main() {
    let upstream = env::args().nth(1).unwrap().parse().unwrap();
    let mut proxy = Proxy::to(upstream);
    println!("{}", proxy.port());
    for line in stdin().lines() {
        println!("{}", obey(&mut proxy, &line.unwrap()));
    }
}

fn obey(proxy: &mut Proxy, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["latency", to_server, to_client] => proxy.latency(seconds(to_server), seconds(to_client)),
        ["cut"] => proxy.cut(),
        ["redirect", upstream] => proxy.redirect(upstream.parse().unwrap()),
        ["refuse"] => proxy.refuse(),
        ["accept"] => proxy.accept(),
        ["black_hole"] => proxy.black_hole(),
        ["restore"] => proxy.restore(),
        ["hold_answers"] => proxy.hold_answers(),
        ["let_answers_go"] => proxy.let_answers_go(),
        ["cut_before_apply", requests, needle] => {
            proxy.fault(Fault::CutBeforeApply, requests.parse().unwrap(), needle);
        }
        ["cut_after_apply", requests, needle] => {
            proxy.fault(Fault::CutAfterApply, requests.parse().unwrap(), needle);
        }
        ["silence_after_apply", requests, needle] => {
            proxy.fault(Fault::SilenceAfterApply, requests.parse().unwrap(), needle);
        }
        ["faults_left"] => return proxy.faults_left().to_string(),
        ["connections"] => return proxy.connections().to_string(),
        ["open_connections"] => return proxy.open_connections().to_string(),
        ["client_bytes"] => return proxy.client_bytes().to_string(),
        ["client_reads"] => return proxy.client_reads().to_string(),
        _ => panic!("no such command: {line}"),
    }
    "ok".to_owned()
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs_f64(text.parse().unwrap())
}
