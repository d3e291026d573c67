//! Faults: which of them happen, and when.

use super::clock::{micros, ms};
use super::failover::Promotion;
use super::plan::Plan;
use super::queue::Event;
use super::world::World;

/// A fault. Times are microseconds.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// A connection breaks; requests in flight are still read for `read_for` microseconds.
    Cut { client: usize, server: usize, read_for: u64 },
    /// Nothing passes between a client and a server. The bytes that were sent arrive afterwards, as with TCP.
    Stall { client: usize, server: usize, span: u64 },
    /// A stall between a server and all clients.
    Isolate { server: usize, span: u64 },
    /// A client's process is stopped: it reads nothing, then everything at once.
    Pause { client: usize, span: u64 },
    /// The process is stopped right after its next decision, before that is written to the sockets.
    PauseInside { client: usize, span: u64 },
    /// The process is stopped between its next extension and the answer, until validity has ended.
    PauseBehindExtension { client: usize, after: u64 },
    /// A connection breaks behind the next acquire, which may still be read.
    CutBehindAcquire { client: usize, server: usize, read_for: u64 },
    /// A connection stands still from the next acquire on. The bytes arrive afterwards, whatever the client has done meanwhile.
    StallWithAcquire { client: usize, server: usize, span: u64 },
    /// A client's machine is suspended; its connections are gone afterwards.
    Suspend { client: usize, span: u64 },
    /// A client is closed behind the next acquire that may join a queue. That acquire takes long to arrive.
    CloseBehindAcquire { client: usize },
    /// A client's process dies.
    Kill { client: usize },
    /// A client's wall clock is set.
    SetWall { client: usize, ahead: i64 },
    /// A server stops answering, then answers everything.
    Stop { server: usize, span: u64 },
    /// A server crashes, and comes back with all its data.
    Crash { server: usize, span: u64 },
    /// A server crashes, and comes back without any data.
    Forget { server: usize, span: u64 },
    /// A server crashes, and comes back with its data of `age` ago.
    Restore { server: usize, span: u64, age: u64 },
    /// A replica of a server is promoted.
    FailOver { server: usize, promotion: Promotion },
    /// A server becomes a replica and a primary again, with its data of `age` ago, and closes no connection.
    Return { server: usize, age: u64 },
    /// A server's clock is set forward.
    Jump { server: usize, ahead: u64 },
    /// The marks of those who have a lock together are deleted, as soon as somebody has it.
    LoseMarks { name: usize },
    /// An operator resets a job.
    Reset { name: usize },
}

/// Draws the faults of a plan.
pub(super) fn draw(plan: &mut Plan, rng: &mut fastrand::Rng) {
    // A quarter of the runs is calm: there liveness is checked hardest.
    let count = [0, rng.usize(1..=3), rng.usize(3..=10), rng.usize(10..=40)][rng.usize(..4)];
    plan.outside = rng.u8(..10) == 0;
    for _ in 0..count {
        let at = rng.u64(..plan.busy_us);
        let (client, server) = (rng.usize(..plan.clients), rng.usize(..plan.servers));
        let span =
            ms([rng.u64(1..50), rng.u64(50..500), rng.u64(500..if plan.servers > 1 { 4_000 } else { 9_000 })][rng.usize(..3)]);
        let fault = match rng.u8(..28) {
            0..=3 => Fault::Cut { client, server, read_for: [0, 0, rng.u64(..ms(5)), rng.u64(..ms(400))][rng.usize(..4)] },
            4..=6 => Fault::Stall { client, server, span },
            7..=8 => Fault::Isolate { server, span },
            9..=10 => Fault::Pause { client, span },
            11..=12 => Fault::PauseInside { client, span },
            13 => Fault::Suspend { client, span },
            14 => Fault::Kill { client },
            15..=16 => Fault::SetWall { client, ahead: rng.i64(-3_600_000_000..=3_600_000_000) },
            17..=18 => Fault::Stop { server, span },
            19..=20 => Fault::Crash { server, span },
            21 if plan.servers > 1 => Fault::Forget { server, span },
            22 if plan.servers > 1 => Fault::Restore { server, span, age: ms(rng.u64(1..5_000)) },
            23 if plan.outside => Fault::Jump { server, ahead: ms(rng.u64(5..5_000)) },
            24..=25 => Fault::PauseBehindExtension { client, after: rng.u64(..ms(20)) },
            26..=27 => Fault::CutBehindAcquire { client, server, read_for: rng.u64(..ms(400)) },
            23 if plan.servers > 1 => Fault::Forget { server, span: ms(rng.u64(1..500)) },
            _ => Fault::Cut { client, server, read_for: 0 },
        };
        plan.faults.push((at, fault));
    }
    plan.outside &= plan.faults.iter().any(|(_, fault)| matches!(fault, Fault::Jump { .. }));
}

/// Draws the failovers of a plan with one server. With quarantine no client may be left alone with the old primary for so long that a
/// hold there outlives the quarantine.
pub(super) fn draw_failovers(plan: &mut Plan, rng: &mut fastrand::Rng) {
    if plan.servers > 1 || rng.bool() {
        return;
    }
    (plan.fails_over, plan.quarantine, plan.ahead_us) = (true, rng.bool(), 0);
    if plan.quarantine {
        plan.longest_ttl_ms = plan.longest_ttl_ms.min(micros(plan.max_ttl) / 1_000);
        plan.has_foreigners = false;
    }
    let spare = micros(plan.max_ttl).saturating_sub(ms(plan.longest_ttl_ms));
    for _ in 0..rng.usize(1..=3) {
        let outage = [rng.u64(..ms(50)), rng.u64(..ms(1_000)), rng.u64(ms(1_000)..ms(4_000))][rng.usize(..3)];
        let most = if plan.quarantine { outage + spare * 9 / 10 } else { ms(4_000) };
        let promotion = Promotion {
            age: [0, rng.u64(..ms(2_000)), rng.u64(..ms(6_000))][rng.usize(..3)],
            outage,
            lingers: [0, rng.u64(..=most.min(ms(300))), rng.u64(..=most)][rng.usize(..3)],
            skew: [0, rng.i64(-20_000..20_000), rng.i64(-5_000_000..5_000_000)][rng.usize(..3)],
        };
        plan.faults.push((rng.u64(..plan.busy_us), Fault::FailOver { server: 0, promotion }));
    }
    plan.is_calm = false;
}

/// Draws connections that stand still with an acquire in them, for some of the plans.
pub(super) fn draw_stalls(plan: &mut Plan, rng: &mut fastrand::Rng) {
    if rng.u8(..6) > 0 {
        return;
    }
    for _ in 0..rng.usize(1..=4) {
        let (client, server) = (rng.usize(..plan.clients), rng.usize(..plan.servers));
        let span = [rng.u64(ms(100)..ms(2_000)), rng.u64(ms(1_000)..ms(8_000))][rng.usize(..2)];
        plan.faults.push((rng.u64(..plan.busy_us), Fault::StallWithAcquire { client, server, span }));
    }
    plan.is_calm = false;
}

/// Draws servers that become replicas and primaries again, for some of the plans with a marker: a majority of them within a moment.
pub(super) fn draw_returns(plan: &mut Plan, rng: &mut fastrand::Rng) {
    if rng.u8(..8) > 0 || plan.servers == 1 && !plan.quarantine {
        return;
    }
    for _ in 0..rng.usize(1..=4) {
        let (at, first) = (rng.u64(..plan.busy_us), rng.usize(..plan.servers));
        for server in first..first + plan.needed() {
            let (server, age) = (server % plan.servers, [rng.u64(..ms(3_000)), 0][rng.usize(..2)]);
            plan.faults.push((at + rng.u64(..ms(20)), Fault::Return { server, age }));
        }
    }
    plan.is_calm = false;
}

impl World {
    pub(super) fn fault(&mut self, fault: Fault) {
        self.trace(|| format!("FAULT {fault:?}"));
        match fault {
            Fault::Cut { client, server, read_for } => {
                self.disturb(client, server, 0);
                self.cut(client, server, read_for, true);
            }
            Fault::Stall { client, server, span } => self.stall(client, server, span),
            Fault::Isolate { server, span } => {
                (0..self.plan.clients).for_each(|client| self.stall(client, server, span));
                (0..self.observers.all.len()).for_each(|observer| self.stall_observer(observer, server, span));
            }
            Fault::Pause { client, span } => self.pause(client, span),
            Fault::PauseInside { client, span } => self.processes[client].pause_after_next = Some(span),
            Fault::PauseBehindExtension { client, after } => self.processes[client].pause_behind_extension = Some(after),
            Fault::CutBehindAcquire { client, server, read_for } => {
                self.routes[client][server].cut_behind_acquire = Some(read_for);
            }
            Fault::StallWithAcquire { client, server, span } => {
                self.routes[client][server].stall_with_acquire = Some(span);
            }
            Fault::Suspend { client, span } => {
                self.pause(client, span);
                if self.plan.clocks_stop_in_suspend {
                    self.processes[client].clock.stop(span);
                }
                (0..self.plan.servers).for_each(|server| {
                    self.disturb(client, server, span);
                    self.cut(client, server, 0, true);
                });
            }
            Fault::CloseBehindAcquire { client } => self.processes[client].closes_behind_acquire = true,
            Fault::Kill { client } => self.kill(client),
            Fault::SetWall { client, ahead } => self.processes[client].wall_ahead = ahead,
            Fault::Stop { server, span } => {
                let until = self.now + span;
                self.nodes[server].stopped_until = self.nodes[server].stopped_until.max(until);
                (0..self.plan.clients).for_each(|client| self.disturb(client, server, span));
            }
            Fault::Crash { server, span } => self.crash(server, span, None),
            Fault::Forget { server, span } => self.crash(server, span, Some(u64::MAX)),
            Fault::Restore { server, span, age } => self.crash(server, span, Some(age)),
            Fault::FailOver { server, promotion } => self.fail_over(server, promotion),
            Fault::Return { server, age } => self.go_and_return(server, age),
            Fault::Jump { server, ahead } => {
                self.nodes[server].ahead += ahead;
                self.nodes[server].unshown += ahead;
            }
            Fault::LoseMarks { name } => self.lose_marks(name),
            Fault::Reset { name } => self.reset_job(name),
        }
    }

    fn stall(&mut self, client: usize, server: usize, span: u64) {
        self.disturb(client, server, span);
        let route = &mut self.routes[client][server];
        route.stalled_until = route.stalled_until.max(self.now + span);
    }

    fn crash(&mut self, server: usize, span: u64, forgets: Option<u64>) {
        if !self.nodes[server].crash(self.now, forgets) {
            return;
        }
        if forgets.is_some() {
            self.forgot = true;
        }
        for client in 0..self.plan.clients {
            self.disturb(client, server, span);
            self.cut(client, server, 0, true);
        }
        self.queue.add(self.now + span, Event::Restart { server });
    }
}
