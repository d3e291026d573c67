//! A server whose clock can be set: the machine of the core, by a clock of the test.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktender::Client;
use locktender::machine::{Env, State, apply};
use locktender::server::{Completion, Request, Server};
use locktender_tests::Events;

use crate::ensemble::wall_us;

#[derive(Default)]
pub struct JumpyServer {
    address: String,
    state: Mutex<State>,
    ahead_us: AtomicU64,
    seen: Mutex<Vec<&'static str>>,
}

impl JumpyServer {
    pub fn several(count: usize) -> Vec<Arc<Self>> {
        let server = |n| Arc::new(Self { address: format!("jumpy://{n}"), ..Self::default() });
        (0..count).map(server).collect()
    }

    /// Sets the clock forward: keys expire by the new time.
    pub fn jump(&self, forward: Duration) {
        self.ahead_us.fetch_add(u64::try_from(forward.as_micros()).unwrap(), Ordering::SeqCst);
    }

    /// How often an operation was asked for.
    pub fn count(&self, op: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| **seen == op).count()
    }
}

impl Server for JumpyServer {
    fn address(&self) -> &str {
        &self.address
    }

    fn submit(&self, request: Request, completion: Completion) {
        self.seen.lock().unwrap().push(request.op.name());
        let mut state = self.state.lock().unwrap();
        let env = Env {
            now_us: wall_us() + self.ahead_us.load(Ordering::SeqCst),
            replid: "jumpy",
            known_as: "jumpy",
            is_renamed: false,
        };
        let reply = apply(&mut state, &request.op, &env);
        drop(state);
        completion.complete(Ok(reply));
    }
}

/// A client of servers that vote, and its events.
pub fn watched(servers: &[Arc<JumpyServer>]) -> (Client, Events) {
    let builder = servers.iter().fold(Client::builder(), |builder, server| builder.server(Arc::clone(server) as Arc<dyn Server>));
    let (client, events) = Events::of(builder);
    client.initialize_quorum().blocking().unwrap();
    (client, events)
}
