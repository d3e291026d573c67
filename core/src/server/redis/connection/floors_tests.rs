//! Floors: the fences that a client has seen, the time of the node before, and how many fences sink behind a failover.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::clock::Tick;
use crate::machine::{Env, State, Value, apply, fence_of_id, take_free};
use crate::name::Kind;
use crate::op::{LockOp, Op, Verb};
use crate::server::redis::commands::handshake_facts::{HandshakeFacts, Replid};
use crate::server::redis::connection::primary::Primary;

const T: u64 = 1_800_000_000_000_000;
const BEHIND: u64 = 5_000_000;

/// A server, whose clock shows `T` at the start.
struct Node {
    state: State,
    behind: u64,
    replid: Replid,
}

impl Node {
    fn new(behind: u64, id: &str, before: Option<&str>) -> Self {
        Self {
            state: State::new(),
            behind,
            replid: Replid { id: id.into(), before: before.map(Into::into), run_id: Some(id.into()), is_first: before.is_none() },
        }
    }

    fn wall_us(&self, at: u64) -> u64 {
        T + at - self.behind
    }

    /// A client connects at `at`.
    fn connects(&self, primary: &Primary, at: u64) {
        let now = Tick::from_micros(at);
        let facts =
            HandshakeFacts { replid: Some(self.replid.clone()), time_us: Some(self.wall_us(at)), ..HandshakeFacts::default() };
        primary.on_connected(&facts, None, None, now).unwrap();
        primary.clock.learn(self.wall_us(at), now, now);
    }

    /// A client takes a free lock, and releases it.
    fn grants(&mut self, primary: &Primary, keys: &Arc<Keys>, at: u64) -> u64 {
        let (floor, by_script) = primary.floor(keys, Tick::from_micros(at));
        let now_us = self.wall_us(at);
        let env = Env { now_us, replid: "", known_as: "", is_renamed: false };
        let owner: Arc<str> = "id=1".into();
        let id = (!by_script).then(|| take_free(&mut self.state, keys, (&owner, 1_000), &env).1.unwrap());
        let fence = id.and_then(|id| fence_of_id(id, floor)).unwrap_or_else(|| {
            let verb = Verb::Acquire {
                ttl_ms: 1_000,
                proposal: floor,
                adopt: None,
                fair: false,
                place: None,
                quorum_config: None,
                job: None,
            };
            apply(&mut self.state, &Op::Lock(LockOp { keys: keys.clone(), by: owner, verb }), &env).fence
        });
        primary.saw(keys, fence);
        self.state.remove(keys.lock());
        fence
    }
}

/// The share of the grants within the next seconds that sink: 50 locks in slots of their own, 200 grants a second. The replica
/// lacks what was written in the last 0.3 s, and its clock is 5 s behind. A client connects when it first wants a lock.
fn sinking_per_mille(clients: usize, seed: u64) -> u64 {
    const FAILS_AT: u64 = 10_000_000;
    let mut rng = fastrand::Rng::with_seed(seed);
    let names: Vec<_> =
        (0..50).map(|name| Arc::new(Keys::new(Kind::Exclusive, "", &format!("n{name}"), true).unwrap())).collect();
    let primaries: Vec<_> = (0..clients).map(|_| Primary::new(|_| ())).collect();
    let (mut old, mut next) = (Node::new(0, "one", None), Node::new(BEHIND, "two", Some("one")));
    let (mut highest, mut connected_to) = (HashMap::new(), vec![0; clients]);
    let (mut grants, mut sunk) = (0, 0);
    for at in (0..FAILS_AT + BEHIND).step_by(5_000) {
        let (client, name) = (rng.usize(..clients), rng.usize(..names.len()));
        if at == FAILS_AT - 300_000 {
            for keys in &names {
                if let Some(Value::Clock(ms, count)) = old.state.get(keys.clock(), old.wall_us(at)).map(|entry| &entry.value) {
                    next.state.put(keys.clock(), Value::Clock(*ms, *count), 0, None);
                }
            }
        }
        let is_next = at >= FAILS_AT;
        if at == FAILS_AT {
            // Connected clients connect to the next node.
            let known = |client: &usize| connected_to[*client] == 1;
            let known: Vec<_> = (0..clients).filter(known).collect();
            for client in known {
                next.connects(&primaries[client], at);
                connected_to[client] = 2;
            }
        }
        let node = if is_next { &mut next } else { &mut old };
        if connected_to[client] == 0 {
            node.connects(&primaries[client], at);
            connected_to[client] = 1 + usize::from(is_next);
        }
        let fence = node.grants(&primaries[client], &names[name], at);
        let highest = highest.entry(name).or_insert(0);
        if is_next {
            grants += 1;
            sunk += u64::from(fence <= *highest);
        }
        *highest = fence.max(*highest);
    }
    sunk * 1_000 / grants
}

#[test]
fn few_fences_sink_behind_a_failover_to_a_clock_that_is_behind() {
    let worst = |clients| (0..20).map(|seed| sinking_per_mille(clients, seed)).max().unwrap();
    let sinking = [20, 200, 2_000].map(worst);
    assert!(sinking[0] <= 2 && sinking[1] <= 20 && sinking[2] <= 60, "{sinking:?}");
}

#[test]
fn a_slot_keeps_its_highest_fence() {
    let keys = |name: &str| Keys::new(Kind::Exclusive, "", name, true).unwrap();
    let (floors, [one, same, other]) = (Floors::default(), ["{a}1", "{a}2", "b"].map(keys));
    floors.saw(&one, 7);
    floors.saw(&same, 5);
    assert_eq!([&one, &same, &other].map(|keys| floors.of(keys)), [7, 7, 0]);
}

#[test]
fn the_time_of_the_node_before_counts_until_the_next_one_has_passed_it() {
    let succeeded = Succeeded::default();
    assert_eq!(succeeded.at(Some(1)), None);
    succeeded.begin(Some(10));
    succeeded.begin(None);
    succeeded.begin(Some(8));
    assert_eq!([succeeded.at(Some(9)), succeeded.at(None), succeeded.at(Some(10))], [Some(10); 3]);
    assert_eq!([succeeded.at(Some(11)), succeeded.at(Some(9))], [None; 2], "once is enough");
}
