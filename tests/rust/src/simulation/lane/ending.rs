//! The end of a connection: one that breaks, and one whose client closes.

use locktender::internals::protocol::{Step, Tag};
use locktender::op::FailureKind;
use locktender::server::Request;

use super::{Dead, Job, Link, Stage, failure};
use crate::simulation::queue::Happening;
use crate::simulation::world::World;

impl World {
    /// The connection is gone. What is on its way may still be read for a while; the client notices now or a little later.
    pub(in crate::simulation) fn cut(&mut self, client: usize, server: usize, read_for: u64, later: bool) {
        let notice = if later { self.latency() } else { 0 };
        let lane = &mut self.lanes[client][server];
        if lane.link != Link::Up {
            if lane.link == Link::Connecting {
                lane.attempt += 1;
                let attempt = lane.attempt;
                self.queue.add(self.now + notice, Happening::Connected { client, server, attempt });
            }
            let now = self.now;
            lane.dead.iter_mut().for_each(|dead| dead.read_until = dead.read_until.min(now + read_for));
            return;
        }
        let conn = lane.conn;
        lane.dead.push(Dead { conn, read_until: self.now + read_for, broke_at: self.now });
        if later {
            self.queue.add(self.now + notice, Happening::Broken { client, server, conn });
        } else {
            self.broken(client, server, conn);
        }
    }

    pub(in crate::simulation) fn broken(&mut self, client: usize, server: usize, conn: u32) {
        let lane = &mut self.lanes[client][server];
        if lane.conn != conn || lane.link != Link::Up {
            return;
        }
        self.trace(|| format!("  c{client}-s{server} connection {conn} broke"));
        (self.lanes[client][server].link, self.lanes[client][server].broke_at) = (Link::Down { until: self.now }, self.now);
        self.hears(client, server, false);
        self.lanes[client][server].unanswered.clear();
        let lane = &mut self.lanes[client][server];
        for job in std::mem::take(&mut lane.flying) {
            let lane = &self.lanes[client][server];
            let closed = lane.closed;
            let Job { request, stage: Stage::Sent { .. }, .. } = &lane.jobs[job] else { continue };
            if request.op.survives_reconnect() && !closed && !self.past(client, request) {
                self.wait(client, server, job);
            } else {
                self.complete(client, server, job, Err(failure(FailureKind::Disconnected, true)));
            }
        }
        if !self.lanes[client][server].waiting.is_empty() {
            self.pursue(client, server);
        }
    }

    /// The contract's `close`, after the moment the releases had.
    pub(in crate::simulation) fn let_go(&mut self, client: usize) {
        for server in 0..self.plan.servers {
            let lane = &mut self.lanes[client][server];
            lane.closed = true;
            let open: Vec<usize> =
                std::mem::take(&mut lane.waiting).into_iter().chain(std::mem::take(&mut lane.flying)).collect();
            for job in open {
                let sent = matches!(self.lanes[client][server].jobs[job].stage, Stage::Sent { .. });
                self.complete(client, server, job, Err(failure(FailureKind::Closed, sent)));
            }
        }
    }

    /// The contract's `give_up`: what was sent, but for releases, is taken back behind it.
    pub(in crate::simulation) fn give_up(&mut self, client: usize, server: usize) {
        let lane = &mut self.lanes[client][server];
        lane.closing = true;
        let unfit = |job: &Job| job.stage != Stage::Done && !job.request.op.survives_reconnect();
        let given_up: Vec<usize> = (0..lane.jobs.len()).filter(|job| unfit(&lane.jobs[*job])).collect();
        lane.waiting.retain(|job| !given_up.contains(job));
        // Also of those that were given up when no answer came.
        let unanswered = std::mem::take(&mut lane.unanswered);
        if lane.link == Link::Up {
            unanswered.into_iter().for_each(|job| self.take_back(client, server, job));
        }
        for job in given_up {
            let sent = matches!(self.lanes[client][server].jobs[job].stage, Stage::Sent { .. });
            self.complete(client, server, job, Err(failure(FailureKind::Closed, sent)));
        }
    }

    /// Sends what takes an operation back, behind it.
    fn take_back(&mut self, client: usize, server: usize, job: usize) {
        let takes = self.latency();
        let lane = &mut self.lanes[client][server];
        let Job { request, slot, way, .. } = &lane.jobs[job];
        let Some(op) = request.op.undo() else { return };
        let (slot, way, deadline) = (*slot, *way, request.deadline);
        let tag = Tag { round: 0, step: Step::Leave, sent: deadline };
        let at = (self.now + takes).max(lane.stalled_until).max(lane.out_at[way]);
        lane.out_at[way] = at;
        let (conn, undo) = (lane.conn, lane.jobs.len());
        // Nobody hears of the answer.
        lane.jobs.push(Job { slot, tag, request: Request::new(op, deadline), stage: Stage::Done, way });
        self.queue.add(at, Happening::Arrive { client, server, job: undo, conn });
    }
}
