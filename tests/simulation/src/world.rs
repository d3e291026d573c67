//! World: one run, event after event, until no event is left.

use std::sync::Arc;

use locktender::internals::name::{Keys, Kind, Label, LockKind};
use locktender::internals::owner::Signature;
use locktender::internals::protocol::Command;
use locktender::internals::redis::Effect;
use locktender::internals::wait::LocalQueues;
use locktender::machine::{FENCE_KEPT_MS, Value};
use locktender::op::{Op, Verdict};

use super::clock::{Clock, Instant, ms};
use super::failover::Failovers;
use super::foreign::Foreigner;
use super::history::History;
use super::ledger::Ledger;
use super::node::Node;
use super::observers::Observers;
use super::plan::Plan;
use super::probe::Probes;
use super::process::Process;
use super::queue::{Event, Queue};
use super::route::{Ended, Route, settings};
use super::sample;
use super::several::Ticket;
use super::sightings::Reign;
use super::waiters::Watch;
use super::worker::{quorum_config, quorum_of};

/// The time in which users have to give everything back.
const SETTLING: u64 = ms(9_000);

/// The events of one run, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Stats {
    pub events: u64,
    pub acquires: u64,
    pub rounds: u64,
    pub grants: u64,
    pub renewals: u64,
    pub losses: u64,
    pub releases: u64,
    pub unavailable: u64,
    /// How often a transaction has taken a lock that a client waited for.
    pub passed: u64,
    /// The length of the run in virtual time.
    pub simulated_us: u64,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first violation of a rule.
    pub violation: Option<String>,
    /// The events, in numbers.
    pub stats: Stats,
    /// A hash of all events with their times: equal for equal runs.
    pub digest: u64,
    /// The events, line by line, if the trace was asked for.
    pub trace: Vec<String>,
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) rng: fastrand::Rng,
    pub(super) now: Instant,
    pub(super) queue: Queue,
    pub(super) epoch_us: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) failovers: Failovers,
    /// The processes. The last one only probes, undisturbed, when everything is over.
    pub(super) processes: Vec<Process>,
    /// The routes, by client and server.
    pub(super) routes: Vec<Vec<Route>>,
    /// The effects of a connection; empty except inside a call. `ended` has the operations that ended.
    pub(super) effects: Vec<Effect>,
    pub(super) ended: Ended,
    pub(super) keys: Vec<Arc<Keys>>,
    /// The same as of jobs.
    pub(super) job_keys: Vec<Arc<Keys>>,
    pub(super) jobs: Vec<Ledger>,
    pub(super) addresses: Arc<[String]>,
    pub(super) signature: Arc<Signature>,
    pub(super) tickets: Vec<Ticket>,
    pub(super) foreigners: Vec<Foreigner>,
    pub(super) observers: Observers,
    /// Who leads, by server and lock.
    pub(super) reigns: Vec<Vec<Reign>>,
    pub(super) history: History,
    pub(super) watch: Watch,
    pub(super) stats: Stats,
    pub(super) commands: Vec<Command>,
    pub(super) settled: bool,
    pub(super) forgot: bool,
    pub(super) ends_at: Instant,
    /// Since when each lock has been free while waiters wait for it; the last one is about those who wait for several.
    pub(super) idle_since: Vec<Instant>,
    pub(super) probes: Option<Probes>,
    violation: Option<String>,
    trace: Option<Vec<String>>,
    digest: u64,
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, trace: bool) -> Outcome {
    run_planned(Plan::of(seed), trace)
}

/// Runs a plan.
#[must_use]
pub fn run_planned(plan: Plan, trace: bool) -> Outcome {
    let mut world = World::new(plan, trace);
    while world.violation.is_none() && !world.is_over() {
        let Some((at, event)) = world.queue.next() else { break };
        world.now = at.max(world.now);
        world.happen(event);
    }
    if world.violation.is_none() {
        world.look_back();
    }
    world.stats.simulated_us = world.now;
    Outcome { violation: world.violation, stats: world.stats, digest: world.digest, trace: world.trace.unwrap_or_default() }
}

impl World {
    fn new(plan: Plan, trace: bool) -> Self {
        let mut rng = fastrand::Rng::with_seed(plan.seed);
        let epoch_us = 1_800_000_000_000_000 + rng.u64(..1 << 40);
        let drift = plan.drift_ppm;
        let nodes = (0..plan.servers)
            .map(|server| Node::new(server, Clock::new(epoch_us + rng.u64(..=plan.server_skew_us), rng.i64(-drift..=drift))));
        let nodes = nodes.collect();
        let skew = plan.wall_skew_us as i64;
        let signature = Signature::new(None, "sim", 1);
        let processes = (0..=plan.clients).map(|client| {
            let workers = if client < plan.clients { plan.workers } else { plan.names };
            let clock = Clock::new(rng.u64(1..1 << 40), rng.i64(-drift..=drift));
            let local_queues = LocalQueues::new(&Self::client_id(client), signature.who(), plan.servers);
            Process::new(clock, rng.i64(-skew..=skew), workers, local_queues)
        });
        let processes: Vec<Process> = processes.collect();
        let ways = if plan.has_two_ways { 2 } else { 1 };
        let settings = settings(&plan).map(Arc::new);
        let route = |rng: &mut fastrand::Rng| settings.as_ref().map(|settings| Route::new(ways, settings, rng));
        let routes = processes.iter().map(|_| (0..plan.servers).filter_map(|_| route(&mut rng)).collect()).collect();
        let keys = (0..plan.names).filter_map(|name| {
            let keys = Keys::new(Kind::of_lock(plan.servers), "", &format!("l{name}"), quorum_of(&plan).is_none()).ok()?;
            let kind = if plan.is_election { LockKind::Election } else { keys.label().kind };
            let category = Arc::clone(&keys.label().category);
            Some(Arc::new(keys.labelled(Label { kind, category })))
        });
        let is_single = quorum_of(&plan).is_none();
        let job_keys =
            (0..plan.names).filter_map(|name| Keys::new(Kind::Job, "", &format!("l{name}"), is_single).ok().map(Arc::new));
        let (observers, observed) = Observers::draw(&plan, epoch_us);
        let mut world = Self {
            rng,
            now: 0,
            queue: Queue::default(),
            epoch_us,
            nodes,
            failovers: Failovers::default(),
            processes,
            routes,
            effects: Vec::new(),
            ended: Ended::default(),
            keys: keys.collect(),
            job_keys: job_keys.collect(),
            jobs: (0..plan.names).map(|_| Ledger::default()).collect(),
            addresses: (0..plan.servers).map(|server| format!("sim://{server}")).collect(),
            signature: Arc::new(signature),
            tickets: Vec::new(),
            foreigners: Vec::new(),
            observers,
            reigns: vec![vec![Reign::default(); plan.names]; plan.servers],
            history: History::default(),
            watch: Watch::default(),
            stats: Stats::default(),
            commands: Vec::new(),
            settled: false,
            forgot: false,
            ends_at: plan.busy_us + ms(30_000),
            idle_since: vec![Instant::MAX; plan.names + 1],
            probes: None,
            violation: None,
            trace: trace.then(Vec::new),
            digest: 0xCBF2_9CE4_8422_2325,
            plan,
        };
        world.begin_run();
        observed.into_iter().for_each(|(at, event)| world.queue.add(at, event));
        world
    }

    fn begin_run(&mut self) {
        if let Some(quorum_config) = quorum_config(self) {
            for node in &mut self.nodes {
                let replid = node.replid().to_owned();
                let (reply, _) = node.apply(&Op::Trust { quorum_config }, &replid, 0);
                assert_eq!(reply.verdict, Verdict::Ok);
            }
        }
        let plan = self.plan.clone();
        if plan.ahead_us > 0 {
            for keys in &self.keys {
                for node in &mut self.nodes {
                    let fence = self.epoch_us + plan.ahead_us + self.rng.u64(..4);
                    let (value, kept_ms) = match keys.kind() {
                        Kind::Quorum => (Value::Text(fence.to_string().into()), Some(FENCE_KEPT_MS)),
                        _ => (Value::Clock(fence / 1_000, fence % 1_000), None),
                    };
                    node.state.put(keys.fence(), value, node.clock.at(0), kept_ms);
                }
            }
        }
        self.trace(|| format!("{plan:?}"));
        for (at, fault) in std::mem::take(&mut self.plan.faults) {
            self.queue.add(at, Event::Fault(fault));
        }
        for client in 0..plan.clients {
            for worker in 0..plan.workers {
                let after = self.rng.u64(..ms(100));
                self.plan_step(client, worker, after);
            }
        }
        if plan.has_foreigners {
            self.foreigners = (0..plan.names).map(|_| Foreigner::default()).collect();
            (0..plan.names).for_each(|name| self.queue.add(0, Event::Foreign { name }));
        }
        self.queue.add(plan.busy_us, Event::Settle);
        self.queue.add(sample::EVERY, Event::Sample);
    }

    /// Whether no event is left that matters.
    fn is_over(&self) -> bool {
        let done = |process: &Process| !process.alive || process.unanswered == 0;
        self.queue.is_idle() && self.processes.iter().all(done)
    }

    fn happen(&mut self, event: Event) {
        self.stats.events += 1;
        let Some(event) = self.postponed(event) else { return };
        self.mix(&event);
        match event {
            Event::Arrive { client, server, way, conn, bytes } => self.arrive(client, server, way, conn, bytes),
            Event::Return { client, server, way, conn, bytes, message } => {
                self.returned(client, server, way, conn, &bytes, message.as_deref());
            }
            Event::Broken { client, server, way, conn } => self.broken(client, server, way, conn),
            Event::Connected { client, server, way, attempt } => self.connected(client, server, way, attempt),
            Event::Alarm { client, server, way, timer } => self.alarm(client, server, way, timer),
            Event::Listen { client, server, timer } => self.listen_alarm(client, server, timer),
            Event::Bring { client, slot, input } => self.bring(client, slot, input),
            Event::Wake { client, slot, timer } => self.wake(client, slot, timer),
            Event::Step { client, worker, planned } => self.step(client, worker, planned),
            Event::Resume { client } => self.resume(client),
            Event::Foreign { name } => self.foreign_step(name),
            Event::Close { client } if self.processes[client].closed => (),
            Event::Close { client } => self.close(client),
            Event::LetGo { client } => self.let_go(client),
            Event::Observe { observer, what } => self.observe(observer, what),
            Event::Fault(fault) => self.fault(fault),
            Event::Restart { server } => self.nodes[server].restart(self.now),
            Event::Demote { server, node } => self.demote(server, node),
            Event::Settle if self.settled => self.probe(self.now - SETTLING),
            Event::Settle => {
                self.settle();
                self.queue.add(self.now + SETTLING, Event::Settle);
            }
            Event::Sample => self.sample(),
        }
    }

    /// A stopped process does its work when it continues; a dead one never.
    fn postponed(&mut self, event: Event) -> Option<Event> {
        use Event::{Alarm, Bring, Broken, Close, Connected, LetGo, Listen, Resume, Return, Step, Wake};
        let (client, timer) = match event {
            Return { client, .. }
            | Broken { client, .. }
            | Connected { client, .. }
            | Bring { client, .. }
            | Resume { client } => (client, false),
            Alarm { client, .. }
            | Listen { client, .. }
            | Wake { client, .. }
            | Step { client, .. }
            | Close { client }
            | LetGo { client } => (client, true),
            _ => return Some(event),
        };
        let process = &self.processes[client];
        if !process.alive {
            return None;
        }
        let until = process.stopped_until;
        if until <= self.now {
            return Some(event);
        }
        // The threads of the process then run in any order.
        let after = if timer { self.rng.u64(..200) } else { 0 };
        self.queue.defer(until + after, event);
        None
    }

    fn mix(&mut self, event: &Event) {
        let mut mix = |value: u64| self.digest = (self.digest ^ value).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(7);
        mix(self.now);
        match event {
            Event::Arrive { client, server, bytes, .. } => mix((*client * 1_000_003 + *server * 65_537 + bytes.len()) as u64),
            Event::Return { bytes, .. } => mix(bytes.len() as u64),
            Event::Bring { slot, .. } | Event::Wake { slot, .. } => mix(*slot as u64),
            _ => mix(17),
        }
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12.3} ms  {}", self.now as f64 / 1_000.0, line()));
        }
    }

    pub(super) fn violate(&mut self, why: String) {
        self.trace(|| format!("VIOLATION {why}"));
        let now = self.now;
        self.violation.get_or_insert_with(|| format!("at {:.3} ms: {why}", now as f64 / 1_000.0));
    }
}
