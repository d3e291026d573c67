//! Crowd: two long sequences of steps that are the same for every seed.

use std::sync::Arc;

use locktender::internals::name::{Keys, Kind};
use locktender::op::{LockOp, Op, QueuePlace, Verb};

use crate::step::{CLIENTS, FLEETS, OWNERS, Step, Steps, WAITERS};

/// More than an operation drops.
const DEAD_WAITERS: i64 = 350;
const DEAD_CLIENTS: i64 = 25;

impl Steps {
    /// Every operation there is on one lock, in the way of each of which another client has written `letters` letters.
    pub(crate) fn in_the_way(letters: usize, now_us: u64) -> Vec<Step> {
        let keys = Arc::new(Keys::new(Kind::Quorum, "", "a", false).unwrap());
        let (owner, quorum_config): (Arc<str>, _) = (OWNERS[0].into(), FLEETS[0]);
        let place = Some(QueuePlace { entry: WAITERS[0].into(), arrival: 0, stays: false });
        let long = "é".repeat(letters);
        let acquire = |quorum_config, place: &Option<QueuePlace>| {
            let (keys, owner, place) = (Arc::clone(&keys), Arc::clone(&owner), place.clone());
            Step::Op(Op::Lock(LockOp {
                keys,
                by: owner,
                verb: Verb::Acquire {
                    ttl_ms: 5_000,
                    proposal: now_us,
                    adopt: None,
                    fair: false,
                    place,
                    quorum_config,
                    job: None,
                },
            }))
        };
        let waiter = |entry: String, score| Step::Member(keys.queue().to_owned(), entry, score);
        let arrival = i64::try_from(now_us).unwrap();
        let mut steps = vec![
            Step::Put(keys.lock().to_owned(), long.clone(), None),
            acquire(None, &None),
            acquire(None, &place),
            waiter(format!("b:c1:5 {long}"), arrival - 9),
            waiter(format!("f:c1:{} x", "7".repeat(letters)), arrival - 10),
            Step::Op(Op::Lock(LockOp { keys: Arc::clone(&keys), by: Arc::clone(&owner), verb: Verb::Confirm { fence: 1 } })),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Extend { ttl_ms: 5_000, fence: 1 },
            })),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Heal { ttl_ms: 5_000, fence: 1 },
            })),
            Step::Op(Op::inspect(Arc::clone(&keys))),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Release { leave: None, kept_ms: 0 },
            })),
            // The first waiter of the queue is notified, in full if nobody cuts it.
            Step::Put(keys.lock().to_owned(), owner.to_string(), None),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Release { leave: None, kept_ms: 0 },
            })),
            acquire(None, &place),
        ];
        let marker = format!("n={} max_ttl=60000 run=x since=0", "3".repeat(letters));
        steps.push(Step::Put(Keys::server_marker().to_owned(), marker, None));
        steps.extend([
            acquire(Some(quorum_config), &None),
            Step::Op(Op::Greet { quorum_config: Some(quorum_config) }),
            Step::Op(Op::Trust { quorum_config }),
        ]);
        steps
    }

    /// A lock whose first waiters have all died, more of them than one operation drops, and many dead clients.
    pub(crate) fn crowded(now_us: u64) -> Vec<Step> {
        let keys = Arc::new(Keys::new(Kind::Exclusive, "", "a", true).unwrap());
        let (queue, owner): (_, Arc<str>) = (keys.queue().to_owned(), OWNERS[0].into());
        let arrival = i64::try_from(now_us).unwrap() - 1_000_000;
        let member = |member: String, score| Step::Member(queue.clone(), member, score);
        let mut steps = vec![Step::Put(keys.lock().to_owned(), owner.to_string(), None)];
        steps.extend((0..DEAD_WAITERS).map(|number| member(format!("b:gone{number}:1 x"), arrival + number)));
        steps.extend((0..DEAD_CLIENTS).map(|number| member(format!("late{number}"), number - arrival)));
        steps.push(member(WAITERS[2].to_owned(), arrival + DEAD_WAITERS));
        steps.push(member(CLIENTS[0].to_owned(), -arrival - 60_000_000));
        let release = || {
            Step::Op(Op::Lock(LockOp { keys: keys.clone(), by: owner.clone(), verb: Verb::Release { leave: None, kept_ms: 0 } }))
        };
        let acquire = |waiter: &str| {
            let place = Some(QueuePlace { entry: waiter.into(), arrival: 0, stays: false });
            let (keys, owner, fair) = (keys.clone(), OWNERS[1].into(), false);
            let (ttl_ms, proposal, adopt, quorum_config) = (5_000, now_us, None, None);
            Step::Op(Op::Lock(LockOp {
                keys,
                by: owner,
                verb: Verb::Acquire { ttl_ms, proposal, adopt, fair, place, quorum_config, job: None },
            }))
        };
        // The one drops a part of the dead waiters and finds nobody alive, the other the rest.
        steps.extend([release(), acquire(WAITERS[1]), acquire(WAITERS[4])]);
        steps
    }
}
