//! The transport of one client to one server: what the `Server` contract allows, at its worst.
//!
//! Requests of one connection arrive in order, and so do its answers; a lost packet is a late one. There may be two, which live
//! and break together, and between which there is no order: a caller's own, and one in the background. A connection that breaks
//! leaves requests behind that a server may still read, also after what came over the next connection. Every request is
//! completed once: by its answer, after the response timeout, or when it can't be sent before its deadline. Only releases
//! wait for a connection longer than one attempt to make one, and are sent again.

mod ending;

use std::collections::VecDeque;

use locktender::internals::protocol::{Input, Tag};
use locktender::op::{Answer, Failure, FailureKind, Op};
use locktender::server::Request;

use super::clock::{Instant, micros, ms};
use super::queue::Happening;
use super::standing::Standing;
use super::world::World;

/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: u64 = ms(1_000);

/// How long after a connection broke a client asks again for what the server may still read from it.
const STRAGGLES: u64 = ms(450);

/// How many connections there may be.
const WAYS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down { until: Instant },
    Connecting,
    Up,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Sent { at: Instant },
    Done,
}

#[derive(Debug)]
pub(super) struct Job {
    slot: usize,
    tag: Tag,
    request: Request,
    stage: Stage,
    /// On which of the connections it was sent.
    way: usize,
}

/// A connection that is no more.
struct Dead {
    conn: u32,
    /// What arrives later is not read.
    read_until: Instant,
    broke_at: Instant,
}

pub(super) struct Lane {
    link: Link,
    conn: u32,
    attempt: u32,
    failures: u32,
    jobs: Vec<Job>,
    waiting: VecDeque<usize>,
    flying: VecDeque<usize>,
    /// Sent, and without an answer so far, whoever still waits for that.
    unanswered: Vec<usize>,
    /// Each connection's requests arrive no earlier than the last one did; likewise its answers.
    out_at: [Instant; WAYS],
    back_at: [Instant; WAYS],
    answered_at: Instant,
    dead: Vec<Dead>,
    /// The connection on which messages are heard.
    pub(super) subscribed: Option<u32>,
    pub(super) stalled_until: Instant,
    /// The connection breaks behind the next acquire, which may be read for so long.
    pub(super) cut_behind_acquire: Option<u64>,
    /// Until when something was wrong with it.
    pub(super) troubled_until: Instant,
    pub(super) connected_at: Instant,
    /// When the connection last broke, or could not be made.
    pub(super) broke_at: Instant,
    /// A close has begun: nothing more is taken, and what is left has a moment.
    closing: bool,
    closed: bool,
}

impl Lane {
    /// When the last of what was sent so far has arrived.
    pub(super) fn arrived_at(&self) -> Instant {
        self.out_at.into_iter().fold(0, Instant::max)
    }

    /// The connection, if there is one.
    pub(super) fn live_connection(&self) -> Option<u32> {
        (self.link == Link::Up && !self.closed).then_some(self.conn)
    }

    pub(super) fn new() -> Self {
        Self {
            link: Link::Down { until: 0 },
            conn: 0,
            attempt: 0,
            failures: 0,
            jobs: Vec::new(),
            waiting: VecDeque::new(),
            flying: VecDeque::new(),
            unanswered: Vec::new(),
            out_at: [0; WAYS],
            back_at: [0; WAYS],
            answered_at: 0,
            dead: Vec::new(),
            subscribed: None,
            stalled_until: 0,
            cut_behind_acquire: None,
            troubled_until: 0,
            connected_at: 0,
            broke_at: 0,
            closing: false,
            closed: false,
        }
    }
}

impl World {
    /// Notes that what goes between a client and a server is not as it should be for `span`.
    pub(super) fn disturb(&mut self, client: usize, server: usize, span: u64) {
        let lane = &mut self.lanes[client][server];
        lane.troubled_until = lane.troubled_until.max(self.now + span);
    }

    /// The contract's `submit`.
    pub(super) fn submit(&mut self, client: usize, server: usize, slot: usize, tag: Tag, request: Request) {
        let job = self.lanes[client][server].jobs.len();
        let survives = request.op.survives_reconnect();
        let late = self.past(client, &request);
        self.lanes[client][server].jobs.push(Job { slot, tag, request, stage: Stage::Waiting, way: 0 });
        let lane = &mut self.lanes[client][server];
        if lane.closed || lane.closing && !survives {
            return self.complete(client, server, job, Err(failure(FailureKind::Closed, false)));
        }
        if late {
            return self.complete(client, server, job, Err(failure(FailureKind::TooLate, false)));
        }
        match lane.link {
            Link::Up => self.write(client, server, job),
            Link::Down { until } if self.now < until && !survives => {
                self.complete(client, server, job, Err(failure(FailureKind::Refused, false)));
            }
            _ => {
                self.wait(client, server, job);
                self.pursue(client, server);
            }
        }
    }

    fn past(&self, client: usize, request: &Request) -> bool {
        self.processes[client].clock.at(self.now) > request.deadline.as_micros()
    }

    fn wait(&mut self, client: usize, server: usize, job: usize) {
        let lane = &mut self.lanes[client][server];
        lane.jobs[job].stage = Stage::Waiting;
        lane.waiting.push_back(job);
        let due = self.processes[client].clock.when(lane.jobs[job].request.deadline.as_micros());
        self.queue.add(due.max(self.now).saturating_add(1), Happening::Overdue { client, server, job });
    }

    fn pursue(&mut self, client: usize, server: usize) {
        let lane = &mut self.lanes[client][server];
        let Link::Down { until } = lane.link else { return };
        if self.now < until {
            return self.queue.add(until, Happening::Backoff { client, server });
        }
        lane.link = Link::Connecting;
        lane.attempt += 1;
        let attempt = lane.attempt;
        let takes = self.latency() + self.latency();
        let stalled = self.lanes[client][server].stalled_until;
        let reached = (self.now + takes).max(stalled).max(self.nodes[server].stopped_until);
        let ends = reached.min(self.now + CONNECT_TIMEOUT);
        self.queue.add(ends, Happening::Connected { client, server, attempt });
    }

    pub(super) fn backoff_over(&mut self, client: usize, server: usize) {
        if !self.lanes[client][server].waiting.is_empty() {
            self.pursue(client, server);
        }
    }

    pub(super) fn connected(&mut self, client: usize, server: usize, attempt: u32) {
        let lane = &self.lanes[client][server];
        if lane.link != Link::Connecting || lane.attempt != attempt {
            return;
        }
        let reachable = self.nodes[server].up && self.nodes[server].stopped_until <= self.now && lane.stalled_until <= self.now;
        let lane = &mut self.lanes[client][server];
        let waiting = std::mem::take(&mut lane.waiting);
        if !reachable {
            lane.failures = (lane.failures + 1).min(4);
            lane.link = Link::Down { until: self.now + ms(30) * (1 << lane.failures) };
            lane.broke_at = self.now;
            for job in waiting {
                if self.lanes[client][server].jobs[job].request.op.survives_reconnect() {
                    self.lanes[client][server].waiting.push_back(job);
                } else {
                    self.complete(client, server, job, Err(failure(FailureKind::Refused, false)));
                }
            }
            self.disturb(client, server, 0);
            if !self.lanes[client][server].waiting.is_empty() {
                self.pursue(client, server);
            }
            return;
        }
        lane.link = Link::Up;
        lane.failures = 0;
        lane.conn += 1;
        lane.connected_at = self.now;
        lane.answered_at = self.now;
        (lane.out_at, lane.back_at) = ([self.now; WAYS], [self.now; WAYS]);
        self.subscribe(client, server);
        for job in waiting {
            if self.past(client, &self.lanes[client][server].jobs[job].request) {
                self.complete(client, server, job, Err(failure(FailureKind::TooLate, false)));
            } else {
                self.write(client, server, job);
            }
        }
    }

    fn write(&mut self, client: usize, server: usize, job: usize) {
        let takes = self.latency();
        let way = if self.plan.has_two_ways { self.rng.usize(..WAYS) } else { 0 };
        let (now, timeout) = (self.now, micros(self.plan.response_timeout));
        let lines_up = matches!(self.lanes[client][server].jobs[job].request.op, Op::Acquire { place: Some(_), .. });
        let held_up = if lines_up { self.close_behind(client) } else { 0 };
        let lane = &mut self.lanes[client][server];
        (lane.jobs[job].stage, lane.jobs[job].way) = (Stage::Sent { at: now }, way);
        lane.flying.push_back(job);
        lane.unanswered.push(job);
        let acquire = matches!(lane.jobs[job].request.op, Op::Acquire { .. });
        let cut = lane.cut_behind_acquire.take_if(|_| acquire);
        let on_its_way = cut.map_or(held_up, |read_for| self.rng.u64(..=read_for));
        let at = (now + takes).max(lane.stalled_until).max(lane.out_at[way]) + on_its_way;
        lane.out_at[way] = at;
        let conn = lane.conn;
        self.queue.add(at, Happening::Arrive { client, server, job, conn });
        self.queue.add(now + timeout, Happening::Overdue { client, server, job });
        if let Some(read_for) = cut {
            self.disturb(client, server, 0);
            self.cut(client, server, read_for, true);
        }
    }

    pub(super) fn arrive(&mut self, client: usize, server: usize, job: usize, conn: u32) {
        let node = &self.nodes[server];
        if node.stopped_until > self.now {
            let until = node.stopped_until;
            return self.queue.add(until, Happening::Arrive { client, server, job, conn });
        }
        let lane = &self.lanes[client][server];
        let dead = lane.dead.iter().find(|dead| dead.conn == conn);
        if !node.up || dead.is_some_and(|dead| dead.read_until < self.now) {
            return;
        }
        let orphan = dead.is_some_and(|dead| dead.broke_at + STRAGGLES < self.now);
        let (op, tag) = (lane.jobs[job].request.op.clone(), lane.jobs[job].tag);
        let before = op.keys().map(|keys| Standing::of(&self.nodes[server], keys, self.now));
        let (reply, verdict) = self.nodes[server].apply(&op, self.now);
        self.trace(|| {
            format!("  c{client}>s{server} {} -> {:?} fence={} {:?}", brief(&op), reply.verdict, reply.fence, reply.remaining)
        });
        if let Err(why) = verdict {
            self.violate(why);
        }
        self.applied(server, &op, &reply, orphan);
        self.asked(client, &op);
        self.served(&op, &reply);
        self.prolonged((client, server), tag, &op, &reply);
        let messages = self.nodes[server].state.take_published();
        self.look_at_queue(server, (&op, &reply), before.as_ref(), &messages);
        self.came(client, tag, &op, &reply, &messages);
        self.published(server, messages);
        let takes = self.latency();
        let lane = &mut self.lanes[client][server];
        if conn == lane.conn {
            let back_at = &mut lane.back_at[lane.jobs[job].way];
            let at = (self.now + takes).max(lane.stalled_until).max(*back_at);
            *back_at = at;
            self.queue.add(at, Happening::Return { client, server, job, conn, answer: Ok(reply) });
        }
    }

    pub(super) fn returned(&mut self, client: usize, server: usize, job: usize, conn: u32, answer: Answer) {
        let lane = &mut self.lanes[client][server];
        if lane.conn != conn || lane.link != Link::Up {
            return;
        }
        lane.answered_at = self.now;
        lane.unanswered.retain(|unanswered| *unanswered != job);
        self.complete(client, server, job, answer);
    }

    pub(super) fn overdue(&mut self, client: usize, server: usize, job: usize) {
        let timeout = micros(self.plan.response_timeout);
        match self.lanes[client][server].jobs[job].stage {
            Stage::Waiting if self.past(client, &self.lanes[client][server].jobs[job].request) => {
                self.lanes[client][server].waiting.retain(|waiting| *waiting != job);
                self.complete(client, server, job, Err(failure(FailureKind::TooLate, false)));
            }
            Stage::Sent { at } if at + timeout <= self.now => {
                self.disturb(client, server, 0);
                self.complete(client, server, job, Err(failure(FailureKind::Timeout, true)));
                // Nothing came since: the connection is half open.
                if self.lanes[client][server].answered_at <= at {
                    let read_for = if self.rng.bool() { ms(10_000) } else { 0 };
                    self.cut(client, server, read_for, false);
                }
            }
            _ => (),
        }
    }

    fn complete(&mut self, client: usize, server: usize, job: usize, answer: Answer) {
        let lane = &mut self.lanes[client][server];
        let Job { slot, tag, stage, .. } = &mut lane.jobs[job];
        if *stage == Stage::Done {
            return;
        }
        *stage = Stage::Done;
        let (slot, tag) = (*slot, *tag);
        lane.flying.retain(|flying| *flying != job);
        self.queue.add(self.now, Happening::Bring { client, slot, input: Input::Answer { server, tag, answer } });
    }

    pub(super) fn latency(&mut self) -> u64 {
        let latency = self.plan.latency_us + self.rng.u64(..=self.plan.jitter_us);
        let lost = self.rng.u64(..1_000) < self.plan.lost_per_mille;
        if lost { latency + ms(200) + self.rng.u64(..ms(200)) } else { latency }
    }
}

fn failure(kind: FailureKind, maybe_applied: bool) -> Failure {
    let message = kind.as_str();
    if maybe_applied { Failure::unknown(kind, message) } else { Failure::not_applied(kind, message) }
}

/// An operation for the trace: its owner by the end of its id.
pub(super) fn brief(op: &Op) -> String {
    let tail = |owner: &str| owner[owner.len().saturating_sub(6)..].to_owned();
    let waiter = |entry: &str| entry.split(' ').next().unwrap_or_default().to_owned();
    match op {
        Op::Acquire { keys, owner, ttl_ms, proposal, adopt, place, .. } => {
            let adopt = adopt.as_ref().map_or(String::new(), |adopt| format!(" adopting {}", tail(&adopt.owner)));
            let place = place.as_ref().map_or(String::new(), |place| {
                format!(" in {} since {}{}", waiter(&place.entry), place.arrival, if place.stays { " for more" } else { "" })
            });
            format!("acquire {} {} ttl={ttl_ms} proposal={proposal}{adopt}{place}", keys.name(), tail(owner))
        }
        Op::Confirm { keys, owner, token } => format!("confirm {} {} {token}", keys.name(), tail(owner)),
        Op::Extend { keys, owner, ttl_ms, .. } => format!("extend {} {} ttl={ttl_ms}", keys.name(), tail(owner)),
        Op::Heal { keys, owner, ttl_ms, .. } => format!("heal {} {} ttl={ttl_ms}", keys.name(), tail(owner)),
        Op::Leave { keys, entry, .. } => format!("leave {} {}", keys.name(), waiter(entry)),
        Op::Release { keys, owner, leave, .. } => {
            let leave = leave.as_ref().map_or(String::new(), |entry| format!(" leaving {}", waiter(entry)));
            format!("release {} {}{leave}", keys.name(), tail(owner))
        }
        other => format!("{other:?}"),
    }
}
