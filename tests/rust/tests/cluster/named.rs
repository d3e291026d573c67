//! Names of every form: all keys of a lock, a job or an election lie in one slot, which node that has.

use std::thread;

use locktender::{Begun, Client};
use locktender_tests::{Binary, ClusterOptions, PATIENCE, ServerOptions, TTL, eventually};

#[test]
fn names_of_every_form_are_used_at_the_node_of_their_key() {
    let longest =
        ["n".repeat(1_024), "ü".repeat(512), format!("{{{}}}", "t".repeat(1_022)), format!("{{t}}{}", "n".repeat(1_021))];
    let forms =
        ["{shop}:orders", "orders:{shop}", "größe:{ä}:🔒", "日本", "a b\tc", "a:b", "x*?[y]", "{", "}", "}{", "a{b", "a}b"];
    for binary in Binary::ends() {
        let cluster = ClusterOptions::new().node(ServerOptions::new().binary(&binary)).start();
        for (prefix, is_tag) in [("", false), ("prod:", false), ("{team}:", true)] {
            let builder = Client::builder().url(cluster.url()).prefix(prefix).ttl(TTL);
            let client = builder.build().unwrap();
            for name in longest.iter().map(String::as_str).chain(forms) {
                // A key has one tag at most.
                if client.lock(name).validate().is_err() {
                    assert!(is_tag || name.contains(['{', '}']), "{prefix}{name}");
                    continue;
                }
                used(&client, name, || {
                    cluster.command(&format!("{prefix}{name}"), &["EXISTS", &format!("{prefix}{name}")]).int()
                });
            }
            client.close_blocking().unwrap();
        }
    }
}

/// A lock is handed over to a waiter, a job is begun and done, and an election is won.
fn used(client: &Client, name: &str, exists: impl Fn() -> i64) {
    let held = client.lock(name).acquire_blocking().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(exists(), 1, "{name}");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock(name).wait(PATIENCE).acquire_blocking().unwrap());
        eventually("it waits", PATIENCE, || client.lock(name).inspect_blocking().unwrap().unwrap().waiters == 1);
        let fence = held.fence();
        held.release_blocking().unwrap();
        let next = waiter.join().unwrap();
        assert!(next.fence() > fence, "{name}");
        next.release_blocking().unwrap();
    });
    assert_eq!(exists(), 0, "{name}");
    let Begun::Attempt(attempt) = client.job(name).begin_blocking().unwrap() else { panic!("{name}: it was never begun") };
    attempt.complete("sent").blocking().unwrap();
    assert!(client.job(name).reset_blocking().unwrap(), "{name}");
    client.election(name).campaign_blocking().unwrap().resign_blocking().unwrap();
}
