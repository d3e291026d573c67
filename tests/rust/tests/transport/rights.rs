//! Rights: the report on the rights of a client's user, on every server version.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::fs;

use locktender::{Client, Code, RunError, ServerReport};
use locktender_tests::{Binary, RealServer, ServerOptions, checkout};

const MARKER: &str = "{~lt}:marker";

/// The rights of the user in docs/wire.md.
fn documented() -> String {
    let page = fs::read_to_string(checkout().join("docs/wire.md")).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("ACL SETUSER locks on >password ")).unwrap();
    line.to_owned()
}

fn server(binary: &Binary, rules: &str) -> RealServer {
    ServerOptions::new().binary(binary).user("locks", "password", rules).start()
}

fn client(servers: &[RealServer]) -> Client {
    let urls = servers.iter().map(|server| format!("redis://locks:password@127.0.0.1:{}", server.port()));
    let builder = urls.fold(Client::builder(), locktender::ClientBuilder::url);
    builder.configure(|options| options.prefix = "prod:".into()).build().unwrap()
}

fn check(servers: &[RealServer]) -> Vec<ServerReport> {
    client(servers).check_servers().blocking().unwrap()
}

#[test]
fn the_documented_user_lacks_nothing_and_a_check_leaves_nothing_behind() {
    for binary in Binary::all() {
        let servers = [(); 3].map(|()| server(&binary, &documented()));
        client(&servers).initialize_quorum().blocking().unwrap();
        let marker = servers[0].command(&["GET", MARKER]).text();
        let held = client(&servers).lock("a").acquire_blocking().unwrap();
        for report in check(&servers) {
            assert_eq!(report.denied.as_deref(), Some(&[][..]), "{}: {report:?}", binary.name);
        }
        assert_eq!(servers[0].command(&["GET", MARKER]).text(), marker, "the marker is as it was");
        let tried = ["prod::~lt:probe", "{prod::~lt:probe}:~lt:fence", "{prod::~lt:probe}:~lt:job"];
        assert_eq!(servers[0].command(&[&["EXISTS"], &tried[..]].concat()).int(), 0);
        assert!(held.is_valid());
        let one = [server(&binary, &documented())];
        assert_eq!(check(&one)[0].denied.as_deref(), Some(&[][..]), "{}", binary.name);
        assert_eq!(one[0].command(&["EXISTS", "{~lt}:log"]).int(), 0, "{}", binary.name);
    }
}

#[test]
fn commands_and_keys_that_are_denied_are_named_with_what_they_are_for() {
    for binary in Binary::all() {
        let (all, name) = (documented(), &binary.name);
        let [lacking, blind, keyless, mute] = [
            format!("{all} -pexpire -exists -publish {}", if binary.version.starts_with("6.") { "" } else { "-spublish" }),
            format!("{all} -info"),
            // Without the pattern of the side keys a script that names one is denied as a whole.
            all.replace("~{prod:* ", ""),
            format!("{all} -evalsha -eval"),
        ]
        .map(|rules| check(&[server(&binary, &rules)]).remove(0));
        let expected = [
            "EXISTS of prod::~lt:probe, to distinguish a foreign key from none",
            "PEXPIRE of prod::~lt:probe, to renew and extend a lock",
            "PEXPIRE of {prod::~lt:probe}:~lt:job, to forget a job that nobody asks for",
            "PEXPIRE of {prod::~lt:probe}:~lt:queue, to forget a queue that nobody waits in",
            "SPUBLISH, to notify the next waiter of a release, on ~lt:wake:*, in a cluster on a channel like the lock's keys (PUBLISH before version 7)",
            "PUBLISH, to notify observers of an election",
        ];
        assert_eq!(lacking.denied.as_deref().unwrap(), expected, "{name}");
        assert!(lacking.failure.is_none(), "{name}: {lacking:?}");
        let warned =
            |report: &ServerReport| report.warnings.iter().filter(|warning| warning.contains("a right is missing")).count();
        assert_eq!(warned(&lacking), expected.len(), "{name}");
        assert!(blind.failure.is_some() && blind.denied.as_deref() == Some(&[]), "{name}: {blind:?}");
        let forgetful = check(&[server(&binary, &all.replace(" ~{~lt}:log", ""))]).remove(0);
        let history = [
            "XADD of {~lt}:log, to note holds in the history, unless the option `history` is off",
            "XREVRANGE of {~lt}:log, to see in the history who held a lock",
        ];
        assert_eq!(forgetful.denied.as_deref().unwrap(), history, "{name}");
        for report in [keyless, mute] {
            assert_eq!((report.denied.as_deref().unwrap().len(), warned(&report)), (1, 1), "{name}: {report:?}");
        }
    }
}

#[test]
fn rights_of_a_server_that_does_not_answer_are_unknown() {
    let client = Client::open("redis://127.0.0.1:1").unwrap();
    let report = client.check_servers().blocking().unwrap().remove(0);
    assert_eq!(report.denied, None);
    assert!(report.warnings.is_empty(), "{report:?}");
}

#[test]
fn a_job_without_the_rights_to_its_record_is_denied() {
    for binary in Binary::ends() {
        for right in ["hset", "hmget", "hget"] {
            let servers = [server(&binary, &format!("{} -{right}", documented()))];
            let client = client(&servers);
            let job = client.job("a");
            let run = job.run_blocking(|_| Ok::<_, Infallible>(()));
            match right {
                // It is asked for only where the record says something already.
                "hget" => run.map(drop).unwrap(),
                _ => {
                    let Err(RunError::Lock(error)) = run else { panic!("{}: {right}: {run:?}", binary.name) };
                    assert_eq!(error.code(), Code::Denied, "{}: {right}: {error}", binary.name);
                }
            }
            let seen = [job.status_blocking().map(drop), job.reset_blocking().map(drop)];
            for seen in seen.into_iter().filter(|_| right == "hmget") {
                assert_eq!(seen.unwrap_err().code(), Code::Denied, "{}", binary.name);
            }
        }
    }
}
