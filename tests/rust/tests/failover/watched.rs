//! Watched: a primary with two replicas, and three sentinels that watch them.

use std::array;

use locktender::{Client, ClientBuilder};
use locktender_tests::{Binary, PATIENCE, RealServer, Reply, ServerOptions, eventually};

/// The name by which the sentinels watch the primary.
pub const SERVICE: &str = "main";

pub struct Watched {
    pub nodes: [RealServer; 3],
    pub sentinels: [RealServer; 3],
}

/// A sentinel that watches the primary at this port. It notices its end soon, and takes no node of a busy machine for dead.
pub fn sentinel(port: u16, quorum: usize) -> ServerOptions {
    ServerOptions::new()
        .sentinel()
        .config(&format!("sentinel monitor {SERVICE} 127.0.0.1 {port} {quorum}"))
        .config(&format!("sentinel down-after-milliseconds {SERVICE} 1500"))
        .config(&format!("sentinel failover-timeout {SERVICE} 10000"))
}

/// A field of the answer of a sentinel about the primary.
pub fn field(sentinel: &RealServer, name: &str) -> String {
    fields(sentinel.command(&["SENTINEL", "MASTER", SERVICE])).into_iter().find(|(key, _)| key == name).unwrap().1
}

fn fields(reply: Reply) -> Vec<(String, String)> {
    let Reply::Array(words) = reply else { panic!("no list: {reply:?}") };
    let mut words = words.into_iter().map(|word| word.text().unwrap());
    std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect()
}

impl Watched {
    /// Replicas that have all of their primary's data, and sentinels that know them all.
    pub fn start(binary: &Binary) -> Self {
        let node = |_| ServerOptions::new().binary(binary).config("repl-diskless-sync-delay 0").start();
        let nodes: [RealServer; 3] = array::from_fn(node);
        let port = nodes[0].port();
        for replica in &nodes[1..] {
            replica.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
        }
        let sentinels = array::from_fn(|_| sentinel(port, 2).binary(binary).start());
        for sentinel in &sentinels {
            // Newer versions can be configured to ask more often.
            let words = ["SENTINEL", "DEBUG", "info-period", "200", "ask-period", "200"];
            let _ = sentinel.connection().unwrap().command(&words);
        }
        let watched = Self { nodes, sentinels };
        for sentinel in &watched.sentinels {
            eventually("the sentinels know each other", PATIENCE, || field(sentinel, "num-other-sentinels") == "2");
            let replicas = || sentinel.command(&["SENTINEL", "REPLICAS", SERVICE]);
            let is_fit = |reply| {
                let fields = fields(reply);
                ["master-link-status ok", "flags slave"].iter().all(|wanted| {
                    let (name, value) = wanted.split_once(' ').unwrap();
                    fields.iter().any(|field| field.0 == name && field.1 == value)
                })
            };
            let all_fit = |reply| matches!(reply, Reply::Array(list) if list.len() == 2 && list.iter().cloned().all(is_fit));
            eventually("the sentinels know the replicas", PATIENCE, || all_fit(replicas()));
        }
        watched
    }

    pub fn url(&self) -> String {
        let places: Vec<String> = self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        format!("redis+sentinel://{}/{SERVICE}", places.join(","))
    }

    pub fn builder(&self) -> ClientBuilder {
        Client::builder().url(self.url())
    }

    /// Waits until the replicas have a key with the value that the first node has.
    pub fn has_replicated(&self, key: &str) {
        let value = self.nodes[0].command(&["GET", key]);
        eventually("it is replicated", PATIENCE, || self.nodes[1..].iter().all(|node| node.command(&["GET", key]) == value));
    }

    /// Waits until all sentinels name another primary than the first node; gives that node.
    pub fn promoted(&self) -> &RealServer {
        let old = self.nodes[0].port().to_string();
        eventually("there is a new primary", PATIENCE, || self.sentinels.iter().all(|sentinel| field(sentinel, "port") != old));
        let port = field(&self.sentinels[0], "port");
        self.nodes.iter().find(|node| node.port().to_string() == port).unwrap()
    }
}
