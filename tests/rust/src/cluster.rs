//! Cluster: some servers that share the slots of a cluster, made by plain commands.

use crate::{Binary, PATIENCE, RealServer, Reply, ServerOptions, eventually};

/// How many slots the keys of a cluster are spread over.
pub const SLOTS: u16 = 16_384;

/// A few small keys fit into one command.
const AT_A_TIME: usize = 500;

/// The options of a cluster: three primaries without replicas by default, and a slot that nobody serves concerns its own keys only.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    node: ServerOptions,
    primaries: u16,
    replicas: u16,
    full_coverage: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self { node: ServerOptions::new(), primaries: 3, replicas: 0, full_coverage: false }
    }
}

impl ClusterOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses these options for each node: a version, a password, users, TLS, lines of its configuration. With TLS, clients get
    /// the port that speaks it, and replicas can't follow.
    pub fn node(mut self, options: ServerOptions) -> Self {
        self.node = options;
        self
    }

    /// Sets how many nodes have slots.
    pub fn primaries(mut self, count: u16) -> Self {
        self.primaries = count;
        self
    }

    /// Sets how many replicas each of them has.
    pub fn replicas(mut self, count: u16) -> Self {
        self.replicas = count;
        self
    }

    /// Has a slot that nobody serves stop the whole cluster, as it does by default in production.
    pub fn full_coverage(mut self) -> Self {
        self.full_coverage = true;
        self
    }

    /// Starts the nodes, and waits until every node knows all others and reports that the cluster is ready.
    pub fn start(self) -> Cluster {
        Cluster::with(&self)
    }
}

/// A cluster. The nodes from 0 on are its first primaries; after them come the replicas of the first one, of the second one, …
pub struct Cluster {
    /// The nodes, running or killed.
    pub nodes: Vec<RealServer>,
    ids: Vec<String>,
    password: Option<String>,
}

impl Cluster {
    /// Three primaries of the preferred version.
    pub fn start() -> Self {
        ClusterOptions::new().start()
    }

    fn with(options: &ClusterOptions) -> Self {
        let coverage = if options.full_coverage { "yes" } else { "no" };
        let count = usize::from(options.primaries) * usize::from(1 + options.replicas);
        let node = || {
            let node = options.node.clone().cluster().config("cluster-node-timeout 1500").config("repl-diskless-sync-delay 0");
            let node = node.config(&format!("cluster-require-full-coverage {coverage}"));
            match &options.node.password {
                Some(password) => node.config(&format!("masterauth {password}")).start(),
                None => node.start(),
            }
        };
        let nodes: Vec<_> = (0..count).map(|_| node()).collect();
        let ids = nodes.iter().map(|node| text(node, &["CLUSTER", "MYID"])).collect();
        let cluster = Self { nodes, ids, password: options.node.password.clone() };
        cluster.form(options);
        cluster
    }

    fn form(&self, options: &ClusterOptions) {
        for (index, node) in self.nodes.iter().enumerate() {
            // Else equal ones collide, and nodes take a while to settle that.
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if node.port() != node.own_port() {
                node.command(&["CONFIG", "SET", "cluster-announce-port", &node.port().to_string()]);
            }
            // Each meets each: they needn't wait for the reports of others.
            for other in &self.nodes[..index] {
                let (port, bus) = (other.own_port().to_string(), other.bus_port().to_string());
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            }
        }
        let primaries = u32::from(options.primaries);
        let first = |index: u32| index * u32::from(SLOTS) / primaries;
        for (node, index) in self.nodes.iter().zip(0..primaries) {
            let slots: Vec<_> = (first(index)..first(index + 1)).map(|slot| slot.to_string()).collect();
            let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
            node.command(&words.collect::<Vec<_>>());
        }
        let all_know_all = || self.nodes.iter().all(|node| info(node, "cluster_known_nodes") == self.nodes.len().to_string());
        eventually("the nodes know each other", PATIENCE, all_know_all);
        let (primaries, replicas) = self.nodes.split_at(usize::from(options.primaries));
        for (index, replica) in replicas.iter().enumerate() {
            let primary = &self.ids[index / usize::from(options.replicas)];
            // It must know the other as a primary with slots before.
            let follow =
                || replica.try_command(&["CLUSTER", "REPLICATE", primary]).is_ok_and(|reply| !matches!(reply, Reply::Error(_)));
            eventually("it becomes a replica", PATIENCE, follow);
        }
        for replica in replicas {
            let replication = || text(replica, &["INFO", "replication"]);
            eventually("the replica follows", PATIENCE, || replication().contains("master_link_status:up"));
        }
        let is_ready = |node: &RealServer| {
            info(node, "cluster_state") == "ok"
                && info(node, "cluster_slots_ok") == SLOTS.to_string()
                && info(node, "cluster_size") == primaries.len().to_string()
                && served(node).iter().map(|range| range.ids.len()).sum::<usize>() == self.nodes.len()
        };
        eventually("the cluster is ready", PATIENCE, || self.nodes.iter().all(is_ready));
    }

    /// The URL with the ports of all nodes, and the password if they need one.
    pub fn url(&self) -> String {
        let scheme = if self.nodes[0].port() == self.nodes[0].own_port() { "redis+cluster" } else { "rediss+cluster" };
        let login = self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default();
        let hosts: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("{scheme}://{login}{}", hosts.join(","))
    }

    /// The slot of a key.
    pub fn slot(&self, key: &str) -> u16 {
        let slot = self.running().next().unwrap().1.command(&["CLUSTER", "KEYSLOT", key]).int();
        u16::try_from(slot).unwrap()
    }

    /// The index of the node that serves a slot, as the first running node knows it.
    pub fn primary(&self, slot: u16) -> usize {
        self.primary_for(self.running().next().unwrap().1, slot).expect("nobody serves the slot")
    }

    /// The node that serves a key.
    pub fn at(&self, key: &str) -> &RealServer {
        &self.nodes[self.primary(self.slot(key))]
    }

    /// Asks the node that serves the key. An error reply fails the test.
    pub fn command(&self, key: &str, words: &[&str]) -> Reply {
        self.at(key).command(words)
    }

    /// Writes small keys with this tag.
    pub fn fill(&self, tag: &str, count: usize) {
        let node = self.at(tag);
        let keys: Vec<_> = (0..count).map(|number| format!("{{{tag}}}:filler:{number}")).collect();
        for part in keys.chunks(AT_A_TIME) {
            let words = part.iter().flat_map(|key| [key.as_str(), "x"]);
            node.command(&["MSET"].into_iter().chain(words).collect::<Vec<_>>());
        }
    }

    /// Begins to move a slot: from now on it is `MIGRATING` where it is, and `IMPORTING` at the other node. No key moves yet.
    pub fn begin_move(&self, slot: u16, to: usize) {
        let (from, slot) = (self.primary(slot), slot.to_string());
        self.nodes[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.ids[from]]);
        self.nodes[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.ids[to]]);
    }

    /// Moves at most so many keys of a slot whose move has begun. Returns how many it moved: 0 if none is left.
    pub fn move_keys(&self, slot: u16, to: usize, limit: usize) -> usize {
        let from = &self.nodes[self.primary(slot)];
        let Reply::Array(keys) = from.command(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &limit.to_string()]) else {
            panic!("no list of keys")
        };
        let keys: Vec<_> = keys.into_iter().filter_map(Reply::text).collect();
        if !keys.is_empty() {
            let (port, patience) = (self.nodes[to].own_port().to_string(), PATIENCE.as_millis().to_string());
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", &patience];
            if let Some(password) = &self.password {
                words.extend(["AUTH", password]);
            }
            words.push("KEYS");
            words.extend(keys.iter().map(String::as_str));
            from.command(&words);
        }
        keys.len()
    }

    /// Ends the move of a slot whose keys have all moved: the other node serves it from now on, and all know.
    pub fn finish_move(&self, slot: u16, to: usize) {
        let from = self.primary(slot);
        // The target first: if the source went first, both could send clients to each other.
        let is_another = |index: &usize| *index != to && *index != from;
        let others: Vec<_> = self.running().map(|(index, _)| index).filter(is_another).collect();
        for index in [to, from].into_iter().chain(others) {
            let reply = self.nodes[index].try_command(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &self.ids[to]]).unwrap();
            // A replica learns it from its primary.
            assert!(!matches!(&reply, Reply::Error(error) if !error.contains("replica")), "{reply:?}");
        }
        self.all_name(slot, to);
    }

    /// Moves a slot with all its keys, key by key.
    pub fn move_slot(&self, slot: u16, to: usize) {
        self.begin_move(slot, to);
        while self.move_keys(slot, to, AT_A_TIME) > 0 {}
        self.finish_move(slot, to);
    }

    /// Whether the servers can move a slot at once (Valkey 9).
    pub fn moves_at_once(&self) -> bool {
        let Binary { kind, version, .. } = self.nodes[0].binary();
        kind == "valkey" && version.split('.').next().is_some_and(|major| major.parse::<u32>().unwrap() >= 9)
    }

    /// Moves a slot with all its keys at once, as Valkey 9 does: each key is served without a gap.
    pub fn move_at_once(&self, slot: u16, to: usize) {
        let (from, slot_word) = (self.primary(slot), slot.to_string());
        self.nodes[from].command(&["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &slot_word, &slot_word, "NODE", &self.ids[to]]);
        self.all_name(slot, to);
    }

    /// Announces another port of a node to clients, such as a proxy's.
    pub fn announce(&self, index: usize, port: u16) {
        self.nodes[index].command(&["CONFIG", "SET", "cluster-announce-port", &port.to_string()]);
        let is_announced = |node: &RealServer| served(node).iter().any(|range| range.ports.contains(&port));
        eventually("the other port is known", PATIENCE, || self.running().all(|(_, node)| is_announced(node)));
    }

    /// Kills a primary, and waits until all nodes that run name its replica. Returns the index of this.
    pub fn fail_over(&mut self, index: usize) -> usize {
        let range = served(&self.nodes[index]).into_iter().find(|range| range.ids[0] == self.ids[index]);
        let slot = range.expect("the node has no slots").first;
        self.nodes[index].kill();
        let named = |node| self.primary_for(node, slot).filter(|named| *named != index);
        let all_agree = || {
            let mut named = self.running().map(|(_, node)| named(node));
            let first = named.next().unwrap();
            first.is_some()
                && named.all(|other| other == first)
                && self.running().all(|(_, node)| info(node, "cluster_state") == "ok")
        };
        eventually("a replica takes over", PATIENCE, all_agree);
        self.primary(slot)
    }

    /// Has a replica take over from its primary as planned, and waits until all nodes that run name it for this slot.
    pub fn hand_over(&self, slot: u16, replica: usize) {
        self.nodes[replica].command(&["CLUSTER", "FAILOVER"]);
        self.all_name(slot, replica);
    }

    /// Has a node without slots follow another primary, and waits until it has the same keys.
    pub fn follow(&self, index: usize, primary: usize) {
        let (node, id) = (&self.nodes[index], &self.ids[primary]);
        let follows = || node.try_command(&["CLUSTER", "REPLICATE", id]).is_ok_and(|reply| !matches!(reply, Reply::Error(_)));
        eventually("it becomes a replica", PATIENCE, follows);
        let (port, is_up) = (self.nodes[primary].own_port(), "master_link_status:up");
        let replication = || text(node, &["INFO", "replication"]);
        eventually("the replica follows", PATIENCE, || {
            let replication = replication();
            replication.contains(&format!("master_port:{port}")) && replication.contains(is_up)
        });
    }

    fn running(&self) -> impl Iterator<Item = (usize, &RealServer)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.is_running())
    }

    fn primary_for(&self, node: &RealServer, slot: u16) -> Option<usize> {
        let range = served(node).into_iter().find(|range| (range.first..=range.last).contains(&slot))?;
        self.ids.iter().position(|id| *id == range.ids[0])
    }

    fn all_name(&self, slot: u16, to: usize) {
        eventually("all know who serves the slot", PATIENCE, || {
            self.running().all(|(_, node)| self.primary_for(node, slot) == Some(to))
        });
    }
}

/// A range of slots, and the nodes that have it: the primary first.
struct Served {
    first: u16,
    last: u16,
    ids: Vec<String>,
    ports: Vec<u16>,
}

fn served(node: &RealServer) -> Vec<Served> {
    let Reply::Array(ranges) = node.command(&["CLUSTER", "SLOTS"]) else { panic!("no list of slots") };
    let number = |reply: &Reply| u16::try_from(reply.clone().int()).unwrap();
    let read = |range| {
        let Reply::Array(parts) = range else { panic!("no range of slots") };
        let nodes = parts[2..].iter().map(|node| match node {
            Reply::Array(fields) => (fields[2].clone().text().unwrap(), number(&fields[1])),
            other => panic!("no node: {other:?}"),
        });
        let (ids, ports) = nodes.unzip();
        Served { first: number(&parts[0]), last: number(&parts[1]), ids, ports }
    };
    ranges.into_iter().map(read).collect()
}

fn text(node: &RealServer, words: &[&str]) -> String {
    node.command(words).text().unwrap()
}

fn info(node: &RealServer, field: &str) -> String {
    let info = text(node, &["CLUSTER", "INFO"]);
    let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in {info}")).trim().to_owned()
}
