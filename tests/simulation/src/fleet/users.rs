//! Users: what the clients' callers do, and what they must get.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use locktender::internals::name::{Keys, Kind};
use locktender::internals::protocol::{Acquisition, Answered, Command, Grant, Input, Manner, Recipe};
use locktender::{ClientOptions, Code, LockOptions, Loss, Outcome};

use super::client::{Id, Life};
use super::events::{Event, World};
use super::{FleetPlan, SECOND};
use crate::clock::{Instant, ms};

/// The time in which the locks are acquired that are held, before the names begin.
pub(super) const WARM_UP: Instant = 5 * SECOND;

/// The time in which a server has to answer.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// For one name of so many, a second client waits.
const CONTENDED: usize = 10;

/// What an acquisition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A lock that is held all the time.
    Hold(usize),
    /// A name that is acquired and released.
    Name(usize),
    /// The second acquisition of a name, which waits for the first.
    Rival(usize),
}

/// What is left to do, and what was promised.
#[derive(Debug)]
pub(super) struct Users {
    names_left: usize,
    /// The locks of the first shard that were held when that failed, and are not known to be held since.
    unsettled: HashSet<usize>,
    holds_missing: usize,
    /// The fence of the last hold of each lock that is held, and of each name.
    fences: [Vec<u64>; 2],
    /// When the first holder of a contended name has called for its release.
    released_at: HashMap<usize, Instant>,
}

impl Users {
    pub(super) fn new(plan: &FleetPlan) -> Self {
        Self {
            names_left: plan.names + plan.names.div_ceil(CONTENDED),
            unsettled: HashSet::new(),
            holds_missing: plan.held,
            fences: [vec![0; plan.held], vec![0; plan.names]],
            released_at: HashMap::new(),
        }
    }

    pub(super) fn are_done(&self) -> bool {
        self.names_left == 0 && self.holds_missing == 0 && self.unsettled.is_empty()
    }

    fn rises(&mut self, task: Task, fence: u64) {
        let last = match task {
            Task::Hold(index) => &mut self.fences[0][index],
            Task::Name(index) | Task::Rival(index) => &mut self.fences[1][index],
        };
        assert!(fence > *last, "{task:?} got the fence {fence} after {last}");
        *last = fence;
    }
}

impl World {
    pub(super) fn begin_users(&mut self) {
        for index in 0..self.plan.held {
            let at = self.rng.u64(..WARM_UP * 2 / 3);
            let client = index % self.plan.clients;
            self.agenda.add(at, Event::Begin { client, task: Task::Hold(index) });
        }
        for client in 0..self.plan.clients {
            self.plan_next(client);
        }
    }

    /// Plans the next name of a client: each has its own part of the time.
    fn plan_next(&mut self, client: usize) {
        let each = self.plan.names / self.plan.clients;
        let next = self.clients[client].next;
        if next < each {
            let part = self.plan.busy_us / each as u64;
            let at = WARM_UP + next as u64 * part + self.rng.u64(..part);
            self.agenda.add(at.max(self.now), Event::Next { client });
        }
    }

    pub(super) fn next_name(&mut self, client: usize) {
        let number = self.clients[client].next;
        self.clients[client].next += 1;
        self.plan_next(client);
        self.begin(client, Task::Name(number * self.plan.clients + client));
    }

    pub(super) fn begin(&mut self, client: usize, task: Task) {
        let name = match task {
            Task::Hold(index) => format!("held:{index}"),
            Task::Name(index) | Task::Rival(index) => format!("name:{index}"),
        };
        let shard = self.shard(&name);
        let recipe = Arc::new(Recipe {
            keys: Arc::new(Keys::new(Kind::Exclusive, "", &name, true).expect("it is the name of a lock")),
            servers: Arc::clone(&self.servers),
            quorum_config: None,
            options: LockOptions::default(),
            ask_all_first: false,
            busy_is_none: false,
            adopt: None,
            job: None,
            history: false,
            signature: Arc::clone(&self.signature),
            response_timeout: RESPONSE_TIMEOUT,
            unavailable_after: ClientOptions::default().unavailable_after,
        });
        let (now, seed, place) = (self.clocks(client), self.rng.u64(..), self.lives.next_place());
        let waiter = self.clients[client].queues.join(recipe.keys.lock(), place as u64, false);
        let machine = Acquisition::new(Arc::clone(&recipe), Some(waiter), seed, now);
        let wake = (Instant::MAX, 0);
        let id = self.lives.add(Life { machine, recipe, client, shard, task, wake, is_granted: false, is_over: false });
        self.clients[client].live.push(place);
        self.bring(id, Input::Start);
    }

    pub(super) fn release(&mut self, id: Id) {
        let Some(life) = self.lives.get(id) else { return };
        if let Task::Name(index) = life.task
            && index % CONTENDED == 0
        {
            self.users.released_at.insert(index, self.now);
        }
        self.bring(id, Input::Release(1, Manner::Explicit));
    }

    /// Gives a user the result of its acquisition.
    pub(super) fn give(&mut self, id: Id, result: Command) {
        let Some(life) = self.lives.get(id) else { return };
        let (client, shard, task) = (life.client, life.shard, life.task);
        match result {
            Command::Acquired(Ok(Answered::Granted(grant))) => {
                life.is_granted = true;
                self.granted(id, (client, shard, task), &grant);
            }
            Command::Acquired(result) => {
                let error = result.expect_err("a lock that is waited for is granted");
                self.excuse(shard, error.code() == Code::Unavailable, &error);
                life_over(self.lives.get(id));
                self.seen.unavailable += 1;
                // A user without a server tries again some time later.
                let at = self.now + self.rng.u64(..SECOND);
                self.agenda.add(at, Event::Begin { client, task });
            }
            Command::Released(_, result) => {
                life.is_over = true;
                if matches!(task, Task::Hold(_)) {
                    return;
                }
                self.users.names_left -= 1;
                if !matches!(&result, Ok(release) if release.outcome == Outcome::Released) {
                    self.excuse(shard, true, &result);
                    self.seen.not_released += 1;
                }
            }
            Command::Lost(loss) => self.lost(id, (client, shard, task), &loss),
            _ => (),
        }
    }

    fn granted(&mut self, id: Id, (client, shard, task): (usize, usize, Task), grant: &Grant) {
        self.users.rises(task, grant.fence);
        match task {
            Task::Hold(index) => {
                self.users.holds_missing -= 1;
                self.settle(index);
            }
            Task::Name(index) if index % CONTENDED == 0 => {
                let rival = (client + 1 + self.rng.usize(..self.plan.clients - 1)) % self.plan.clients;
                self.agenda.add(self.now + ms(1), Event::Begin { client: rival, task: Task::Rival(index) });
                let held = self.rng.u64(ms(5)..ms(15));
                self.agenda.add(self.now + held, Event::Release { id });
            }
            Task::Name(_) | Task::Rival(_) => {
                if let Task::Rival(index) = task {
                    let released = self.users.released_at.remove(&index).unwrap_or(self.now);
                    self.seen.hand_over(shard, released, self.now);
                }
                let held = self.rng.u64(ms(1)..ms(5));
                self.agenda.add(self.now + held, Event::Release { id });
            }
        }
    }

    fn lost(&mut self, id: Id, (client, shard, task): (usize, usize, Task), loss: &Loss) {
        self.excuse(shard, true, loss);
        if let Task::Hold(_) = task {
            self.seen.lost += 1;
            self.users.holds_missing += 1;
            // The body ends, and begins again.
            self.agenda.add(self.now, Event::Bring { id, input: Input::Release(1, Manner::EndOfBody) });
            self.agenda.add(self.now, Event::Begin { client, task });
        }
    }

    /// Nothing may go wrong but on the shard that fails, and not before.
    fn excuse(&self, shard: usize, is_expected: bool, what: &impl std::fmt::Debug) {
        assert!(is_expected && shard == 0 && self.now >= self.seen.fails_at, "shard {shard} at {} µs: {what:?}", self.now);
    }

    /// The shard has failed: each of its locks that are held has to be confirmed by the new primary.
    pub(super) fn unsettle(&mut self) {
        let held = (0..self.plan.held).filter(|index| self.shard(&format!("held:{index}")) == 0);
        self.users.unsettled = held.collect();
        self.seen.held_there = self.users.unsettled.len();
    }

    /// An extension was confirmed.
    pub(super) fn extended(&mut self, task: Task, shard: usize) {
        if let Task::Hold(index) = task
            && shard == 0
            && self.now > self.seen.takes_over_at
        {
            self.settle(index);
        }
    }

    fn settle(&mut self, index: usize) {
        if self.users.unsettled.remove(&index) {
            self.seen.settled.push(self.now - self.seen.fails_at);
        }
    }
}

fn life_over(life: Option<&mut Life>) {
    life.into_iter().for_each(|life| life.is_over = true);
}
