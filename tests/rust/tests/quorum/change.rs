//! A changed quorum, with another number of servers or another `max_ttl`: the procedure of docs/guarantees.md, step by step.

use std::time::Instant;

use locktender::{Client, ClientBuilder, Code, Outcome};
use locktender_tests::{LENIENT, PATIENCE};

use crate::servers::{Ensemble, ms};

const MARKER: &str = "{~lt}:marker";

/// A client of the first `count` servers.
fn client_of(servers: &Ensemble, count: usize, max_ttl_ms: u64) -> Client {
    let urls: Vec<String> = servers.proxies.iter().take(count).map(locktender_tests::Proxy::url).collect();
    let (long, short) = (ms(max_ttl_ms), LENIENT);
    let builder: ClientBuilder = Client::builder().urls(urls).max_ttl(long).ttl(long).response_timeout(short);
    builder.unavailable_after(PATIENCE).build().unwrap()
}

fn forget_markers(servers: &Ensemble) {
    for server in &servers.servers {
        server.command(&["DEL", MARKER]);
    }
}

#[test]
fn a_quorum_grows_and_shrinks_while_its_clients_are_stopped() {
    let servers = Ensemble::start(5);
    let mut last_fence = 0;
    let mut stopped: Option<(Client, &str)> = None;
    for (count, max_ttl_ms, marker) in
        [(3, 5_000, "n=3 max_ttl=5000"), (5, 5_000, "n=5 max_ttl=5000"), (3, 4_000, "n=3 max_ttl=4000")]
    {
        let client = client_of(&servers, count, max_ttl_ms);
        if let Some((_, old)) = &stopped {
            let error = client.lock("a").acquire_blocking().unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "before the markers are deleted: {error}");
            assert!(error.to_string().contains(old) && error.to_string().contains(marker), "{error}");
            forget_markers(&servers);
        }
        client.initialize_quorum_blocking().unwrap();
        let held = client.lock("a").acquire_blocking().unwrap();
        assert!(held.fence() > last_fence, "{} after {last_fence}", held.fence());
        last_fence = held.fence();
        assert_eq!(held.release_blocking().unwrap().outcome, Outcome::Released);
        for server in 0..count {
            assert!(servers.value(server, MARKER).is_some_and(|found| found.starts_with(marker)));
        }
        if let Some((forgotten, _)) = stopped.replace((client, marker)) {
            // It met these servers while they were its own.
            let error = forgotten.lock("a").acquire_blocking().unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "a client that was not stopped: {error}");
            servers.left_clean("a");
        }
    }
}

#[test]
fn a_changed_quorum_that_nobody_vouches_for_votes_after_the_new_max_ttl() {
    let servers = Ensemble::start(3);
    client_of(&servers, 3, 60_000).initialize_quorum_blocking().unwrap();
    forget_markers(&servers);
    let client = client_of(&servers, 3, 2_000);
    let began = Instant::now();
    let held = client.lock("a").acquire_blocking().unwrap();
    assert!(began.elapsed() >= ms(2_000) && began.elapsed() < ms(3_000), "{:?}", began.elapsed());
    assert!(held.is_valid());
}
