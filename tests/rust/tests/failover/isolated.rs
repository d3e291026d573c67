//! Isolated: every link to a primary is cut, those of its replicas, its sentinels and its clients, while it continues.

use std::array;
use std::sync::atomic::Ordering;

use locktender::{Client, ClientBuilder, EventKind, Failover, Hold};
use locktender_tests::{Binary, Events, PATIENCE, Proxy, RealServer, ServerOptions, eventually};

use crate::load::{Resource, under_load};
use crate::pair::ms;
use crate::watched::{SERVICE, field, sentinel};

/// A primary, a replica, and sentinels that know both by the addresses of their proxies.
struct Isolated {
    nodes: [RealServer; 2],
    links: [Proxy; 2],
    sentinels: [RealServer; 3],
}

impl Isolated {
    fn start(binary: &Binary) -> Self {
        let nodes: [RealServer; 2] =
            array::from_fn(|_| ServerOptions::new().binary(binary).config("repl-diskless-sync-delay 0").start());
        let links = array::from_fn(|at: usize| Proxy::to(nodes[at].port()));
        for (node, link) in nodes.iter().zip(&links) {
            node.command(&["CONFIG", "SET", "replica-announce-port", &link.port().to_string()]);
        }
        nodes[1].command(&["REPLICAOF", "127.0.0.1", &links[0].port().to_string()]);
        let info = || nodes[1].command(&["INFO", "replication"]).text().unwrap();
        eventually("the replica follows", PATIENCE, || info().contains("master_link_status:up"));
        let sentinels: [RealServer; 3] = array::from_fn(|_| sentinel(links[0].port(), 2).binary(binary).start());
        for sentinel in &sentinels {
            eventually("the sentinels know each other", PATIENCE, || field(sentinel, "num-other-sentinels") == "2");
            eventually("they know the replica", PATIENCE, || field(sentinel, "num-slaves") == "1");
        }
        Self { nodes, links, sentinels }
    }

    fn builder(&self) -> ClientBuilder {
        let places: Vec<String> = self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        Client::builder().url(format!("redis+sentinel://{}/{SERVICE}", places.join(",")))
    }
}

#[test]
fn an_isolated_primary_is_left_and_nobody_goes_back_when_the_links_are_there_again() {
    const MAX_TTL_MS: u64 = 6_000;
    let quarantined = |builder: ClientBuilder| {
        builder.failover(Failover::Quarantine).max_ttl(ms(MAX_TTL_MS)).ttl(ms(MAX_TTL_MS)).unavailable_after(ms(500))
    };
    let isolated = Isolated::start(&Binary::preferred());
    let (holder, events) = Events::of(quarantined(isolated.builder()));
    holder.initialize_quorum().blocking().unwrap();
    let held = holder.lock("held").ttl(ms(MAX_TTL_MS)).acquire_blocking().unwrap();
    let key = || isolated.nodes[1].holder("held");
    eventually("it is replicated", PATIENCE, || key().as_deref() == Some(held.owner()));
    let resource = Resource::default();
    under_load((0..4).map(|_| quarantined(isolated.builder())).collect(), &resource, || {
        isolated.links[0].black_hole();
        events.at_least(EventKind::FailedOver, 1);
        isolated.links[0].restore();
        let mut again = None;
        eventually("it is granted again", PATIENCE, || {
            again = holder.lock("b").try_acquire_blocking().ok().flatten();
            again.is_some()
        });
        let there = isolated.nodes[1].holder("b");
        assert_eq!(there.as_deref(), again.as_ref().map(Hold::owner), "nobody goes back");
    });
    assert_eq!((resource.overlaps.load(Ordering::SeqCst), resource.refused.load(Ordering::SeqCst)), (0, 0));
    assert!(!held.is_valid() || key().as_deref() == Some(held.owner()), "{:?}", held.check());
}
