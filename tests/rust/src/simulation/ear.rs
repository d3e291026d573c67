//! What servers tell waiters, and how it gets lost.

use locktender::internals::protocol::{Input, Step, Tag};
use locktender::internals::wait::{Hinted, LeaveReason, Wakeup};
use locktender::machine::Message;
use locktender::op::Op;
use locktender::server::Request;

use super::queue::Happening;
use super::world::World;

impl World {
    /// The channel of a client is its index.
    pub(super) fn client_id(client: usize) -> String {
        format!("c{client}")
    }

    pub(super) fn client_on(&self, channel: &str) -> Option<usize> {
        (0..self.processes.len()).find(|client| channel == locktender::machine::channel(&Self::client_id(*client)))
    }

    /// Somebody waits: from now on the servers' messages are heard.
    pub(super) fn listen(&mut self, client: usize) {
        if std::mem::replace(&mut self.processes[client].listening, true) {
            return;
        }
        for server in 0..self.plan.servers {
            self.subscribe(client, server);
        }
    }

    /// A connection was made, or is to be used for messages, too.
    pub(super) fn subscribe(&mut self, client: usize, server: usize) {
        let Some(conn) = self.lanes[client][server].live_connection().filter(|_| self.processes[client].listening) else {
            return;
        };
        let at = self.now + self.latency() + self.latency();
        self.queue.add(at, Happening::Subscribed { client, server, conn });
    }

    pub(super) fn subscribed(&mut self, client: usize, server: usize, conn: u32) {
        if self.lanes[client][server].live_connection() != Some(conn) {
            return;
        }
        self.lanes[client][server].subscribed = Some(conn);
        self.hears(client, server, true);
    }

    /// Messages come from now on, or no longer.
    pub(super) fn hears(&mut self, client: usize, server: usize, hears: bool) {
        if !self.processes[client].listening {
            return;
        }
        self.processes[client].lines.listen_state().set(server, hears);
        for waiter in self.processes[client].lines.fronts().collect::<Vec<_>>() {
            self.queue.add(self.now, Happening::Bring { client, slot: waiter as usize, input: Input::Listens(server) });
        }
    }

    /// A server published something: whoever listens there hears it, unless it gets lost.
    pub(super) fn published(&mut self, server: usize, messages: Vec<Message>) {
        for message in messages {
            let Some(client) = self.client_on(&message.channel) else { continue };
            let lane = &self.lanes[client][server];
            let Some(conn) = lane.live_connection().filter(|conn| lane.subscribed == Some(*conn)) else {
                self.not_heard(client, &message.payload);
                continue;
            };
            if self.rng.u16(..1_000) < self.plan.unheard_per_mille {
                self.trace(|| format!("  s{server} is not heard: {}", message.payload));
                self.not_heard(client, &message.payload);
                continue;
            }
            let at = self.now + self.latency();
            self.queue.add(at, Happening::Hear { client, server, conn, message: message.payload });
        }
    }

    pub(super) fn hear(&mut self, client: usize, server: usize, conn: u32, message: &str) {
        if self.lanes[client][server].live_connection() != Some(conn) {
            return self.not_heard(client, message);
        }
        let Some(hinted) = Hinted::parse(message) else { return self.violate(format!("nobody understands {message:?}")) };
        self.trace(|| format!("c{client} hears s{server}: {message}"));
        match self.processes[client].lines.find(&hinted) {
            Some(waiter) => {
                let entry = self.processes[client].lines.entry(hinted.fair, hinted.number);
                self.is_told(client, waiter as usize, entry, hinted.hint);
                self.bring(client, waiter as usize, Input::Hint(server, hinted.hint));
            }
            None => {
                let now = self.read_clocks(client).tick;
                if self.processes[client].lines.passes_on(server, &hinted, now) {
                    self.pass_on(client, server, &hinted);
                } else if hinted.hint.is_now() {
                    self.turn_is_kept(hinted.lock);
                }
            }
        }
    }

    fn pass_on(&mut self, client: usize, server: usize, hinted: &Hinted<'_>) {
        let Some(keys) = self.keys.iter().find(|keys| keys.lock() == hinted.lock).cloned() else { return };
        let entry = self.processes[client].lines.entry(hinted.fair, hinted.number);
        let op = Op::Leave { keys, entry, single_server: self.plan.servers == 1 };
        let sent = self.read_clocks(client).tick;
        let tag = Tag { round: 0, step: Step::Leave, sent };
        self.submit(client, server, 0, tag, Request::new(op, sent.after(self.plan.response_timeout)));
    }

    pub(super) fn quit(&mut self, client: usize, slot: usize, departure: LeaveReason) {
        let lock = self.processes[client].slots[slot].recipe.keys.clone();
        let told = self.processes[client].lines.quit(lock.lock(), slot as u64, departure);
        self.tell(client, told);
    }

    pub(super) fn pass(&mut self, client: usize, slot: usize) {
        let lock = self.processes[client].slots[slot].recipe.keys.clone();
        let told = self.processes[client].lines.pass(lock.lock(), slot as u64);
        self.tell(client, told);
    }

    fn tell(&mut self, client: usize, told: Vec<Wakeup>) {
        for Wakeup { waiter, role, at } in told {
            self.queue.add(self.now, Happening::Bring { client, slot: waiter as usize, input: Input::Role(role, at) });
        }
    }
}
