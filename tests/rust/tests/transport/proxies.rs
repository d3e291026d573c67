//! Proxies that pass scripts and little else, as Envoy and twemproxy do: played by a server without the other commands.

use std::thread;

use locktender::{Client, EventKind, Outcome};
use locktender_tests::{Events, PATIENCE, RealServer, ServerOptions, eventually};

/// A server without the commands that such proxies don't pass. They have no `TIME` either, but a script must have it.
fn bare() -> RealServer {
    let missing = ["CLIENT", "SUBSCRIBE", "SSUBSCRIBE", "SPUBLISH", "INFO", "SELECT", "WAIT"];
    let options =
        missing.iter().fold(ServerOptions::new(), |options, name| options.config(&format!("rename-command {name} \"\"")));
    options.start()
}

#[test]
fn locks_are_granted_renewed_waited_for_and_released_where_only_scripts_pass() {
    let server = bare();
    let (client, events) = Events::of(Client::builder().url(server.url()).ttl(std::time::Duration::from_millis(600)));
    let held = client.lock("a").acquire_blocking().unwrap();
    events.at_least(EventKind::Renewed, 2);
    let other = Client::open(server.url()).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.lock("a").wait(PATIENCE).acquire_blocking().unwrap());
        eventually("it waits", PATIENCE, || server.command(&["ZCOUNT", "{a}:~lt:queue", "0", "+inf"]).int() == 1);
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        waiting.join().unwrap().release().blocking().unwrap();
    });
    assert_eq!(events.count(EventKind::Lost), 0);
    let report = client.check_servers().blocking().unwrap().remove(0);
    assert!(report.failure.is_some(), "it says that INFO is missing: {report:?}");
}
