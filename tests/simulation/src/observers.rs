//! Observers: processes that watch who leads, beside those that compete. What they decide is real: [`Observing`] and [`observe`], and the
//! servers answer by the real machine. The order of `api`'s observer, its connections and its timers are modelled.
//!
//! They draw from a generator of their own, and change nothing on a server: without them a run is the same.

use std::sync::Arc;

use locktender::internals::clock::Tick;
use locktender::internals::protocol::{Observation, Observing, observe};
use locktender::op::{Answer, Failure, FailureKind};
use locktender::{Error, EventKind};

use super::clock::{Clock, Instant, micros, ms};
use super::plan::Plan;
use super::queue::Event;
use super::sightings::Sightings;
use super::world::World;

/// By this number it is drawn what observers do.
const OBSERVERS: u64 = 0x0B5E_27E2;

/// The longest delay of a timer.
pub(super) const LATE: u64 = ms(2);

/// The pauses between two calls, and the times after which a call is given up.
const PAUSE: u64 = ms(1_500);
const GIVEN_UP: u64 = ms(2_500);

/// What happens to an observer.
#[derive(Debug)]
pub(super) enum Observe {
    /// Its program waits for news, or no longer waits for this call.
    Call,
    GiveUp(u64),
    Alarm(u32),
    Announced,
    /// A question of a look reaches a server, and the answer comes back.
    Ask(u64, usize),
    Answer(u64, usize, Answer),
    /// No answer to a look is waited for any more.
    Deadline(u64),
    /// The process is stopped for so long.
    Pause(u64),
    /// Nothing passes between it and a server for so long.
    Stall(usize, u64),
}

/// A look under way.
pub(super) struct Look {
    pub(super) number: u64,
    pub(super) asked: Instant,
    pub(super) answers: Vec<Option<Answer>>,
    /// The owner that each server had when it was asked, by its ledger.
    pub(super) leaders: Vec<Option<Arc<str>>>,
}

pub(super) struct Observer {
    pub(super) name: usize,
    clock: Clock,
    observing: Observing,
    pub(super) waits_since: Option<Instant>,
    calls: u64,
    looks: Vec<Look>,
    last_look: u64,
    alarm: Option<Tick>,
    timer: u32,
    pub(super) stopped_until: Instant,
    routes: Vec<Route>,
    pub(super) sightings: Sightings,
}

/// The way to one server.
#[derive(Clone, Default)]
struct Route {
    /// The number of the node that it asks.
    node: u32,
    stalled_until: Instant,
    /// When the last question arrives, and the last answer.
    out_at: Instant,
    back_at: Instant,
}

impl Observer {
    /// The end of the last fault of its own.
    pub(super) fn troubled_until(&self) -> Instant {
        self.routes.iter().map(|route| route.stalled_until).fold(self.stopped_until, Instant::max)
    }
}

/// The observers of a run.
pub(super) struct Observers {
    rng: fastrand::Rng,
    pub(super) all: Vec<Observer>,
}

impl Observers {
    /// Draws them, none in every third run, with the events that they begin with.
    pub(super) fn draw(plan: &Plan, epoch_us: u64) -> (Self, Vec<(Instant, Event)>) {
        let mut rng = fastrand::Rng::with_seed(plan.seed ^ OBSERVERS);
        let (mut all, mut events) = (Vec::new(), Vec::new());
        for observer in 0..rng.usize(..3) {
            let mut add = |at, what| events.push((at, Event::Observe { observer, what }));
            add(rng.u64(..ms(1_000)), Observe::Call);
            for _ in 0..[0, 0, rng.usize(1..6)][rng.usize(..3)] {
                let span = ms([rng.u64(1..50), rng.u64(50..3_000)][rng.usize(..2)]);
                let what = if rng.bool() { Observe::Pause(span) } else { Observe::Stall(rng.usize(..plan.servers), span) };
                add(rng.u64(..plan.busy_us), what);
            }
            let clock = Clock::new(epoch_us + rng.u64(..1 << 40), rng.i64(-plan.drift_ppm..=plan.drift_ppm));
            all.push(Observer {
                name: rng.usize(..plan.names),
                clock,
                observing: Observing::default(),
                waits_since: None,
                calls: 0,
                looks: Vec::new(),
                last_look: 0,
                alarm: None,
                timer: 0,
                stopped_until: 0,
                routes: vec![Route { node: 1, ..Route::default() }; plan.servers],
                sightings: Sightings::default(),
            });
        }
        (Self { rng, all }, events)
    }
}

impl World {
    fn observer(&mut self, observer: usize) -> &mut Observer {
        &mut self.observers.all[observer]
    }

    fn add_to_observer(&mut self, observer: usize, at: Instant, what: Observe) {
        self.queue.add(at, Event::Observe { observer, what });
    }

    fn observers_tick(&self, observer: usize) -> Tick {
        Tick::from_micros(self.observers.all[observer].clock.at(self.now))
    }

    fn observers_latency(&mut self) -> u64 {
        let (plan, rng) = (&self.plan, &mut self.observers.rng);
        let latency = plan.latency_us + rng.u64(..=plan.jitter_us);
        let lost = rng.u64(..1_000) < plan.lost_per_mille;
        if lost { latency + ms(200) + rng.u64(..ms(200)) } else { latency }
    }

    pub(super) fn observe(&mut self, observer: usize, what: Observe) {
        let until = self.observers.all[observer].stopped_until;
        let is_own = !matches!(what, Observe::Ask(..) | Observe::Pause(_) | Observe::Stall(..));
        if is_own && until > self.now {
            // The answers that came meanwhile are read first.
            let after = if matches!(what, Observe::Answer(..)) { 0 } else { self.observers.rng.u64(1..200) };
            return self.queue.defer(until + after, Event::Observe { observer, what });
        }
        match what {
            Observe::Call => self.call_observer(observer),
            Observe::GiveUp(call) if self.observer(observer).calls == call => self.give_up(observer),
            Observe::Alarm(timer) if self.observer(observer).timer == timer => self.look(observer),
            Observe::GiveUp(_) | Observe::Alarm(_) => (),
            Observe::Announced => self.announced(observer),
            Observe::Ask(look, server) => self.asked_by_observer(observer, look, server),
            Observe::Answer(look, server, answer) => self.answered(observer, look, &mut |answers| {
                answers[server].get_or_insert_with(|| answer.clone());
            }),
            Observe::Deadline(look) => self.answered(observer, look, &mut |answers| {
                let late = Failure::unknown(FailureKind::Timeout, "late");
                answers.iter_mut().for_each(|answer| _ = answer.get_or_insert_with(|| Err(late.clone())));
            }),
            Observe::Pause(span) => {
                let until = self.now + span;
                let observer = self.observer(observer);
                observer.stopped_until = observer.stopped_until.max(until);
            }
            Observe::Stall(server, span) => self.stall_observer(observer, server, span),
        }
    }

    pub(super) fn stall_observer(&mut self, observer: usize, server: usize, span: u64) {
        let until = self.now + span;
        let route = &mut self.observer(observer).routes[server];
        route.stalled_until = route.stalled_until.max(until);
    }

    fn call_observer(&mut self, observer: usize) {
        let (now, first) = (self.now, self.observer(observer).calls == 0);
        let called = self.observer(observer);
        called.waits_since = Some(now);
        called.calls += 1;
        let (call, next_look) = (called.calls, called.observing.next_look());
        if first {
            // It listens from now on, and that counts as an announcement.
            let at = now + 4 * self.observers_latency();
            self.add_to_observer(observer, at, Observe::Announced);
        }
        if self.observers.rng.u8(..4) == 0 {
            let after = self.observers.rng.u64(..GIVEN_UP);
            self.add_to_observer(observer, now + after, Observe::GiveUp(call));
        }
        self.look_at(observer, next_look);
    }

    fn give_up(&mut self, observer: usize) {
        if self.observer(observer).waits_since.take().is_none() {
            return;
        }
        self.trace(|| format!("o{observer} gives up"));
        let given_up = self.observer(observer);
        given_up.alarm = None;
        given_up.timer += 1;
        // The last look is cancelled.
        let last = given_up.last_look;
        given_up.looks.retain(|look| look.number != last);
        self.call_later(observer);
    }

    fn call_later(&mut self, observer: usize) {
        let rng = &mut self.observers.rng;
        let after = [0, 0, rng.u64(..ms(10)), rng.u64(..PAUSE)][rng.usize(..4)];
        self.add_to_observer(observer, self.now + after, Observe::Call);
    }

    fn announced(&mut self, observer: usize) {
        let (now, tick) = (self.now, self.observers_tick(observer));
        let announced = self.observer(observer);
        announced.sightings.announced.get_or_insert(now);
        let at = announced.observing.announce(tick);
        if announced.waits_since.is_some() && announced.alarm.is_none_or(|alarm| at < alarm) {
            self.look_at(observer, at);
        }
    }

    fn look_at(&mut self, observer: usize, at: Tick) {
        if at <= self.observers_tick(observer) {
            return self.look(observer);
        }
        let late = self.observers.rng.u64(..LATE);
        let looks = self.observer(observer);
        (looks.alarm, looks.timer) = (Some(at), looks.timer + 1);
        let (timer, at) = (looks.timer, looks.clock.when(at.as_micros()) + late);
        self.add_to_observer(observer, at, Observe::Alarm(timer));
    }

    fn look(&mut self, observer: usize) {
        let (now, servers) = (self.now, self.plan.servers);
        let looks = self.observer(observer);
        if looks.waits_since.is_none() {
            return;
        }
        looks.alarm = None;
        looks.timer += 1;
        looks.sightings.announced = None;
        let number = looks.observing.begin_look();
        looks.last_look = number;
        looks.looks.push(Look { number, asked: now, answers: vec![None; servers], leaders: vec![None; servers] });
        for server in 0..servers {
            let takes = self.observers_latency();
            let is_ordered = !self.plan.has_two_ways;
            let route = &mut self.observer(observer).routes[server];
            let before = if is_ordered { route.out_at } else { 0 };
            route.out_at = (now + takes).max(route.stalled_until).max(before);
            let at = route.out_at;
            self.add_to_observer(observer, at, Observe::Ask(number, server));
        }
        let deadline = self.observers_tick(observer).after(self.plan.response_timeout);
        let at = self.observer(observer).clock.when(deadline.as_micros()) + self.observers.rng.u64(..LATE);
        self.add_to_observer(observer, at, Observe::Deadline(number));
    }

    fn asked_by_observer(&mut self, observer: usize, number: u64, server: usize) {
        let (now, name) = (self.now, self.observer(observer).name);
        let present = self.nodes[server].number;
        // Once it has left an old primary it does not go back.
        let known = self.observer(observer).routes[server].node;
        let leaves = self.node(server, known).is_none() || self.nodes[server].up && self.observers.rng.u8(..4) == 0;
        let asked = if leaves { present } else { known };
        self.observer(observer).routes[server].node = asked;
        let leader = self.leader_by_ledger(server, asked, name);
        let keys = Arc::clone(&self.keys[name]);
        let Some(node) = self.node_mut((server, asked)) else { return };
        if node.stopped_until > now {
            let until = node.stopped_until;
            return self.queue.defer(until, Event::Observe { observer, what: Observe::Ask(number, server) });
        }
        let answer = match node.up {
            true => Ok(node.inspect(&keys, now)),
            false => Err(Failure::not_applied(FailureKind::Refused, "refused")),
        };
        if let Some(look) = self.observer(observer).looks.iter_mut().find(|look| look.number == number) {
            look.leaders[server] = leader;
        }
        let (takes, is_ordered) = (self.observers_latency(), !self.plan.has_two_ways);
        let route = &mut self.observer(observer).routes[server];
        let before = if is_ordered { route.back_at } else { 0 };
        route.back_at = (now + takes).max(route.stalled_until).max(before);
        let at = route.back_at;
        self.add_to_observer(observer, at, Observe::Answer(number, server, answer));
    }

    /// An answer to a look, or the end of waiting for more.
    fn answered(&mut self, observer: usize, number: u64, change: &mut dyn FnMut(&mut [Option<Answer>])) {
        let (keys, addresses) = (Arc::clone(&self.keys[self.observers.all[observer].name]), Arc::clone(&self.addresses));
        let looks = &mut self.observer(observer).looks;
        let Some(at) = looks.iter().position(|look| look.number == number) else { return };
        change(&mut looks[at].answers);
        let Some(seen) = observe(keys.name(), &addresses, &looks[at].answers) else { return };
        let look = looks.remove(at);
        if self.observer(observer).waits_since.is_some() {
            self.receive_look(observer, &look, seen);
        }
    }

    fn receive_look(&mut self, observer: usize, look: &Look, seen: Result<Observation, Error>) {
        let tick = self.observers_tick(observer);
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => return self.violate(format!("o{observer}: {error:?}")),
        };
        let observing = &mut self.observer(observer).observing;
        let news = observing.take(look.number, seen.clone(), tick);
        let next_look = observing.next_look();
        self.check_sighting(observer, look, &seen, news.as_ref());
        match news {
            Some(news) => {
                let is_dropped = self.observers.rng.u8(..8) == 0;
                self.trace(|| format!("o{observer} sees {news:?}, and drops it: {is_dropped}"));
                if is_dropped {
                    self.observer(observer).observing.take_back();
                } else {
                    self.observer(observer).sightings.note(news);
                }
                self.observer(observer).waits_since = None;
                self.observer(observer).alarm = None;
                self.observer(observer).timer += 1;
                self.call_later(observer);
            }
            None => self.look_at(observer, next_look),
        }
    }

    /// A client announces on all servers what has happened to a leader.
    pub(super) fn announce(&mut self, client: usize, slot: usize, kind: EventKind) {
        use EventKind::{Acquired, Expired, Lost, Overlapped, Released};
        let entry = &self.processes[client].slots[slot];
        let name = entry.name;
        if self.observers.all.is_empty()
            || entry.recipe.keys.kind().is_shared()
            || !matches!(kind, Acquired | Released | Expired | Overlapped | Lost)
        {
            return;
        }
        for server in 0..self.plan.servers {
            let (node, stalled) = (&self.nodes[server], self.routes[client][server].stalled_until);
            let (up, free) = (node.up, stalled.max(node.stopped_until));
            for observer in 0..self.observers.all.len() {
                if self.observers.all[observer].name != name {
                    continue;
                }
                let (out, back) = (self.observers_latency(), self.observers_latency());
                let lost = self.observers.rng.u16(..1_000) < self.plan.lost_notices_per_mille;
                let stalled = self.observers.all[observer].routes[server].stalled_until;
                let at = ((self.now + out).max(free) + back).max(stalled);
                if up && !lost && self.observers.all[observer].calls > 0 {
                    self.add_to_observer(observer, at, Observe::Announced);
                }
            }
        }
    }
}

/// The longest time of a look, where nothing disturbs it.
pub(super) fn longest_look(plan: &Plan) -> u64 {
    2 * (plan.latency_us + plan.jitter_us)
}

/// Whether a look is never late by the network alone.
pub(super) fn is_steady(plan: &Plan) -> bool {
    plan.lost_per_mille == 0 && micros(plan.response_timeout) > 2 * longest_look(plan)
}
