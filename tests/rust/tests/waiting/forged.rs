//! Forged messages: a user who may publish can send them to a client without a release.

use std::time::Instant;

use locktender_tests::{PATIENCE, RealServer, Reply, eventually};

use crate::{Watched, acquire, entries, ms, scripts_run};

const FORGED: usize = 10_000;

#[test]
fn forged_messages_to_waiters_that_are_gone_cost_few_scripts() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").ttl(ms(600_000)).acquire_blocking().unwrap();
    let waiter = acquire(two.client.lock("a"));
    two.queued(1);
    let sharded = !server.binary().version.starts_with("6.");
    let (publish, channels) = if sharded { ("SPUBLISH", "SHARDCHANNELS") } else { ("PUBLISH", "CHANNELS") };
    let channel = || match server.command(&["PUBSUB", channels]) {
        Reply::Array(mut channels) => channels.pop().and_then(Reply::text),
        other => panic!("no channels: {other:?}"),
    };
    eventually("it listens", PATIENCE, || channel().is_some());
    let channel = channel().unwrap();
    let mut connection = server.connection().unwrap();
    let start = Instant::now();
    let before = scripts_run(&mut connection);
    for n in 0..FORGED {
        // On the lock that is waited for, on one of the sender's choice, and on ever new ones.
        let lock = ["a", "b", &*format!("new {n}")][n % 3].to_owned();
        connection.send(&[publish, &channel, &format!("claim 200 f{} {lock}", 1_000 + n)]).unwrap();
    }
    for _ in 0..FORGED {
        connection.reply().unwrap();
    }
    // Behind all of them: it is notified of this one, and gets the lock.
    held.release().blocking().unwrap();
    waiter.join().unwrap().release().blocking().unwrap();
    let scripts = scripts_run(&mut connection) - before;
    // So many locks in a claim window, whatever is said; and what the two clients do.
    let windows = start.elapsed().as_millis() as u64 / 200 + 2;
    assert!(scripts <= 64 * windows + 20, "{scripts} scripts in {:?}", start.elapsed());
    assert_eq!(entries(&server, "a"), 0);
}
