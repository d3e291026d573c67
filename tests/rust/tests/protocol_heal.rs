//! A heal must not meet an acquire of the same hold that is still on its way; found by the model checker.
//!
//! Behind the heal the acquire would find its own value, vote above the fence, and be released there: a key would be gone that
//! the holder's validity counts on, and another client could win a majority while the first still believes in its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use locktender::internals::clock::{Now, Tick};
use locktender::internals::name::{Keys, Kind};
use locktender::internals::owner::Signature;
use locktender::internals::protocol::{Acquisition, Amount, Command, Input, Recipe, Tag};
use locktender::machine::{Env, State, apply};
use locktender::op::{Op, QuorumConfig, Verb};
use locktender::server::Request;
use locktender::{LockOptions, Wait};

const EPOCH: u64 = 1_800_000_000_000_000;

const CONFIG: QuorumConfig = QuorumConfig { servers: 3, max_ttl_ms: 60_000 };

fn at(ms: u64) -> Now {
    Now { tick: Tick::from_micros(1_000_000 + ms * 1_000), wall_us: EPOCH + ms * 1_000, servers_us: EPOCH + ms * 1_000 }
}

fn recipe() -> Arc<Recipe> {
    let mut options = LockOptions::default();
    options.renew = false;
    options.wait = Wait::For(Duration::ZERO);
    Arc::new(Recipe {
        keys: Arc::new(Keys::new(Kind::Quorum, "", "orders", false).unwrap()),
        servers: ["a", "b", "c"].map(str::to_owned).into(),
        quorum_config: Some(CONFIG),
        options,
        ask_all_first: false,
        busy_is_none: true,
        adopt: None,
        job: None,
        history: true,
        signature: Arc::new(Signature::new(None, "host", 1)),
        response_timeout: Duration::from_millis(200),
        unavailable_after: Duration::from_secs(5),
    })
}

type Sent = (usize, Tag, Request);

/// Three machines and one client, whose messages arrive when the test says so.
struct Stage {
    servers: Vec<State>,
    client: Acquisition,
}

impl Stage {
    fn bring(&mut self, ms: u64, input: Input) -> Vec<Sent> {
        let mut out = Vec::new();
        self.client.handle(at(ms), input, &mut out);
        let sent =
            |command| if let Command::Send { server, tag, request } = command { Some((server, tag, request)) } else { None };
        out.into_iter().filter_map(sent).collect()
    }

    /// A message arrives, and its answer at once.
    fn deliver(&mut self, ms: u64, (server, tag, request): &Sent) -> Vec<Sent> {
        let env = Env { now_us: EPOCH + ms * 1_000, replid: "run", known_as: "run", is_renamed: false };
        let answer = Ok(apply(&mut self.servers[*server], &request.op, &env));
        self.bring(ms, Input::Answer { server: *server, tag: *tag, answer })
    }
}

fn heals(sent: &[Sent]) -> Vec<usize> {
    sent.iter()
        .filter(|(_, _, request)| matches!(request.op.verb(), Some(Verb::Heal { .. })))
        .map(|(server, ..)| *server)
        .collect()
}

#[test]
fn a_server_is_healed_only_once_the_acquire_was_answered_there() {
    let client = Acquisition::new(recipe(), None, 1, at(0));
    let mut stage = Stage { servers: vec![State::new(), State::new(), State::new()], client };
    for server in &mut stage.servers {
        apply(
            server,
            &Op::Trust { quorum_config: CONFIG },
            &Env { now_us: EPOCH, replid: "run", known_as: "run", is_renamed: false },
        );
    }
    let acquires = stage.bring(0, Input::Start);
    stage.deliver(1, &acquires[0]);
    stage.deliver(1, &acquires[1]);
    stage.client.check(at(2).tick).expect("two of three voted alike");

    let extends = stage.bring(10, Input::Extend(1, Amount::Own));
    let after: Vec<Sent> = [2, 0, 1].iter().flat_map(|server| stage.deliver(11, &extends[*server])).collect();
    assert_eq!(heals(&after), [0; 0], "server 2 has no key, but its acquire is still on its way");

    // It arrives: a vote below or at the fence stays, or is confirmed, and the server has the key without a heal.
    let late = stage.deliver(20, &acquires[2]);
    assert!(late.iter().all(|(_, _, request)| !matches!(request.op.verb(), Some(Verb::Release { .. }))), "{late:?}");
    assert!(stage.servers[2].iter(EPOCH + 20_000).any(|(key, _)| key == "orders"));

    // A server that answered and then lost its key is healed.
    stage.servers[1].clear();
    let extends = stage.bring(30, Input::Extend(2, Amount::Own));
    let after: Vec<Sent> = extends.iter().flat_map(|extend| stage.deliver(31, extend)).collect();
    assert_eq!(heals(&after), [1]);
}
