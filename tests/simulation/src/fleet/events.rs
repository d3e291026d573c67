//! Events: one run, event after event, and the way of requests, answers and messages.

use std::collections::HashMap;
use std::sync::Arc;

use locktender::internals::clock::{Now, Tick};
use locktender::internals::name::{Keys, Kind};
use locktender::internals::owner::Signature;
use locktender::internals::protocol::{Command, Input, Step, Tag};
use locktender::internals::wait::{Hinted, LocalQueues, Wakeup};
use locktender::machine::channel;
use locktender::op::{Failure, FailureKind, LockOp, Op, Verb};
use locktender::server::Request;

use super::agenda::Agenda;
use super::client::{Client, Id, Lives};
use super::report::Seen;
use super::shard::{Shard, shard_of};
use super::users::{Task, Users, WARM_UP};
use super::{FleetPlan, Report, SECOND};
use crate::clock::{Instant, ms};

/// The way from a client to a shard, and how much longer it may take.
const LATENCY: u64 = 250;
const JITTER: u64 = 100;

/// How long the nodes need to agree that a primary has failed, and to elect its replica, beside the node timeout.
const ELECTION: u64 = ms(1_000);

/// Within which a client asks for the map again.
const REFRESH: u64 = SECOND;

/// How long what gives back waits for the next attempt to connect.
const RECONNECT: u64 = ms(100);

/// An event at an instant.
pub(super) enum Event {
    /// A request reaches its shard. What no acquisition waits for has no id.
    Arrive { client: usize, shard: usize, id: Option<Id>, tag: Tag, request: Request, sent: Instant },
    /// An acquisition gets an input.
    Bring { id: Id, input: Input },
    /// A client gets a message of a shard.
    Message { client: usize, shard: usize, text: String },
    /// The timer of an acquisition rings, also if it was set again since then.
    Wake { id: Id, timer: u32 },
    /// A client begins with its next name.
    Next { client: usize },
    /// A user begins an acquire.
    Begin { client: usize, task: Task },
    /// A user gives its lock back.
    Release { id: Id },
    /// The first shard fails.
    Fail,
    /// Its replica takes over.
    TakeOver,
    /// A client learns who has taken over.
    Learn { client: usize },
}

pub(super) struct World {
    pub(super) plan: FleetPlan,
    pub(super) rng: fastrand::Rng,
    pub(super) now: Instant,
    pub(super) agenda: Agenda<Event>,
    pub(super) shards: Vec<Shard>,
    pub(super) clients: Vec<Client>,
    pub(super) lives: Lives,
    pub(super) users: Users,
    pub(super) seen: Seen,
    pub(super) signature: Arc<Signature>,
    pub(super) servers: Arc<[String]>,
    channels: HashMap<String, usize>,
    commands: Vec<Command>,
}

impl World {
    pub(super) fn new(plan: FleetPlan) -> Self {
        let mut rng = fastrand::Rng::with_seed(plan.seed);
        let epoch_us = 1_800_000_000_000_000;
        let shards = (0..plan.shards).map(|shard| Shard::new(epoch_us, rng.u64(..ms(2)), shard == 0)).collect();
        let signature = Signature::new(None, "fleet", 1);
        let client = |number: usize| {
            let queues = LocalQueues::new(&client_id(number), signature.who(), 1);
            queues.set_listening(0, true, None);
            let arrives = vec![0; plan.shards].into();
            // Renewals are sent at round times of a clock, and no two machines have booted at the same time.
            let booted = rng.u64(..100 * SECOND);
            Client { queues, booted, knows_primary: false, arrives, next: 0, live: Vec::new() }
        };
        let clients = (0..plan.clients).map(client).collect();
        let fails_at = WARM_UP + plan.fails_after_us;
        let mut world = Self {
            now: 0,
            agenda: Agenda::default(),
            shards,
            clients,
            lives: Lives::default(),
            users: Users::new(&plan),
            seen: Seen::new(plan.shards, fails_at, fails_at + plan.node_timeout_us + ELECTION),
            signature: Arc::new(signature),
            servers: Arc::new(["fleet://cluster".to_owned()]),
            channels: (0..plan.clients).map(|client| (channel(&client_id(client)), client)).collect(),
            commands: Vec::new(),
            rng,
            plan,
        };
        world.begin_users();
        world.agenda.add(world.seen.fails_at, Event::Fail);
        world.agenda.add(world.seen.takes_over_at, Event::TakeOver);
        world
    }

    pub(super) fn run(mut self) -> Report {
        while !self.users.are_done()
            && let Some((at, event)) = self.agenda.next()
        {
            self.now = at;
            self.happen(event);
        }
        assert!(self.users.are_done(), "no event is left, and some users are not done: {:?}", self.users);
        let rates = self.shards.into_iter().map(|shard| shard.rate).collect();
        self.seen.report(rates, self.now)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { client, shard, id, tag, request, sent } => self.arrive(client, shard, id, (tag, request, sent)),
            Event::Bring { id, input } => self.bring(id, input),
            Event::Message { client, shard, text } => self.receive(client, shard, &text),
            Event::Wake { id, timer } => {
                if let Some(life) = self.lives.get(id).filter(|life| life.wake.1 == timer) {
                    life.wake.0 = Instant::MAX;
                    self.bring(id, Input::Wake);
                }
            }
            Event::Next { client } => self.next_name(client),
            Event::Begin { client, task } => self.begin(client, task),
            Event::Release { id } => self.release(id),
            Event::Fail => {
                self.shards[0].fail(self.now);
                self.unsettle();
            }
            Event::TakeOver => {
                self.shards[0].take_over(self.now);
                for client in 0..self.clients.len() {
                    let after = self.rng.u64(..REFRESH);
                    self.agenda.add(self.now + after, Event::Learn { client });
                }
            }
            Event::Learn { client } => self.learn(client),
        }
    }

    pub(super) fn clocks(&self, client: usize) -> Now {
        let wall_us = self.shards[0].epoch_us + self.now;
        let servers_us = self.shards.iter().map(|shard| shard.wall_us(self.now)).min().unwrap_or(0);
        Now { tick: Tick::from_micros(self.clients[client].booted + self.now), wall_us, servers_us }
    }

    fn latency(&mut self) -> u64 {
        LATENCY + self.rng.u64(..JITTER)
    }

    /// Brings an input to an acquisition, and carries out its commands.
    pub(super) fn bring(&mut self, id: Id, input: Input) {
        let Some(client) = self.lives.get(id).map(|life| life.client) else { return };
        let now = self.clocks(client);
        let Some(life) = self.lives.get(id) else { return };
        let mut commands = std::mem::take(&mut self.commands);
        let extends = matches!(&input, Input::Answer { tag: Tag { step: Step::Extend, .. }, answer: Ok(_), .. });
        life.machine.handle(now, input, &mut commands);
        let (shard, task) = (life.shard, life.task);
        if extends && life.machine.check(now.tick).is_ok() {
            self.extended(task, shard);
        }
        for command in commands.drain(..) {
            match command {
                Command::Send { tag, request, .. } => self.send(client, shard, Some(id), tag, request),
                Command::Quit(reason) => {
                    let Some(life) = self.lives.get(id) else { continue };
                    let wakeups = self.clients[client].queues.quit(life.recipe.keys.lock(), id.place as u64, reason);
                    self.wake_up(wakeups);
                }
                Command::Yield => {
                    let Some(life) = self.lives.get(id) else { continue };
                    let wakeups = self.clients[client].queues.pass(life.recipe.keys.lock(), id.place as u64);
                    self.wake_up(wakeups);
                }
                result => self.give(id, result),
            }
        }
        self.commands = commands;
        self.set_timer(id);
    }

    /// Sets the next wake of an acquisition, or frees its place if no work is left for it.
    fn set_timer(&mut self, id: Id) {
        let Some(life) = self.lives.get(id) else { return };
        if life.is_over && life.machine.is_finished() {
            let client = life.client;
            self.clients[client].live.retain(|place| *place != id.place);
            return self.lives.remove(id);
        }
        let wake_at = life.machine.wake_at();
        if wake_at == Tick::NEVER {
            return;
        }
        let at = wake_at.as_micros().saturating_sub(self.clients[life.client].booted).max(self.now);
        if at < life.wake.0 {
            life.wake = (at, life.wake.1 + 1);
            let timer = life.wake.1;
            self.agenda.add(at, Event::Wake { id, timer });
        }
    }

    fn wake_up(&mut self, wakeups: Vec<Wakeup>) {
        for Wakeup { waiter, role, at } in wakeups {
            let id = self.lives.id(waiter as usize);
            self.agenda.add(self.now, Event::Bring { id, input: Input::Role(role, at) });
        }
    }

    fn send(&mut self, client: usize, shard: usize, id: Option<Id>, tag: Tag, request: Request) {
        let reaches = self.now + self.latency();
        let arrives = &mut self.clients[client].arrives[shard];
        *arrives = reaches.max(*arrives);
        let at = *arrives;
        self.agenda.add(at, Event::Arrive { client, shard, id, tag, request, sent: self.now });
    }

    fn arrive(&mut self, client: usize, shard: usize, id: Option<Id>, (tag, request, sent): (Tag, Request, Instant)) {
        let is_reached =
            self.shards[shard].is_up && (shard != 0 || self.now < self.seen.fails_at || self.clients[client].knows_primary);
        if !is_reached && request.op.survives_reconnect() && self.clocks(client).tick < request.deadline {
            return self.agenda.add(self.now + RECONNECT, Event::Arrive { client, shard, id, tag, request, sent });
        }
        let (answer, leaves) = if is_reached {
            let (reply, leaves, messages) = self.shards[shard].apply(&request.op, self.now);
            for message in messages {
                let to = self.channels.get(&message.channel).copied();
                let at = leaves + self.latency();
                to.into_iter()
                    .for_each(|client| self.agenda.add(at, Event::Message { client, shard, text: message.payload.clone() }));
            }
            (Ok(reply), leaves)
        } else if sent < self.seen.fails_at {
            (Err(Failure::unknown(FailureKind::Disconnected, "the connection broke")), self.now)
        } else {
            (Err(Failure::not_applied(FailureKind::Refused, "refused")), self.now)
        };
        let at = leaves + self.latency();
        if let Some(id) = id {
            self.agenda.add(at, Event::Bring { id, input: Input::Answer { server: 0, tag, answer } });
        }
    }

    fn receive(&mut self, client: usize, shard: usize, text: &str) {
        if shard == 0 && self.now >= self.seen.fails_at && !self.clients[client].knows_primary {
            return;
        }
        let hinted = Hinted::parse(text).expect("the machine sends what clients understand");
        if let Some(waiter) = self.clients[client].queues.find(&hinted) {
            let id = self.lives.id(waiter as usize);
            return self.bring(id, Input::Hint(0, hinted.hint));
        }
        let now = self.clocks(client).tick;
        let queues = &mut self.clients[client].queues;
        if queues.passes_on(0, &hinted, now) {
            let by = queues.entry(hinted.mode, hinted.number);
            let keys = Arc::new(Keys::new(Kind::Exclusive, "", hinted.lock, true).expect("it is the name of a lock"));
            let op = Op::Lock(LockOp { keys, by, verb: Verb::Leave });
            let tag = Tag { round: 0, step: Step::Leave, sent: now };
            self.send(client, shard, None, tag, Request::new(op, now.after(super::users::RESPONSE_TIMEOUT)));
        }
    }

    /// A client is connected to the new primary: it listens there, and confirms its holds.
    fn learn(&mut self, client: usize) {
        self.clients[client].knows_primary = true;
        for place in self.clients[client].live.clone() {
            let id = self.lives.id(place);
            let Some(life) = self.lives.get(id).filter(|life| !life.is_over) else { continue };
            if life.is_granted && (life.shard == 0 || self.plan.confirms_all) {
                self.bring(id, Input::FailedOver(0));
            } else if !life.is_granted && life.shard == 0 {
                self.bring(id, Input::Listens(0));
            }
        }
    }

    pub(super) fn shard(&self, name: &str) -> usize {
        shard_of(name, self.plan.shards)
    }
}

fn client_id(client: usize) -> String {
    format!("c{client}")
}
