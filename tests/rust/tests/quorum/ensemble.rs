//! An ensemble: several real servers as one value, each behind its own proxy.

use std::time::Duration;

use locktender::{Client, ClientBuilder, ClientOptions, Hold};
use locktender_tests::{Events, LENIENT, PATIENCE, Proxy, RealServer, eventually};

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// How long the background may take to clean up: an undo is asked twice, half a second apart.
pub const TIDY: Duration = ms(2_000);

/// The ttl of locks for which a test says nothing: whatever is gone before was taken off.
const LONG: Duration = ms(60_000);

/// The servers of a quorum. `servers[i]` is what the test looks at, `proxies[i]` is what its clients connect to.
pub struct Ensemble {
    pub servers: Vec<RealServer>,
    pub proxies: Vec<Proxy>,
}

impl Ensemble {
    pub fn start(count: usize) -> Self {
        Self::of((0..count).map(|_| RealServer::start()).collect())
    }

    pub fn of(servers: Vec<RealServer>) -> Self {
        let proxies = servers.iter().map(|server| Proxy::to(server.port())).collect();
        Self { servers, proxies }
    }

    /// How many decide.
    pub fn majority(&self) -> usize {
        self.servers.len() / 2 + 1
    }

    /// A client over the proxies. What is slow here is the machine, unless a test says otherwise.
    pub fn builder(&self) -> ClientBuilder {
        through(&self.proxies).configure(|options| {
            options.response_timeout = Some(LENIENT);
            options.lock.ttl = LONG;
        })
    }

    /// A client whose servers vote at once.
    pub fn trusted(&self) -> Client {
        self.trusted_with(|_| ())
    }

    pub fn trusted_with(&self, change: impl FnOnce(&mut ClientOptions)) -> Client {
        let client = self.builder().configure(change).build().unwrap();
        client.initialize_quorum().blocking().unwrap();
        client
    }

    /// A trusted client that has had an answer of every server once: from here on it waits for a majority only.
    pub fn acquainted(&self) -> Client {
        self.acquainted_with(|_| ())
    }

    pub fn acquainted_with(&self, change: impl FnOnce(&mut ClientOptions)) -> Client {
        self.watched_with(change).0
    }

    /// An acquainted client, and its events. An answer that a test holds back is never too late.
    pub fn watched(&self) -> (Client, Events) {
        self.watched_with(|options| options.response_timeout = Some(PATIENCE))
    }

    pub fn watched_with(&self, change: impl FnOnce(&mut ClientOptions)) -> (Client, Events) {
        let (client, events) = Events::of(self.builder().configure(change));
        client.initialize_quorum().blocking().unwrap();
        client.lock("acquaintance").acquire_blocking().unwrap().release().blocking().unwrap();
        (client, events)
    }

    pub fn value(&self, server: usize, key: &str) -> Option<String> {
        self.servers[server].command(&["GET", key]).text()
    }

    pub fn values(&self, key: &str) -> Vec<Option<String>> {
        (0..self.servers.len()).map(|server| self.value(server, key)).collect()
    }

    /// How many servers have this value.
    pub fn count(&self, key: &str, value: &str) -> usize {
        self.values(key).iter().flatten().filter(|found| *found == value).count()
    }

    /// Waits until every server has the hold, and the client has the answers: what is asked behind the acquire is answered after
    /// it.
    pub fn settled(&self, client: &Client, held: &Hold) {
        eventually("every server has it", TIDY, || self.count(held.name(), held.owner()) == self.servers.len());
        assert!(client.check_servers().blocking().unwrap().iter().all(|report| report.failure.is_none()));
    }

    /// Waits until no server has the key.
    pub fn left_clean(&self, key: &str) {
        eventually(&format!("no server has {key}"), TIDY, || self.values(key).iter().all(Option::is_none));
    }

    /// The last fence a server has issued.
    pub fn fence(&self, server: usize, key: &str) -> u64 {
        self.value(server, &fence_key(key)).map_or(0, |fence| fence.parse().unwrap())
    }

    pub fn set_fence(&self, server: usize, key: &str, fence: u64) {
        self.servers[server].command(&["SET", &fence_key(key), &fence.to_string()]);
    }

    pub fn flush_scripts(&self) {
        for server in &self.servers {
            server.command(&["SCRIPT", "FLUSH"]);
        }
    }
}

pub fn through(proxies: &[Proxy]) -> ClientBuilder {
    proxies.iter().fold(Client::builder(), |builder, proxy| builder.url(proxy.url()))
}

fn fence_key(key: &str) -> String {
    format!("{{{key}}}:~lt:fence")
}

/// Now, as fences count.
pub fn wall_us() -> u64 {
    u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap()
}
