//! Load: several clients take one lock by turns while a failover loses its last writes. A resource refuses older fences.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use locktender::{ClientBuilder, Failover, Hold};

use crate::pair::ms;
use crate::trio::{Trio, versions};

const CLIENTS: usize = 4;
const TTL_MS: u64 = 1_000;

#[derive(Default)]
struct State {
    /// The fences that were taken, with their times.
    fences: Vec<(Instant, u64)>,
    /// The hold that wrote last.
    last: Option<Arc<Hold>>,
}

/// What all clients write to while they hold the lock.
#[derive(Default)]
pub struct Resource {
    state: Mutex<State>,
    pub overlaps: AtomicUsize,
    pub refused: AtomicUsize,
}

impl Resource {
    /// The number of writes so far.
    pub fn count(&self) -> usize {
        self.state.lock().unwrap().fences.len()
    }

    fn write(&self, held: &Arc<Hold>) {
        let State { fences, last } = &mut *self.state.lock().unwrap();
        if held.is_valid() && last.as_ref().is_some_and(|last| last.is_valid()) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        if fences.last().is_some_and(|(_, fence)| held.fence() <= *fence) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return;
        }
        fences.push((Instant::now(), held.fence()));
        *last = Some(Arc::clone(held));
    }
}

/// Takes the lock by turns, until it has to end.
fn work(builder: ClientBuilder, resource: &Resource, ends: &AtomicBool) {
    let client = builder.build().unwrap();
    let lock = client.lock("a").ttl(ms(TTL_MS)).wait(ms(200));
    while !ends.load(Ordering::SeqCst) {
        let Ok(held) = lock.acquire_blocking() else { continue };
        let held = Arc::new(held);
        resource.write(&held);
        let _ = held.release().blocking();
    }
}

/// Plays a scene while these clients take the lock by turns.
pub fn under_load(clients: Vec<ClientBuilder>, resource: &Resource, scene: impl FnOnce()) {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for builder in clients {
            let ends = &ends;
            scope.spawn(move || work(builder, resource, ends));
        }
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(scene));
        ends.store(true, Ordering::SeqCst);
        played.unwrap();
    });
}

/// Fails over under load; gives the resource, and when the old primary was gone.
fn failed_over(mut trio: Trio, options: fn(ClientBuilder) -> ClientBuilder, trusted: bool) -> (Resource, Instant) {
    let resource = Resource::default();
    if trusted {
        options(trio.others()).build().unwrap().initialize_quorum().blocking().unwrap();
        trio.has_replicated("{~lt}:marker");
    }
    let (builders, mut gone) = ((0..CLIENTS).map(|_| options(trio.others())).collect::<Vec<_>>(), Instant::now());
    under_load(builders, &resource, || {
        thread::sleep(ms(300));
        trio.cut_links();
        thread::sleep(ms(300));
        trio.primary.kill();
        gone = Instant::now();
        // As long as those who decide on a failover need to notice, at the least.
        thread::sleep(ms(1_000));
        trio.promoted().command(&["REPLICAOF", "NO", "ONE"]);
        trio.others.redirect(trio.promoted().port());
        thread::sleep(ms(TTL_MS + 1_000));
    });
    (resource, gone)
}

fn in_every_version(scene: impl Fn(Trio) + Sync) {
    thread::scope(|scope| {
        for binary in versions() {
            let scene = &scene;
            scope.spawn(move || scene(Trio::start(&binary)));
        }
    });
}

fn is_used_after(resource: &Resource, gone: Instant) -> bool {
    resource.state.lock().unwrap().fences.iter().any(|(at, _)| *at > gone)
}

#[test]
fn with_quarantine_a_failover_under_load_makes_no_second_holder_and_no_fence_sinks() {
    let options = |builder: ClientBuilder| {
        builder.failover(Failover::Quarantine).max_ttl(ms(TTL_MS)).ttl(ms(TTL_MS)).unavailable_after(ms(200))
    };
    in_every_version(|trio| {
        let (resource, gone) = failed_over(trio, options, true);
        assert_eq!((resource.overlaps.load(Ordering::SeqCst), resource.refused.load(Ordering::SeqCst)), (0, 0));
        assert!(is_used_after(&resource, gone), "it is granted again");
    });
}

#[test]
fn without_quarantine_no_fence_sinks_either() {
    in_every_version(|trio| {
        let (resource, gone) = failed_over(trio, |builder| builder.unavailable_after(ms(200)), false);
        assert_eq!(resource.refused.load(Ordering::SeqCst), 0);
        assert!(is_used_after(&resource, gone), "it is granted again");
    });
}
