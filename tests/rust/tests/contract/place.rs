//! Places: the servers on which cases are played.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use std::{env, thread};

use locktender::testing::ScriptedServer;
use locktender::{Client, ClientOptions};
use locktender_tests::{Cluster, ClusterOptions, RealServer, Reply, ServerOptions};
use serde_json::Value;

static PLAIN: LazyLock<RealServer> = LazyLock::new(RealServer::start);
static TLS: LazyLock<RealServer> = LazyLock::new(|| ServerOptions::new().tls("server").start());
static ELSEWHERE: LazyLock<RealServer> = LazyLock::new(|| ServerOptions::new().tls("elsewhere").start());
static GUARDED: LazyLock<RealServer> =
    LazyLock::new(|| ServerOptions::new().password("secret").user("guest", "guest", "~* +@connection +get").start());

static SENTINEL: LazyLock<RealServer> = LazyLock::new(|| {
    ServerOptions::new().sentinel().config(&format!("sentinel monitor main 127.0.0.1 {} 1", PLAIN.port())).start()
});

static QUORUM: LazyLock<[RealServer; 3]> = LazyLock::new(|| {
    let servers = [(); 3].map(|()| RealServer::start());
    let client = servers.iter().fold(Client::builder(), |builder, server| builder.url(server.url())).build().unwrap();
    client.initialize_quorum().blocking().unwrap();
    servers
});

static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);
static ONE_NODE: LazyLock<Cluster> = LazyLock::new(|| ClusterOptions::new().primaries(1).start());

/// The commands without a key, which every node of a cluster is asked.
const KEYLESS: [&str; 2] = ["KEYS", "SCRIPT"];

/// Where a case is played.
#[derive(Default)]
pub struct Place {
    pub name: String,
    pub urls: Vec<String>,
    /// The servers that `server` steps reach.
    servers: Vec<&'static RealServer>,
    /// The cluster of whose nodes these are all.
    cluster: Option<&'static Cluster>,
    /// The server that plays what the case says, if it says so.
    pub scripted: Option<Arc<ScriptedServer>>,
    /// Open for as long as a client may connect.
    _listener: Option<TcpListener>,
}

impl Place {
    /// The places of a case's `at`.
    pub fn all(at: &Value) -> Vec<Self> {
        let chosen = env::var("LOCKTENDER_CONTRACT_PLACES").unwrap_or_else(|_| "memory,redis,quorum".into());
        match at {
            Value::Object(literal) if literal.contains_key("scripted") => {
                let scripted = ScriptedServer::new("scripted");
                play(&scripted, &literal["scripted"]);
                vec![Self { name: "scripted".into(), scripted: Some(scripted), ..Self::default() }]
            }
            Value::Object(literal) => {
                let urls = literal["urls"].as_array().unwrap().iter().map(|url| url.as_str().unwrap().to_owned());
                vec![Self { name: "urls".into(), urls: urls.collect(), ..Self::default() }]
            }
            Value::String(name) if name == "one_server" => {
                chosen.split(',').filter(|name| *name != "quorum").map(Self::named).collect()
            }
            Value::String(name) if name == "redis" => {
                ["redis"].into_iter().chain(chosen.split(',').filter(|name| *name == "cluster")).map(Self::named).collect()
            }
            Value::String(name) if name != "any" => vec![Self::named(name)],
            _ => chosen.split(',').map(Self::named).collect(),
        }
    }

    /// The options of a client where a case gives none. Where there is an answer it is waited for: an attempt that isn't repeated
    /// may meet a stalled machine.
    pub fn options(&self) -> ClientOptions {
        let mut options = ClientOptions::default();
        if !["silent", "scripted", "urls"].contains(&self.name.as_str()) {
            options.connect_timeout = Duration::from_secs(5);
            options.response_timeout = Some(Duration::from_secs(5));
        }
        options
    }

    /// What each of the servers answers that have to do with a command: in a cluster the one that serves its key.
    pub fn replies(&self, words: &[&str]) -> Vec<Reply> {
        match self.cluster {
            Some(cluster) if !KEYLESS.contains(&words[0]) => vec![cluster.command(words[1], words)],
            _ => self.servers.iter().map(|server| server.command(words)).collect(),
        }
    }

    /// What all servers answer together. In a cluster each has a part of a list; elsewhere they should not differ.
    pub fn reply(&self, words: &[&str]) -> Reply {
        let mut replies = self.replies(words);
        let last = replies.pop().expect("this place has no server to command");
        match (self.cluster, last) {
            (Some(_), Reply::Array(last)) => {
                let parts = replies.into_iter().map(|reply| if let Reply::Array(part) = reply { part } else { Vec::new() });
                Reply::Array(parts.flatten().chain(last).collect())
            }
            (_, last) => last,
        }
    }

    fn named(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let at = |server: &'static RealServer, url: String| Self { urls: vec![url], servers: vec![server], ..Self::default() };
        let local = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}");
        let place = match name {
            "memory" => {
                let url = format!("memory://contract-{}", COUNT.fetch_add(1, Ordering::Relaxed));
                Self { urls: vec![url], ..Self::default() }
            }
            "redis" => at(&PLAIN, PLAIN.url()),
            "sentinel" => at(&PLAIN, format!("redis+sentinel://127.0.0.1:{}/main", SENTINEL.port())),
            "cluster" => {
                let (urls, servers) = (vec![CLUSTER.url()], CLUSTER.nodes.iter().collect());
                Self { urls, servers, cluster: Some(&CLUSTER), ..Self::default() }
            }
            "one_node" => at(&ONE_NODE.nodes[0], ONE_NODE.nodes[0].url()),
            "quorum" => {
                Self { urls: QUORUM.iter().map(RealServer::url).collect(), servers: QUORUM.iter().collect(), ..Self::default() }
            }
            "unix" => at(&PLAIN, PLAIN.unix_url()),
            "password" => at(&GUARDED, GUARDED.url()),
            "wrong_password" => at(&GUARDED, format!("redis://:hunter2@127.0.0.1:{}", GUARDED.port())),
            "no_password" => at(&GUARDED, local("redis", GUARDED.port())),
            "no_rights" => at(&GUARDED, format!("redis://guest:guest@127.0.0.1:{}", GUARDED.port())),
            "tls" => at(&TLS, TLS.url()),
            "tls_elsewhere" => at(&ELSEWHERE, ELSEWHERE.url()),
            "tls_as_clear" => at(&TLS, local("redis", TLS.port())),
            "no_database" => at(&PLAIN, format!("{}/99", PLAIN.url())),
            "clear_as_tls" => at(&PLAIN, local("rediss", PLAIN.port())),
            // Reserved for a service that nobody runs.
            "refused" => Self { urls: vec![local("redis", 1)], ..Self::default() },
            "not_redis" | "silent" => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let url = local("redis", listener.local_addr().unwrap().port());
                let silent = listener.try_clone().unwrap();
                if name == "not_redis" {
                    thread::spawn(move || serve_http(&listener));
                }
                Self { urls: vec![url], _listener: Some(silent), ..Self::default() }
            }
            other => panic!("no place {other}"),
        };
        Self { name: name.into(), ..place }
    }
}

/// Has the scripted server play more lines.
pub fn play(scripted: &ScriptedServer, lines: &Value) {
    for line in lines.as_array().unwrap() {
        scripted.play(line.as_str().unwrap()).unwrap();
    }
}

/// Answers as a web server would. The thread ends with the test process.
fn serve_http(listener: &TcpListener) {
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let _ = connection.read(&mut [0; 4096]);
        let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    }
}
