//! Streams: the bytes between a client and a server. They arrive in order, in pieces, and late when a packet is lost.

use locktender::internals::redis::Input as RedisInput;
use locktender::op::{LockOp, Op, Verb};

use super::clock::ms;
use super::queue::Event;
use super::resp;
use super::role::Role;
use super::route::Socket;
use super::world::World;

impl World {
    /// Writes the bytes of the connection. Each command takes a time of its own to arrive, some in two pieces.
    pub(super) fn write(&mut self, client: usize, server: usize, way: (usize, Role)) {
        let route = &mut self.routes[client][server];
        let (Socket::Open(conn), Some(buffers)) = (route.ways[way.0].sockets[way.1 as usize], route.buffers(way)) else { return };
        let bytes = buffers.unwritten().to_vec();
        buffers.wrote(bytes.len());
        let mut rest = &bytes[..];
        while let Some((words, length)) = resp::command(rest) {
            let (command, behind) = rest.split_at(length);
            rest = behind;
            let script = words.get(1).and_then(|word| resp::script(word));
            // What undoes an acquire follows it, wherever that went.
            if script.is_some_and(|script| script != "greet") && way.1 != Role::Lingering {
                let node = self.routes[client][server].ways[way.0].node();
                self.writes_to(client, server, node);
            }
            let op = script.and_then(|script| self.op_of(script, &words[2..]));
            let takes_place = matches!(op, Some(Op::Lock(LockOp { verb: Verb::Acquire { place: Some(_), .. }, .. })));
            let held_up = if takes_place { self.close_behind(client) } else { 0 };
            let is_acquire = matches!(op, Some(Op::Lock(LockOp { verb: Verb::Acquire { .. }, .. })));
            let cut = self.routes[client][server].cut_behind_acquire.take_if(|_| is_acquire);
            let on_its_way = cut.map_or(held_up, |read_for| self.rng.u64(..=read_for));
            if let Some(span) = self.routes[client][server].stall_with_acquire.take_if(|_| is_acquire) {
                self.stall_socket(client, server, (way, conn), span);
            }
            self.send(client, server, (way, conn), command, on_its_way);
            if let Some(read_for) = cut {
                self.disturb(client, server, 0);
                self.cut(client, server, read_for, true);
            }
        }
    }

    fn send(&mut self, client: usize, server: usize, (way, conn): ((usize, Role), u32), bytes: &[u8], held_up: u64) {
        let (first, second) = bytes.split_at(self.piece(bytes.len()));
        for piece in [first, second].into_iter().filter(|piece| !piece.is_empty()) {
            let takes = self.latency();
            let route = &mut self.routes[client][server];
            let stalled = route.stalled_until;
            let Some(session) = route.ways[way.0].sessions.iter_mut().find(|session| session.conn == conn) else { return };
            session.out_at = (self.now + takes).max(stalled).max(session.stalled_until).max(session.out_at) + held_up;
            self.queue.add(session.out_at, Event::Arrive { client, server, way, conn, bytes: piece.to_vec() });
        }
    }

    /// The length of the next piece of so many bytes: mostly all of them.
    pub(super) fn piece(&mut self, length: usize) -> usize {
        if self.rng.u8(..16) == 0 { self.rng.usize(..=length) } else { length }
    }

    /// Bytes reach a client.
    pub(super) fn returned(
        &mut self,
        client: usize,
        server: usize,
        way: (usize, Role),
        conn: u32,
        bytes: &[u8],
        message: Option<&str>,
    ) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let reader = &mut self.routes[client][server].ways[way.0];
            let role = reader.role(conn);
            if let Some(message) = message.filter(|_| role.is_none_or(|role| role == Role::Lingering)) {
                self.notice_is_lost(client, message);
            }
            let reader = &mut self.routes[client][server];
            let Some((role, buffers)) = role.and_then(|role| Some((role, reader.buffers((way.0, role))?))) else { return };
            let room = buffers.room();
            let count = rest.len().min(room.len());
            room[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            match role.of_connection() {
                Some(role) => self.bring_to(client, server, way.0, RedisInput::Read(role, count)),
                None => self.listener_reads(client, server, count),
            }
        }
    }

    pub(super) fn latency(&mut self) -> u64 {
        let latency = self.plan.latency_us + self.rng.u64(..=self.plan.jitter_us);
        let lost = self.rng.u64(..1_000) < self.plan.lost_per_mille;
        if lost { latency + ms(200) + self.rng.u64(..ms(200)) } else { latency }
    }
}
