//! The lanes to one server: the home lane on the core's I/O thread, and one on each runtime whose tasks call from it.
//!
//! Everything in the background (renewals, undone rounds, retries) and everything of callers without a runtime goes home.
//! An operation that a task of another runtime asks for is sent and answered on that runtime itself, because handing it to
//! the I/O thread and back costs more than the operation. Between lanes there is no order; the protocol needs none, since a
//! success that arrives after its round was undone is undone again. A lane ends with its runtime. The same goes for a host
//! language's event loop that does its own I/O, only that its lane (`host_lane`) leaves all trouble to the home lane.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::runtime::{Handle, Id};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::connect::Settings;
use super::failure::closed;
use super::health::Health;
#[cfg(unix)]
use super::host_lane::HostLane;
use super::lane::{Lane, Message};
use super::link::Job;
#[cfg(unix)]
use crate::host::current;
use crate::runtime::of_the_caller;

pub(super) struct Lanes {
    settings: Arc<Settings>,
    health: Arc<Health>,
    host: Id,
    home: UnboundedSender<Message>,
    guests: ArcSwap<Vec<Guest>>,
    #[cfg(unix)]
    hosts: ArcSwap<Vec<Arc<HostLane>>>,
}

/// A lane on a caller's runtime.
#[derive(Clone)]
struct Guest {
    host: Id,
    lane: UnboundedSender<Message>,
}

impl Lanes {
    pub(super) fn new(settings: Settings, health: Health, host: &Handle) -> Self {
        let (settings, health) = (Arc::new(settings), Arc::new(health));
        let home = open(&settings, &health, host);
        Self {
            settings,
            health,
            host: host.id(),
            home,
            guests: ArcSwap::default(),
            #[cfg(unix)]
            hosts: ArcSwap::default(),
        }
    }

    pub(super) fn submit(&self, job: Job) {
        #[cfg(unix)]
        let Some(job) = self.host(job) else { return };
        let message = Message::Submit(job);
        let refused = match of_the_caller().filter(|caller| caller.id() != self.host) {
            Some(caller) => self.guest(&caller, message),
            None => self.home.send(message).err().map(|refused| refused.0),
        };
        if let Some(Message::Submit(job)) = refused {
            job.completion.complete(Err(closed(false)));
        }
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
        let lane = open(&self.settings, &self.health, caller);
        let guest = Guest { host: caller.id(), lane: lane.clone() };
        self.guests.rcu(|guests| {
            let alive = guests.iter().filter(|guest| !guest.lane.is_closed());
            alive.cloned().chain([guest.clone()]).collect::<Vec<_>>()
        });
        lane
    }

    /// Sends on the lane of the event loop that calls; gives back what is not its to send.
    #[cfg(unix)]
    fn host(&self, job: Job) -> Option<Job> {
        let Some(host) = current() else { return Some(job) };
        if !self.settings.target.is_plain() || self.home.is_closed() {
            return Some(job);
        }
        let known = self.hosts.load();
        match known.iter().find(|lane| lane.is_of(&host)) {
            Some(lane) => lane.submit(job),
            None => match HostLane::new(&self.settings, &self.health, &self.home, &host) {
                Some(lane) => {
                    self.hosts.rcu(|lanes| {
                        let alive = lanes.iter().filter(|lane| !lane.has_ended());
                        alive.cloned().chain([Arc::clone(&lane)]).collect::<Vec<_>>()
                    });
                    lane.submit(job)
                }
                None => Some(job),
            },
        }
    }

    pub(super) fn close(&self) {
        #[cfg(unix)]
        self.hosts.load().iter().for_each(|lane| lane.close());
        // A lane that has ended is closed already.
        let _ = self.home.send(Message::Close);
        for guest in self.guests.load().iter() {
            let _ = guest.lane.send(Message::Close);
        }
    }
}

fn open(settings: &Arc<Settings>, health: &Arc<Health>, host: &Handle) -> UnboundedSender<Message> {
    let (lane, inbox) = unbounded_channel();
    host.spawn(Lane::new(Arc::clone(settings), inbox, Arc::clone(health)).run());
    lane
}
