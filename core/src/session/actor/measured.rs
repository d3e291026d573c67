//! Measured: what one acquisition adds to the metrics of its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Tick;
use crate::event::{EventKind, LockEvent};
use crate::metrics::meter::{JOB_ENDS, LOSSES, Meter, OVERLAPS, overlap};
use crate::metrics::reading::Present;

/// The meter of an acquisition, and how far the acquisition is. Its inputs are handled one at a time, so no two threads note at once.
pub(super) struct Measured {
    meter: Arc<Meter>,
    begun: Tick,
    waits: AtomicBool,
    /// The time of the grant, microseconds of the boot clock; 0 while nothing is held.
    held_since: AtomicU64,
}

impl Measured {
    /// An acquire begins.
    pub(super) fn begin(meter: Arc<Meter>, now: Tick) -> Self {
        meter.acquire_begun();
        Self { meter, begun: now, waits: AtomicBool::new(true), held_since: AtomicU64::new(0) }
    }

    /// The same acquire for the first of several locks that it has got, with this meter.
    pub(super) fn hand_on(&self) -> Self {
        self.waits.store(false, Ordering::Relaxed);
        Self { meter: Arc::clone(&self.meter), begun: self.begun, waits: AtomicBool::new(true), held_since: AtomicU64::new(0) }
    }

    /// The same acquire for another one of several locks, with its meter.
    pub(super) fn again(&self, meter: Arc<Meter>) -> Self {
        Self::begin(meter, self.begun)
    }

    /// Notes how an attempt ended, this one or an earlier one.
    pub(super) fn note_attempt(&self, end: EventKind) {
        self.meter.jobs.add(&JOB_ENDS, &end);
    }

    /// Notes an event of the acquisition, whose lock has this `ttl`.
    pub(super) fn note(&self, event: &LockEvent, ttl: Duration) {
        let meter = &*self.meter;
        match event.kind {
            EventKind::Round => meter.rounds.add(1),
            EventKind::Busy => meter.busy.add(1),
            EventKind::NotAcquired => {
                meter.busy.add(1);
                self.acquire_ended(event.kind, event.took);
            }
            EventKind::Renewed | EventKind::Extended => {
                event.took.into_iter().for_each(|took| meter.round_trips.note(took));
                let is_renewal = event.kind == EventKind::Renewed;
                if is_renewal { &meter.renewals } else { &meter.extensions }.add(1);
                if is_renewal && event.remaining.is_some_and(|left| left < ttl / 3) {
                    meter.late_renewals.add(1);
                }
            }
            EventKind::Done | EventKind::Dead if event.owner.is_none() => self.acquire_ended(event.kind, event.took),
            EventKind::Done | EventKind::Dead | EventKind::Retry => self.note_attempt(event.kind),
            ended if ended.ends_acquire() => self.acquire_ended(ended, event.took),
            ended if ended.ends_hold() => {
                overlap(event).into_iter().for_each(|overlap| meter.overlaps.add(&OVERLAPS, &overlap));
                event.reason.into_iter().for_each(|reason| meter.losses.add(&LOSSES, &reason));
                self.hold_ended(ended, event.took);
            }
            _ => (),
        }
        if let (EventKind::Acquired, Some(fence)) = (event.kind, event.fence) {
            let granted = self.begun.after(event.took.unwrap_or_default());
            self.held_since.store(granted.as_micros().max(1), Ordering::Relaxed);
            meter.granted(fence);
            event.notified_ago.into_iter().for_each(|ago| meter.handovers.note(ago));
        }
    }

    /// Notes the end of the acquire, unless it has ended before. An event says how long it took, so that no clock is read.
    pub(super) fn acquire_ended(&self, end: EventKind, took: Option<Duration>) {
        if self.waits.swap(false, Ordering::Relaxed) {
            self.meter.acquire_ended(end, took.unwrap_or_else(|| Tick::now().since(self.begun)));
        }
    }

    /// Notes the end of the hold, unless there is none or it has ended before: what is found at the release of a lost lock is no
    /// second end.
    pub(super) fn hold_ended(&self, end: EventKind, took: Option<Duration>) {
        match self.held_since.swap(0, Ordering::Relaxed) {
            0 => (),
            since => self.meter.hold_ended(end, took.unwrap_or_else(|| Tick::now().since(Tick::from_micros(since)))),
        }
    }

    /// Adds what the acquisition is at `now` to that of others with the same label.
    pub(super) fn add_to(&self, present: &mut Present, valid_until: Tick, max_hold: Option<Duration>, now: Tick) {
        if self.waits.load(Ordering::Relaxed) {
            present.longest_wait = present.longest_wait.max(now.since(self.begun));
        }
        let since = self.held_since.load(Ordering::Relaxed);
        if since == 0 {
            return;
        }
        let age = now.since(Tick::from_micros(since));
        present.longest_hold = present.longest_hold.max(age);
        let left = valid_until.since(now);
        present.least_validity = Some(present.least_validity.map_or(left, |least| least.min(left)));
        if let Some(longest) = max_hold {
            let ratio = (age.as_secs_f64() / longest.as_secs_f64()).min(1.0);
            present.max_hold_ratio = Some(present.max_hold_ratio.map_or(ratio, |most| most.max(ratio)));
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        // Nothing is under way any more, whatever ended it.
        self.acquire_ended(EventKind::Cancelled, None);
        self.hold_ended(EventKind::Dropped, None);
    }
}

#[cfg(test)]
#[path = "measured_tests.rs"]
mod tests;
