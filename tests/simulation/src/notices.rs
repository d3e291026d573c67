//! Notices: the notices of servers for waiters and the loss of some, failovers, and faults on the way.

use std::sync::Arc;

use locktender::internals::protocol::{Input, Step, Tag};
use locktender::internals::wait::{Hinted, LeaveReason, Wakeup};
use locktender::op::{LockOp, Op, Verb};
use locktender::server::Request;

use super::queue::Event;
use super::world::World;

impl World {
    /// The id of a client, by which its channel is named: its index.
    pub(super) fn client_id(client: usize) -> String {
        format!("c{client}")
    }

    pub(super) fn client_on(&self, channel: &str) -> Option<usize> {
        (0..self.processes.len()).find(|client| channel == locktender::machine::channel(&Self::client_id(*client)))
    }

    /// A caller waits: from now on the client receives the servers' messages.
    pub(super) fn listen(&mut self, client: usize) {
        if std::mem::replace(&mut self.processes[client].listening, true) {
            return;
        }
        (0..self.plan.servers).for_each(|server| self.begin_to_listen(client, server));
    }

    /// The client receives a server's messages from now on, or no longer.
    pub(super) fn set_listening(&mut self, client: usize, server: usize, listens: bool) {
        self.routes[client][server].subscribed = listens;
        for waiter in self.processes[client].local_queues.set_listening(server, listens, None) {
            self.queue.add(self.now, Event::Bring { client, slot: waiter as usize, input: Input::Listens(server) });
        }
    }

    pub(super) fn receive(&mut self, client: usize, server: usize, message: &str) {
        let Some(hinted) = Hinted::parse(message) else { return self.violate(format!("nobody understands {message:?}")) };
        self.trace(|| format!("c{client} receives from s{server}: {message}"));
        match self.processes[client].local_queues.find(&hinted) {
            Some(waiter) => {
                let entry = self.processes[client].local_queues.entry(hinted.mode, hinted.number);
                self.is_notified(client, waiter as usize, entry, hinted.hint);
                self.bring(client, waiter as usize, Input::Hint(server, hinted.hint));
            }
            None => {
                let now = self.read_clocks(client).tick;
                if self.processes[client].local_queues.passes_on(server, &hinted, now) {
                    self.pass_on(client, server, &hinted);
                } else if hinted.hint.is_now() {
                    self.notice_is_kept(hinted.lock);
                }
            }
        }
    }

    fn pass_on(&mut self, client: usize, server: usize, hinted: &Hinted<'_>) {
        let Some(name) = self.name_of(hinted.lock) else { return };
        let keys = self.keys_of(name, hinted.mode.kind);
        let entry = self.processes[client].local_queues.entry(hinted.mode, hinted.number);
        let op = Op::Lock(LockOp { keys, by: entry, verb: Verb::Leave });
        let sent = self.read_clocks(client).tick;
        let tag = Tag { round: 0, step: Step::Leave, sent };
        self.submit(client, server, 0, tag, Request::new(op, sent.after(self.plan.response_timeout)));
    }

    pub(super) fn quit(&mut self, client: usize, slot: usize, departure: LeaveReason) {
        let recipe = Arc::clone(&self.processes[client].slots[slot].recipe);
        let wakeups = self.processes[client].local_queues.quit(&recipe.queue_key(), slot as u64, departure);
        self.wake_up(client, wakeups);
    }

    pub(super) fn pass(&mut self, client: usize, slot: usize) {
        let recipe = Arc::clone(&self.processes[client].slots[slot].recipe);
        let wakeups = self.processes[client].local_queues.pass(&recipe.queue_key(), slot as u64);
        self.wake_up(client, wakeups);
    }

    fn wake_up(&mut self, client: usize, wakeups: Vec<Wakeup>) {
        for Wakeup { waiter, role, at } in wakeups {
            self.queue.add(self.now, Event::Bring { client, slot: waiter as usize, input: Input::Role(role, at) });
        }
    }

    /// Another node answers for a server, as far as the client knows: every hold is confirmed.
    pub(super) fn confirm(&mut self, client: usize, server: usize) {
        self.routes[client][server].followed_at = self.now;
        for slot in self.processes[client].live.clone() {
            self.queue.add(self.now, Event::Bring { client, slot, input: Input::FailedOver(server) });
        }
    }

    /// Notes a fault between a client and a server that lasts for `span`.
    pub(super) fn disturb(&mut self, client: usize, server: usize, span: u64) {
        let route = &mut self.routes[client][server];
        route.troubled_until = route.troubled_until.max(self.now + span);
    }
}
