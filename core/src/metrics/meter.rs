//! Meters: the numbers that a client counts, always and without a lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::error::LossReason;
use crate::event::EventKind;
use crate::metrics::histogram::Times;
use crate::name::{Label, LockKind};
use crate::sync::Mutex;

/// The most labels that are counted apart. Further ones are counted as the family [`OTHER`].
pub(crate) const MAX_LABELS: usize = 100;

/// The family of the labels that are too many.
pub(crate) const OTHER: &str = "other";

/// How an acquire ends.
pub(crate) const ACQUIRE_ENDS: [EventKind; 8] = [
    EventKind::Acquired,
    EventKind::NotAcquired,
    EventKind::TimedOut,
    EventKind::Cancelled,
    EventKind::Failed,
    EventKind::Done,
    EventKind::Dead,
    EventKind::Skipped,
];

/// How a hold ends.
pub(crate) const HOLD_ENDS: [EventKind; 6] =
    [EventKind::Released, EventKind::HandedOver, EventKind::Expired, EventKind::Race, EventKind::Lost, EventKind::Dropped];

/// How an attempt of a job ends.
pub(crate) const JOB_ENDS: [EventKind; 3] = [EventKind::Done, EventKind::Retry, EventKind::Dead];

/// Why a hold is lost.
pub(crate) const LOSSES: [LossReason; 8] = [
    LossReason::Expired,
    LossReason::Missing,
    LossReason::Taken,
    LossReason::Superseded,
    LossReason::Conflict,
    LossReason::MaxHold,
    LossReason::Closed,
    LossReason::Ended,
];

/// What a release after the end of validity found: nobody, or a rival that held the lock before.
pub(crate) const OVERLAPS: [EventKind; 2] = [EventKind::Expired, EventKind::Race];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Release);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// One counter for each of several ends or reasons.
#[derive(Debug)]
pub(crate) struct Tally<const N: usize>([Counter; N]);

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl<const N: usize> Tally<N> {
    pub(crate) fn add<T: PartialEq>(&self, ends: &[T; N], end: &T) {
        if let Some(at) = ends.iter().position(|known| known == end) {
            self.0[at].add(1);
        }
    }

    pub(crate) fn read(&self) -> [u64; N] {
        std::array::from_fn(|at| self.0[at].read())
    }
}

/// The numbers of all locks with one label.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) label: Label,
    /// Acquires that have begun. It is read behind their ends, so that it is never the smaller number.
    pub(crate) begun: Counter,
    pub(crate) attempts: Counter,
    pub(crate) busy: Counter,
    pub(crate) acquires: Tally<8>,
    pub(crate) holds: Tally<6>,
    pub(crate) losses: Tally<8>,
    pub(crate) overlaps: Tally<2>,
    pub(crate) renewals: Counter,
    pub(crate) late_renewals: Counter,
    pub(crate) extensions: Counter,
    pub(crate) jobs: Tally<3>,
    pub(crate) waits: Times,
    pub(crate) hold_times: Times,
    pub(crate) round_trips: Times,
    pub(crate) handovers: Times,
    last_fence: AtomicU64,
}

impl Meter {
    fn new(label: Label) -> Self {
        Self {
            label,
            begun: Counter::default(),
            attempts: Counter::default(),
            busy: Counter::default(),
            acquires: Tally::default(),
            holds: Tally::default(),
            losses: Tally::default(),
            overlaps: Tally::default(),
            renewals: Counter::default(),
            late_renewals: Counter::default(),
            extensions: Counter::default(),
            jobs: Tally::default(),
            waits: Times::default(),
            hold_times: Times::default(),
            round_trips: Times::default(),
            handovers: Times::default(),
            last_fence: AtomicU64::new(0),
        }
    }

    pub(crate) fn acquire_ended(&self, end: EventKind, waited: Duration) {
        self.acquires.add(&ACQUIRE_ENDS, &end);
        self.waits.note(waited);
    }

    pub(crate) fn hold_ended(&self, end: EventKind, lasted: Duration) {
        self.holds.add(&HOLD_ENDS, &end);
        self.hold_times.note(lasted);
    }

    pub(crate) fn granted(&self, fence: u64) {
        self.last_fence.fetch_max(fence, Ordering::Relaxed);
    }

    pub(crate) fn last_fence(&self) -> u64 {
        self.last_fence.load(Ordering::Relaxed)
    }
}

/// The numbers of one server.
#[derive(Debug, Default)]
pub(crate) struct ServerMeter {
    is_down: AtomicBool,
    pub(crate) failures: Counter,
    pub(crate) failovers: Counter,
}

impl ServerMeter {
    /// Notes an event of the server.
    pub(crate) fn note(&self, kind: EventKind) {
        match kind {
            EventKind::ServerFailed => self.failures.add(1),
            EventKind::FailedOver => self.failovers.add(1),
            _ => (),
        }
        self.is_down.store(kind == EventKind::ServerFailed, Ordering::Relaxed);
    }

    pub(crate) fn is_up(&self) -> bool {
        !self.is_down.load(Ordering::Relaxed)
    }
}

/// The meters of one client in one process.
#[derive(Debug)]
pub(crate) struct Meters {
    meters: Mutex<HashMap<Label, Arc<Meter>>>,
    pub(crate) servers: Vec<Arc<ServerMeter>>,
}

impl Meters {
    pub(crate) fn new(servers: usize) -> Self {
        Self { meters: Mutex::default(), servers: (0..servers).map(|_| Arc::default()).collect() }
    }

    /// The meter of locks with this label.
    pub(crate) fn of(&self, label: &Label) -> Arc<Meter> {
        let mut meters = self.meters.lock();
        if let Some(meter) = meters.get(label) {
            return Arc::clone(meter);
        }
        let is_too_many = meters.len() >= MAX_LABELS;
        let label = if is_too_many { Label { family: OTHER.into(), ..label.clone() } } else { label.clone() };
        let meter = meters.entry(label.clone()).or_insert_with(|| Arc::new(Meter::new(label)));
        Arc::clone(meter)
    }

    /// All meters, in the order of their labels.
    pub(crate) fn all(&self) -> Vec<Arc<Meter>> {
        let mut meters: Vec<_> = self.meters.lock().values().cloned().collect();
        meters.sort_by(|one, other| one.label.cmp(&other.label));
        meters
    }
}

/// Whether an attempt of such a lock is counted as one of a job.
pub(crate) const fn is_job(kind: LockKind) -> bool {
    matches!(kind, LockKind::Job | LockKind::Once)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(family: &str) -> Label {
        Label::new(LockKind::Lock, family)
    }

    #[test]
    fn labels_that_are_too_many_are_counted_together() {
        let meters = Meters::new(1);
        for number in 0..100_000 {
            meters.of(&label(&format!("family-{number}"))).attempts.add(1);
        }
        let all = meters.all();
        assert_eq!(all.len(), MAX_LABELS + 1);
        let other = all.iter().find(|meter| &*meter.label.family == OTHER).unwrap();
        assert_eq!(other.attempts.read(), 100_000 - MAX_LABELS as u64);
        meters.of(&label("family-7")).attempts.add(1);
        assert_eq!(meters.of(&label("family-7")).attempts.read(), 2);
    }

    #[test]
    fn every_reason_and_end_has_a_counter_of_its_own() {
        let meter = Meter::new(label("orders"));
        LOSSES.iter().for_each(|reason| meter.losses.add(&LOSSES, reason));
        assert_eq!(meter.losses.read(), [1; 8]);
        ACQUIRE_ENDS.iter().for_each(|end| meter.acquire_ended(*end, Duration::ZERO));
        HOLD_ENDS.iter().for_each(|end| meter.hold_ended(*end, Duration::ZERO));
        assert_eq!((meter.acquires.read(), meter.holds.read()), ([1; 8], [1; 6]));
    }
}
