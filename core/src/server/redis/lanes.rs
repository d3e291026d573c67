//! The lanes to one server: the home lane on the core's I/O thread, one on each runtime whose tasks call from it, and one
//! that blocked threads drive.
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

use crate::io::reactor::LazyReactor;
use crate::io::runtime::{is_on_this_thread, of_the_caller};
use crate::server::redis::connection::failure::closed;
use crate::server::redis::connection::health::Health;
use crate::server::redis::connection::listener::{Audience, Hearing};
use crate::server::redis::connection::pipeline::Job;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::reactor_task::Direct;
use crate::server::redis::transport::tokio_task::{self, Message};

pub(crate) struct Lanes {
    settings: Arc<Settings>,
    health: Arc<Health>,
    host: Handle,
    home: UnboundedSender<Message>,
    guests: ArcSwap<Vec<Guest>>,
    drive: Arc<LazyReactor>,
    /// `None` where no drive could be made: then threads go home, too.
    direct: OnceLock<Option<Arc<Direct>>>,
    closed: AtomicBool,
}

/// A lane on a caller's runtime.
#[derive(Clone)]
struct Guest {
    host: Id,
    lane: UnboundedSender<Message>,
}

impl Lanes {
    pub(crate) fn new(settings: Settings, health: Health, host: &Handle, drive: Arc<LazyReactor>) -> Self {
        let (settings, health) = (Arc::new(settings), Arc::new(health));
        let home = open(&settings, &health, host, Some(Audience::default()));
        let (host, closed) = (host.clone(), AtomicBool::new(false));
        Self { settings, health, host, home, guests: ArcSwap::default(), drive, direct: OnceLock::new(), closed }
    }

    pub(crate) fn submit(&self, job: Job) {
        if is_on_this_thread()
            && let Some(direct) = self.direct()
        {
            return direct.submit(job);
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

    /// Has the home lane connect.
    pub(crate) fn warm(&self) {
        // A lane that has ended renews nothing.
        let _ = self.home.send(Message::Warm);
    }

    /// Says whether there is somebody to listen: the home lane, where everything in the background is done.
    pub(crate) fn listen(&self, hearing: Hearing) -> bool {
        self.home.send(Message::Listen(hearing)).is_ok()
    }

    /// Gives everything but releases up, also what comes later.
    pub(crate) fn give_up(&self) {
        if let Some(Some(direct)) = self.direct.get() {
            direct.give_up();
        }
        // A lane that has ended has given up already.
        let _ = self.home.send(Message::GiveUp);
        for guest in self.guests.load().iter() {
            let _ = guest.lane.send(Message::GiveUp);
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        if let Some(Some(direct)) = self.direct.get() {
            direct.close();
        }
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
        if let Some(Some(direct)) = self.direct.get() {
            direct.close();
        }
    }
}

fn open(settings: &Arc<Settings>, health: &Arc<Health>, host: &Handle, audience: Option<Audience>) -> UnboundedSender<Message> {
    let (lane, inbox) = unbounded_channel();
    host.spawn(tokio_task::run(Arc::clone(settings), inbox, Arc::clone(health), audience));
    lane
}
