//! Session: a server's end of one connection, which reads commands out of bytes and answers them; and how connections end.

use locktender::internals::redis::Input as RedisInput;
use locktender::machine::Message;
use locktender::op::{Op, Reply, Verb, Verdict};

use super::brief::brief;
use super::clock::{Instant, micros, ms};
use super::node::Node;
use super::queue::{Event, Way};
use super::resp;
use super::role::{ROLES, Role};
use super::route::Socket;
use super::standing::Standing;
use super::together;
use super::world::World;

/// The time after a broken connection in which a client asks again for operations that the server may still read from it.
const STRAGGLES: u64 = ms(450);

/// A connection that has ended.
struct Dead {
    /// The time after which no bytes are read from it.
    read_until: Instant,
    broke_at: Instant,
    /// Whether the network cut it: then nobody can send anything behind what was sent.
    cut: bool,
}

/// What an operation may have missed that is read long after its connection was left.
#[derive(Clone, Copy)]
pub(super) struct Late {
    /// Whether a heal may have come before it.
    pub(super) overtaken: bool,
    /// Whether nobody could send anything behind it.
    pub(super) orphan: bool,
}

pub(super) struct Session {
    pub(super) conn: u32,
    /// The number of the node at its other end.
    pub(super) node: u32,
    /// The bytes that were read, and are no whole command yet.
    input: Vec<u8>,
    pub(super) subscribed: bool,
    /// The time of the last arrival at the server. Bytes arrive no earlier than those before them, and likewise on the way back.
    pub(super) out_at: Instant,
    back_at: Instant,
    /// The time until which it stands still.
    pub(super) stalled_until: Instant,
    dead: Option<Dead>,
    /// The time since which it lingers.
    lingers_since: Option<Instant>,
    /// The commands of a transaction that was begun.
    transaction: Option<Vec<Vec<String>>>,
}

impl Session {
    pub(super) fn new(conn: u32, node: u32, now: Instant) -> Self {
        Self {
            conn,
            node,
            input: Vec::new(),
            subscribed: false,
            out_at: now,
            back_at: now,
            stalled_until: 0,
            dead: None,
            lingers_since: None,
            transaction: None,
        }
    }

    /// The time until which bytes are read from it, if it is dead.
    pub(super) fn read_until(&self) -> Option<Instant> {
        self.dead.as_ref().map(|dead| dead.read_until)
    }
}

impl World {
    /// Bytes reach a server.
    pub(super) fn arrive(&mut self, client: usize, server: usize, way: Way, conn: u32, bytes: Vec<u8>) {
        let now = self.now;
        let Some(number) = self.session(client, server, way, conn).map(|session| session.node) else { return };
        let Some(node) = self.node(server, number) else { return };
        if node.stopped_until > now {
            let until = node.stopped_until;
            return self.queue.defer(until, Event::Arrive { client, server, way, conn, bytes });
        }
        if !node.up {
            return;
        }
        let Some(session) = self.session(client, server, way, conn) else { return };
        if session.read_until().is_some_and(|until| until < now) {
            return;
        }
        // A socket that lingered was left then, also if it was closed since.
        let left_at = session.lingers_since.or(session.dead.as_ref().map(|dead| dead.broke_at));
        let late = Late {
            overtaken: left_at.is_some_and(|at| at + STRAGGLES < now),
            orphan: session.dead.as_ref().is_some_and(|dead| dead.cut && dead.broke_at + STRAGGLES < now),
        };
        session.input.extend(bytes);
        let input = std::mem::take(&mut session.input);
        let mut rest = &input[..];
        while let Some((words, length)) = resp::command(rest) {
            rest = &rest[length..];
            let answer = self.serve(client, (server, number), (way, conn), &words, late);
            self.answer(client, server, (way, conn), &answer, None);
        }
        let rest = rest.to_vec();
        if let Some(session) = self.session(client, server, way, conn) {
            session.input = rest;
        }
    }

    fn session(&mut self, client: usize, server: usize, way: Way, conn: u32) -> Option<&mut Session> {
        self.routes[client][server].ways[way.0].sessions.iter_mut().find(|session| session.conn == conn)
    }

    fn serve(&mut self, client: usize, at: (usize, u32), (way, conn): (Way, u32), words: &[String], late: Late) -> String {
        let (server, now) = (at.0, self.now);
        let (command, argument) = (words[0].as_str(), words.get(1).map(String::as_str).unwrap_or_default());
        if let Some(queued) = self.session(client, server, way, conn).and_then(|session| session.transaction.as_mut())
            && command != "EXEC"
        {
            queued.push(words.to_vec());
            return "+QUEUED\r\n".to_owned();
        }
        match command {
            "CLIENT" => "+OK\r\n".to_owned(),
            "PING" => "+PONG\r\n".to_owned(),
            "INFO" => {
                let replicas = u8::from(self.plan.fails_over);
                let info = |node: &Node| resp::info(node.run_id(), (node.replid(), node.followed()), replicas, node.wall_us(now));
                self.node(at.0, at.1).map_or(String::new(), info)
            }
            "TIME" => self.node(at.0, at.1).map_or(String::new(), |node| resp::time(node.wall_us(now))),
            "SUBSCRIBE" | "SSUBSCRIBE" => {
                let Some(session) = self.session(client, server, way, conn) else { return String::new() };
                session.subscribed |= command == "SSUBSCRIBE";
                resp::subscribed(&command.to_ascii_lowercase(), argument)
            }
            "MULTI" if self.node(at.0, at.1).is_some_and(|node| node.run_id().ends_with('5')) => {
                "-NOPERM this user has no permissions to run the 'multi' command\r\n".to_owned()
            }
            "MULTI" => {
                if let Some(session) = self.session(client, server, way, conn) {
                    session.transaction = Some(Vec::new());
                }
                "+OK\r\n".to_owned()
            }
            "EXEC" => match self.session(client, server, way, conn).and_then(|session| session.transaction.take()) {
                Some(queued) => self.execute(client, at, &queued, late),
                None => "-ERR EXEC without MULTI\r\n".to_owned(),
            },
            "DELIFEQ" => self.compare(client, at, &words[1..], late),
            "XADD" | "XREVRANGE" => {
                let Some(op) = resp::about_history(words) else { return "-ERR wrong arguments\r\n".to_owned() };
                self.node_mut(at).map_or(String::new(), |node| resp::shown(&node.apply(&op, "", now).0))
            }
            "EVAL" | "EVALSHA" => {
                let Some(script) = resp::script(argument) else { return "-ERR no script of a lock\r\n".to_owned() };
                let Some(node) = self.node_mut(at) else { return String::new() };
                if command == "EVALSHA" && !node.scripts.contains(script) {
                    return "-NOSCRIPT No matching script.\r\n".to_owned();
                }
                node.scripts.insert(script);
                if script == resp::COMPARE {
                    return self.compare(client, at, &words[3..], late);
                }
                let Some(op) = self.op_of(script, &words[2..]) else {
                    self.violate(format!("c{client}-s{server}: nobody understands {:?}", &words[2..]));
                    return "-ERR wrong arguments\r\n".to_owned();
                };
                self.perform(client, at, (&op, resp::known_as(words)), late)
            }
            _ => {
                self.violate(format!("c{client}-s{server}: nobody understands {words:?}"));
                "-ERR unknown command\r\n".to_owned()
            }
        }
    }

    /// Deletes a lock's key if it has a value.
    fn compare(&mut self, client: usize, at: (usize, u32), words: &[String], late: Late) -> String {
        let Some(op) = resp::deleted(words, &self.keys) else { return "-ERR wrong arguments\r\n".to_owned() };
        let now = self.now;
        if !self.node_mut(at).is_some_and(|node| node.has(&words[0], words.get(1).map(String::as_str), now)) {
            return ":0\r\n".to_owned();
        }
        self.perform(client, at, (&op, ""), late);
        ":1\r\n".to_owned()
    }

    /// Executes a transaction.
    fn execute(&mut self, client: usize, at: (usize, u32), queued: &[Vec<String>], late: Late) -> String {
        let (Some(set), Some(clock)) = (queued.first(), queued.get(1)) else { return "*0\r\n".to_owned() };
        let Some(op) = resp::taken(set, clock, &self.keys) else {
            self.violate(format!("c{client}-s{}: nobody understands {queued:?}", at.0));
            return "*0\r\n".to_owned();
        };
        let (now, server) = (self.now, at.0);
        let waits = op.keys().is_some_and(|keys| Standing::of(&self.nodes[server], keys, now).has_waiters());
        let Some(node) = self.node_mut(at) else { return String::new() };
        let (took, id, verdict) = node.take_free(&op, now);
        let (ms, number) = id.unwrap_or_default();
        if let Err(why) = verdict {
            self.violate(why);
        }
        self.stats.passed += u64::from(took && waits);
        self.trace(|| format!("  c{client}>s{server} {} by transaction -> {took} {ms}-{number}", brief(&op)));
        if took {
            self.watch.by_transaction.extend(op.owner().cloned());
            // An id beyond the thousand of its millisecond is no fence.
            let fence = if number < 1_000 { ms * 1_000 + number } else { 0 };
            let reply = Reply::new(Verdict::Vote, ms * 1_000, fence);
            self.applied(at, &op, &reply, late);
            self.asked(client, &op);
            self.served(&op, &reply);
        }
        resp::executed(took, (ms, number))
    }

    /// Does an operation; gives the answer of the script.
    fn perform(&mut self, client: usize, at: (usize, u32), (op, known_as): (&Op, &str), late: Late) -> String {
        let (server, now) = (at.0, self.now);
        let tag = self.tag_of(client, server, op);
        let keys = op.keys().into_iter().flat_map(|keys| keys.each());
        let mut before: Vec<_> = keys.map(|keys| Standing::of(&self.nodes[server], keys, self.now)).collect();
        let Some(node) = self.node_mut(at) else { return String::new() };
        let (reply, verdict) = node.apply(op, known_as, now);
        let messages = node.state.take_published();
        if let Verdict::Quarantine { left } = reply.verdict {
            node.votes_at = now + micros(left);
        }
        if op.keys().is_none() {
            return resp::reply(op, &reply);
        }
        self.enter_in_ledger(server, op, &reply, before.first().and_then(|before| before.holder.as_deref()));
        self.trace(|| format!("  c{client}>s{server} {} -> {:?} fence={}", brief(op), reply.verdict, reply.fence));
        if let Err(why) = verdict {
            self.violate(why);
        }
        self.look_at_all(server, (op, &reply), &before, &messages);
        let is_alone = before.len() == 1;
        let place = together::place_of(op).filter(|_| matches!(reply.verdict, Verdict::Held { .. }));
        let place_at =
            |before: &Standing| together::place_at(op, |entry| before.arrival(entry).is_some(), before.holder.as_deref());
        let places: Vec<_> = before.iter().map(place_at).collect();
        for ((op, reply), before) in together::each(op, &reply, &places).iter().zip(&mut before) {
            // A waiter leaves the locks that aren't in its way.
            if let (Some(place), Some(Verb::Inspect)) = (place, op.verb()) {
                before.queue.retain(|(entry, _)| *entry != place.entry);
            }
            let is_about_it = |message: &&Message| is_alone || op.keys().is_some_and(|keys| together::is_about(message, keys));
            let messages: Vec<_> = messages.iter().filter(is_about_it).cloned().collect();
            self.applied(at, op, reply, late);
            self.asked(client, op);
            self.served(op, reply);
            self.room_is_taken(client, op, reply);
            self.prolonged((client, server), tag, op, reply);
            self.look_at_queue(server, (op, reply), Some(&*before), &messages);
            if let (Some(place), Some(keys)) = (place, op.keys()) {
                self.asked_among(server, keys, &place.entry);
            }
            self.came(client, tag, op, reply, &messages);
        }
        self.published(at, messages);
        resp::reply(op, &reply)
    }

    /// Sends bytes back, as long as the client is there.
    fn answer(&mut self, client: usize, server: usize, (way, conn): (Way, u32), bytes: &str, message: Option<&str>) {
        let (first, second) = bytes.as_bytes().split_at(self.piece(bytes.len()));
        for piece in [first, second].into_iter().filter(|piece| !piece.is_empty()) {
            let takes = self.latency();
            let (now, stalled) = (self.now, self.routes[client][server].stalled_until);
            let Some(session) = self.session(client, server, way, conn).filter(|session| session.dead.is_none()) else { return };
            session.back_at = (now + takes).max(stalled).max(session.stalled_until).max(session.back_at);
            let at = session.back_at;
            let message = message.map(str::to_owned);
            self.queue.add(at, Event::Return { client, server, way, conn, bytes: piece.to_vec(), message });
        }
    }

    /// A server has published messages. Clients that listen there receive them, except those that are lost.
    pub(super) fn published(&mut self, (server, node): (usize, u32), messages: Vec<Message>) {
        for message in messages {
            let Some(client) = self.client_on(&message.channel) else { continue };
            let way = &self.routes[client][server].ways[0];
            let listens = |session: &&Session| session.subscribed && session.dead.is_none() && session.node == node;
            let Some(conn) = way.sessions.iter().rev().find(listens).map(|session| session.conn) else {
                self.notice_is_lost(client, &message.payload);
                continue;
            };
            if self.rng.u16(..1_000) < self.plan.lost_notices_per_mille {
                self.trace(|| format!("  s{server} is not received: {}", message.payload));
                self.notice_is_lost(client, &message.payload);
                continue;
            }
            let bytes = resp::message(&message.channel, &message.payload);
            self.answer(client, server, ((0, Role::Listening), conn), &bytes, Some(&message.payload));
        }
    }

    /// The connections are gone. Bytes in flight may still be read for a while; the client notices the end now or a little later.
    pub(super) fn cut(&mut self, client: usize, server: usize, read_for: u64, later: bool) {
        self.cut_to(client, server, None, read_for, later);
    }

    /// The connections to one node are gone, or all.
    pub(super) fn cut_to(&mut self, client: usize, server: usize, node: Option<u32>, read_for: u64, later: bool) {
        for way in 0..self.routes[client][server].ways.len() {
            let notice = if later { self.latency() } else { 0 };
            let (now, at) = (self.now, self.now + notice);
            let cut = &mut self.routes[client][server].ways[way];
            let is_cut = |session: &Session| node.is_none_or(|node| session.node == node);
            let gone: Vec<u32> = cut.sessions.iter().filter(|session| is_cut(session)).map(|session| session.conn).collect();
            for session in cut.sessions.iter_mut().filter(|session| gone.contains(&session.conn)) {
                let dead = session.dead.get_or_insert(Dead { read_until: now + read_for, broke_at: now, cut: true });
                dead.read_until = dead.read_until.min(now + read_for);
            }
            for (role, socket) in ROLES.into_iter().zip(&mut cut.sockets) {
                let way = (way, role);
                match socket {
                    Socket::Opening(attempt) if node.is_none() => {
                        cut.attempt += 1;
                        *attempt = cut.attempt;
                        self.queue.add(at, Event::Connected { client, server, way, attempt: cut.attempt });
                    }
                    Socket::Open(conn) if gone.contains(conn) => {
                        self.queue.add(at, Event::Broken { client, server, way, conn: *conn });
                    }
                    _ => (),
                }
            }
        }
    }

    /// A client notices that its connection is gone.
    pub(super) fn broken(&mut self, client: usize, server: usize, way: Way, conn: u32) {
        match self.routes[client][server].ways[way.0].role(conn).map(Role::of_connection) {
            Some(Some(role)) => self.bring_to(client, server, way.0, RedisInput::Closed(role, None)),
            Some(None) => self.listener_broke(client, server),
            None => (),
        }
    }

    /// A client closes its socket. If the connection wasn't cut, its bytes in flight are read for a while, or not at all.
    pub(super) fn drop_socket(&mut self, client: usize, server: usize, way: Way) {
        let socket = std::mem::replace(&mut self.routes[client][server].ways[way.0].sockets[way.1 as usize], Socket::Closed);
        let Socket::Open(conn) = socket else { return };
        self.trace(|| format!("  c{client}-s{server} connection {conn} broke"));
        let now = self.now;
        let closes = self.processes[client].closed;
        let read_for = if closes || way.1 == Role::Lingering || self.rng.bool() { ms(10_000) } else { 0 };
        if !self.routes[client][server].ways[way.0].is_over() {
            self.routes[client][server].broke_at = now;
        }
        let Some(session) = self.session(client, server, way, conn) else { return };
        if session.dead.is_none() {
            session.dead = Some(Dead { read_until: now + read_for, broke_at: now, cut: false });
            self.disturb(client, server, 0);
        }
    }

    /// A client gives a socket up that is silent, and leaves it open.
    pub(super) fn linger(&mut self, client: usize, server: usize, way: usize) {
        self.drop_socket(client, server, (way, Role::Lingering));
        let now = self.now;
        let lingers = &mut self.routes[client][server].ways[way];
        let socket = std::mem::replace(&mut lingers.sockets[Role::Operations as usize], Socket::Closed);
        lingers.sockets[Role::Lingering as usize] = socket;
        let Socket::Open(conn) = socket else { return };
        self.trace(|| format!("  c{client}-s{server} connection {conn} lingers"));
        self.routes[client][server].broke_at = now;
        if let Some(session) = self.session(client, server, (way, Role::Lingering), conn) {
            session.lingers_since = Some(now);
        }
        self.disturb(client, server, 0);
    }

    /// Nothing passes on one socket, from now on. The bytes arrive afterwards, in order.
    pub(super) fn stall_socket(&mut self, client: usize, server: usize, (way, conn): (Way, u32), span: u64) {
        let until = self.now + span;
        self.trace(|| format!("  c{client}-s{server} connection {conn} stands still"));
        self.disturb(client, server, span);
        if let Some(session) = self.session(client, server, way, conn) {
            session.stalled_until = until;
        }
    }
}
