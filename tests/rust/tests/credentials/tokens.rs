//! A token server: each of its answers is a user of its own, with a password, for a few seconds.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktender::{ClientBuilder, Credentials, CredentialsFuture, CredentialsProvider};
use locktender_tests::{LENIENT, RealServer, ServerOptions};

/// The rights of a token's user.
const RIGHTS: [&str; 3] = ["~*", "&*", "+@all"];

/// What the next call does instead of giving a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It gives a password that the server doesn't know.
    Wrong,
    Fails,
    Panics,
    /// It never ends, without using a thread.
    Hangs,
    /// It never ends, and blocks its thread.
    Blocks,
}

struct State {
    calls: u32,
    turns: VecDeque<Turn>,
    servers: Vec<String>,
}

/// A provider that makes its users on a real server. Its clones are the same one.
#[derive(Clone)]
pub(crate) struct Tokens {
    server: Arc<RealServer>,
    life: Option<Duration>,
    state: Arc<Mutex<State>>,
}

impl Tokens {
    pub(crate) fn new(server: &Arc<RealServer>, life: Option<Duration>) -> Self {
        let state = State { calls: 0, turns: VecDeque::new(), servers: Vec::new() };
        Self { server: Arc::clone(server), life, state: Arc::new(Mutex::new(state)) }
    }

    /// Says what the next calls do.
    pub(crate) fn next(&self, turns: impl IntoIterator<Item = Turn>) {
        self.state.lock().unwrap().turns.extend(turns);
    }

    pub(crate) fn calls(&self) -> u32 {
        self.state.lock().unwrap().calls
    }

    /// The servers that the calls were for.
    pub(crate) fn servers(&self) -> Vec<String> {
        self.state.lock().unwrap().servers.clone()
    }

    /// A client of the server with these credentials.
    pub(crate) fn builder(&self) -> ClientBuilder {
        let url = format!("redis://127.0.0.1:{}", self.server.port());
        locktender::Client::builder().url(url).connect_timeout(LENIENT).credentials(self.clone())
    }

    /// The user of the token with this number.
    pub(crate) fn user(number: u32) -> String {
        format!("token-{number}")
    }

    fn token(&self, server: &str) -> (u32, Option<Turn>) {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        state.servers.push(server.to_owned());
        (state.calls, state.turns.pop_front())
    }
}

impl CredentialsProvider for Tokens {
    fn credentials<'a>(&'a self, server: &'a str) -> CredentialsFuture<'a> {
        Box::pin(async move {
            let (number, turn) = self.token(server);
            let (user, password) = (Self::user(number), format!("hunter2-of-{number}"));
            let credentials = Credentials::new(&*password).user(&*user);
            match turn {
                Some(Turn::Wrong) => return Ok(credentials),
                Some(Turn::Fails) => return Err(io::Error::other("the token server is down").into()),
                Some(Turn::Panics) => panic!("the token server was forgotten"),
                Some(Turn::Hangs) => std::future::pending().await,
                Some(Turn::Blocks) => loop {
                    std::thread::park();
                },
                None => {
                    let password = format!(">{password}");
                    self.server.command(&[&["ACL", "SETUSER", &*user, "on", &*password][..], &RIGHTS].concat());
                }
            }
            Ok(self.life.into_iter().fold(credentials, Credentials::expires_in))
        })
    }
}

/// A server on which only an administrator and the tokens' users can do something.
pub(crate) fn server(options: ServerOptions) -> Arc<RealServer> {
    Arc::new(options.password("the-administrators").start())
}

/// The connections of clients of this library: the id and the user of each.
pub(crate) fn connections(server: &RealServer) -> Vec<(u64, String)> {
    connections_of(server, &["normal", "pubsub"])
}

/// Those of these types.
pub(crate) fn connections_of(server: &RealServer, types: &[&str]) -> Vec<(u64, String)> {
    let lists = types.iter().map(|kind| server.command(&["CLIENT", "LIST", "TYPE", kind]).text().unwrap());
    let list: String = lists.collect();
    let field = |line: &str, name: &str| {
        let prefix = format!("{name}=");
        line.split(' ').find_map(|field| field.strip_prefix(&prefix).map(str::to_owned)).unwrap()
    };
    let ours = list.lines().filter(|line| field(line, "name").starts_with("locktender"));
    let mut ids: Vec<_> = ours.map(|line| (field(line, "id").parse().unwrap(), field(line, "user"))).collect();
    ids.sort_unstable();
    ids
}
