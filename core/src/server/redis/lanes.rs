//! The lanes to one server: the home lane on the core's I/O thread, one on each runtime whose tasks call from it, one that
//! blocked threads drive, and one for each event loop of a host language.
//!
//! Everything in the background (renewals, undone rounds, retries) goes home. An operation that a task of another runtime asks
//! for is sent and answered on that runtime itself, one that a thread waits for by that thread, because handing it to the I/O
//! thread and back costs more than the operation. Between lanes there is no order; the protocol needs none, since a
//! success that arrives after its round was undone is undone again. A lane ends with its runtime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tokio::runtime::{Handle, Id};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::connect::Settings;
use super::direct::Direct;
use super::failure::closed;
use super::health::Health;
use super::hearing::{Audience, Hearing};
use super::hosted::{self, Message};
use super::sent::Job;
use crate::drive::LazyDrive;
#[cfg(unix)]
use crate::host::{EventLoop, current};
use crate::runtime::{is_on_this_thread, of_the_caller};

pub(super) struct Lanes {
    settings: Arc<Settings>,
    health: Arc<Health>,
    host: Handle,
    home: UnboundedSender<Message>,
    guests: ArcSwap<Vec<Guest>>,
    drive: Arc<LazyDrive>,
    /// `None` where no drive could be made: then threads go home, too.
    direct: OnceLock<Option<Arc<Direct>>>,
    #[cfg(unix)]
    loops: ArcSwap<Vec<Looped>>,
    closed: AtomicBool,
}

/// A lane on a caller's runtime.
#[derive(Clone)]
struct Guest {
    host: Id,
    lane: UnboundedSender<Message>,
}

/// A lane that an event loop drives.
#[cfg(unix)]
#[derive(Clone)]
struct Looped {
    event_loop: Arc<EventLoop>,
    lane: Arc<Direct>,
}

impl Lanes {
    pub(super) fn new(settings: Settings, health: Health, host: &Handle, drive: Arc<LazyDrive>) -> Self {
        let (settings, health) = (Arc::new(settings), Arc::new(health));
        let home = open(&settings, &health, host, Some(Audience::default()));
        let (host, closed) = (host.clone(), AtomicBool::new(false));
        Self {
            settings,
            health,
            host,
            home,
            guests: ArcSwap::default(),
            drive,
            direct: OnceLock::new(),
            #[cfg(unix)]
            loops: ArcSwap::default(),
            closed,
        }
    }

    pub(super) fn submit(&self, job: Job) {
        if is_on_this_thread()
            && let Some(direct) = self.direct()
        {
            return direct.submit(job);
        }
        #[cfg(unix)]
        if let Some(event_loop) = current()
            && let Some(lane) = self.of_loop(&event_loop)
        {
            return lane.submit_to(&event_loop, job);
        }
        let message = Message::Submit(job);
        let refused = match of_the_caller().filter(|caller| caller.id() != self.host.id()) {
            Some(caller) => self.guest(&caller, message),
            None => self.home.send(message).err().map(|refused| refused.0),
        };
        if let Some(Message::Submit(job)) = refused {
            job.completion.complete(Err(closed(false)));
        }
    }

    /// The lane that blocked threads drive.
    fn direct(&self) -> Option<&Arc<Direct>> {
        if self.closed.load(Ordering::SeqCst) {
            return self.direct.get()?.as_ref();
        }
        let open = || self.drive.get().map(|drive| Direct::new(&self.settings, &self.health, &self.host, drive));
        self.direct.get_or_init(open).as_ref()
    }

    /// The lane of an event loop.
    #[cfg(unix)]
    fn of_loop(&self, event_loop: &Arc<EventLoop>) -> Option<Arc<Direct>> {
        let known = self.loops.load();
        if let Some(looped) = known.iter().find(|looped| Arc::ptr_eq(&looped.event_loop, event_loop)) {
            return Some(Arc::clone(&looped.lane));
        }
        if self.closed.load(Ordering::SeqCst) {
            return None;
        }
        let lane = Direct::new(&self.settings, &self.health, &self.host, event_loop.drive());
        let looped = Looped { event_loop: Arc::clone(event_loop), lane: Arc::clone(&lane) };
        let gone = self.loops.rcu(|loops| {
            let alive = loops.iter().filter(|looped| !looped.event_loop.has_ended());
            alive.cloned().chain([looped.clone()]).collect::<Vec<_>>()
        });
        gone.iter().filter(|looped| looped.event_loop.has_ended()).for_each(|looped| looped.lane.close());
        Some(lane)
    }

    fn close_direct(&self) {
        if let Some(Some(direct)) = self.direct.get() {
            direct.close();
        }
        #[cfg(unix)]
        self.loops.load().iter().for_each(|looped| looped.lane.close());
    }

    /// Sends on the caller's lane, or home if that has ended; gives back what neither takes.
    fn guest(&self, caller: &Handle, message: Message) -> Option<Message> {
        if self.home.is_closed() {
            return Some(message);
        }
        let known = self.guests.load();
        let lane = known.iter().find(|guest| guest.host == caller.id()).map(|guest| &guest.lane);
        let message = match lane {
            Some(lane) => lane.send(message).err()?.0,
            None => self.admit(caller).send(message).err()?.0,
        };
        self.home.send(message).err().map(|refused| refused.0)
    }

    fn admit(&self, caller: &Handle) -> UnboundedSender<Message> {
        let lane = open(&self.settings, &self.health, caller, None);
        let guest = Guest { host: caller.id(), lane: lane.clone() };
        self.guests.rcu(|guests| {
            let alive = guests.iter().filter(|guest| !guest.lane.is_closed());
            alive.cloned().chain([guest.clone()]).collect::<Vec<_>>()
        });
        lane
    }

    /// Says whether there is somebody to listen: the home lane, where everything in the background is done.
    pub(super) fn listen(&self, hearing: Hearing) -> bool {
        self.home.send(Message::Listen(hearing)).is_ok()
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.close_direct();
        // A lane that has ended is closed already.
        let _ = self.home.send(Message::Close);
        for guest in self.guests.load().iter() {
            let _ = guest.lane.send(Message::Close);
        }
    }
}

/// The other lanes end when they are dropped.
impl Drop for Lanes {
    fn drop(&mut self) {
        self.close_direct();
    }
}

fn open(settings: &Arc<Settings>, health: &Arc<Health>, host: &Handle, audience: Option<Audience>) -> UnboundedSender<Message> {
    let (lane, inbox) = unbounded_channel();
    host.spawn(hosted::run(Arc::clone(settings), inbox, Arc::clone(health), audience));
    lane
}
