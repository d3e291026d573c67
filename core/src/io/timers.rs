//! Timers: the alarms of the I/O thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::clock::Tick;
use crate::event::callback::{call, caught};
use crate::event::trace;
use crate::io::thread_waker::{ThreadWaker, rounded};
use crate::sync::Mutex;

/// A sleeper that an alarm wakes.
pub(crate) trait Alarm: Send + Sync {
    fn ring(self: Arc<Self>);

    /// The end of the hold that the alarm belongs to. Of several alarms that are due, the one whose hold ends first rings first.
    /// So its renewal is the first to be sent.
    fn ends(&self) -> Tick {
        Tick::default()
    }
}

/// Alarms by the time at which they ring.
pub(crate) struct Timers {
    queue: Mutex<Queue>,
    waker: ThreadWaker,
}

#[derive(Default)]
struct Queue {
    alarms: BTreeMap<(Tick, u64), Weak<dyn Alarm>>,
    /// The end of the thread's sleep, if it sleeps: a later alarm is no reason to sleep less.
    sleeps_until: Option<Tick>,
}

impl Timers {
    /// No alarms. Called in the context of the runtime that [runs](Timers::run) them.
    pub(crate) fn new() -> Self {
        Self::with(ThreadWaker::new())
    }

    fn with(waker: ThreadWaker) -> Self {
        Self { queue: Mutex::default(), waker }
    }

    pub(crate) fn set(&self, at: Tick, id: u64, alarm: Weak<dyn Alarm>) {
        let mut queue = self.queue.lock();
        queue.alarms.insert((at, id), alarm);
        let rings = rounded(at);
        if queue.sleeps_until.is_some_and(|until| rings < until) {
            queue.sleeps_until = Some(rings);
            self.waker.bring_forward(rings);
        }
    }

    pub(crate) fn cancel(&self, at: Tick, id: u64) {
        if at == Tick::NEVER {
            return;
        }
        let cancelled = self.queue.lock().alarms.remove(&(at, id));
        drop(cancelled);
    }

    /// The number of alarms that `id` has set.
    #[cfg(test)]
    pub(crate) fn count(&self, id: u64) -> usize {
        self.queue.lock().alarms.keys().filter(|(_, of)| *of == id).count()
    }

    /// Rings the alarms, without end.
    pub(crate) async fn run(&self) {
        let mut due = Vec::new();
        loop {
            match self.ring_due(&mut due) {
                Some(until) => self.waker.rings(until).await,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// Rings the alarms that are due; if none is, gives the end of the next sleep. Called by the I/O thread, which lends `due`.
    pub(crate) fn ring_due(&self, due: &mut Vec<Arc<dyn Alarm>>) -> Option<Tick> {
        let until = self.collect(due);
        if due.is_empty() {
            return Some(until);
        }
        // All alarms that are due ring together, so that their requests leave in one write per server.
        for alarm in due.drain(..) {
            // A bug of the library in one alarm must not keep the others from ringing.
            if let Err(panic) = caught(|| alarm.ring()) {
                let _ = call(|| trace(&panic.warning("an alarm")));
            }
        }
        None
    }

    /// Ends the sleep early, because the clock was moved: the sleep was to last until an alarm.
    #[cfg(feature = "testing")]
    pub(crate) fn clock_was_moved(&self) {
        let queue = self.queue.lock();
        if let Some(until) = queue.sleeps_until {
            self.waker.bring_forward(until);
        }
    }

    /// Takes the alarms that are due; gives the end of the next sleep.
    fn collect(&self, due: &mut Vec<Arc<dyn Alarm>>) -> Tick {
        let now = Tick::now();
        let mut queue = self.queue.lock();
        queue.sleeps_until = None;
        while let Some(first) = queue.alarms.first_entry().filter(|first| first.key().0 <= now) {
            due.extend(first.remove().upgrade());
        }
        let next = queue.alarms.first_key_value().map_or(Tick::NEVER, |((at, _), _)| rounded(*at));
        if !due.is_empty() {
            due.sort_by_cached_key(|alarm| alarm.ends());
            return next;
        }
        let until = self.waker.set(next, now);
        queue.sleeps_until = Some(until);
        until
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use tokio::sync::Notify;

    use super::*;

    struct Rings(Sender<(u64, Tick)>, u64);

    impl Alarm for Rings {
        fn ring(self: Arc<Self>) {
            self.0.send((self.1, Tick::now())).unwrap();
        }
    }

    /// Timers that run on a thread of their own, as long as the process.
    fn running(waker: fn() -> ThreadWaker) -> Arc<Timers> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let timers = {
            let _entered = runtime.enter();
            Arc::new(Timers::with(waker()))
        };
        let keeper = Arc::clone(&timers);
        std::thread::spawn(move || runtime.block_on(keeper.run()));
        timers
    }

    /// Sets an alarm as soon as the thread sleeps.
    fn set(timers: &Timers, sender: &Sender<(u64, Tick)>, id: u64, at: Tick) -> Arc<dyn Alarm> {
        let alarm: Arc<dyn Alarm> = Arc::new(Rings(sender.clone(), id));
        while timers.queue.lock().sleeps_until.is_none() {
            std::thread::yield_now();
        }
        timers.set(at, id, Arc::downgrade(&alarm));
        alarm
    }

    fn rung(received: &Receiver<(u64, Tick)>) -> (u64, Tick) {
        received.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn the_earliest_rings_first_whenever_it_was_set(waker: fn() -> ThreadWaker) {
        let timers = running(waker);
        let (sender, received) = channel();
        let now = Tick::now();
        let at = |millis| now.after(Duration::from_millis(millis));
        let _last = set(&timers, &sender, 1, at(300));
        let _never = set(&timers, &sender, 2, at(250));
        let _first = set(&timers, &sender, 3, at(200));
        timers.cancel(at(250), 2);
        for (id, due) in [(3, at(200)), (1, at(300))] {
            let (rang, when) = rung(&received);
            assert_eq!(rang, id);
            assert!(when >= due, "{id} rang {:?} too early", due.since(when));
        }
        let gone = set(&timers, &sender, 4, Tick::now().after(Duration::from_millis(20)));
        drop(gone);
        let _past = set(&timers, &sender, 5, Tick::now().after(Duration::from_millis(40)));
        assert_eq!(rung(&received).0, 5, "an alarm nobody keeps is silent");
    }

    struct Ends(Sender<u64>, u64);

    impl Alarm for Ends {
        fn ring(self: Arc<Self>) {
            self.0.send(self.1).unwrap();
        }

        fn ends(&self) -> Tick {
            Tick::from_micros(self.1)
        }
    }

    #[test]
    fn of_those_that_are_due_the_one_that_ends_first_rings_first() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let timers = runtime.block_on(async { Timers::with(ThreadWaker::Runtime(Notify::new())) });
        let (sender, received) = channel();
        let alarms = [7, 3, 9, 0, 3, 5].map(|ends| Arc::new(Ends(sender.clone(), ends)) as Arc<dyn Alarm>);
        for (id, alarm) in (0..).zip(&alarms) {
            timers.set(Tick::from_micros(id), id, Arc::downgrade(alarm));
        }
        let mut due = Vec::new();
        timers.collect(&mut due);
        due.into_iter().for_each(Alarm::ring);
        drop((sender, alarms));
        assert_eq!(received.into_iter().collect::<Vec<_>>(), [0, 3, 3, 5, 7, 9]);
    }

    struct Panics;

    impl Alarm for Panics {
        fn ring(self: Arc<Self>) {
            panic!("on purpose");
        }
    }

    #[test]
    fn an_alarm_that_panics_keeps_no_other_from_ringing() {
        let timers = running(ThreadWaker::new);
        let (sender, received) = channel();
        let panics: Arc<dyn Alarm> = Arc::new(Panics);
        let at = Tick::now().after(Duration::from_millis(20));
        timers.set(at, 1, Arc::downgrade(&panics));
        let _at_once = set(&timers, &sender, 2, at);
        let _later = set(&timers, &sender, 3, at.after(Duration::from_millis(20)));
        assert_eq!((rung(&received).0, rung(&received).0), (2, 3));
    }

    #[test]
    fn the_earliest_rings_first_by_the_systems_timer() {
        the_earliest_rings_first_whenever_it_was_set(ThreadWaker::new);
    }

    #[test]
    fn the_earliest_rings_first_by_the_runtimes_timer() {
        the_earliest_rings_first_whenever_it_was_set(|| ThreadWaker::Runtime(Notify::new()));
    }
}
