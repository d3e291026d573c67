//! Route: the real connections of one client to one server, over modelled byte streams.
//!
//! A client may have two connections without an order between them: a caller's own, and one in the background. Bytes arrive in
//! order, in pieces, and late when a packet is lost. A connection that breaks leaves bytes behind. A server may still read them,
//! also after bytes of the next connection. The decisions are those of the real [`Connection`]; this file has the sockets that it
//! asks for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use locktender::internals::clock::Tick;
use locktender::internals::protocol::{Input, Step, Tag};
use locktender::internals::redis::{Buffers, Connection, Effect, InFlight, Input as RedisInput, Primary, ServerState, Settings};
use locktender::op::{Failure, FailureKind, LockOp, Op, Verb};
use locktender::server::{Completion, Request};

use super::clock::{Instant, ms};
use super::listening::Listening;
use super::queue::Event;
use super::role::{ROLES, Role};
use super::session::Session;
use super::world::World;

/// The time that an attempt to connect may take.
pub(super) const CONNECT_TIMEOUT: u64 = ms(1_000);

/// The most wakes of a connection at one instant: more are a busy loop.
const BUSY: u32 = 20;

/// The number of operations that are remembered because a server may still read them.
const REMEMBERED: usize = 128;

/// Operations that have ended, by client, acquisition and server.
pub(super) type Ended = Arc<Mutex<Vec<(usize, usize, Input)>>>;

/// The client's end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    Closed,
    /// The number of the attempt to connect.
    Opening(u32),
    Open(u32),
}

/// One of the connections.
pub(super) struct Way {
    pub(super) connection: Connection,
    /// The sockets, by role.
    pub(super) sockets: [Socket; ROLES.len()],
    pub(super) attempt: u32,
    was_up: bool,
    /// The instant of the next wake, and the number of its timer.
    alarm: (Instant, u32),
    /// The number of wakes at one instant.
    woken: (Instant, u32),
    /// The server's ends, also those of former sockets.
    pub(super) sessions: Vec<Session>,
}

pub(super) struct Route {
    pub(super) primary: Arc<Primary>,
    pub(super) ways: Vec<Way>,
    conn: u32,
    /// The last operations with their tags, for the time when a server reads one.
    asked: VecDeque<(Tag, Op)>,
    pub(super) listening: Listening,
    /// Whether messages arrive.
    pub(super) subscribed: bool,
    pub(super) stalled_until: Instant,
    /// The time for which the next acquire may still be read. The connection breaks behind it.
    pub(super) cut_behind_acquire: Option<u64>,
    /// The time for which a connection stands still, from the next acquire on.
    pub(super) stall_with_acquire: Option<u64>,
    /// The end of the last fault on this route.
    pub(super) troubled_until: Instant,
    pub(super) connected_at: Instant,
    /// The number of the last node that the client has accepted as the primary, and the time of that.
    pub(super) replid: (u32, Instant),
    /// When the client last learned of another replication id.
    pub(super) followed_at: Instant,
    /// The node whose answer the client has read last, and by how much its clock was ahead then, at least.
    pub(super) shown: (u32, u64),
    /// When the client left an old primary for its successor last, and what its fences must be above since then.
    pub(super) floor: Option<(Instant, u64)>,
    /// The time when a connection last broke, or could not be made.
    pub(super) broke_at: Instant,
    /// Whether a connection was still being made when the client closed: what waits for it has a response timeout to leave.
    pub(super) connects_late: bool,
}

impl Way {
    /// Whether the client has closed the connection, and no work is left for it.
    pub(super) fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    /// The number of the node that its operations go to.
    pub(super) fn node(&self) -> u32 {
        let Socket::Open(conn) = self.sockets[Role::Operations as usize] else { return 0 };
        self.sessions.iter().find(|session| session.conn == conn).map_or(0, |session| session.node)
    }

    /// The present purpose of a socket that is open.
    pub(super) fn role(&self, conn: u32) -> Option<Role> {
        ROLES.into_iter().find(|role| self.sockets[*role as usize] == Socket::Open(conn))
    }

    /// The server's clock, as the client knows it.
    pub(super) fn server_clock(&self, at: Tick) -> Option<u64> {
        self.connection.server_clock(at)
    }
}

impl Route {
    pub(super) fn new(ways: usize, settings: &Arc<Settings>, rng: &mut fastrand::Rng) -> Self {
        let primary = Arc::new(Primary::new(|_| ()));
        let way = |_| Way {
            connection: Connection::new(Arc::clone(settings), Arc::clone(&primary), rng.u64(..)),
            sockets: [Socket::Closed; ROLES.len()],
            attempt: 0,
            was_up: false,
            alarm: (Instant::MAX, 0),
            woken: (0, 0),
            sessions: Vec::new(),
        };
        Self {
            ways: (0..ways).map(way).collect(),
            primary,
            conn: 0,
            asked: VecDeque::new(),
            listening: Listening::new(settings),
            subscribed: false,
            stalled_until: 0,
            cut_behind_acquire: None,
            stall_with_acquire: None,
            troubled_until: 0,
            connected_at: 0,
            replid: (0, 0),
            followed_at: 0,
            shown: (0, 0),
            floor: None,
            broke_at: 0,
            connects_late: false,
        }
    }

    /// The buffers of an open socket.
    pub(super) fn buffers(&mut self, way: (usize, Role)) -> Option<&mut Buffers> {
        match way.1.of_connection() {
            Some(role) => self.ways[way.0].connection.buffers(role),
            None => self.listening.buffers(),
        }
    }

    /// Whether a connection is being made.
    pub(super) fn is_connecting(&self) -> bool {
        self.ways.iter().any(|way| way.sockets[Role::Operations as usize] != Socket::Closed && !way.connection.is_up())
    }

    /// The time at which all bytes that were sent so far have arrived.
    pub(super) fn arrived_at(&self) -> Instant {
        self.ways.iter().flat_map(|way| &way.sessions).map(|session| session.out_at).fold(0, Instant::max)
    }

    /// Whether a connection is up.
    pub(super) fn is_up(&self) -> bool {
        self.ways.iter().any(|way| way.connection.is_up())
    }

    /// The tag of an operation that was submitted, with the time of its sending.
    pub(super) fn tag(&self, op: &Op) -> Option<Tag> {
        self.asked(op).map(|(tag, _)| *tag)
    }

    /// The operation that was submitted, and has become this one on its way.
    fn asked(&self, op: &Op) -> Option<&(Tag, Op)> {
        self.asked.iter().rev().find(|(_, asked)| match (asked, op) {
            (
                Op::Lock(LockOp { keys, by: owner, verb: Verb::Extend { ttl_ms, .. } }),
                Op::Lock(LockOp { keys: same, by: ours, verb: Verb::Extend { ttl_ms: ttl, .. } }),
            ) => (keys, owner, ttl_ms) == (same, ours, ttl),
            // The connection may have seen a larger fence meanwhile.
            (
                Op::Lock(LockOp { keys, by: owner, verb: Verb::Acquire { place, .. } }),
                Op::Lock(LockOp { keys: same, by: ours, verb: Verb::Acquire { place: sent, .. } }),
            ) => (keys, owner, place) == (same, ours, sent),
            (asked, op) => asked == op,
        })
    }
}

impl World {
    /// The contract's `submit`.
    pub(super) fn submit(&mut self, client: usize, server: usize, slot: usize, tag: Tag, request: Request) {
        let way = self.rng.usize(..self.routes[client][server].ways.len());
        let route = &mut self.routes[client][server];
        route.asked.push_back((tag, request.op.clone()));
        if route.asked.len() > REMEMBERED {
            route.asked.pop_front();
        }
        if request.op.survives_reconnect() {
            self.send_undo(client, server, &request.op);
        }
        let ended = Arc::clone(&self.ended);
        self.processes[client].unanswered += 1;
        let receive = move |answer| {
            if let Ok(mut ended) = ended.lock() {
                ended.push((client, slot, Input::Answer { server, tag, answer }));
            }
        };
        self.bring_to(client, server, way, RedisInput::Submit(InFlight::new(request, Completion::new(receive))));
    }

    /// Notifies the connections of a release or a leave, if what it undoes may come late on one of them.
    fn send_undo(&mut self, client: usize, server: usize, op: &Op) {
        for way in 0..self.routes[client][server].ways.len() {
            if self.routes[client][server].primary.has_cancelled() {
                self.bring_to(client, server, way, RedisInput::Undo(op.clone()));
            }
        }
    }

    /// Has every connection of a client made that is not there yet: renewals will use them.
    pub(super) fn keep_warm(&mut self, client: usize) {
        for server in 0..self.plan.servers {
            for way in 0..self.routes[client][server].ways.len() {
                self.bring_to(client, server, way, RedisInput::KeepWarm);
            }
        }
    }

    /// The number of round trips that a client's next renewal may take. A connection that isn't up takes two more: the server must
    /// accept the socket, and answer the handshake, before it may get an operation.
    pub(super) fn trips(&self, client: usize) -> u64 {
        let is_up = self.routes[client].iter().flat_map(|route| &route.ways).all(|way| way.connection.is_up());
        if is_up { 1 } else { 3 }
    }

    /// Brings an input to a connection, and does what it says.
    pub(super) fn bring_to(&mut self, client: usize, server: usize, way: usize, event: RedisInput) {
        let now = self.read_clocks(client).tick;
        let mut effects = std::mem::take(&mut self.effects);
        self.routes[client][server].ways[way].connection.handle(now, event, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Open(role) => self.open(client, server, (way, Role::of(role))),
                Effect::Drop(role) => self.drop_socket(client, server, (way, Role::of(role))),
                Effect::Linger => self.linger(client, server, way),
                Effect::Complete(completion, answer) => completion.complete(answer),
                Effect::Report(ServerState::FailedOver(_)) => {
                    self.rouse(client, server);
                    self.listen_elsewhere(client, server);
                    self.confirm(client, server);
                }
                // No credentials change here.
                Effect::Report(_) | Effect::Look(_) => (),
            }
        }
        self.effects = effects;
        let ended = self.ended.lock().map(|mut ended| std::mem::take(&mut *ended)).unwrap_or_default();
        for (client, slot, input) in ended {
            self.processes[client].unanswered -= 1;
            if let Input::Answer { answer: Ok(reply), .. } = &input {
                self.read_time(client, server, way, reply.time_us);
            }
            if matches!(&input, Input::Answer { answer: Err(failure), .. } if failure.kind == FailureKind::Timeout) {
                // The answer, or the connection, did not come in time.
                self.disturb(client, server, 0);
            }
            self.queue.add(self.now, Event::Bring { client, slot, input });
        }
        let route = &mut self.routes[client][server];
        let is_up = route.ways[way].connection.is_up();
        if is_up && !std::mem::replace(&mut route.ways[way].was_up, is_up) {
            let read_at = std::mem::replace(&mut route.connected_at, self.now);
            let node = route.ways[way].node();
            self.accepted(client, server, node, read_at);
        }
        for role in [Role::Operations, Role::Lingering] {
            self.write(client, server, (way, role));
        }
        self.set_alarm(client, server, way);
    }

    pub(super) fn open(&mut self, client: usize, server: usize, way: (usize, Role)) {
        let takes = self.latency() + self.latency();
        let route = &mut self.routes[client][server];
        let stalled = route.stalled_until;
        let opens = &mut route.ways[way.0];
        opens.was_up &= way.1 == Role::Listening;
        opens.attempt += 1;
        let attempt = opens.attempt;
        opens.sockets[way.1 as usize] = Socket::Opening(attempt);
        let reached = (self.now + takes).max(stalled).max(self.nodes[server].stopped_until);
        let ends = reached.min(self.now + CONNECT_TIMEOUT);
        self.queue.add(ends, Event::Connected { client, server, way, attempt });
    }

    pub(super) fn connected(&mut self, client: usize, server: usize, way: (usize, Role), attempt: u32) {
        let (now, node) = (self.now, &self.nodes[server]);
        let route = &mut self.routes[client][server];
        let reachable = node.up && node.stopped_until <= now && route.stalled_until <= now;
        let opens = &mut route.ways[way.0];
        let socket = &mut opens.sockets[way.1 as usize];
        if *socket != Socket::Opening(attempt) {
            return;
        }
        if !reachable {
            (*socket, route.broke_at) = (Socket::Closed, now);
            self.disturb(client, server, 0);
            let refused = Failure::not_applied(FailureKind::Refused, "refused");
            return match way.1.of_connection() {
                Some(role) => self.bring_to(client, server, way.0, RedisInput::Unopened(role, refused)),
                None => self.listener_broke(client, server),
            };
        }
        route.conn += 1;
        *socket = Socket::Open(route.conn);
        opens.sessions.retain(|session| session.read_until().is_none_or(|until| until >= now));
        opens.sessions.push(Session::new(route.conn, node.number, now));
        match way.1.of_connection() {
            Some(role) => self.bring_to(client, server, way.0, RedisInput::Opened(role)),
            None => self.listener_opened(client, server),
        }
    }

    fn set_alarm(&mut self, client: usize, server: usize, way: usize) {
        let wakes = &mut self.routes[client][server].ways[way];
        let wake_at = wakes.connection.wake_at();
        if wake_at == Tick::NEVER {
            return;
        }
        let at = self.processes[client].clock.when(wake_at.as_micros()).max(self.now);
        if at >= wakes.alarm.0 {
            return;
        }
        wakes.alarm = (at, wakes.alarm.1 + 1);
        let timer = wakes.alarm.1;
        self.queue.add(at, Event::Alarm { client, server, way, timer });
    }

    /// Wakes every connection to a server: what they know of it has changed.
    fn rouse(&mut self, client: usize, server: usize) {
        for way in 0..self.routes[client][server].ways.len() {
            let wakes = &mut self.routes[client][server].ways[way];
            wakes.alarm = (self.now, wakes.alarm.1 + 1);
            let timer = wakes.alarm.1;
            self.queue.add(self.now, Event::Alarm { client, server, way, timer });
        }
    }

    pub(super) fn alarm(&mut self, client: usize, server: usize, way: usize, timer: u32) {
        let wakes = &mut self.routes[client][server].ways[way];
        if wakes.alarm.1 == timer {
            wakes.alarm.0 = Instant::MAX;
            wakes.woken = if wakes.woken.0 == self.now { (self.now, wakes.woken.1 + 1) } else { (self.now, 0) };
            if wakes.woken.1 > BUSY {
                return self.violate(format!("c{client}-s{server}: a connection in a busy loop"));
            }
            self.bring_to(client, server, way, RedisInput::Wake);
        }
    }

    /// The contract's `close`, after the moment that releases have to leave.
    pub(super) fn let_go(&mut self, client: usize) {
        self.bring_to_all(client, || RedisInput::Close);
        (0..self.plan.servers).for_each(|server| self.stop_listening(client, server));
    }

    /// The contract's `cancel`: operations that were sent are undone behind them, except releases.
    pub(super) fn cancel(&mut self, client: usize) {
        self.bring_to_all(client, || RedisInput::Cancel);
    }

    fn bring_to_all(&mut self, client: usize, event: impl Fn() -> RedisInput) {
        for server in 0..self.plan.servers {
            for way in 0..self.routes[client][server].ways.len() {
                self.bring_to(client, server, way, event());
            }
        }
    }

    /// The tag of an operation that a server reads. An undo has no tag: the connection itself has sent it.
    pub(super) fn tag_of(&self, client: usize, server: usize, op: &Op) -> Tag {
        let sent = self.read_clocks(client).tick;
        self.routes[client][server].tag(op).unwrap_or(Tag { round: 0, step: Step::Leave, sent })
    }
}

/// The settings of a client's connections to one server.
pub(super) fn settings(plan: &super::plan::Plan) -> Option<Settings> {
    let mut options = locktender::ClientOptions::default();
    options.connect_timeout = std::time::Duration::from_micros(CONNECT_TIMEOUT);
    Settings::new("redis://server", &options, plan.response_timeout, super::worker::quorum_of(plan)).ok()
}
