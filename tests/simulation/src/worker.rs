//! Worker: a user that acquires, holds, extends, and ends the hold in one of many ways.

use std::sync::Arc;
use std::time::Duration;

use locktender::internals::name::{Keys, Kind as LockKind};
use locktender::internals::protocol::{AcquirePath, Amount, Input, Manner, Recipe};
use locktender::op::job::Terms;
use locktender::op::{Adoption, QuorumConfig};
use locktender::{LockOptions, Wait};

use super::clock::{Instant, micros, ms};
use super::plan::Plan;
use super::queue::Event;
use super::shadow::Shadow;
use super::slot::{Gone, Kind, Slot};
use super::world::World;

/// The longest time for which a user keeps a lock.
pub(super) const LONGEST_HOLD: u64 = ms(10_000);

/// The present work of a user.
#[derive(Clone, Copy, Debug, Default)]
enum Doing {
    #[default]
    Nothing,
    Acquiring {
        slot: usize,
    },
    Holding {
        slot: usize,
        until: Instant,
    },
    Leaving {
        slot: usize,
    },
    Resting,
}

#[derive(Debug, Default)]
pub(super) struct Worker {
    doing: Doing,
    /// The number of the present plan: steps of earlier plans no longer count.
    planned: u32,
}

impl World {
    /// Plans a user's next step.
    pub(super) fn plan_step(&mut self, client: usize, worker: usize, after: u64) {
        let entry = &mut self.processes[client].workers[worker];
        entry.planned += 1;
        let planned = entry.planned;
        self.queue.add(self.now + after, Event::Step { client, worker, planned });
    }

    pub(super) fn step(&mut self, client: usize, worker: usize, planned: u32) {
        let entry = &self.processes[client].workers[worker];
        if entry.planned != planned {
            return;
        }
        match entry.doing {
            Doing::Nothing if self.settled || self.processes[client].closed => (),
            Doing::Nothing if self.rng.u16(..400) == 0 => self.close(client),
            Doing::Nothing => self.begin(client, worker),
            // The user no longer wants the lock.
            Doing::Acquiring { slot } => {
                self.processes[client].slots[slot].answered = true;
                self.disown(client, slot);
                self.bring(client, slot, Input::Cancel);
                self.rest(client, worker);
            }
            Doing::Holding { slot, until } if self.now < until && !self.settled => self.extend(client, worker, slot),
            Doing::Holding { slot, .. } | Doing::Leaving { slot } => self.end(client, worker, slot),
            Doing::Resting => {
                self.processes[client].workers[worker].doing = Doing::Nothing;
                self.plan_step(client, worker, 0);
            }
        }
    }

    fn rest(&mut self, client: usize, worker: usize) {
        self.processes[client].workers[worker].doing = Doing::Resting;
        let span = [self.rng.u64(..ms(5)), self.rng.u64(..ms(200)), self.rng.u64(..ms(1_500))][self.rng.usize(..3)];
        self.plan_step(client, worker, span);
    }

    fn begin(&mut self, client: usize, worker: usize) {
        let adopted = if self.rng.u8(..3) == 0 { self.tickets.pop() } else { None };
        let name = adopted.as_ref().map_or_else(|| self.rng.usize(..self.plan.names), |ticket| ticket.name);
        // On slow links a round trip takes up to half a ttl.
        let ways = if self.plan.is_slow { 4 } else { 8 };
        let shortest = (ways * (self.plan.latency_us + self.plan.jitter_us) / 1_000).clamp(20, self.plan.longest_ttl_ms);
        let shortest = if self.rng.u8(..12) == 0 { 10 } else { shortest };
        let mut options = LockOptions::default();
        options.ttl = Duration::from_millis(self.rng.u64(shortest..=self.plan.longest_ttl_ms));
        if let Some(ticket) = &adopted {
            options.ttl = ticket.ttl;
        }
        let waits = [Wait::Forever, Wait::For(Duration::ZERO), Wait::For(Duration::from_millis(self.rng.u64(1..3_000)))];
        options.wait = waits[self.rng.usize(..3)];
        options.renew = self.rng.u8(..10) < 8;
        options.max_hold = (self.rng.u8(..7) == 0).then(|| Duration::from_millis(self.rng.u64(50..2_000)));
        options.fair = self.plan.fair && self.rng.u8(..10) < 8;
        let one_shot = self.rng.u8(..4) == 0;
        if one_shot {
            options.wait = Wait::For(Duration::ZERO);
        }
        let several = if adopted.is_none() { self.draw_together() } else { None };
        // Who waits for several locks waits for none of them alone: one that is free may be of no use to it, and checks of one leave it out.
        let job = if adopted.is_none() && several.is_none() { self.draw_job(client, name) } else { None };
        let (name, (keys, adopt)) = match several {
            Some(keys) => (self.plan.names, (keys, None)),
            None if job.is_some() => (name, (self.keys_of(name, LockKind::Job), None)),
            None => (name, self.draw_several(client, name, adopted)),
        };
        let wanted = (keys, adopt, job);
        let slot = self.acquire(client, worker, name, options, one_shot, wanted);
        if matches!(self.processes[client].workers[worker].doing, Doing::Acquiring { .. }) && self.rng.u8(..8) == 0 {
            let after = self.rng.u64(..ms(300));
            self.plan_step(client, worker, after);
        }
        self.trace(|| format!("c{client}.{slot} is worker {worker}'s, for l{name}"));
    }

    pub(super) fn acquire(
        &mut self,
        client: usize,
        worker: usize,
        name: usize,
        options: LockOptions,
        one_shot: bool,
        (keys, adopt, job): (Arc<Keys>, Option<Adoption>, Option<Terms>),
    ) -> usize {
        let recipe = Arc::new(Recipe {
            keys,
            servers: self.addresses.clone(),
            quorum_config: quorum_config(self),
            options,
            ask_all_first: false,
            busy_is_none: one_shot,
            adopt,
            job,
            history: true,
            signature: self.signature.clone(),
            response_timeout: self.plan.response_timeout,
            unavailable_after: self.plan.unavailable_after,
        });
        let (now, seed) = (self.read_clocks(client), self.rng.u64(..));
        let is_fast = self.may_ask_first(client, &recipe);
        let process = &mut self.processes[client];
        let slot = process.slots.len();
        let machine = match is_fast {
            true => AcquirePath::fast(recipe.clone(), seed, now),
            false => AcquirePath::full(recipe.clone(), seed, now),
        };
        process.live.push(slot);
        let shadow = is_fast.then(|| Shadow::new(&recipe, seed, now));
        process.slots.push(Slot { shadow, ..Slot::new(recipe, machine, name, worker, self.now, process.stopped) });
        process.workers[worker].doing = Doing::Acquiring { slot };
        process.workers[worker].planned += 1;
        self.stats.acquires += 1;
        if !is_fast && self.processes[client].slots[slot].recipe.waits_in_queues() {
            self.take_place(client, slot);
        }
        self.bring(client, slot, Input::Start);
        slot
    }

    pub(super) fn worker_acquired(&mut self, client: usize, slot: usize, granted: bool) {
        let Slot { worker, held_with, .. } = self.processes[client].slots[slot];
        if held_with.is_some() {
            return;
        }
        if !granted {
            return self.rest(client, worker);
        }
        let ttl = micros(self.processes[client].slots[slot].ttl());
        let span =
            [self.rng.u64(..ms(20)), self.rng.u64(..ms(200)), self.rng.u64(..(ttl * 3).min(LONGEST_HOLD))][self.rng.usize(..3)];
        self.processes[client].workers[worker].doing = Doing::Holding { slot, until: self.now + span };
        self.next_while_holding(client, worker, self.now + span);
    }

    fn next_while_holding(&mut self, client: usize, worker: usize, until: Instant) {
        let left = until.saturating_sub(self.now);
        let extends = left > 0 && self.rng.bool();
        let after = if extends { self.rng.u64(..left) } else { left };
        self.plan_step(client, worker, after);
    }

    fn extend(&mut self, client: usize, worker: usize, slot: usize) {
        let Doing::Holding { until, .. } = self.processes[client].workers[worker].doing else { return };
        let span = Duration::from_millis(self.rng.u64(10..=self.plan.longest_ttl_ms));
        let amount = [Amount::Own, Amount::To(span), Amount::By(span / 2)][self.rng.usize(..3)];
        self.next_while_holding(client, worker, until);
        self.call_extend(client, slot, amount);
        // A process that was stopped behind the first call makes the others later, and here not at all.
        for other in self.held_with(client, slot) {
            if self.processes[client].stopped_until <= self.now {
                self.call_extend(client, other, amount);
            }
        }
        // Another thread makes a call, too.
        if self.rng.u8(..4) == 0 && self.processes[client].stopped_until <= self.now {
            self.call_extend(client, slot, Amount::Own);
        }
    }

    fn call_extend(&mut self, client: usize, slot: usize, amount: Amount) {
        let tick = self.read_clocks(client).tick;
        let (now, stopped) = (self.now, self.processes[client].stopped);
        let entry = &mut self.processes[client].slots[slot];
        let reach = match amount {
            Amount::Own => locktender::internals::validity::end(tick, entry.ttl()),
            Amount::To(span) => locktender::internals::validity::end(tick, span),
            // The difference between the user's readings before and after is the amount that it asked for.
            Amount::By(more) => tick.after(entry.valid_until.since(tick) + more),
        };
        let id = entry.call(Kind::Extend { reach }, now, stopped);
        self.bring(client, slot, Input::Extend(id, amount));
    }

    fn end(&mut self, client: usize, worker: usize, slot: usize) {
        let retry = matches!(self.processes[client].workers[worker].doing, Doing::Leaving { .. });
        self.processes[client].workers[worker].doing = Doing::Leaving { slot };
        // A long ttl that is left to expire keeps all clients from the lock for the rest of the run.
        let is_permit = matches!(self.processes[client].slots[slot].recipe.keys.kind(), LockKind::Semaphore(_));
        let is_alone = self.held_with(client, slot).is_empty();
        let ways = if self.processes[client].slots[slot].ttl() > Duration::from_secs(10) { 15 } else { 20 };
        if self.end_attempt(client, slot, retry) {
            return;
        }
        let is_attempt = self.processes[client].slots[slot].recipe.job.is_some();
        match self.rng.u8(..ways) {
            _ if retry => self.call_release(client, slot, Manner::Explicit),
            0..=8 => self.call_release(client, slot, Manner::Explicit),
            9..=13 => self.call_release(client, slot, Manner::EndOfBody),
            14..=15 => {
                self.leave(client, slot, Gone::Released, Input::Release(0, Manner::Background));
                self.rest(client, worker);
            }
            // A permit can't be handed over, nor can several locks, nor an attempt.
            16..=18 if is_permit || !is_alone || is_attempt => self.call_release(client, slot, Manner::Explicit),
            16..=18 => {
                let (now, stopped) = (self.now, self.processes[client].stopped);
                let id = self.processes[client].slots[slot].call(Kind::HandOver, now, stopped);
                self.leave(client, slot, Gone::HandedOver, Input::HandOver(id));
                self.after_hand_over(client, worker, slot);
            }
            _ => {
                self.leave(client, slot, Gone::Abandoned, Input::Abandon);
                self.rest(client, worker);
            }
        }
    }

    /// The end of a lock that can't be handed over because it was lost: it is left like any other.
    fn after_hand_over(&mut self, client: usize, worker: usize, slot: usize) {
        if self.processes[client].slots[slot].loss.is_some() {
            self.call_release(client, slot, Manner::EndOfBody);
        } else {
            self.rest(client, worker);
        }
    }

    fn call_release(&mut self, client: usize, slot: usize, manner: Manner) {
        self.call_release_since(client, slot, manner, self.processes[client].stopped);
    }

    fn call_release_since(&mut self, client: usize, slot: usize, manner: Manner, stopped: u64) {
        let now = self.now;
        let id = self.processes[client].slots[slot].call(Kind::Release(manner), now, stopped);
        // An extend under way at that moment ends with the hold.
        self.leave(client, slot, Gone::Released, Input::Release(id, manner));
        self.processes[client].slots[slot].released.0 |= manner == Manner::Explicit;
    }

    pub(super) fn leave(&mut self, client: usize, slot: usize, gone: Gone, input: Input) {
        self.end_others(client, slot, &input);
        self.bring(client, slot, input);
        let entry = &mut self.processes[client].slots[slot];
        let first = entry.gone.is_none();
        entry.gone.get_or_insert(gone);
        if gone == Gone::Released && first {
            self.disown(client, slot);
        }
        // Every later call is answered at once.
        if first && self.rng.u8(..10) == 0 && entry_ended(gone) {
            self.call_extend(client, slot, Amount::Own);
        }
    }

    /// The locks that are held with this one end like it, before it.
    fn end_others(&mut self, client: usize, slot: usize, input: &Input) {
        let stopped = self.processes[client].stopped;
        for other in self.held_with(client, slot) {
            match input {
                Input::Release(_, manner @ (Manner::Explicit | Manner::EndOfBody)) => {
                    self.call_release_since(client, other, *manner, stopped);
                }
                Input::Abandon => self.leave(client, other, Gone::Abandoned, Input::Abandon),
                // One that was just lost is in the midst of an input.
                _ if self.processes[client].slots[other].loss.is_some() => {
                    self.processes[client].slots[other].gone = Some(Gone::Released);
                    self.disown(client, other);
                    let input = Input::Release(0, Manner::Background);
                    self.queue.add(self.now, Event::Bring { client, slot: other, input });
                }
                _ => self.leave(client, other, Gone::Released, Input::Release(0, Manner::Background)),
            }
        }
    }

    /// The user holds the first one of several locks from now on.
    pub(super) fn holds(&mut self, client: usize, slot: usize) {
        let worker = self.processes[client].slots[slot].worker;
        self.processes[client].workers[worker].doing = Doing::Acquiring { slot };
    }

    pub(super) fn worker_released(&mut self, client: usize, slot: usize, unknown: bool) {
        let worker = self.processes[client].slots[slot].worker;
        if !matches!(self.processes[client].workers[worker].doing, Doing::Leaving { slot: leaving } if leaving == slot) {
            return;
        }
        if unknown && self.rng.bool() {
            return self.plan_step(client, worker, ms(300));
        }
        self.rest(client, worker);
        if !unknown && self.rng.u8(..8) == 0 {
            let manner = [Manner::Explicit, Manner::EndOfBody][self.rng.usize(..2)];
            let after = self.rng.u64(..ms(5));
            let (at, stopped) = (self.now + after, self.processes[client].stopped);
            let id = self.processes[client].slots[slot].call(Kind::Release(manner), at, stopped);
            self.queue.add(at, Event::Bring { client, slot, input: Input::Release(id, manner) });
        }
    }

    /// Closes a client in a moment, if that is drawn; gives the time that its last requests then take to arrive.
    pub(super) fn close_behind(&mut self, client: usize) -> u64 {
        if !std::mem::take(&mut self.processes[client].closes_behind_acquire) {
            return 0;
        }
        let after = self.rng.u64(..=2 * (self.plan.latency_us + self.plan.jitter_us));
        self.queue.add(self.now + after, Event::Close { client });
        self.rng.u64(..3 * micros(self.plan.response_timeout))
    }

    pub(super) fn close(&mut self, client: usize) {
        self.trace(|| format!("c{client} CLOSES"));
        self.processes[client].closed = true;
        let waited = self.waits_for(client);
        for slot in 0..self.processes[client].slots.len() {
            self.bring(client, slot, Input::Close);
            let entry = &mut self.processes[client].slots[slot];
            if entry.grant.is_some() && entry.gone.is_none() {
                // A close releases the hold: the next holder comes after that hold.
                entry.gone = Some(Gone::Closed);
                self.disown(client, slot);
            }
        }
        self.cancel(client);
        for route in &mut self.routes[client] {
            route.connects_late = route.is_connecting();
        }
        self.passes_on_late(client, &waited);
        self.queue.add(self.now + micros(self.plan.response_timeout), Event::LetGo { client });
    }

    /// Makes every user that holds a lock give it back.
    pub(super) fn settle(&mut self) {
        self.trace(|| "SETTLE".to_owned());
        self.settled = true;
        for client in 0..self.plan.clients {
            for worker in 0..self.plan.workers {
                if matches!(self.processes[client].workers[worker].doing, Doing::Holding { .. } | Doing::Acquiring { .. }) {
                    let after = self.rng.u64(..ms(1_000));
                    self.plan_step(client, worker, after);
                }
            }
        }
    }
}

fn entry_ended(gone: Gone) -> bool {
    matches!(gone, Gone::Released | Gone::HandedOver)
}

/// The quorum as clients know it.
pub(super) fn quorum_config(world: &World) -> Option<QuorumConfig> {
    quorum_of(&world.plan)
}

pub(super) fn quorum_of(plan: &Plan) -> Option<QuorumConfig> {
    let servers = u32::try_from(plan.servers).unwrap_or(u32::MAX);
    let max_ttl_ms = micros(plan.max_ttl) / 1_000;
    (servers > 1 || plan.quarantine).then_some(QuorumConfig { servers, max_ttl_ms })
}
