//! Pair: a primary and a replica, and a proxy that leads to one of them.

use std::time::Duration;

use locktender::{Client, ClientBuilder};
use locktender_tests::{PATIENCE, Proxy, RealServer, ServerOptions, eventually};

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A primary, its replica, and the address of the primary as clients know it.
pub struct Pair {
    pub primary: RealServer,
    pub replica: RealServer,
    pub address: Proxy,
}

impl Pair {
    /// A replica that has all of its primary's data.
    pub fn start() -> Self {
        Self::with(ServerOptions::new)
    }

    pub fn with(options: impl Fn() -> ServerOptions) -> Self {
        let [primary, replica] = [(); 2].map(|()| options().config("repl-diskless-sync-delay 0").start());
        let address = Proxy::to(primary.port());
        let pair = Self { primary, replica, address };
        pair.follow();
        pair
    }

    /// Has the replica follow the primary, and waits until it has its data.
    pub fn follow(&self) {
        self.replica.command(&["REPLICAOF", "127.0.0.1", &self.primary.port().to_string()]);
        let info = || self.replica.command(&["INFO", "replication"]).text().unwrap();
        eventually("the replica follows", PATIENCE, || info().contains("master_link_status:up"));
    }

    /// Cuts the link between them: what the primary gets from now on, the replica doesn't know.
    pub fn cut_link(&self) {
        self.replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    }

    /// Makes the replica a primary, and has the address lead to it.
    pub fn fail_over(&mut self) {
        self.replica.command(&["REPLICAOF", "NO", "ONE"]);
        self.address.redirect(self.replica.port());
    }

    pub fn builder(&self) -> ClientBuilder {
        Client::builder().url(self.address.url())
    }
}
