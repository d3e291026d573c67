//! Leaks: nothing remains of released locks and failed connections, in any number. The test has its own process, because it
//! counts that process's memory, descriptors and threads.
//!
//! `tests/run all` does more of them, and looks at the memory, too. Still more:
//! `LOCKTENDER_CYCLES=1000000 cargo test --release -p locktender-tests --test faults_leaks`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::time::Duration;

use locktender::{Client, Code};
use locktender_tests::{PATIENCE, RealServer, eventually, long};

/// What a process holds of the machine.
#[derive(Debug)]
struct Holdings {
    memory_kb: u64,
    descriptors: usize,
    threads: usize,
}

impl Holdings {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let count = |directory| std::fs::read_dir(directory).unwrap().count();
        Self {
            memory_kb: memory.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }

    /// Fails unless this process is back at what it had. Connections and their closing take a moment.
    fn are_back(&self, what: &str) {
        eventually(what, Duration::from_secs(5), || {
            let now = Self::now();
            now.descriptors <= self.descriptors && now.threads <= self.threads
        });
        let now = Self::now();
        // A few are not enough to distinguish growth from what an allocator keeps.
        assert!(!long() || now.memory_kb < self.memory_kb + 3_000, "{what}: {self:?} became {now:?}");
    }
}

fn cycles(of_long: usize) -> usize {
    let ordinary = if long() { of_long } else { of_long / 10 };
    std::env::var("LOCKTENDER_CYCLES").map_or(ordinary, |cycles| cycles.parse().unwrap())
}

fn clients_of(server: &RealServer) -> usize {
    let list = server.command(&["CLIENT", "LIST"]).text().unwrap();
    list.lines().filter(|line| line.contains("name=locktender")).count()
}

#[test]
fn nothing_grows_with_the_number_of_locks_and_of_failed_connects() {
    let server = RealServer::start();
    let client = Client::open(server.url()).unwrap();
    let pairs = |count: usize| {
        for n in 0..count {
            let held = client.lock(format!("leak:{}", n % 100)).acquire_blocking().unwrap();
            held.release().blocking().unwrap();
        }
    };
    // The client connects for renewals when it sees a hold, which with short ones it may or may not.
    let held = client.lock("leak").acquire_blocking().unwrap();
    eventually("both its connections are open", PATIENCE, || clients_of(&server) == 2);
    held.release().blocking().unwrap();
    pairs(cycles(5_000).min(5_000));
    let before = Holdings::now();
    pairs(cycles(30_000));
    before.are_back("after pairs");
    assert_eq!(clients_of(&server), 2);

    let url = format!("redis://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let fail = |count: usize| {
        for _ in 0..count {
            let client = Client::open(&*url).unwrap();
            assert_eq!(client.lock("a").try_acquire_blocking().unwrap_err().code(), Code::Unavailable);
        }
    };
    fail(cycles(500).min(500));
    let before = Holdings::now();
    fail(cycles(2_000).min(10_000));
    before.are_back("after failed connects");

    let reopen = |count: usize| {
        for _ in 0..count {
            let client = Client::open(server.url()).unwrap();
            client.lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
        }
    };
    reopen(cycles(200).min(200));
    let before = Holdings::now();
    reopen(cycles(500).min(500));
    before.are_back("after clients that were dropped");
    eventually("their connections are closed", Duration::from_secs(5), || clients_of(&server) == 2);

    let before = Holdings::now();
    let closed = |_| {
        let client = Client::open(server.url()).unwrap();
        let held = client.lock("a").acquire_blocking().unwrap();
        client.close_blocking().unwrap();
        (client, held)
    };
    // A program may keep its clients, and their holds, for long.
    let kept: Vec<_> = (0..50).map(closed).collect();
    before.are_back("after clients that were closed");
    drop(kept);
}
