//! Trio: a primary with two replicas, one address for the holders and one for everybody else, and the ways in which it fails over.

use std::thread;

use locktender::{Client, ClientBuilder};
use locktender_tests::{Binary, PATIENCE, Proxy, RealServer, ServerOptions, eventually};

/// A way in which another node becomes the primary.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// The primary's process is killed.
    Killed,
    /// The primary's process stops, and continues when the new primary is there.
    Frozen,
    /// The primary becomes a replica, and keeps its connections.
    Demoted,
    /// The address moves, and the old primary doesn't know that it is none.
    Moved,
}

pub const WAYS: [Way; 4] = [Way::Killed, Way::Frozen, Way::Demoted, Way::Moved];

/// One version of each product.
pub fn versions() -> Vec<Binary> {
    let mut versions = Binary::all();
    let mut kinds = Vec::new();
    versions.retain(|binary| {
        let is_new = !kinds.contains(&binary.kind);
        kinds.push(binary.kind.clone());
        is_new
    });
    versions
}

/// Runs a scene for each version and way, all at once.
pub fn in_every_way(scene: impl Fn(Trio, Way) + Sync) {
    thread::scope(|scope| {
        for binary in versions() {
            for way in WAYS {
                let (binary, scene) = (binary.clone(), &scene);
                scope.spawn(move || scene(Trio::start(&binary), way));
            }
        }
    });
}

pub struct Trio {
    pub primary: RealServer,
    pub replicas: [RealServer; 2],
    /// Where the clients are that hold locks.
    pub holders: Proxy,
    /// Where the other clients are.
    pub others: Proxy,
}

impl Trio {
    /// Replicas that have all of their primary's data.
    pub fn start(binary: &Binary) -> Self {
        let start = || ServerOptions::new().binary(binary).config("repl-diskless-sync-delay 0").start();
        let (primary, replicas) = (start(), [start(), start()]);
        let (holders, others) = (Proxy::to(primary.port()), Proxy::to(primary.port()));
        let trio = Self { primary, replicas, holders, others };
        for replica in &trio.replicas {
            replica.command(&["REPLICAOF", "127.0.0.1", &trio.primary.port().to_string()]);
        }
        for replica in &trio.replicas {
            let info = || replica.command(&["INFO", "replication"]).text().unwrap();
            eventually("the replica follows", PATIENCE, || info().contains("master_link_status:up"));
        }
        trio
    }

    pub fn promoted(&self) -> &RealServer {
        &self.replicas[0]
    }

    /// Waits until the replica that will be promoted has a key with this value.
    pub fn has_replicated(&self, key: &str) {
        let value = self.primary.command(&["DUMP", key]);
        eventually("it is replicated", PATIENCE, || self.promoted().command(&["DUMP", key]) == value);
    }

    /// Cuts the links to the replicas: what the primary gets from now on, they don't know.
    pub fn cut_links(&self) {
        for replica in &self.replicas {
            replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
        }
    }

    /// Makes the first replica the primary. The holders' address still leads to the old one.
    pub fn fail_over(&mut self, way: Way) {
        match way {
            Way::Killed => self.primary.kill(),
            Way::Frozen => self.primary.pause(),
            Way::Demoted | Way::Moved => (),
        }
        self.promoted().command(&["REPLICAOF", "NO", "ONE"]);
        let port = self.promoted().port();
        self.replicas[1].command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
        match way {
            Way::Frozen => self.primary.resume(),
            Way::Demoted => drop(self.primary.command(&["REPLICAOF", "127.0.0.1", &port.to_string()])),
            Way::Killed | Way::Moved => (),
        }
        self.others.redirect(port);
    }

    /// Has the holders' address lead to the new primary, too.
    pub fn move_holders(&mut self) {
        self.holders.redirect(self.replicas[0].port());
    }

    pub fn holders(&self) -> ClientBuilder {
        Client::builder().url(self.holders.url())
    }

    pub fn others(&self) -> ClientBuilder {
        Client::builder().url(self.others.url())
    }
}
