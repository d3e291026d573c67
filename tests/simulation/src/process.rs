//! Process: a client's clocks and acquisitions, and how it stops and dies.

use std::sync::Arc;
use std::time::Duration;

use locktender::internals::clock::{Now, Tick};
use locktender::internals::protocol::{Command, Input, Step, Tag};
use locktender::internals::wait::LocalQueues;
use locktender::op::{LockOp, Op, Reply, Verb, Verdict};
use locktender::server::Request;

use super::clock::{Clock, Instant, ms};
use super::queue::Event;
use super::slot::Slot;
use super::worker::Worker;
use super::world::World;

/// The most wakes, and inputs that lead to a request, of one acquisition at one instant: more are a busy loop.
const BUSY: u32 = 300;

/// The most rounds in a second: more are a busy loop, too.
const MOST_ROUNDS: u32 = 60;

pub(super) struct Process {
    pub(super) clock: Clock,
    /// The difference between the wall clock and true time since the epoch.
    pub(super) wall_ahead: i64,
    pub(super) alive: bool,
    pub(super) closed: bool,
    /// Whether the client is closed behind its next acquire that may join a queue.
    pub(super) closes_behind_acquire: bool,
    pub(super) stopped_until: Instant,
    /// The time for which the process has been stopped, or will have been.
    pub(super) stopped: u64,
    pub(super) pause_after_next: Option<u64>,
    /// The time for which the process stays stopped after the end of validity. It is stopped behind the next extension that it
    /// sends.
    pub(super) pause_behind_extension: Option<u64>,
    /// Commands that were decided, but are not written yet.
    held_back: Vec<(usize, Command)>,
    pub(super) local_queues: LocalQueues,
    pub(super) listening: bool,
    /// The number of operations that have not ended.
    pub(super) unanswered: usize,
    pub(super) slots: Vec<Slot>,
    /// The acquisitions that wait, or may hold.
    pub(super) live: Vec<usize>,
    pub(super) workers: Vec<Worker>,
}

impl Process {
    pub(super) fn new(clock: Clock, wall_ahead: i64, workers: usize, local_queues: LocalQueues) -> Self {
        Self {
            clock,
            wall_ahead,
            alive: true,
            closed: false,
            closes_behind_acquire: false,
            stopped_until: 0,
            stopped: 0,
            pause_after_next: None,
            pause_behind_extension: None,
            held_back: Vec::new(),
            local_queues,
            listening: false,
            unanswered: 0,
            slots: Vec::new(),
            live: Vec::new(),
            workers: (0..workers).map(|_| Worker::default()).collect(),
        }
    }
}

impl World {
    pub(super) fn read_clocks(&self, client: usize) -> Now {
        let process = &self.processes[client];
        let tick = process.clock.at(self.now);
        let wall_us = (self.epoch_us + self.now).saturating_add_signed(process.wall_ahead);
        let now = Now { tick: Tick::from_micros(tick), wall_us, servers_us: 0 };
        let clocks = self.routes[client].iter().filter_map(|route| route.ways[0].server_clock(now.tick));
        now.with_servers(self.plan.servers, clocks)
    }

    /// Brings an input to an acquisition, and carries out its commands.
    pub(super) fn bring(&mut self, client: usize, slot: usize, input: Input) {
        let now = self.read_clocks(client);
        let wake = matches!(input, Input::Wake);
        if !matches!(input, Input::Wake) {
            self.trace(|| format!("c{client}.{slot} <- {}", input_text(&input)));
        }
        let mut commands = std::mem::take(&mut self.commands);
        if let Input::Answer { tag: Tag { step: Step::Release, sent, .. }, answer: Ok(reply), .. } = &input {
            // Answers to the undo of rounds before the grant don't count, and none after the outcome is decided: that is when a server
            // answers, or when the key must have ended.
            let entry = &self.processes[client].slots[slot];
            let ours = entry.grant.is_some() && !entry.decided && *sent >= self.granted_tick(client, slot);
            self.processes[client].slots[slot].release_refused |= ours && matches!(reply.verdict, Verdict::No { .. });
        }
        if let Input::Answer { tag: Tag { step, .. }, answer: Err(failure), .. } = &input {
            let entry = &mut self.processes[client].slots[slot];
            entry.unanswered |= *step == Step::Acquire && failure.maybe_applied;
            entry.is_unsure |= *step == Step::Release && failure.maybe_applied;
        }
        if let Input::Answer { tag: Tag { step: Step::Release, .. }, answer, .. } = &input {
            let entry = &mut self.processes[client].slots[slot];
            entry.is_unheard = answer.is_err();
            entry.is_unsure |= answer.as_ref().is_ok_and(|reply| reply.repeated);
        }
        if let Input::Answer { answer: Ok(Reply { verdict: Verdict::Logged(entries), .. }), .. } = &input {
            self.processes[client].slots[slot].shown = Arc::clone(entries);
        }
        let mut extended = None;
        if let Input::Answer { tag: tag @ Tag { step: Step::Extend, round, .. }, answer: Ok(reply), .. } = &input {
            let confirmed = usize::from(reply.verdict == Verdict::Ok);
            let entry = &mut self.processes[client].slots[slot];
            extended = Some((*tag, entry.machine.valid_until()));
            entry.refused |= confirmed == 0;
            *entry.extended.entry(*round).or_default() += confirmed;
            entry.answered_round = *round;
        }
        let entry = &mut self.processes[client].slots[slot];
        let due = entry.machine.wake_at() <= now.tick;
        if entry.machine.needs_place(now.tick, &input) {
            self.take_place(client, slot);
        }
        let entry = &mut self.processes[client].slots[slot];
        match entry.shadow.take() {
            Some(shadow) => match shadow.handle(&mut entry.machine, now, input, &mut commands) {
                Ok(shadow) => entry.shadow = shadow,
                Err(why) => return self.violate(format!("c{client}.{slot}: {why}")),
            },
            None => entry.machine.handle(now, input, &mut commands),
        }
        let entry = &mut self.processes[client].slots[slot];
        let wake_at = entry.machine.wake_at();
        if wake && due && commands.is_empty() && wake_at <= now.tick {
            self.violate(format!("c{client}.{slot}: a wake that changes nothing, and is due again"));
        }
        self.validity_may_have_changed(client, slot, now.tick);
        if let Some((tag, before)) = extended {
            self.confirmed(client, slot, tag, before, now.tick);
        }
        let extends = |command: &Command| matches!(command, Command::Send { tag: Tag { step: Step::Extend, .. }, .. });
        let behind = if commands.iter().any(extends) { self.processes[client].pause_behind_extension.take() } else { None };
        let sends = commands.iter().any(|command| matches!(command, Command::Send { .. }));
        // Answers that lead to no request come to an end: a connection that breaks brings all of its answers at once.
        if wake || sends {
            let entry = &mut self.processes[client].slots[slot];
            entry.brought = if entry.brought.0 == self.now { (self.now, entry.brought.1 + 1) } else { (self.now, 0) };
            if entry.brought.1 > BUSY {
                self.violate(format!("c{client}.{slot}: a busy loop"));
            }
        }
        let pause = if sends { self.processes[client].pause_after_next.take() } else { None };
        for command in commands.drain(..) {
            self.note(client, slot, &command);
            match command {
                send @ Command::Send { .. } if pause.is_some() => self.processes[client].held_back.push((slot, send)),
                Command::Send { server, tag, request } => self.submit(client, server, slot, tag, request),
                Command::Log(note) => self.ask(client, slot, Step::Leave, Op::Log(Box::new(note))),
                Command::Look { tag, since_ms, .. } => {
                    let op = Op::History { before: None, since_ms, count: 300 };
                    self.ask(client, slot, tag.step, op);
                }
                Command::Listen => self.listen(client),
                Command::Yield => self.pass(client, slot),
                Command::Quit(departure) => self.quit(client, slot, departure),
                result => self.give_result(client, slot, result),
            }
        }
        self.commands = commands;
        if let Some(span) = pause {
            self.pause(client, span);
            self.queue.add(self.processes[client].stopped_until, Event::Resume { client });
        }
        if let Some(after) = behind {
            let process = &self.processes[client];
            let ends = process.clock.when(process.slots[slot].valid_until.as_micros());
            self.pause(client, ends.saturating_sub(self.now) + after);
        }
        self.set_wake(client, slot, wake_at);
    }

    /// Sends a request about the history.
    fn ask(&mut self, client: usize, slot: usize, step: Step, op: Op) {
        let sent = self.read_clocks(client).tick;
        let deadline = sent.after(self.plan.response_timeout);
        self.submit(client, 0, slot, Tag { round: 0, step, sent }, Request::new(op, deadline));
    }

    /// Notes the acquisition whose value a round writes, for a later check that finds the value on a server.
    fn note(&mut self, client: usize, slot: usize, command: &Command) {
        let Command::Send { server, tag, request } = command else { return };
        if let Op::Lock(LockOp { verb: Verb::Extend { ttl_ms, .. }, .. }) = &request.op {
            let span = Duration::from_millis(*ttl_ms - 1);
            self.processes[client].slots[slot].spans.insert(tag.round, span);
        }
        // After a failover nobody was granted anything on a single server in quarantine.
        if tag.step == Step::Heal && !self.plan.quarantine {
            let entry = &self.processes[client].slots[slot];
            if entry.extended.get(&entry.answered_round).is_none_or(|confirmed| *confirmed < self.plan.needed()) {
                self.violate(format!("c{client}.{slot}: heals s{server} before a majority has confirmed the extension"));
            }
        }
        if *server != 0 {
            return;
        }
        let Op::Lock(LockOp { keys, by: owner, verb: Verb::Acquire { .. } }) = &request.op else { return };
        self.stats.rounds += 1;
        let entry = &mut self.processes[client].slots[slot];
        let second = self.now / ms(1_000);
        entry.rounds = if entry.rounds.0 == second { (second, entry.rounds.1 + 1) } else { (second, 1) };
        let (rounds, before) = (entry.rounds.1, entry.owner.replace(owner.clone()));
        if rounds > MOST_ROUNDS {
            self.violate(format!("c{client}.{slot}: {rounds} rounds in a second"));
        }
        for name in self.names_of(keys) {
            self.history.own(name, owner, client, slot);
            // What the fast path could not do is sent again.
            let before = before.as_ref().filter(|before| *before != owner);
            before.into_iter().for_each(|before| self.history.disown(name, before, self.now));
        }
    }

    fn set_wake(&mut self, client: usize, slot: usize, wake_at: Tick) {
        if wake_at == Tick::NEVER {
            return;
        }
        // Timers of a runtime are late, never early.
        let late = if self.rng.u8(..4) == 0 { self.rng.u64(..ms(2)) } else { self.rng.u64(..100) };
        let process = &mut self.processes[client];
        let at = process.clock.when(wake_at.as_micros()).max(self.now) + late;
        let entry = &mut process.slots[slot];
        if at < entry.wake_set {
            entry.wake_set = at;
            entry.timer += 1;
            self.queue.add(at, Event::Wake { client, slot, timer: entry.timer });
        }
    }

    pub(super) fn wake(&mut self, client: usize, slot: usize, timer: u32) {
        let entry = &mut self.processes[client].slots[slot];
        if entry.timer == timer {
            entry.wake_set = Instant::MAX;
        }
        self.bring(client, slot, Input::Wake);
    }

    pub(super) fn pause(&mut self, client: usize, span: u64) {
        let process = &mut self.processes[client];
        let from = process.stopped_until.max(self.now);
        process.stopped_until = from.max(self.now + span);
        process.stopped += process.stopped_until - from;
    }

    /// Writes the commands that were decided before the process was stopped.
    pub(super) fn resume(&mut self, client: usize) {
        for (slot, command) in std::mem::take(&mut self.processes[client].held_back) {
            if let Command::Send { server, tag, request } = command {
                self.submit(client, server, slot, tag, request);
            }
        }
    }

    pub(super) fn kill(&mut self, client: usize) {
        if !std::mem::replace(&mut self.processes[client].alive, false) {
            return;
        }
        for slot in 0..self.processes[client].slots.len() {
            self.end_validity(client, slot);
        }
        for server in 0..self.plan.servers {
            let read_for = self.rng.u64(..ms(100));
            self.cut(client, server, read_for, true);
        }
    }
}

fn input_text(input: &Input) -> String {
    match input {
        Input::Answer { server, tag, answer: Ok(reply) } => {
            format!("s{server} {:?} r{}: {:?} fence={}", tag.step, tag.round, reply.verdict, reply.fence)
        }
        Input::Answer { server, tag, answer: Err(failure) } => {
            format!("s{server} {:?} r{}: {:?} maybe_applied={}", tag.step, tag.round, failure.kind, failure.maybe_applied)
        }
        other => format!("{other:?}"),
    }
}
