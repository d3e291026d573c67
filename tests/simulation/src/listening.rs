//! Listening: the connection of a client to one server that carries its subscription, over the modelled byte streams. What is said
//! there is decided by the real [`PubSub`]; this file has the order of the task that opens and leaves such connections.

use std::sync::Arc;

use locktender::internals::clock::Tick;
use locktender::internals::redis::{Buffers, Channel, ChannelEvent, Handshake, Kind, PubSub, Settings};

use super::clock::{Instant, ms};
use super::queue::Event;
use super::role::Role;
use super::route::CONNECT_TIMEOUT;
use super::world::World;

/// The socket of the listener.
const SOCKET: (usize, Role) = (0, Role::Listening);

/// The most wakes at one instant: more are a busy loop.
const BUSY: u32 = 20;

/// The longest pause after a connection that could not be made, or broke.
const PAUSE: u64 = ms(500);

enum Stage {
    /// Nothing is listened to.
    Off,
    /// The next attempt to connect is later.
    Down,
    Opening,
    Handshake(Box<Handshake>),
    Up(Box<PubSub>),
}

pub(super) struct Listening {
    settings: Arc<Settings>,
    stage: Stage,
    /// The number of the server's replication id when the socket was opened.
    replid: u64,
    /// When the attempt to connect began, or when the next one does.
    at: Instant,
    /// The instant of the next wake, and the number of its timer.
    alarm: (Instant, u32),
    woken: (Instant, u32),
}

impl Listening {
    pub(super) fn new(settings: &Arc<Settings>) -> Self {
        let (stage, alarm) = (Stage::Off, (Instant::MAX, 0));
        Self { settings: Arc::clone(settings), stage, replid: 0, at: 0, alarm, woken: (0, 0) }
    }

    pub(super) fn buffers(&mut self) -> Option<&mut Buffers> {
        match &mut self.stage {
            Stage::Handshake(handshake) => Some(&mut handshake.buffers),
            Stage::Up(pub_sub) => Some(&mut pub_sub.buffers),
            Stage::Off | Stage::Down | Stage::Opening => None,
        }
    }
}

impl World {
    fn listening(&mut self, client: usize, server: usize) -> &mut Listening {
        &mut self.routes[client][server].listening
    }

    pub(super) fn begin_to_listen(&mut self, client: usize, server: usize) {
        let (now, replid) = (self.now, self.routes[client][server].primary.replid_number());
        let listening = self.listening(client, server);
        (listening.stage, listening.replid, listening.at) = (Stage::Opening, replid, now);
        self.open(client, server, SOCKET);
    }

    pub(super) fn stop_listening(&mut self, client: usize, server: usize) {
        self.listening(client, server).stage = Stage::Off;
        self.drop_socket(client, server, SOCKET);
    }

    /// Leaves a connection that was opened before a failover: the old primary publishes nothing any more.
    pub(super) fn listen_elsewhere(&mut self, client: usize, server: usize) {
        let replid = self.routes[client][server].primary.replid_number();
        let listening = self.listening(client, server);
        if matches!(listening.stage, Stage::Handshake(_) | Stage::Up(_)) && listening.replid != replid {
            self.drop_socket(client, server, SOCKET);
            self.begin_to_listen(client, server);
        }
    }

    pub(super) fn listener_opened(&mut self, client: usize, server: usize) {
        let listening = self.listening(client, server);
        listening.stage = Stage::Handshake(Box::new(Handshake::introduce(&listening.settings)));
        self.listener_acts(client, server);
    }

    pub(super) fn listener_reads(&mut self, client: usize, server: usize, count: usize) {
        let tick = self.read_clocks(client).tick;
        let (replid, timeout) = (self.routes[client][server].primary.replid_number(), self.plan.response_timeout);
        let channel = Channel { name: locktender::machine::channel(&Self::client_id(client)).into(), kind: Kind::Both };
        let listening = self.listening(client, server);
        let events = match &mut listening.stage {
            Stage::Handshake(handshake) => match handshake.introduced(count) {
                None => return,
                Some(Err(_)) => return self.listener_broke(client, server),
                Some(Ok(())) if listening.replid != replid => return self.listen_elsewhere(client, server),
                Some(Ok(())) => {
                    let mut pub_sub = PubSub::new(std::mem::take(&mut handshake.buffers), timeout);
                    pub_sub.subscribe(channel, tick);
                    listening.stage = Stage::Up(Box::new(pub_sub));
                    return self.listener_acts(client, server);
                }
            },
            Stage::Up(pub_sub) => pub_sub.read(count, tick),
            Stage::Off | Stage::Down | Stage::Opening => return,
        };
        let Ok(events) = events else { return self.listener_broke(client, server) };
        for events in events {
            match events {
                ChannelEvent::Subscribed(_) => self.set_listening(client, server, true),
                ChannelEvent::Message(_, message) => self.receive(client, server, &message),
                ChannelEvent::Refused(..) | ChannelEvent::Ended(_) => self.violate(format!("c{client}-s{server}: {events:?}")),
            }
        }
        self.listener_acts(client, server);
    }

    /// There is no connection that listens, or none any more.
    pub(super) fn listener_broke(&mut self, client: usize, server: usize) {
        self.drop_socket(client, server, SOCKET);
        let at = self.now + self.rng.u64(..=PAUSE);
        let listening = self.listening(client, server);
        (listening.stage, listening.at) = (Stage::Down, at);
        if self.routes[client][server].subscribed {
            self.set_listening(client, server, false);
        }
        self.listener_acts(client, server);
    }

    /// Writes what is to be said, and sets the timer.
    fn listener_acts(&mut self, client: usize, server: usize) {
        self.write(client, server, SOCKET);
        let now = self.now;
        let clock = &self.processes[client].clock;
        let listening = &self.routes[client][server].listening;
        let at = match &listening.stage {
            Stage::Off | Stage::Opening => return,
            Stage::Down => listening.at,
            Stage::Handshake(_) => listening.at + CONNECT_TIMEOUT,
            Stage::Up(pub_sub) if pub_sub.wake_at() == Tick::NEVER => return,
            Stage::Up(pub_sub) => clock.when(pub_sub.wake_at().as_micros()),
        };
        let at = at.max(now);
        let listening = self.listening(client, server);
        if at < listening.alarm.0 {
            listening.alarm = (at, listening.alarm.1 + 1);
            let timer = listening.alarm.1;
            self.queue.add(at, Event::Listen { client, server, timer });
        }
    }

    pub(super) fn listen_alarm(&mut self, client: usize, server: usize, timer: u32) {
        let (now, tick) = (self.now, self.read_clocks(client).tick);
        let listening = self.listening(client, server);
        if listening.alarm.1 != timer {
            return;
        }
        listening.alarm.0 = Instant::MAX;
        listening.woken = if listening.woken.0 == now { (now, listening.woken.1 + 1) } else { (now, 0) };
        if listening.woken.1 > BUSY {
            return self.violate(format!("c{client}-s{server}: a listener in a busy loop"));
        }
        let is_dead = match &mut listening.stage {
            Stage::Down if now >= listening.at => return self.begin_to_listen(client, server),
            Stage::Handshake(_) => now >= listening.at + CONNECT_TIMEOUT,
            Stage::Up(pub_sub) => pub_sub.wake(tick),
            Stage::Off | Stage::Down | Stage::Opening => false,
        };
        if is_dead {
            return self.listener_broke(client, server);
        }
        self.listener_acts(client, server);
    }
}
