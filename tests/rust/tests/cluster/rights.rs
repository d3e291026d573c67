//! The rights of a user on a cluster: what the report names, and the error of a lock whose slot moves.

use std::fs;

use locktender::{Client, ClientBuilder, Code};
use locktender_tests::{Cluster, ClusterOptions, ServerOptions, checkout};

/// The rights of the user in docs/wire.md, on a cluster.
fn documented() -> String {
    let page = fs::read_to_string(checkout().join("docs/wire.md")).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("ACL SETUSER locks on >password ")).unwrap();
    let [commands, channels] = ["+cluster|slots +asking", "&prod:* &{prod:*"];
    let paragraph = page.lines().find(|line| line.starts_with("On a cluster the user also needs")).unwrap().replace("`, `", " ");
    assert!(paragraph.contains(commands) && paragraph.contains(channels), "{paragraph}");
    format!("{} {commands}", line.replace("&~lt:wake:*", channels))
}

fn cluster(rules: &str) -> Cluster {
    ClusterOptions::new().node(ServerOptions::new().password("the-administrators").user("locks", "password", rules)).start()
}

fn builder(cluster: &Cluster) -> ClientBuilder {
    let hosts: Vec<_> = cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let builder = Client::builder().url(format!("redis+cluster://locks:password@{}", hosts.join(",")));
    builder.configure(|options| options.prefix = "prod:".into())
}

fn denied(builder: ClientBuilder) -> Vec<String> {
    {
        let report = builder.build().unwrap().check_servers().blocking().unwrap().remove(0);
        report.denied.clone().unwrap_or_else(|| panic!("{report:?}"))
    }
}

#[test]
fn the_report_names_what_the_documented_user_lacks() {
    let all = documented();
    let asking = "ASKING, to follow a lock whose slot moves";
    let wake = "SPUBLISH, to notify the next waiter of a release, on ~lt:wake:*, in a cluster on a channel like the lock's keys (PUBLISH before version 7)";
    let none: &[&str] = &[];
    for (rules, expected) in [
        (all.clone(), none),
        (all.replace("+asking", ""), &[asking]),
        (all.replace("&prod:* &{prod:*", "&~lt:wake:*"), &[wake]),
        (all.replace("+scan", ""), &["SCAN, to list the locks"]),
    ] {
        assert_eq!(denied(builder(&cluster(&rules))), expected, "{rules}");
    }
    let cluster = cluster(&all);
    assert_eq!(denied(builder(&cluster).min_replicas(1)), ["WAIT, to have replicas confirm what is granted"]);
}

#[test]
fn a_lock_whose_slot_moves_is_denied_to_who_may_not_ask() {
    let cluster = cluster(&documented().replace("+asking", ""));
    let client = builder(&cluster).build().unwrap();
    let slot = cluster.slot("prod:{a}");
    cluster.begin_move(slot, (cluster.primary(slot) + 1) % 3);
    let error = client.lock("{a}").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Denied, "{error}");
    assert!(error.to_string().contains("asking") && error.to_string().contains(" &prod:* &{prod:* "), "{error}");
    client.close_blocking().unwrap();
}
